"""The closed vocabulary: every fact kind and every cause that rules may name."""

from __future__ import annotations

from hermes_advisor.facts.base import Fact
from hermes_advisor.facts.communication import (
    CommunicationGroup,
    CommunicationTime,
    CommunicationWait,
    LinkBandwidth,
    PacketSize,
    SlowestLink,
    TransferAlignment,
)
from hermes_advisor.facts.compute import (
    AicpuKernels,
    BlockDimUsage,
    CoreFrequency,
    DynamicShapeKernels,
    FormatConversion,
    KernelSummary,
    KernelType,
    PipeUtilization,
)
from hermes_advisor.facts.conclusions import Cause, Symptom
from hermes_advisor.facts.host import (
    DataLoaderWait,
    FreeTime,
    HostApi,
    HostSynchronization,
    HostToDeviceCopy,
    LaunchProfile,
    OperatorCompile,
)
from hermes_advisor.facts.memory import MemoryPeak
from hermes_advisor.facts.pipeline import PipelineBalance, PipelineBubble, StageLoad
from hermes_advisor.facts.run import (
    EnvironmentVariable,
    ProfileSettings,
    RankCoverage,
    SoftwareVersion,
    TraceHealth,
)
from hermes_advisor.facts.steps import RankCompute, StepBreakdown

_MEASURED: tuple[type[Fact], ...] = (
    ProfileSettings, RankCoverage, TraceHealth, EnvironmentVariable, SoftwareVersion,
    StepBreakdown, RankCompute,
    FreeTime, LaunchProfile, HostApi, OperatorCompile, HostSynchronization, DataLoaderWait, HostToDeviceCopy,
    KernelSummary, KernelType, AicpuKernels, DynamicShapeKernels, FormatConversion, PipeUtilization, BlockDimUsage,
    CoreFrequency,
    CommunicationTime, CommunicationGroup, CommunicationWait, LinkBandwidth, PacketSize, SlowestLink,
    TransferAlignment,
    StageLoad, PipelineBalance, PipelineBubble,
    MemoryPeak,
)  # fmt: skip

FACT_TYPES: dict[str, type[Fact]] = {model.kind: model for model in _MEASURED} | {
    Symptom.kind: Symptom,
    Cause.kind: Cause,
}
"""Fact kind → model, measured facts first, then the conclusions that rules derive."""

DERIVED_KINDS = frozenset({Symptom.kind, Cause.kind})

CAUSES: frozenset[str] = frozenset(
    {
        "parallel.poor_overlap", "parallel.pipeline_bubble", "parallel.load_imbalance",
        "io.reading", "io.processing", "io.fetching", "io.checkpoint",
        "cpu.compilation", "cpu.dispatch", "cpu.synchronization", "cpu.gc", "cpu.contention", "cpu.environment",
        "cpu.affinity",
        "compute.bound", "compute.memory_bound", "compute.aicpu", "compute.affinity_api",
        "compute.format_conversion", "compute.fusible", "compute.block_dim", "compute.dynamic_shape",
        "compute.downclock", "compute.recomputation", "compute.under_utilised",
        "comm.slow_rank", "comm.slow_link", "comm.contention", "comm.retransmission", "comm.small_packet",
        "comm.alignment", "comm.configuration", "comm.saturated",
        "memory.fragmentation", "memory.pressure", "memory.leak",
        "hardware.fault", "fluctuation.periodic", "fluctuation.sporadic",
    }
)  # fmt: skip
"""Causes of a slow step: the contract for ``findings[].cause``; extended, never renamed."""

BOTTLENECKS: dict[str, str] = {
    "parallel": "parallel", "io": "io", "cpu": "cpu", "compute": "compute", "comm": "communication",
    "memory": "memory", "hardware": "hardware", "fluctuation": "hardware",
}  # fmt: skip
"""First part of a cause → the bottleneck it belongs to (Hermes Table 4, with memory and hardware added)."""
