"""The host of one rank: in: the operators of a step; out: its events, and when each device task is ready.

Two Python threads issue operators (the second one during backward) and put them on the launch queue; a third one takes
them off it and calls CANN. Nothing here waits for the device but ``throttle``, with which the script lets the host run
ahead by at most about a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from hermes_advisor.examples.simulation.job import Op, Tensor
from hermes_advisor.examples.simulation.timeline import Allocation, ApiCall, HostOp, RankTimeline

_NO_END = -1


@dataclass(frozen=True)
class Launch:
    """An operator that has reached the device's stream: ready at ``ready_ns``, tied to the host by its ids."""

    op: Op
    ready_ns: int
    connection: int
    flow: int
    cause: HostOp


class Host:
    """Issues the operators of one rank, step after step."""

    def __init__(self, timeline: RankTimeline, rng: Random, start_ns: int) -> None:
        self.now_ns = start_ns
        self._timeline = timeline
        self._rng = rng
        self._queue_free_ns = start_ns
        self._nap_ns = 58_000_000
        self._correlation = 4800
        self._connection = 2100
        self._blocks: dict[str, Allocation] = {}

    def us(self, low: float, high: float) -> int:
        """A time in between, on the host clock's grid of 10 ns."""
        return round((low + (high - low) * self._rng.random()) * 100) * 10

    def event(
        self, name: str, start_ns: int, end_ns: int, thread: str = "main", inputs: Sequence[Tensor] | None = None
    ) -> HostOp:
        """Record a Python-side operator."""
        shapes = None if inputs is None else tuple(inputs)
        made = HostOp(name, "cpu_op", self._timeline.threads[thread], start_ns, end_ns - start_ns, shapes)
        self._timeline.host_ops.append(made)
        return made

    def run_step(self, step: int, ops: Iterable[Op]) -> list[Launch]:
        """Issue one step: load a batch, then all operators; the ProfilerStep is closed by ``end_step``."""
        self._timeline.step_marks[step] = self.now_ns
        start = self.now_ns + self.us(15, 25)
        self.now_ns = start + self.us(280, 320)
        self.event("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", start, self.now_ns)
        self.now_ns += self.us(20, 30)
        launches = []
        phase, phase_start = "", self.now_ns
        for op in ops:
            if op.phase != phase:
                self._close_phase(phase, phase_start)
                phase, phase_start = op.phase, self.now_ns
                self.now_ns += self.us(20, 40)
            launch = self._issue(op)
            if launch is not None:
                launches.append(launch)
        self._close_phase(phase, phase_start)
        start = self.now_ns
        self.now_ns += self.us(24, 32)
        self.event("Optimizer.zero_grad#AdamW.zero_grad", start, self.now_ns)
        return launches

    def _close_phase(self, phase: str, start_ns: int) -> None:
        if "." in phase:  # a module or optimizer call that shows in the profile
            self.event(phase, start_ns, self.now_ns)

    def _issue(self, op: Op) -> Launch | None:
        backward = op.thread == "backward"
        start = self.now_ns
        inner = start + (self.us(12, 18) if backward else self.us(26, 38))
        inner_end = inner + self.us(9, 13)
        end = inner_end + self.us(3, 6)
        if op.kind in ("record", "wait"):
            cause, end = self.event(op.name, start, inner_end), inner_end
        else:
            for block, tensor in op.makes:
                self._allocate(block, tensor, op.name, start + (inner - start) // 20 * 10)
            cause = self.event(op.acl, inner, inner_end, op.thread)
            if op.kind == "collective":
                self.event(op.acl, inner - 3000, inner_end + 1000, op.thread, op.inputs)
            self.event(op.name, start, end, op.thread, () if op.kind == "collective" else op.inputs)
            for block in op.frees:
                self._free(block, end)
        launch = self._enqueue(op, cause, inner_end)
        self.now_ns = end + (self.us(5, 9) if backward else self.us(26, 44))
        return launch

    def _enqueue(self, op: Op, cause: HostOp, before_ns: int) -> Launch | None:
        self._correlation += 1
        duration = self.us(2, 3.5)
        thread, queue = cause.thread, self._timeline.threads["queue"]
        start = before_ns - duration - 1000
        self._timeline.host_ops.append(
            HostOp("Enqueue", "enqueue", thread, start, duration, correlation=self._correlation)
        )
        taken = max(before_ns + self.us(4, 8), self._queue_free_ns + self.us(1, 2))
        launch, done = self._call_cann(op, cause, taken + self.us(1, 2))
        self._queue_free_ns = done + self.us(1, 2)
        self._timeline.host_ops.append(
            HostOp(f"Dequeue@{op.acl if op.kind not in ('record', 'wait') else op.name}", "dequeue", queue, taken,
                   self._queue_free_ns - taken, correlation=self._correlation)
        )  # fmt: skip
        return launch

    def _call_cann(self, op: Op, cause: HostOp, start: int) -> tuple[Launch | None, int]:
        """The calls of the queue's thread: (what reaches a stream, end of the calls)."""
        queue = self._timeline.threads["queue"]
        if op.kind in ("record", "wait"):
            done = start + self.us(5, 8)
            self._api("acl", op.acl, "ACL_RTS", "0", queue, start, done)
            return None, done
        if op.kind == "copy":
            done = start + self.us(16, 24)
            self._api("acl", "aclrtMemcpyAsync", "ACL_RTS", "0", queue, start, done, flow_ns=start)
            return Launch(op, done, self._connection, self._connection, cause), done
        if op.kind == "collective":
            done = start + self.us(240, 280)
            name = "hcom_allReduce_"
            self._api("acl", name, "HOST_HCCL", name, queue, start, done)
            self._connection += 1
            flow = (self._connection << 32) - 1
            self._timeline.api_calls.append(
                ApiCall("node", "launch", "launch", name, queue, start, done - start, self._connection, flow, start)
            )
            return Launch(op, done, self._connection, flow, cause), done
        assert op.kernel is not None
        node = start + self.us(1, 2)
        node_end = node + self.us(7, 11)
        done = node_end + self.us(1, 2)
        self._api("acl", op.acl, "ACL_NN", "0", queue, start, done)
        self._connection += 1
        flow = self._connection << 32 | 0xFFFFFFFF
        flow_ns = node_end - self.us(1, 2)
        self._timeline.api_calls.append(
            ApiCall("node", "launch", "launch", op.kernel.name, queue, node, node_end - node, self._connection, flow,
                    flow_ns)
        )  # fmt: skip
        return Launch(op, node_end, self._connection, flow, cause), done

    def _api(
        self, level: str, api: str, mode: str, item: str, thread: int, start: int, end: int, flow_ns: int = -1
    ) -> None:
        self._connection += 1
        flow = self._connection if flow_ns >= 0 else -1
        self._timeline.api_calls.append(
            ApiCall(level, api, mode, item, thread, start, end - start, self._connection, flow, flow_ns)
        )

    def throttle(self, done_ns: int) -> None:
        """Sleep for most of what the last step took, then poll the event that the device passes at ``done_ns``."""
        begin = self.now_ns
        self.now_ns += self._nap_ns
        self._nap_ns = (done_ns - begin) * 24 // 25 // 10 * 10
        while True:
            start = self.now_ns
            self.now_ns += self.us(2, 4)
            main = self._timeline.threads["main"]
            self._api("acl", "aclrtQueryEventStatus", "ACL_RTS", "0", main, start, self.now_ns)
            if start >= done_ns:
                return
            self.now_ns += self.us(1040, 1080)

    def end_step(self, step: int) -> None:
        """Close the step's ProfilerStep."""
        self.now_ns += self.us(10, 20)
        self.event(f"ProfilerStep#{step}", self._timeline.step_marks[step], self.now_ns)
        self.now_ns += self.us(15, 25)

    def stop_profiler(self, device_end_ns: int) -> None:
        """The synchronisation with which the profiler stops; it waits for what is still queued."""
        self.now_ns += self.us(2400, 2500)
        start = self.now_ns
        self.now_ns = max(start + self.us(15, 25), (device_end_ns // 10 + 1) * 10 + self.us(8, 12))
        main = self._timeline.threads["main"]
        self._api("acl", "aclrtSynchronizeDeviceWithTimeout", "ACL_RTS", "0", main, start, self.now_ns)
        self._timeline.capture_end_ns = self.now_ns + 3_000_000
        assert not self._blocks, "the job frees all it takes"

    def _allocate(self, block: str, tensor: Tensor, op: str, at_ns: int) -> None:
        # The caching allocator adds 32 bytes and rounds up to 512.
        assert block not in self._blocks, f"{block} is still held"
        size = (tensor.size_bytes + 32 + 511) // 512 * 512
        self._blocks[block] = Allocation(op, size, at_ns, _NO_END)

    def _free(self, block: str, at_ns: int) -> None:
        taken = self._blocks.pop(block, None)
        if taken is not None:
            self._timeline.allocations.append(Allocation(taken.op, taken.size_bytes, taken.start_ns, at_ns))
