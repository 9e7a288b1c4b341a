"""Facts about the host side: idle device time, launch delay, compilation, synchronisation, input (Hermes §4.2.2).

Where the timeline marks the steps (``ProfilerStep#N``), calls, copies and waits of the host count only within the
marks, and their ``step_ratio`` is over the marked time: it includes the time before the device's first work, which
the ``duration_us`` of a step read from step_trace_time.csv does not.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from hermes_advisor.facts.base import Fact, Instance


class FreeTime(Fact):
    """Device idle gaps of a rank (neither compute nor communication) over the captured steps."""

    kind: ClassVar[str] = "free_time"
    collect: ClassVar[str] = "profile with ProfilerActivity.NPU and export text, so that trace_view.json exists"
    collect_zh: ClassVar[str] = "采集 ProfilerActivity.NPU 并导出 text，以得到 trace_view.json"
    rank: int = Field(examples=[0])
    gap_count: int = Field(examples=[40])
    free_us: float = Field(examples=[4000.0])
    free_per_step_us: float = Field(examples=[4000.0])
    largest_gap_us: float = Field(examples=[500.0])
    median_gap_us: float = Field(examples=[20.0])
    span_ratio: float = Field(examples=[0.05], description="free over the captured span")
    largest_gap_share_ratio: float = Field(examples=[0.12], description="largest gap over all free time")
    worst: tuple[Instance, ...] = Field(default=(), examples=[()], description="largest gaps, with neighbours")


class LaunchProfile(Fact):
    """How far ahead of the device the host launches kernels.

    A kernel is *starved* when its launch call began only after all earlier kernels had ended: the device had run dry
    and waited for the host. The gap before such a kernel is host-bound time.
    """

    kind: ClassVar[str] = "launch_profile"
    collect: ClassVar[str] = "profile with ProfilerActivity.CPU and NPU at profiler_level Level1 (host-to-device links)"
    collect_zh: ClassVar[str] = "以 Level1 采集 ProfilerActivity.CPU 和 NPU（主机到设备的连线）"
    rank: int = Field(examples=[0])
    kernel_count: int = Field(examples=[1000])
    linked_count: int = Field(examples=[1000], description="kernels whose launch is known")
    median_delay_us: float = Field(examples=[2000.0], description="launch start to kernel start; long = host is ahead")
    median_kernel_us: float = Field(examples=[80.0])
    median_launch_interval_us: float = Field(examples=[40.0], description="between successive launches of one thread")
    starved_count: int = Field(examples=[10])
    starved_kernel_ratio: float = Field(examples=[0.01], description="starved over linked kernels")
    starved_us: float = Field(examples=[500.0])
    starved_per_step_us: float = Field(examples=[500.0])
    starved_step_ratio: float = Field(examples=[0.005], description="starved time over captured step time")
    worst: tuple[Instance, ...] = Field(default=(), examples=[()])


class HostApi(Fact):
    """Calls of one runtime or CANN API on the host over the capture (the costliest, per rank)."""

    kind: ClassVar[str] = "host_api"
    collect: ClassVar[str] = "profile at profiler_level Level1 or Level2 (api_statistic.csv or the CANN lanes)"
    collect_zh: ClassVar[str] = "以 Level1 或 Level2 采集（api_statistic.csv 或 CANN 泳道）"
    rank: int = Field(examples=[0])
    level: str = Field(examples=["acl"], description="acl, runtime, node, hccl, …")
    api: str = Field(examples=["aclnnAdd"])
    call_count: int = Field(examples=[100])
    total_us: float = Field(examples=[1000.0])
    mean_us: float = Field(examples=[10.0])
    max_us: float = Field(examples=[50.0])
    per_step_us: float = Field(examples=[1000.0])
    step_ratio: float = Field(examples=[0.01], description="total over captured step time")


class OperatorCompile(Fact):
    """Operators compiled while training (``aclopCompileAndExecute``; Hermes Table 2); a zero is a measured zero."""

    kind: ClassVar[str] = "operator_compile"
    collect: ClassVar[str] = "profile at profiler_level Level1 or Level2 (AscendCL calls are not recorded at Level0)"
    collect_zh: ClassVar[str] = "以 Level1 或 Level2 采集（Level0 不记录 AscendCL 调用）"
    rank: int = Field(examples=[0])
    compile_count: int = Field(examples=[0])
    per_step_count: float = Field(examples=[0.0])
    total_us: float = Field(examples=[0.0])
    per_step_us: float = Field(examples=[0.0])
    step_ratio: float = Field(examples=[0.0])
    longest_us: float = Field(examples=[0.0])
    op_compile_us: float | None = Field(
        default=None, examples=[None], description="opCompile within these calls; the rest is preparing and launching"
    )
    op_compile_ratio: float | None = Field(default=None, examples=[None], description="op_compile_us over total_us")


class HostSynchronization(Fact):
    """Calls that make the host wait for the device; each drains the launch queue (Hermes Table 2, dispatch)."""

    kind: ClassVar[str] = "host_synchronization"
    collect: ClassVar[str] = "profile at profiler_level Level1 or Level2 with ProfilerActivity.CPU"
    collect_zh: ClassVar[str] = "以 Level1 或 Level2 采集，并包含 ProfilerActivity.CPU"
    rank: int = Field(examples=[0])
    sync_count: int = Field(examples=[1], description="stream, device and event synchronisations and blocking copies")
    per_step_count: float = Field(examples=[1.0])
    total_us: float = Field(examples=[100.0])
    per_step_us: float = Field(examples=[100.0])
    step_ratio: float = Field(examples=[0.001])
    longest_us: float = Field(examples=[100.0])
    scalar_read_count: int | None = Field(
        default=None, examples=[1], description="aten::_local_scalar_dense calls that reached the device (item())"
    )
    worst: tuple[Instance, ...] = Field(default=(), examples=[()])


class DataLoaderWait(Fact):
    """Time the training loop spends in ``next()`` of its DataLoader."""

    kind: ClassVar[str] = "dataloader_wait"
    collect: ClassVar[str] = "profile with ProfilerActivity.CPU over a whole step, the data loading included"
    collect_zh: ClassVar[str] = "采集 ProfilerActivity.CPU，覆盖包含数据加载在内的完整 step"
    rank: int = Field(examples=[0])
    call_count: int = Field(examples=[1])
    total_us: float = Field(examples=[300.0])
    per_step_us: float = Field(examples=[300.0])
    step_ratio: float = Field(examples=[0.003])
    longest_us: float = Field(examples=[300.0])
    multi_process: bool = Field(examples=[True], description="False: loaded in the training process (num_workers=0)")


class HostToDeviceCopy(Fact):
    """Host-to-device copies seen on the device lanes over the capture."""

    kind: ClassVar[str] = "host_to_device_copy"
    collect: ClassVar[str] = "profile with ProfilerActivity.NPU at Level2 (there MEMCPY tasks carry size and direction)"
    collect_zh: ClassVar[str] = "以 Level2 采集 ProfilerActivity.NPU（此级别的 MEMCPY 任务带大小和方向）"
    rank: int = Field(examples=[0])
    copy_count: int = Field(examples=[2])
    size_bytes: int = Field(examples=[1000000])
    total_us: float = Field(examples=[100.0])
    per_step_us: float = Field(examples=[100.0])
    step_ratio: float = Field(examples=[0.001])
    bandwidth_gb_per_s: float = Field(examples=[20.0])
