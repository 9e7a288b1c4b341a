"""What a simulated rank did: records in ns since the epoch; filled by ``ranks``, read by the writers."""

from __future__ import annotations

from dataclasses import dataclass, field

from hermes_advisor.examples.simulation.hardware import Cost
from hermes_advisor.examples.simulation.job import Kernel, Tensor


@dataclass(frozen=True)
class HostOp:
    """An event of the Python lanes; ``correlation`` ties an Enqueue to its Dequeue (-1: neither)."""

    name: str
    category: str
    thread: int
    start_ns: int
    duration_ns: int
    inputs: tuple[Tensor, ...] | None = None
    correlation: int = -1

    @property
    def end_ns(self) -> int:
        """Where the event ends."""
        return self.start_ns + self.duration_ns


@dataclass(frozen=True)
class ApiCall:
    """A call recorded in the CANN lane; ``flow_ns`` is where its HostToDevice flow leaves (-1: it starts nothing)."""

    level: str
    api: str
    mode: str
    item: str
    thread: int
    start_ns: int
    duration_ns: int
    connection: int
    flow: int = -1
    flow_ns: int = -1


@dataclass(frozen=True)
class DeviceTask:
    """A kernel or copy on a stream, with the host operator that caused it."""

    name: str
    task_type: str
    stream: int
    task_id: int
    start_ns: int
    duration_ns: int
    wait_ns: int
    step: int
    connection: int
    flow: int
    cause: HostOp
    kernel: Kernel | None = None
    cost: Cost | None = None

    @property
    def end_ns(self) -> int:
        """Where the task ends."""
        return self.start_ns + self.duration_ns


@dataclass(frozen=True)
class TransferTask:
    """One task of a collective on its plane; ``size_bytes`` 0 for notifications."""

    name: str
    start_ns: int
    duration_ns: int
    dst: int
    link: str
    size_bytes: int


@dataclass(frozen=True)
class Collective:
    """One allReduce on one rank."""

    index: int
    step: int
    start_ns: int
    duration_ns: int
    wait_ns: int
    elements: int
    task_id: int
    connection: int
    flow: int
    cause: HostOp
    tasks: tuple[TransferTask, ...]

    @property
    def end_ns(self) -> int:
        """Where the operator ends."""
        return self.start_ns + self.duration_ns


@dataclass(frozen=True)
class Allocation:
    """A block of the caching allocator, from the operator that took it to the one after which it was given back."""

    op: str
    size_bytes: int
    start_ns: int
    end_ns: int


@dataclass
class RankTimeline:
    """All that one rank's profiler would have seen."""

    rank: int
    pid: int
    threads: dict[str, int]
    mhz: int
    capture_start_ns: int
    capture_end_ns: int = 0
    step_marks: dict[int, int] = field(default_factory=dict)
    """Step → start of its ProfilerStep on the host."""
    host_ops: list[HostOp] = field(default_factory=list)
    api_calls: list[ApiCall] = field(default_factory=list)
    device: list[DeviceTask] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)

    def kernels(self) -> list[DeviceTask]:
        """The compute kernels, in order of their start."""
        return [task for task in self.device if task.kernel is not None]

    def group_comm_name(self) -> str:
        """The group as communication.json names it."""
        return str(name_hash(GROUP))

    def collective_name(self, op: Collective) -> str:
        """HCCL's name of an operator: kind, last digits of the group's hash, running number."""
        return f"hcom_allReduce__{self.group_comm_name()[-3:]}_{op.index}_1"


GROUP = "group_name_1"


def name_hash(name: str) -> int:
    """The 64-bit name hash that communication files use for a group: two polynomial hashes of 32 bits side by side."""
    high = low = 0
    for char in name:
        high = (high * 29 + ord(char)) & 0xFFFFFFFF
        low = (low * 131 + ord(char)) & 0xFFFFFFFF
    return high << 32 | low
