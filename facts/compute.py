"""Facts about kernels: time per operator type, AICPU, dynamic shapes, conversions, pipes, frequency (Hermes §4.2.2)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from hermes_advisor.facts.base import Fact, Instance

_KERNELS = "profile with ProfilerActivity.NPU and export text, so that kernel_details.csv exists for the rank"
_PIPES = "profile at profiler_level Level1 with aic_metrics=AiCMetrics.PipeUtilization"


class KernelSummary(Fact):
    """All compute kernels of a rank over the capture."""

    kind: ClassVar[str] = "kernel_summary"
    collect: ClassVar[str] = _KERNELS
    collect_zh: ClassVar[str] = "采集 ProfilerActivity.NPU 并导出 text，使该 rank 有 kernel_details.csv"
    rank: int = Field(examples=[0])
    kernel_count: int = Field(examples=[1000])
    per_step_count: float = Field(examples=[1000.0])
    total_us: float = Field(examples=[80000.0])
    per_step_us: float = Field(examples=[80000.0])
    median_us: float = Field(examples=[40.0])
    short_kernel_count: int = Field(examples=[200], description="kernels below 10 us, about the cost of a launch")
    short_kernel_ratio: float = Field(examples=[0.2])


class KernelType(Fact):
    """Kernels of one operator type and core on a rank (the costliest types, and those that rules watch)."""

    kind: ClassVar[str] = "kernel_type"
    collect: ClassVar[str] = _KERNELS
    collect_zh: ClassVar[str] = "采集 ProfilerActivity.NPU 并导出 text，使该 rank 有 kernel_details.csv"
    rank: int = Field(examples=[0])
    op_type: str = Field(examples=["MatMulV3"])
    core_type: str = Field(examples=["AI_CORE"])
    kernel_count: int = Field(examples=[100])
    total_us: float = Field(examples=[30000.0])
    per_step_us: float = Field(examples=[30000.0])
    mean_us: float = Field(examples=[300.0])
    max_us: float = Field(examples=[400.0])
    compute_ratio: float = Field(examples=[0.3], description="of the rank's kernel time")


class AicpuKernels(Fact):
    """Kernels that ran on the AI CPU instead of the AI cores; a zero count is a measured zero."""

    kind: ClassVar[str] = "aicpu_kernels"
    collect: ClassVar[str] = _KERNELS
    collect_zh: ClassVar[str] = "采集 ProfilerActivity.NPU 并导出 text，使该 rank 有 kernel_details.csv"
    rank: int = Field(examples=[0])
    kernel_count: int = Field(examples=[0])
    total_us: float = Field(examples=[0.0])
    per_step_us: float = Field(examples=[0.0])
    compute_ratio: float = Field(examples=[0.0])
    longest_us: float = Field(examples=[0.0])
    costliest_type: str = Field(default="", examples=[""], description="operator type with the most AICPU time")
    worst: tuple[Instance, ...] = Field(default=(), examples=[()])


class DynamicShapeKernels(Fact):
    """Kernels marked dynamic in ``OP State``; absent where the file has no such column (before CANN 8)."""

    kind: ClassVar[str] = "dynamic_shape_kernels"
    collect: ClassVar[str] = "profile with CANN 8.0 or later: older kernel_details.csv have no OP State column"
    collect_zh: ClassVar[str] = "使用 CANN 8.0 或更高版本采集：旧版 kernel_details.csv 没有 OP State 列"
    rank: int = Field(examples=[0])
    known_count: int = Field(examples=[1000], description="kernels whose state is recorded")
    dynamic_count: int = Field(examples=[0])
    dynamic_ratio: float = Field(examples=[0.0])
    dynamic_us: float = Field(examples=[0.0])


class FormatConversion(Fact):
    """Kernels that only change layout or type: ``transdata``, ``cast`` or ``transpose``; zero is a measured zero."""

    kind: ClassVar[str] = "format_conversion"
    collect: ClassVar[str] = _KERNELS
    collect_zh: ClassVar[str] = "采集 ProfilerActivity.NPU 并导出 text，使该 rank 有 kernel_details.csv"
    rank: int = Field(examples=[0])
    conversion: str = Field(examples=["transdata"])
    kernel_count: int = Field(examples=[2])
    total_us: float = Field(examples=[100.0])
    per_step_us: float = Field(examples=[100.0])
    compute_ratio: float = Field(examples=[0.001])


class PipeUtilization(Fact):
    """Time-weighted pipe ratios of one operator type (aic_metrics=PipeUtilization): which pipe limits it, if any.

    ``busiest_ratio`` is the largest pipe ratio; below 0.8 no pipe is the limit (threshold in use: msprof-analyze).
    """

    kind: ClassVar[str] = "pipe_utilization"
    collect: ClassVar[str] = _PIPES
    collect_zh: ClassVar[str] = "以 Level1 采集，并设置 aic_metrics=AiCMetrics.PipeUtilization"
    rank: int = Field(examples=[0])
    op_type: str = Field(examples=["MatMulV3"])
    core: str = Field(examples=["cube"], description="cube or vector")
    kernel_count: int = Field(examples=[100])
    total_us: float = Field(examples=[30000.0])
    per_step_us: float = Field(examples=[30000.0])
    mean_us: float = Field(examples=[300.0])
    compute_ratio: float = Field(examples=[0.3])
    mac_ratio: float | None = Field(default=None, examples=[0.85])
    mte2_ratio: float | None = Field(default=None, examples=[0.5])
    vec_ratio: float | None = Field(default=None, examples=[None])
    scalar_ratio: float | None = Field(default=None, examples=[0.1])
    busiest_pipe: str = Field(examples=["mac"])
    busiest_ratio: float = Field(examples=[0.85])


class BlockDimUsage(Fact):
    """Kernels that occupy less than half of the cores that the widest kernel of the same core type occupied."""

    kind: ClassVar[str] = "block_dim_usage"
    collect: ClassVar[str] = _KERNELS
    collect_zh: ClassVar[str] = "采集 ProfilerActivity.NPU 并导出 text，使该 rank 有 kernel_details.csv"
    rank: int = Field(examples=[0])
    core_type: str = Field(examples=["AI_CORE"])
    widest_count: int = Field(examples=[24], description="largest block dim seen: a lower bound of the core count")
    narrow_kernel_count: int = Field(examples=[10])
    narrow_us: float = Field(examples=[100.0])
    narrow_per_step_us: float = Field(examples=[100.0])
    narrow_compute_ratio: float = Field(examples=[0.001])
    worst: tuple[Instance, ...] = Field(default=(), examples=[()])


class CoreFrequency(Fact):
    """AI core clock over the capture (counter lane ``AI Core Freq``)."""

    kind: ClassVar[str] = "core_frequency"
    collect: ClassVar[str] = "profile at Level1 on a chip that records AI Core Freq, and keep trace_view.json"
    collect_zh: ClassVar[str] = "在支持 AI Core Freq 的芯片上以 Level1 采集，并保留 trace_view.json"
    rank: int = Field(examples=[0])
    sample_count: int = Field(examples=[2])
    max_mhz: float = Field(examples=[1800.0])
    min_mhz: float = Field(examples=[1800.0])
    mean_mhz: float = Field(examples=[1800.0], description="weighted by the time each value held")
    drop_ratio: float = Field(examples=[0.0], description="1 - mean / max")
