"""trace_view.json → tables: which lane gives which table, flows joined, and what is left when metadata is cut off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hermes_advisor.extractors.readers.trace_view import Timeline, read_trace_view

Write = Callable[[str, str | bytes], Path]
PYTHON, CANN, DEVICE, HCCL, OVERLAP, FREQUENCY, QOS = range(100, 107)
PROCESSES = {
    PYTHON: "Python", CANN: "CANN", DEVICE: "Ascend Hardware", HCCL: "HCCL", OVERLAP: "Overlap Analysis",
    FREQUENCY: "AI Core Freq", QOS: "QoS",
}  # fmt: skip
LANES = {(HCCL, 0): "Group 0 Communication", (HCCL, 1): "Plane 0", (HCCL, 2): "Plane 1",
         (HCCL, 3): "Group 77 Communication", (HCCL, 4): "Plane 0"}  # fmt: skip
T = 1736412474713010


def at(microseconds: float) -> str:
    return f"{T + int(microseconds)}.{round(microseconds % 1 * 1000):03d}"


def ns(microseconds: float) -> int:
    return T * 1000 + round(microseconds * 1000)


def x(
    pid: int, tid: int, name: str, start: float, dur: Any = 1.0, cat: str | None = None, **args: Any
) -> dict[str, Any]:
    event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": at(start), "dur": dur}
    return event | ({"cat": cat} if cat else {}) | ({"args": args} if args else {})


def flow(phase: str, cat: str, number: Any, pid: int, tid: int, time: float) -> dict[str, Any]:
    return {
        "ph": phase,
        "bp": "e",
        "name": f"{cat}{number}",
        "id": number,
        "pid": pid,
        "tid": tid,
        "ts": at(time),
        "cat": cat,
    }


def metadata() -> list[dict[str, Any]]:
    named = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        for pid, name in PROCESSES.items()
    ]
    lanes = [
        {"ph": "M", "name": "thread_name", "pid": p, "tid": t, "args": {"name": name}} for (p, t), name in LANES.items()
    ]
    labels = [{"ph": "M", "name": "process_labels", "pid": PYTHON, "tid": 0, "args": {"labels": "CPU"}},
              {"ph": "M", "name": "process_sort_index", "pid": PYTHON, "tid": 0, "args": {"sort_index": 0}}]  # fmt: skip
    return named + lanes + labels


def read(write: Write, notes: Any, events: list[dict[str, Any]], named: bool = True) -> Timeline:
    # Metadata comes last: in real files it follows the events that it names.
    return read_trace_view(write("trace_view.json", json.dumps(events + (metadata() if named else []))), notes)


def rows(table: pd.DataFrame | None) -> list[list[Any]]:
    assert table is not None
    return table.to_numpy().tolist()


HOST = [
    x(PYTHON, 7, "aten::add", 5.5, 13.08, "cpu_op", **{"Sequence number": -1, "Call stack": "a.py(1): f;\r\n"}),
    x(PYTHON, 7, "Enqueue", 2, 1.61, "enqueue", correlation_id=8),
    x(PYTHON, 7, "nn.Module: ReLU_0", 3, 1, "python_function"),
]
APIS = [
    x(CANN, 8, "AscendCL@aclrtMemcpyAsync", 9, 44.75, level="acl", id="aclrtMemcpyAsync", connection_id=965),
    x(CANN, 8, "Node@launch", 10, 35, level="node", id="0", item_id="trans_TransData_0", connection_id=990),
    x(CANN, 8, "AscendCL@aclrtSynchronizeStream", 11, 12.77012757357446),
]
TASKS = [
    x(DEVICE, 2, "mm", 30, 78.25, **{"Task Type": "AI_CORE", "Stream Id": 2, "connection_id": 990}),
    x(DEVICE, 3, "MEMCPY_ASYNC", 20, 828.33653125, **{"Task Type": "PCIE_DMA_SQE", "connection_id": 965,
      "data size(Byte)": 19267584, "memcpy direction": "host to device"}),
]  # fmt: skip
COMM = [
    x(HCCL, 0, "hcom_allReduce__1_0", 40, 86470.9076875, connection_id=1355, alg_type="MESH-RING", count=4097000),
    x(HCCL, 2, "Memcpy", 41, 3.42, **{"task type": "Memcpy", "src rank": 0, "dst rank": 5, "transport type": "SDMA",
      "size(Byte)": 2064384, "link type": "HCCS", "bandwidth(GB/s)": 603.6}),
    x(HCCL, 1, "Notify_Wait", 42, 2, **{"task type": "Notify_Wait", "src rank": 0, "dst rank": 4294967295, "transport type": "LOCAL",
      "size(Byte)": 0, "link type": "INVALID_TYPE"}),
    x(HCCL, 4, "Memcpy", 43, 1, **{"task type": "Memcpy", "src rank": 1, "dst rank": 0, "transport type": "RDMA", "size(Byte)": 512,
      "link type": "ROCE"}),
]  # fmt: skip
LANE_EVENTS = [x(OVERLAP, 0, "Computing", 30, 78.25), x(OVERLAP, 3, "Free", 20, 10)]


def test_host_operators(write: Write, notes: list[Any]) -> None:
    assert rows(read(write, notes, HOST).host_ops) == [
        ["Enqueue", 7, ns(2), 1610, "enqueue"],
        ["nn.Module: ReLU_0", 7, ns(3), 1000, "python_function"],
        ["aten::add", 7, ns(5.5), 13080, "cpu_op"],
    ]
    assert notes == []


def test_host_apis_without_the_prefix_of_their_level(write: Write, notes: list[Any]) -> None:
    assert rows(read(write, notes, APIS).host_apis) == [
        ["aclrtMemcpyAsync", "acl", 8, ns(9), 44750, 965],
        ["launch", "node", 8, ns(10), 35000, 990],
        ["aclrtSynchronizeStream", "acl", 8, ns(11), 12770, -1],
    ]


def test_device_tasks(write: Write, notes: list[Any]) -> None:
    plain = x(DEVICE, 2, "bare", 50, 1)
    assert rows(read(write, notes, [*TASKS, plain]).device_tasks) == [
        ["MEMCPY_ASYNC", "PCIE_DMA_SQE", 3, ns(20), 828337, 965, 19267584, "host to device"],
        ["mm", "AI_CORE", 2, ns(30), 78250, 990, -1, ""],
        ["bare", "", 2, ns(50), 1000, -1, -1, ""],
    ]


@pytest.mark.parametrize("process", ["HCCL", "Communication"])
def test_communication_tasks_know_group_and_plane(
    write: Write, notes: list[Any], monkeypatch: pytest.MonkeyPatch, process: str
) -> None:
    monkeypatch.setitem(PROCESSES, HCCL, process)
    assert rows(read(write, notes, COMM).comm_tasks) == [
        ["hcom_allReduce__1_0", "0", -1, ns(40), 86470908, -1, -1, -1, "", "", 1355],
        ["Memcpy", "0", 1, ns(41), 3420, 2064384, 0, 5, "SDMA", "HCCS", -1],
        ["Notify_Wait", "0", 0, ns(42), 2000, 0, 0, -1, "LOCAL", "INVALID_TYPE", -1],
        ["Memcpy", "77", 0, ns(43), 1000, 512, 1, 0, "RDMA", "ROCE", -1],
    ]


def test_overlap_lanes(write: Write, notes: list[Any]) -> None:
    assert rows(read(write, notes, LANE_EVENTS).overlap_lanes) == [
        ["Free", ns(20), 10000],
        ["Computing", ns(30), 78250],
    ]


def test_counters(write: Write, notes: list[Any]) -> None:
    def counter(name: str, time: str, **args: Any) -> dict[str, Any]:
        return {"ph": "C", "name": name, "ts": time, "pid": FREQUENCY, "tid": 0, "args": args}

    events = [
        counter("AI Core Freq", f"{T + 9}", MHz=1800),
        counter("AI Core Freq", at(1.24), MHz=800.5),
        counter("HBM 0/Read", at(2), **{"Read(MB/s)": 12.5}),
        counter("QoS OTHERS", at(2), value=3),
        counter("AI Core Freq", at(3), MHz="N/A"),
    ]
    assert rows(read(write, notes, events).counters) == [
        ["AI Core Freq", "MHz", ns(1.24), 800.5],
        ["HBM 0/Read", "Read(MB/s)", ns(2), 12.5],
        ["AI Core Freq", "MHz", ns(9), 1800.0],
    ]


def test_launches_join_flows_by_category_and_id(write: Write, notes: list[Any]) -> None:
    events = [
        flow("s", "HostToDevice", "38654705663", CANN, 8, 10),
        flow("f", "HostToDevice", "38654705663", DEVICE, 2, 30),
        flow("s", "HostToDevice", "9", CANN, 8, 12),
        flow("f", "HostToDevice", "9", HCCL, 0, 40),
        flow("f", "HostToDevice", "9", DEVICE, 3, 41),  # a copy of several tasks: one beginning, several ends
        flow("s", "async_npu", 9, PYTHON, 7, 2),
        flow("f", "async_npu", 9, DEVICE, 2, 30),
        flow("f", "async_task_queue", 9, PYTHON, 8, 3),
        flow("s", "async_task_queue", 9, PYTHON, 7, 2),
        flow("s", "fwdbwd", 9, PYTHON, 7, 2),
        flow("f", "fwdbwd", 9, PYTHON, 7, 5),
    ]
    assert rows(read(write, notes, events).launches) == [
        ["async_task_queue", ns(2), ns(3), 7, 8],
        ["async_npu", ns(2), ns(30), 7, 2],
        ["HostToDevice", ns(10), ns(30), 8, 2],
        ["HostToDevice", ns(12), ns(40), 8, -1],
        ["HostToDevice", ns(12), ns(41), 8, 3],
    ]
    assert notes == []


def test_flows_with_one_end_are_counted(write: Write, notes: list[Any]) -> None:
    events = [
        flow("s", "async_npu", 1, PYTHON, 7, 2), flow("f", "async_npu", 2, DEVICE, 2, 3),
        flow("s", "async_npu", 3, PYTHON, 7, 2), flow("f", "async_npu", 3, DEVICE, 2, 3),
        flow("s", "async_npu", None, PYTHON, 7, 2), flow("f", "async_npu", None, DEVICE, 2, 3),
        flow("s", "async_npu", "a b", PYTHON, 7, 2), flow("f", "async_npu", "a c", DEVICE, 2, 3),
    ]  # fmt: skip
    assert len(rows(read(write, notes, events).launches)) == 1
    assert notes == [("unmatched_flows", "info", 6)]


def test_an_id_used_again_belongs_to_the_last_beginning_before(write: Write, notes: list[Any]) -> None:
    events = [flow("s", "async_npu", 1, PYTHON, 7, t) for t in (1, 5)] + [
        flow("f", "async_npu", 1, DEVICE, 2, t) for t in (3, 8)
    ]
    launches = read(write, notes, events).launches
    assert launches is not None
    assert launches[["launch_ns", "device_ns"]].to_numpy().tolist() == [[ns(1), ns(3)], [ns(5), ns(8)]]


def test_without_process_names_the_form_of_the_events_tells(write: Write, notes: list[Any]) -> None:
    events = [*HOST, *APIS[:2], *TASKS, *COMM, *LANE_EVENTS]
    with_names = read(write, lambda *a, **k: None, events)
    without = read(write, notes, events, named=False)
    for table in ("host_ops", "host_apis", "device_tasks", "overlap_lanes"):
        pd.testing.assert_frame_equal(getattr(without, table), getattr(with_names, table))
    assert without.comm_tasks is not None
    assert len(without.comm_tasks) == len(COMM)
    assert without.comm_tasks["group"].tolist() == [""] * len(COMM)
    assert notes == [("unnamed_processes", "info", 5)]


@pytest.mark.parametrize(
    ("event", "issue"),
    [
        (x(PYTHON, 7, "a", 1, -1.0, "cpu_op"), "unreadable_times"),
        (x(PYTHON, 7, "a", 1, 1e300, "cpu_op"), "unreadable_times"),
        ({**x(PYTHON, 7, "a", 1, 1, "cpu_op"), "ts": "N/A"}, "unreadable_times"),
        ({**x(PYTHON, 7, "a", 1, 1, "cpu_op"), "ts": "9" * 30}, "unreadable_times"),
        ({"ph": "X", "name": "a", "pid": PYTHON, "tid": 7, "dur": 1, "cat": "cpu_op"}, "unreadable_times"),
    ],
)
def test_impossible_times_are_left_out(write: Write, notes: list[Any], event: dict[str, Any], issue: str) -> None:
    assert len(rows(read(write, notes, [event, HOST[0]]).host_ops)) == 1
    assert notes == [(issue, "warning", 1)]


def test_an_event_without_duration_is_an_instant(write: Write, notes: list[Any]) -> None:
    event = {key: value for key, value in HOST[0].items() if key != "dur"}
    assert rows(read(write, notes, [event]).host_ops)[0][3] == 0
    assert notes == [("events_without_duration", "info", 1)]


def test_odd_threads_and_arguments_stop_nothing(write: Write, notes: list[Any]) -> None:
    events = [
        {**HOST[0], "tid": "worker"}, {**HOST[0], "tid": "5"}, {**HOST[0], "tid": 2**70}, {**HOST[0], "pid": PYTHON},
        x(DEVICE, 2, "t", 1, 1, **{"Task Type": "AI_CORE", "connection_id": "12", "data size(Byte)": "N/A"}),
        x(DEVICE, 2, "u", 2, 1, **{"Task Type": "AI_CORE", "connection_id": 2**80, "data size(Byte)": 1.5e300}),
    ]  # fmt: skip
    timeline = read(write, notes, events)
    assert timeline.host_ops is not None
    assert timeline.host_ops["thread"].tolist() == [-2, 5, -3, 7]
    assert [row[5:7] for row in rows(timeline.device_tasks)] == [[12, -1], [-1, -1]]


def test_nothing_that_is_looked_at(write: Write, notes: list[Any]) -> None:
    timeline = read(write, notes, [])
    assert all(table is None for table in vars(timeline).values())
    assert notes == [("empty_timeline", "warning", 1)]


def test_two_readings_are_equal(write: Write, notes: list[Any]) -> None:
    events = [*HOST, *APIS, *TASKS, *COMM, *LANE_EVENTS]
    first, second = read(write, notes, events), read(write, notes, events)
    for name, table in vars(first).items():
        if table is not None:
            pd.testing.assert_frame_equal(table, getattr(second, name))


def test_cut_anywhere_the_tables_hold_whole_events_only(write: Write, notes: list[Any]) -> None:
    data = json.dumps([*metadata(), HOST[0], TASKS[0], APIS[0]]).encode()
    duration_of = {"host_ops": 13080, "device_tasks": 78250, "host_apis": 44750}
    for cut in range(1, len(data), 7):
        timeline = read_trace_view(write("cut.json", data[:cut]), notes)  # type: ignore[arg-type]
        for name, duration in duration_of.items():
            table = getattr(timeline, name)
            assert table is None or table["duration_ns"].tolist() == [duration]
    assert {issue for issue, *_ in notes} == {"truncated_timeline", "empty_timeline"}
