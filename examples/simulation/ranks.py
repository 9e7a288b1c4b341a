"""The event simulation: in: which faults to plant; out: the timelines of two ranks that meet in every allReduce.

Step by step: both hosts issue their operators, both devices run forward and backward, the collectives start when the
later rank has arrived and end on both together, the optimizers follow, and the hosts go on once their device has come
near its end. Rank 1's clock decides how long its kernels take; nothing else distinguishes the ranks but jitter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from hermes_advisor.examples.simulation.hardware import (
    HCCS_BYTES_PER_US,
    NOMINAL_MHZ,
    ON_CHIP_BYTES_PER_US,
    PCIE_BYTES_PER_US,
    TICK_NS,
    cost,
    ticks,
)
from hermes_advisor.examples.simulation.host import Host, Launch
from hermes_advisor.examples.simulation.job import step_ops
from hermes_advisor.examples.simulation.timeline import Collective, DeviceTask, RankTimeline, TransferTask

WORLD_SIZE = 2
STEPS = (10, 11)
COMPUTE_STREAM, COPY_STREAM, COMM_STREAM = 2, 3, 4
_EPOCH_NS = 1_767_322_800_000_000_000  # 2026-01-02 03:00:00 UTC


@dataclass
class _Device:
    """The streams of one card: when each is free, and the next ids."""

    timeline: RankTimeline
    rng: Random
    compute_free_ns: int = 0
    copy_free_ns: int = 0
    comm_free_ns: int = 0
    task_id: int = 9000
    collective_index: int = 0
    bucket_ready_ns: list[int] = field(default_factory=list)
    event_ns: int = 0

    def jitter(self, share: float) -> float:
        return 1 + share * (self.rng.random() + self.rng.random() - 1)

    def gap(self) -> int:
        return ticks(1.0 + 0.5 * self.rng.random())

    def next_task(self) -> int:
        self.task_id += 1
        return self.task_id


def simulate(*, aicpu_fault: bool, rank1_mhz: int = NOMINAL_MHZ) -> list[RankTimeline]:
    """Run the job for the profiled steps on both ranks."""
    ops = step_ops(aicpu_fault=aicpu_fault)
    hosts, devices = [], []
    for rank in range(WORLD_SIZE):
        pid = 41200 + rank
        start = _EPOCH_NS + 250_000_000 + rank * 18_000
        timeline = RankTimeline(rank, pid, {"main": pid, "backward": pid + 640, "queue": pid + 220},
                                rank1_mhz if rank == 1 else NOMINAL_MHZ, start - 24_000_000)  # fmt: skip
        rng = Random(20260102 + rank)
        hosts.append(Host(timeline, rng, start))
        devices.append(_Device(timeline, rng))
    for step in STEPS:
        launches = [host.run_step(step, ops) for host in hosts]
        split = [_optimizer_start(items) for items in launches]
        for device, items, at in zip(devices, launches, split, strict=True):
            _run_kernels(device, step, items[:at], 0)
        ends = _run_collectives(devices, step, launches)
        for device, items, at in zip(devices, launches, split, strict=True):
            _run_kernels(device, step, items[at:], ends + 3 * TICK_NS)
        for host, device in zip(hosts, devices, strict=True):
            host.throttle(device.event_ns)
            host.end_step(step)
    for host, device in zip(hosts, devices, strict=True):
        host.stop_profiler(device.compute_free_ns)
    return [device.timeline for device in devices]


def _optimizer_start(launches: list[Launch]) -> int:
    return next(i for i, launch in enumerate(launches) if launch.op.phase.startswith("Optimizer"))


def _run_kernels(device: _Device, step: int, launches: list[Launch], barrier_ns: int) -> None:
    """Run copies and kernels in stream order, none before ``barrier_ns``; note when each bucket is filled."""
    timeline = device.timeline
    if not barrier_ns:
        device.bucket_ready_ns.clear()
    for launch in launches:
        ready = -(-launch.ready_ns // TICK_NS) * TICK_NS + ticks(2.0)
        op = launch.op
        if op.kind == "collective":
            device.bucket_ready_ns.append(device.compute_free_ns)
        elif op.kind == "copy":
            size = op.inputs[0].size_bytes
            start = max(ready, device.copy_free_ns)
            wait = start - device.copy_free_ns if device.copy_free_ns else 0
            duration = ticks(1.8 + size / PCIE_BYTES_PER_US * device.jitter(0.02))
            device.copy_free_ns = start + duration
            timeline.device.append(
                DeviceTask("MEMCPY_ASYNC", "PCIE_DMA_SQE", COPY_STREAM, device.next_task(), start, duration, wait, step,
                           launch.connection, launch.flow, launch.cause)
            )  # fmt: skip
        elif op.kernel is not None:
            start = max(ready, barrier_ns)
            if device.compute_free_ns:
                start = max(start, device.compute_free_ns + device.gap())
            wait = start - device.compute_free_ns if device.compute_free_ns else 0
            price = cost(op.kernel, timeline.mhz, device.jitter(0.012))
            device.compute_free_ns = start + price.duration_ns
            timeline.device.append(
                DeviceTask(op.kernel.name, op.kernel.core, COMPUTE_STREAM, device.next_task(), start,
                           price.duration_ns, wait, step, launch.connection, launch.flow, launch.cause, op.kernel,
                           price)
            )  # fmt: skip
            if op.kernel.op_type == "ApplyAdamWV2":
                # The script records its event before the last of these: the event completes as that kernel starts.
                device.event_ns = start


def _run_collectives(devices: list[_Device], step: int, launches: list[list[Launch]]) -> int:
    """Run the step's allReduces on both ranks; returns when the last one has ended."""
    end = 0
    queues = [[launch for launch in items if launch.op.kind == "collective"] for items in launches]
    for pair in zip(*queues, strict=True):
        bucket, size = pair[0].op.bucket, pair[0].op.bucket_bytes
        starts = []
        for device, launch in zip(devices, pair, strict=True):
            ready = -(-launch.ready_ns // TICK_NS) * TICK_NS + ticks(2.0)
            filled = device.bucket_ready_ns[bucket] + ticks(2.6)
            starts.append(max(ready, filled, device.comm_free_ns + ticks(3.0)))
        plans = _transfer(devices, starts, size)
        end = max(task.start_ns + task.duration_ns for task in plans[0])
        for device, launch, start, tasks in zip(devices, pair, starts, plans, strict=True):
            wait = start - device.comm_free_ns if device.comm_free_ns else 0
            device.timeline.collectives.append(
                Collective(device.collective_index, step, start, end - start, wait, size // 2, device.next_task(),
                           launch.connection, launch.flow, launch.cause, tasks)
            )  # fmt: skip
            device.collective_index += 1
            device.comm_free_ns = end
    return end


def _transfer(devices: list[_Device], starts: list[int], size: int) -> list[tuple[TransferTask, ...]]:
    """One allReduce of two cards: each reduces its half of the peer's data, then fetches the peer's reduced half."""
    half = size // 2
    tasks: list[list[TransferTask]] = [[] for _ in devices]
    free = []
    for rank, start in enumerate(starts):
        duration = ticks(size / ON_CHIP_BYTES_PER_US)
        tasks[rank].append(TransferTask("Memcpy", start, duration, rank, "ON_CHIP", size))
        record = start + duration + ticks(0.4)
        tasks[rank].append(TransferTask("Notify_Record", record, ticks(0.7), 1 - rank, "INVALID_TYPE", 0))
        free.append(record + ticks(0.7))
    for name in ("Reduce_Inline", "Memcpy"):
        meet = max(free) + ticks(0.6)
        for rank, device in enumerate(devices):
            begin = free[rank] + ticks(0.3)
            tasks[rank].append(TransferTask("Notify_Wait", begin, meet - begin, 1 - rank, "INVALID_TYPE", 0))
            duration = ticks(half / HCCS_BYTES_PER_US[name] * device.jitter(0.006))
            tasks[rank].append(TransferTask(name, meet + ticks(0.3), duration, 1 - rank, "HCCS", half))
            free[rank] = meet + ticks(0.3) + duration
    meet = max(free) + ticks(0.6)
    for rank in range(len(devices)):
        begin = free[rank] + ticks(0.3)
        tasks[rank].append(TransferTask("Notify_Wait", begin, meet - begin, 1 - rank, "INVALID_TYPE", 0))
    return [tuple(items) for items in tasks]
