"""Facts about communication: time per rank, waits per group with R_wait, links, packets, alignment (Hermes Table 3)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from hermes_advisor.facts.base import Fact, Instance

_COMM = "profile at profiler_level Level1 or Level2 so that communication.json is written"
_MATRIX = (
    "profile at Level1 or Level2 (communication_matrix.json) ranks that share three or more links of one transport"
)


class CommunicationTime(Fact):
    """One rank's collective or point-to-point time in a step, split as communication.json splits it."""

    kind: ClassVar[str] = "communication_time"
    collect: ClassVar[str] = _COMM
    collect_zh: ClassVar[str] = "以 Level1 或 Level2 采集，以生成 communication.json"
    rank: int = Field(examples=[0])
    step: int = Field(examples=[10])
    traffic: str = Field(examples=["collective"], description="collective or p2p")
    op_count: int = Field(examples=[20])
    elapse_us: float = Field(examples=[18000.0])
    transit_us: float = Field(examples=[16000.0])
    wait_us: float = Field(examples=[1000.0])
    idle_us: float = Field(examples=[1000.0])
    step_ratio: float = Field(examples=[0.18], description="elapse over step")
    wait_ratio: float = Field(examples=[0.06], description="wait over elapse")
    idle_ratio: float = Field(examples=[0.06], description="idle over elapse")
    largest_idle_us: float = Field(examples=[200.0], description="idle time of the worst operator")
    worst: tuple[Instance, ...] = Field(default=(), examples=[()])


class CommunicationGroup(Fact):
    """A communication domain: who belongs to it and whose profile is there."""

    kind: ClassVar[str] = "communication_group"
    collect: ClassVar[str] = _COMM
    collect_zh: ClassVar[str] = "以 Level1 或 Level2 采集，以生成 communication.json"
    group: str = Field(examples=["dp-1"])
    role: str = Field(examples=["dp"], description="dp, tp, pp, … from parallel_group_info; empty if unknown")
    seen_count: int = Field(examples=[2])
    expected_count: int | None = Field(default=None, examples=[2], description="None: the size is not recorded")
    missing_count: int | None = Field(default=None, examples=[0])
    crosses_stages: bool | None = Field(
        default=None, examples=[False], description="its ranks sit in different pipeline stages; None: not known"
    )
    ranks: tuple[int, ...] = Field(default=(), examples=[(0, 1)])


class CommunicationWait(Fact):
    """Who is waited for in a group's collectives during one step.

    All ranks leave a collective together, so the rank with the shortest duration arrived last; what the others spent
    longer is wait that it imposed. ``r_wait_ratio`` = 1 - T_avg / T_max over the ranks' transfer times (Hermes §4.2.2).
    """

    kind: ClassVar[str] = "communication_wait"
    collect: ClassVar[str] = "profile every rank of the group in the same step at Level1 (communication.json each)"
    collect_zh: ClassVar[str] = "在同一 step 以 Level1 采集该组的所有 rank（各有 communication.json）"
    group: str = Field(examples=["dp-1"])
    role: str = Field(examples=["dp"])
    step: int = Field(examples=[10])
    op_count: int = Field(examples=[20], description="collectives compared over at least two ranks")
    seen_count: int = Field(examples=[2])
    missing_count: int | None = Field(default=None, examples=[0], description="None: the group's size is unknown")
    crosses_stages: bool | None = Field(default=None, examples=[False], description="None: not known")
    late_rank: int = Field(examples=[1], description="the rank that imposed the most wait")
    imposed_wait_us: float = Field(examples=[500.0], description="mean wait of the others for late_rank, per step")
    imposed_step_ratio: float = Field(examples=[0.005])
    late_share_ratio: float = Field(examples=[0.6], description="late_rank's share of all wait imposed in the group")
    r_wait_ratio: float | None = Field(default=None, examples=[0.05], description="None: no transfer time recorded")
    slowest_transit_rank: int | None = Field(default=None, examples=[1])
    transit_max_us: float | None = Field(default=None, examples=[1000.0])
    transit_mean_us: float | None = Field(default=None, examples=[950.0])
    worst: tuple[Instance, ...] = Field(default=(), examples=[()])


class LinkBandwidth(Fact):
    """What one rank achieved per transport in a step (size over time summed over its transfers)."""

    kind: ClassVar[str] = "link_bandwidth"
    collect: ClassVar[str] = _COMM
    collect_zh: ClassVar[str] = "以 Level1 或 Level2 采集，以生成 communication.json"
    rank: int = Field(examples=[0])
    step: int = Field(examples=[10])
    transport: str = Field(examples=["HCCS"], description="HCCS, RDMA, PCIE or SIO")
    size_bytes: int = Field(examples=[500000000])
    transit_us: float = Field(examples=[25000.0], description="summed over transfers; links run side by side")
    bandwidth_gb_per_s: float = Field(examples=[20.0])
    op_count: int = Field(examples=[20])
    longest_op_us: float = Field(examples=[2000.0], description="elapse of the longest operator on this transport")
    step_ratio: float = Field(examples=[0.15], description="elapse of the operators on this transport over step")
    transfer_us: float | None = Field(
        default=None, examples=[16000.0], description="wall-clock transfer time of these operators; None: not recorded"
    )
    transfer_step_ratio: float | None = Field(default=None, examples=[0.16], description="transfer_us over step")


class PacketSize(Fact):
    """Packet sizes of one rank and transport in a step (Size Distribution of communication.json)."""

    kind: ClassVar[str] = "packet_size"
    collect: ClassVar[str] = _COMM
    collect_zh: ClassVar[str] = "以 Level1 或 Level2 采集，以生成 communication.json"
    rank: int = Field(examples=[0])
    step: int = Field(examples=[10])
    transport: str = Field(examples=["HCCS"])
    packet_count: int = Field(examples=[20])
    mean_bytes: float = Field(examples=[64000000.0])
    largest_bytes: float = Field(examples=[128000000.0])
    transit_us: float = Field(examples=[25000.0], description="summed over transfers; links run side by side")
    step_ratio: float = Field(examples=[0.15], description="elapse of the operators on this transport over step")
    transfer_us: float | None = Field(
        default=None, examples=[16000.0], description="wall-clock transfer time of these operators; None: not recorded"
    )
    transfer_step_ratio: float | None = Field(default=None, examples=[0.16], description="transfer_us over step")


class SlowestLink(Fact):
    """The slowest of several like links between cards in a step, against their median (communication_matrix.json)."""

    kind: ClassVar[str] = "slowest_link"
    collect: ClassVar[str] = _MATRIX
    collect_zh: ClassVar[str] = "以 Level1 或 Level2 采集（communication_matrix.json），且同类链路不少于三条"
    step: int = Field(examples=[10])
    transport: str = Field(examples=["HCCS"])
    src_rank: int = Field(examples=[0])
    dst_rank: int = Field(examples=[1])
    link_count: int = Field(examples=[8], description="links compared: same transport, at least 1 MB each")
    size_bytes: int = Field(examples=[50000000])
    transit_us: float = Field(examples=[2500.0])
    bandwidth_gb_per_s: float = Field(examples=[19.8])
    median_gb_per_s: float = Field(examples=[20.0])
    deficit_ratio: float = Field(examples=[0.01], description="1 - bandwidth / median")
    excess_us: float = Field(examples=[25.0], description="transit beyond what the median bandwidth would take")
    step_ratio: float = Field(examples=[0.0002], description="excess over the longest step of the ranks")


class TransferAlignment(Fact):
    """Sizes of HCCS/SDMA transfers between cards: those above 512 bytes should be multiples of 512 (Hermes Table 3)."""

    kind: ClassVar[str] = "transfer_alignment"
    collect: ClassVar[str] = "profile at Level1 and keep trace_view.json (HCCL task events carry size and link type)"
    collect_zh: ClassVar[str] = "以 Level1 采集并保留 trace_view.json（HCCL 任务事件带大小和链路类型）"
    rank: int = Field(examples=[0])
    transfer_count: int = Field(examples=[100], description="SDMA transfers between cards of more than 512 bytes")
    unaligned_count: int = Field(examples=[0])
    unaligned_bytes: int = Field(examples=[0])
    unaligned_us: float = Field(examples=[0.0])
    unaligned_per_step_us: float = Field(examples=[0.0])
    unaligned_ratio: float = Field(examples=[0.0], description="of the transfers")
    unaligned_step_ratio: float = Field(examples=[0.0], description="unaligned transfer time over captured step time")
    worst: tuple[Instance, ...] = Field(default=(), examples=[()])
