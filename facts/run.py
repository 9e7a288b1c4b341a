"""Facts about the capture itself: what was profiled, at which level, by which software, and what is missing."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from hermes_advisor.facts.base import Fact


class ProfileSettings(Fact):
    """How one rank was profiled (``profiler_info*.json``), and what that hides from the analyses."""

    kind: ClassVar[str] = "profile_settings"
    collect: ClassVar[str] = "keep profiler_info_*.json beside ASCEND_PROFILER_OUTPUT when copying profiles"
    collect_zh: ClassVar[str] = "复制性能数据时保留 ASCEND_PROFILER_OUTPUT 旁的 profiler_info_*.json"
    rank: int = Field(examples=[0])
    level: str = Field(examples=["Level1"], description="Level_none, Level0, Level1 or Level2")
    level_number: int | None = Field(default=None, examples=[1], description="0, 1, 2; -1 for Level_none")
    aic_metrics: str = Field(default="", examples=["PipeUtilization"])
    record_shapes: bool | None = Field(default=None, examples=[True])
    with_stack: bool | None = Field(default=None, examples=[False])
    profile_memory: bool | None = Field(default=None, examples=[False])
    hides: tuple[str, ...] = Field(default=(), examples=[()], description="what this level does not record, in words")


class RankCoverage(Fact):
    """How many of the job's ranks the given profiles cover."""

    kind: ClassVar[str] = "rank_coverage"
    collect: ClassVar[str] = "profile at least one rank"
    collect_zh: ClassVar[str] = "至少采集一个 rank"
    seen_count: int = Field(examples=[2])
    expected_count: int = Field(examples=[2])
    missing_count: int = Field(examples=[0])
    is_lower_bound: bool = Field(
        default=False, examples=[False], description="expected was inferred from what is seen: there may be more"
    )
    missing_ranks: tuple[int, ...] = Field(default=(), examples=[()], description="the first 16")
    evidence: str = Field(default="", examples=["distributed_args.world_size"], description="how expected was found")


class TraceHealth(Fact):
    """Something that a reader had to skip, repair or assume: named and counted, never silent."""

    kind: ClassVar[str] = "trace_health"
    collect: ClassVar[str] = ""
    rank: int = Field(examples=[0], description="-1: the folder as a whole")
    issue: str = Field(examples=["missing_step_marks"])
    severity: str = Field(examples=["info"], description="info, warning or error")
    occurrence_count: int = Field(examples=[1])
    detail: str = Field(default="", examples=["the whole trace is taken as one step"])


class EnvironmentVariable(Fact):
    """One environment variable as the ranks recorded it (``profiler_metadata.json``: ENV_VARIABLES)."""

    kind: ClassVar[str] = "environment_variable"
    collect: ClassVar[str] = "keep profiler_metadata.json beside ASCEND_PROFILER_OUTPUT (torch_npu >= 2.1)"
    collect_zh: ClassVar[str] = "保留 ASCEND_PROFILER_OUTPUT 旁的 profiler_metadata.json（torch_npu >= 2.1）"
    name: str = Field(examples=["TASK_QUEUE_ENABLE"])
    value: str = Field(examples=[""], description="empty: recorded as not set")
    is_set: bool = Field(examples=[False])
    ranks_count: int = Field(examples=[2])
    ranks: tuple[int, ...] = Field(default=(), examples=[(0, 1)])


class SoftwareVersion(Fact):
    """A software component's version as recorded by the ranks."""

    kind: ClassVar[str] = "software_version"
    collect: ClassVar[str] = "profile with a torch_npu that records the versions in profiler_info_*.json (2.x or later)"
    collect_zh: ClassVar[str] = "使用会在 profiler_info_*.json 中记录版本的 torch_npu 采集（2.x 或更高版本）"
    component: str = Field(examples=["cann"], description="torch_npu or cann")
    version: str = Field(examples=["8.3.RC1"])
    versions_seen_count: int = Field(examples=[1], description="distinct versions of this component over all ranks")
    ranks: tuple[int, ...] = Field(default=(), examples=[(0, 1)])
