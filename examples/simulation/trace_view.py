"""Writes trace_view.json: in: a timeline; out: Chrome events in the order and with the keys that torch_npu uses.

The framework's part comes first (operators, launch queue, names), then the part that msprof exports, sorted by time
(CANN calls, device tasks, communication planes, overlap lanes, counters), then the flows from operators to kernels.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hermes_advisor.examples.simulation.hardware import NOMINAL_MHZ
from hermes_advisor.examples.simulation.overlap import LANES, lanes
from hermes_advisor.examples.simulation.ranks import COMM_STREAM, COMPUTE_STREAM, COPY_STREAM
from hermes_advisor.examples.simulation.text import microseconds, shape, stamp, write
from hermes_advisor.examples.simulation.timeline import (
    GROUP,
    ApiCall,
    Collective,
    DeviceTask,
    HostOp,
    RankTimeline,
    TransferTask,
)

Event = dict[str, Any]
_LAYERS = {"CANN": 7, "Ascend Hardware": 13, "AI Core Freq": 14, "Communication": 15, "NPU MEM": 19,
           "Overlap Analysis": 23}  # fmt: skip
_TORCH_TYPE = {"bf16": "c10::BFloat16", "fp32": "float", "int64": "long int", "bool": "bool"}
_NONE = 4294967295
_PREFIX = {"acl": "AscendCL", "node": "Node"}


class _Pids:
    """msprof's process ids: the host process, the layer's place in the list, the device."""

    def __init__(self, timeline: RankTimeline) -> None:
        self.python = timeline.pid
        self.rank = timeline.rank

    def __getitem__(self, layer: str) -> int:
        return self.python << 10 | _LAYERS[layer] << 5 | self.rank


def write_trace(timeline: RankTimeline, path: Path, memory: list[tuple[int, int]]) -> None:
    """Write the trace; ``memory`` holds (time in ns, bytes) of the device memory samples."""
    pids = _Pids(timeline)
    framework = _framework(timeline)
    device = [*_names(timeline, pids), *_by_time(timeline, pids, memory)]
    flows = _operator_flows(timeline, pids)
    parts = [", ".join(json.dumps(event) for event in part) for part in (framework, [*device, *flows])]
    write(path, "[" + ",".join(parts) + "]")  # the seam between both writers has no blank


def _framework(timeline: RankTimeline) -> list[Event]:
    events: list[Event] = []
    operators = [op for op in timeline.host_ops if op.category == "cpu_op"]
    for op in sorted(operators, key=lambda op: (op.end_ns, -op.start_ns)):
        args: Event = {"Sequence number": -1, "Fwd thread id": 0}
        if op.inputs:
            args["Input Dims"] = ";\r\n".join(shape(tensor) for tensor in op.inputs)
            args["Input type"] = ";\r\n".join(_TORCH_TYPE[tensor.dtype] for tensor in op.inputs)
        events.append(_python(timeline, op, args))
    for category, phase in (("enqueue", "s"), ("dequeue", "f")):
        for op in timeline.host_ops:
            if op.category == category:
                events.append(_python(timeline, op, {"correlation_id": op.correlation}))
                events.append(_flow(phase, "enqueue_to_dequeue", op.correlation, timeline.pid, op.thread, op.start_ns,
                                    "async_task_queue"))  # fmt: skip
    events += _process("Python", timeline.pid, "CPU", 0)
    for thread in timeline.threads.values():
        labels: dict[str, Event] = {"thread_name": {"name": f"Thread {thread}"}}
        labels["thread_sort_index"] = {"sort_index": thread}
        for name, args in labels.items():
            events.append({"ph": "M", "name": name, "pid": timeline.pid, "tid": thread, "args": args})
    return events


def _python(timeline: RankTimeline, op: HostOp, args: Event) -> Event:
    return {"ph": "X", "name": op.name, "pid": timeline.pid, "tid": op.thread, "ts": stamp(op.start_ns),
            "dur": microseconds(op.duration_ns), "cat": op.category, "args": args}  # fmt: skip


def _flow(phase: str, name: str, flow: int, pid: int, thread: int, at_ns: int, category: str) -> Event:
    return {"ph": phase, "bp": "e", "name": name, "id": flow, "pid": pid, "tid": thread, "ts": stamp(at_ns),
            "cat": category}  # fmt: skip


def _process(name: str, pid: int, label: str, index: int) -> list[Event]:
    facts = (("process_name", {"name": name}), ("process_labels", {"labels": label}),
             ("process_sort_index", {"sort_index": index}))  # fmt: skip
    return [{"ph": "M", "name": key, "pid": pid, "tid": 0, "args": args} for key, args in facts]


def _names(timeline: RankTimeline, pids: _Pids) -> list[Event]:
    threads: dict[str, dict[int, str]] = {
        "CANN": {thread: f"Thread {thread}" for thread in sorted(timeline.threads.values())},
        "Ascend Hardware": {stream: f"Stream {stream}" for stream in (COMPUTE_STREAM, COPY_STREAM, COMM_STREAM)},
        "Communication": {0: f"Group {GROUP} Communication", 1: "Plane 0"},
        "Overlap Analysis": dict(enumerate(LANES)),
    }
    events: list[Event] = []
    for layer, index in _LAYERS.items():
        label = "CPU" if layer == "CANN" else f"NPU {timeline.rank}"
        named = _process(layer, pids[layer], label, index)
        for thread, name in threads.get(layer, {}).items():
            named.append({"ph": "M", "name": "thread_name", "pid": pids[layer], "tid": thread, "args": {"name": name}})
            named.append({"ph": "M", "name": "thread_sort_index", "pid": pids[layer], "tid": thread,
                          "args": {"sort_index": thread}})  # fmt: skip
        events += [{key: event[key] for key in ("name", "pid", "tid", "args", "ph")} for event in named]
    return events


def _by_time(timeline: RankTimeline, pids: _Pids, memory: list[tuple[int, int]]) -> list[Event]:
    timed: list[tuple[int, Event]] = []
    for call in timeline.api_calls:
        timed += _api_call(call, pids["CANN"])
    for task in timeline.device:
        timed += _device_task(task, pids["Ascend Hardware"])
    for op in timeline.collectives:
        timed += _collective(timeline, op, pids["Communication"])
    for thread, (lane, spans) in enumerate(lanes(timeline).items()):
        for start, end in spans:
            timed.append((start, _span(lane, pids["Overlap Analysis"], thread, start, end - start)))
    for at_ns, mhz in clock_samples(timeline):
        timed.append((at_ns, _counter("AI Core Freq", pids["AI Core Freq"], at_ns, {"MHz": mhz})))
    for at_ns, size in memory:
        timed.append((at_ns, _counter("APP/HBM", pids["NPU MEM"], at_ns, {"KB": size / 1024})))
    timed.sort(key=lambda item: item[0])  # stable: a task stays before its flow
    return [event for _, event in timed]


def clock_samples(timeline: RankTimeline) -> list[tuple[int, int]]:
    """Samples of the AI core clock: one at the start, one wherever it changes, one at the end."""
    first = min(timeline.step_marks.values())
    samples = [(timeline.capture_start_ns, NOMINAL_MHZ), (timeline.capture_end_ns, timeline.mhz)]
    if timeline.mhz != NOMINAL_MHZ:
        samples.insert(1, (first - 1_500_000, timeline.mhz))
    return samples


def _span(name: str, pid: int, thread: int, start_ns: int, duration_ns: int, args: Event | None = None) -> Event:
    event: Event = {"name": name, "pid": pid, "tid": thread, "ts": stamp(start_ns), "dur": microseconds(duration_ns)}
    if args is not None:
        event["args"] = args
    return {**event, "ph": "X"}


def _counter(name: str, pid: int, at_ns: int, args: Event) -> Event:
    return {"name": name, "ts": stamp(at_ns), "pid": pid, "tid": 0, "args": args, "ph": "C"}


def _arrival(flow: int, pid: int, thread: int, at_ns: int) -> Event:
    return {"name": f"HostToDevice{flow}", "ph": "f", "id": str(flow), "ts": stamp(at_ns), "cat": "HostToDevice",
            "pid": pid, "tid": thread, "bp": "e"}  # fmt: skip


def _api_call(call: ApiCall, pid: int) -> list[tuple[int, Event]]:
    name = f"{_PREFIX[call.level]}@{call.api}"
    args = {"Thread Id": call.thread, "Mode": call.mode, "level": call.level,
            "id": "0" if call.level == "node" else call.api, "item_id": call.item,
            "connection_id": call.connection}  # fmt: skip
    out = [(call.start_ns, _span(name, pid, call.thread, call.start_ns, call.duration_ns, args))]
    if call.flow_ns >= 0:
        out.append((call.flow_ns, {"name": f"HostToDevice{call.flow}", "ph": "s", "cat": "HostToDevice",
                                   "id": str(call.flow), "pid": pid, "tid": call.thread,
                                   "ts": stamp(call.flow_ns)}))  # fmt: skip
    return out


def _device_task(task: DeviceTask, pid: int) -> list[tuple[int, Event]]:
    args: Event = {"Model Id": _NONE, "Task Type": task.task_type, "Physic Stream Id": task.stream,
                   "Task Id": task.task_id, "Batch Id": 0, "Subtask Id": _NONE,
                   "connection_id": task.connection}  # fmt: skip
    # Sizes and directions of copies are recorded at Level2 only.
    return [
        (task.start_ns, _span(task.name, pid, task.stream, task.start_ns, task.duration_ns, args)),
        (task.start_ns, _arrival(task.flow, pid, task.stream, task.start_ns)),
    ]


def _collective(timeline: RankTimeline, op: Collective, pid: int) -> list[tuple[int, Event]]:
    args = {"connection_id": op.connection, "model id": _NONE, "data_type": "BFP16", "alg_type": "MESH-RING",
            "count": op.elements}  # fmt: skip
    name = timeline.collective_name(op)
    out = [
        (op.start_ns, _span(name, pid, 0, op.start_ns, op.duration_ns, args)),
        (op.start_ns, _arrival(op.flow, pid, 0, op.start_ns)),
    ]
    for context, task in enumerate(op.tasks):
        out.append((task.start_ns, _transfer(timeline.rank, op, task, context, pid)))
    return out


def _transfer(rank: int, op: Collective, task: TransferTask, context: int, pid: int) -> Event:
    waits = task.name == "Notify_Wait"
    args = {
        "notify_id": "0" if task.size_bytes else str(64 + context), "duration estimated(us)": 0.02 if waits else 1,
        "stream id": COMM_STREAM, "task id": op.task_id, "context id": context, "task type": task.name,
        "src rank": rank, "dst rank": task.dst, "transport type": "LOCAL" if waits else "SDMA",
        "size(Byte)": task.size_bytes, "data type": "BFP16" if task.name == "Reduce_Inline" else "INVALID_TYPE",
        "link type": task.link, "bandwidth(GB/s)": task.size_bytes / task.duration_ns, "model id": _NONE,
    }  # fmt: skip
    return _span(task.name, pid, 1, task.start_ns, task.duration_ns, args)


def _operator_flows(timeline: RankTimeline, pids: _Pids) -> list[Event]:
    arrivals: list[tuple[int, int, int, HostOp]] = [
        (task.start_ns, pids["Ascend Hardware"], task.stream, task.cause) for task in timeline.device
    ]
    arrivals += [(op.start_ns, pids["Communication"], 0, op.cause) for op in timeline.collectives]
    events = []
    for start, pid, thread, cause in sorted(arrivals, key=lambda item: item[:3]):
        events.append(_flow("s", "torch_to_npu", start, timeline.pid, cause.thread, cause.start_ns, "async_npu"))
        events.append(_flow("f", "torch_to_npu", start, pid, thread, start, "async_npu"))
    return events
