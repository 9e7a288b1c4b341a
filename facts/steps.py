"""Facts on how a step's time divides (Hermes §4.2.1) and how ranks that do the same work compare."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from hermes_advisor.facts.base import Fact


class StepBreakdown(Fact):
    """One rank's step: compute, communication (overlapped and exposed) and free time; the parts add up to the step.

    Read from step_trace_time.csv a step lasts from the device's first work to its last: duration = compute + exposed
    communication + free, and preparing (the host's time before the first work) comes on top. From a timeline alone it
    lasts from its ProfilerStep mark to the next: duration = compute + exposed communication + free + preparing, where
    free is idle time between the device's work and preparing is the host's before the first and after the last work of
    the capture. Without marks it is the span of the device's work, and preparing is not known.
    ``overlap_ratio`` is overlapped time over step time, as the paper reports it (§4.2.1: 8.76 % fine, 2.66 % not).
    """

    kind: ClassVar[str] = "step_breakdown"
    collect: ClassVar[str] = "profile a whole step (schedule with active >= 1 and prof.step() in the loop)"
    collect_zh: ClassVar[str] = "采集完整的 step（schedule 中 active >= 1，循环中调用 prof.step()）"
    rank: int = Field(examples=[0])
    step: int = Field(examples=[10], description="-1: no step marks, the whole capture")
    duration_us: float = Field(examples=[100000.0])
    compute_us: float = Field(examples=[85000.0])
    communication_us: float = Field(examples=[20000.0])
    exposed_communication_us: float = Field(examples=[10000.0])
    overlapped_us: float = Field(examples=[10000.0])
    free_us: float = Field(examples=[5000.0])
    bubble_us: float | None = Field(default=None, examples=[0.0], description="receive operations (step_trace_time)")
    preparing_us: float | None = Field(default=None, examples=[200.0], description="host time at the edges, see above")
    compute_ratio: float = Field(examples=[0.85])
    exposed_communication_ratio: float = Field(examples=[0.10])
    free_ratio: float = Field(examples=[0.05], description="free over step")
    overlap_ratio: float = Field(examples=[0.10], description="overlapped over step")
    communication_overlap_ratio: float | None = Field(
        default=None, examples=[0.5], description="overlapped over communication; None without communication"
    )


class RankCompute(Fact):
    """A rank's compute time against the ranks that do the same work (same pipeline stage)."""

    kind: ClassVar[str] = "rank_compute"
    collect: ClassVar[str] = "profile every rank of one data-parallel group in the same step"
    collect_zh: ClassVar[str] = "在同一 step 采集一个数据并行组的所有 rank"
    rank: int = Field(examples=[0])
    step: int = Field(examples=[10])
    peers_count: int = Field(examples=[3], description="other ranks compared with")
    compute_us: float = Field(examples=[80000.0])
    peer_median_us: float = Field(examples=[80000.0])
    excess_us: float = Field(examples=[0.0], description="compute minus the peers' median; negative: faster")
    excess_ratio: float = Field(examples=[0.0], description="excess over the peers' median")
    step_duration_us: float = Field(examples=[100000.0])
