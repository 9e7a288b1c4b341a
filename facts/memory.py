"""Facts about device memory (memory_record.csv)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from hermes_advisor.facts.base import Fact


class MemoryPeak(Fact):
    """The framework allocator's peak on a rank, and what it reserved without using it."""

    kind: ClassVar[str] = "memory_peak"
    collect: ClassVar[str] = "profile with profile_memory=True (memory_record.csv)"
    collect_zh: ClassVar[str] = "设置 profile_memory=True 采集（memory_record.csv）"
    rank: int = Field(examples=[0])
    peak_reserved_bytes: int = Field(examples=[20000000000])
    peak_allocated_bytes: int = Field(examples=[19500000000])
    unused_reserved_bytes: int = Field(examples=[500000000], description="reserved minus allocated at peak allocation")
    unused_reserved_ratio: float = Field(examples=[0.025])
    growth_bytes: int = Field(examples=[0], description="allocated at the end minus at the start of the capture")
