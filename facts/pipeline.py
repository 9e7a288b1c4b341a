"""Facts about pipeline parallelism: the load of each stage, their balance, and the bubble."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from hermes_advisor.facts.base import Fact

_STAGES = "profile one rank of every pipeline stage in the same step, with profiler_metadata.json kept"


class StageLoad(Fact):
    """One pipeline stage in a step, averaged over its ranks."""

    kind: ClassVar[str] = "stage_load"
    collect: ClassVar[str] = _STAGES
    collect_zh: ClassVar[str] = "在同一 step 采集每个流水线 stage 的至少一个 rank，并保留 profiler_metadata.json"
    step: int = Field(examples=[10])
    stage: int = Field(examples=[0])
    ranks_count: int = Field(examples=[1])
    compute_us: float = Field(examples=[80000.0])
    exposed_communication_us: float = Field(examples=[8000.0])
    p2p_us: float | None = Field(default=None, examples=[2000.0], description="send/receive elapse; None: unknown")
    free_us: float = Field(examples=[12000.0])
    ranks: tuple[int, ...] = Field(default=(), examples=[(0,)])


class PipelineBalance(Fact):
    """How evenly compute is spread over the pipeline stages in one step."""

    kind: ClassVar[str] = "pipeline_balance"
    collect: ClassVar[str] = _STAGES
    collect_zh: ClassVar[str] = "在同一 step 采集每个流水线 stage 的至少一个 rank，并保留 profiler_metadata.json"
    step: int = Field(examples=[10])
    stage_count: int = Field(examples=[2])
    heaviest_stage: int = Field(examples=[1])
    compute_max_us: float = Field(examples=[81000.0])
    compute_mean_us: float = Field(examples=[80500.0])
    compute_min_us: float = Field(examples=[80000.0])
    excess_us: float = Field(examples=[500.0], description="heaviest stage minus the mean of all stages")
    imbalance_ratio: float = Field(examples=[0.006], description="excess over the mean")
    step_duration_us: float = Field(examples=[100000.0])
    stage_source: str = Field(examples=["parallel_group_info"], description="how the stages were found")
    loaded_ranks: tuple[int, ...] = Field(default=(), examples=[(1,)])
    waiting_ranks: tuple[int, ...] = Field(default=(), examples=[(0,)])


class PipelineBubble(Fact):
    """Time that a step's ranks spend in send and receive operations of the pipeline, on average over ranks."""

    kind: ClassVar[str] = "pipeline_bubble"
    collect: ClassVar[str] = _STAGES
    collect_zh: ClassVar[str] = "在同一 step 采集每个流水线 stage 的至少一个 rank，并保留 profiler_metadata.json"
    step: int = Field(examples=[10])
    stage_count: int = Field(examples=[2])
    mean_p2p_us: float = Field(examples=[2000.0])
    max_p2p_us: float = Field(examples=[3000.0])
    step_ratio: float = Field(examples=[0.02], description="mean over step")
    step_duration_us: float = Field(examples=[100000.0])
    ranks: tuple[int, ...] = Field(default=(), examples=[(0, 1)])
