"""Reading one rank: every file is optional, a broken one is a named health fact and costs only its own tables."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hermes_advisor.extractors.readers.ascend_text import read_rank
from hermes_advisor.extractors.readers.discover import discover
from hermes_advisor.extractors.readers.tables import RankTables

Make = Callable[..., Path]
STEPS = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n13,60,30,10,40,10\n"
KERNELS = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n13,k,Add,AI_VECTOR_CORE,1000.500,2,0\n"
APIS = "Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us)\nacl,aclnnAdd,6,2,3,1,5\n"
OPS = "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us)\nAdd,AIV,1,2,2,2,2\n"
OPERATORS = "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us)\naten::add,,,1,2\n"
MEMORY = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB)\nPTA,999.500\t,1,2\n"
TIMES = {
    "Start Timestamp(us)": 1001.5, "Elapse Time(ms)": 1, "Transit Time(ms)": 1, "Wait Time(ms)": 0, "Idle Time(ms)": 0,
}  # fmt: skip
HCCS = {"HCCS": {"Transit Size(MB)": 1, "Transit Time(ms)": 1, "Size Distribution": {"1": [1, 1]}}}
COMMUNICATION = json.dumps(
    {"step13": {"collective": {"hcom_x@g": {"Communication Time Info": TIMES, "Communication Bandwidth Info": HCCS}}}}
)
LINK = {"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 1}}
MATRIX = json.dumps({"step13": {"collective": {"x-total@g": LINK}}})


def event(pid: int, name: str, ts: str, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": pid, "tid": 1, "ts": ts, "dur": 1.0, **more}


TRACE = json.dumps(
    [
        event(1, "aten::add", "999.000", cat="cpu_op"),
        event(2, "AscendCL@aclnnAdd", "999.500", args={"level": "acl", "connection_id": 1}),
        event(3, "k", "1000.500", args={"Task Type": "AI_CORE", "connection_id": 1}),
        event(3, "MEMCPY_ASYNC", "1003.500", args={"Task Type": "SDMA_SQE"}),
        event(4, "hcom_x", "1001.500", args={"connection_id": 2}),
        event(5, "Computing", "1000.500"),
        {"ph": "C", "name": "AI Core Freq", "pid": 6, "ts": "998.500", "args": {"MHz": 1800}},
        {"ph": "s", "cat": "HostToDevice", "id": "1", "pid": 2, "tid": 1, "ts": "999.500", "name": "h"},
        {"ph": "f", "cat": "HostToDevice", "id": "1", "pid": 3, "tid": 1, "ts": "1000.500", "name": "h"},
        *(
            {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
            for pid, name in enumerate(["Python", "CANN", "Ascend Hardware", "HCCL", "Overlap Analysis"], 1)
        ),
    ]
)
FILES = {
    "step_trace_time.csv": STEPS, "kernel_details.csv": KERNELS, "api_statistic.csv": APIS, "op_statistic.csv": OPS,
    "operator_details.csv": OPERATORS, "memory_record.csv": MEMORY, "communication.json": COMMUNICATION,
    "communication_matrix.json": MATRIX, "trace_view.json": TRACE,
}  # fmt: skip
TABLES = {
    "step_trace_time.csv": {"steps"}, "kernel_details.csv": {"kernels"}, "api_statistic.csv": {"api_totals"},
    "op_statistic.csv": {"op_totals"}, "operator_details.csv": set(), "memory_record.csv": {"memory"},
    "communication.json": {"comm_ops", "comm_bandwidth", "comm_packets"}, "communication_matrix.json": {"comm_links"},
    "trace_view.json": {
        "host_ops", "host_apis", "launches", "device_tasks", "comm_tasks", "overlap_lanes", "counters",
    },
}  # fmt: skip
INFO = {"rank_id": 0, "config": {"experimental_config": {"_profiler_level": "Level1"}}}


def read(folder: Path) -> RankTables:
    (source,) = discover([folder]).sources
    return read_rank(source)


def names(tables: RankTables) -> set[str]:
    return {name for name, _ in tables.tables()}


def issues(tables: RankTables) -> list[tuple[str, str, str]]:
    return [(h.issue, h.severity, h.file) for h in tables.health]


def test_a_whole_rank(make_rank: Make) -> None:
    tables = read(make_rank(info=INFO, files=FILES))
    assert names(tables) == set().union(*TABLES.values())
    assert tables.health == []
    assert (tables.rank, tables.rank_known, tables.settings.level) == (0, True, "Level1")
    assert {name: table.file for name, table in tables.tables() if name in ("kernels", "launches")} == {
        "kernels": "ASCEND_PROFILER_OUTPUT/kernel_details.csv",
        "launches": "ASCEND_PROFILER_OUTPUT/trace_view.json",
    }
    assert tables.kernels is not None
    assert tables.kernels.reader == "kernel_details"


def test_times_begin_at_the_earliest_of_the_rank(make_rank: Make) -> None:
    tables = read(make_rank(info=INFO, files=FILES))
    assert tables.origin_ns == 998_500
    starts = {
        "counters": "time_ns", "host_ops": "start_ns", "host_apis": "start_ns", "memory": "time_ns",
        "kernels": "start_ns", "device_tasks": "start_ns", "overlap_lanes": "start_ns", "comm_ops": "start_ns",
        "comm_tasks": "start_ns",
    }  # fmt: skip
    assert {name: int(getattr(tables, name).frame[column].iloc[0]) for name, column in starts.items()} == {
        "counters": 0, "host_ops": 500, "host_apis": 1000, "memory": 1000, "kernels": 2000, "device_tasks": 2000,
        "overlap_lanes": 2000, "comm_ops": 3000, "comm_tasks": 3000,
    }  # fmt: skip
    assert tables.launches is not None
    assert tables.launches.frame[["launch_ns", "device_ns"]].to_numpy().tolist() == [[1000, 2000]]
    for name, table in tables.tables():
        for column in table.frame.filter(regex="_ns$"):
            expected = np.float64 if column in ("aicore_ns", "aiv_ns") else np.int64
            assert table.frame.dtypes[column] == expected, (name, column)


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_gives_absent_tables_and_no_fault(make_rank: Make, file: str) -> None:
    tables = read(make_rank(info=INFO, files={name: content for name, content in FILES.items() if name != file}))
    gone = set().union(*TABLES.values()) - names(tables)
    assert gone == TABLES[file] - {"kernels"}
    assert [h for h in tables.health if h.severity != "info"] == []


DAMAGE: dict[str, tuple[str | bytes, str]] = {
    "empty": (b"", "empty_file"),
    "junk": (bytes(range(256)) * 20, ""),
    "zeros": (b"\0" * 5000, ""),
    "spaces": (b"   \n", ""),
    "html": ("<html></html>\n", ""),
    "deep": ("[" * 100_000, ""),
    "object": ("{}", ""),
    "utf16": ("\ufeffStep,Computing\n".encode("utf-16"), ""),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("file", [name for name in FILES if name != "operator_details.csv"])
def test_a_broken_file_is_named_and_the_others_are_read(make_rank: Make, file: str, damage: str) -> None:
    content, issue = DAMAGE[damage]
    tables = read(make_rank(info=INFO, files={**FILES, file: content}))
    # Without kernel_details.csv the timeline gives the kernels, without a timeline operator_details.csv the host's.
    lost = TABLES[file] - {"kernels"}
    gained = {"host_op_totals"} if file == "trace_view.json" else set()
    assert names(tables) == set().union(*TABLES.values()) - lost | gained
    blamed = {h.issue for h in tables.health if h.file == f"ASCEND_PROFILER_OUTPUT/{file}"}
    assert blamed
    assert not issue or blamed == {issue}


@pytest.mark.parametrize("damage", DAMAGE)
def test_broken_operator_details(make_rank: Make, damage: str) -> None:
    tables = read(make_rank(info=INFO, files={"operator_details.csv": DAMAGE[damage][0], "step_trace_time.csv": STEPS}))
    assert names(tables) == {"steps"}
    assert [file for _, _, file in issues(tables)] == ["ASCEND_PROFILER_OUTPUT/operator_details.csv"]


@pytest.mark.parametrize("file", FILES)
def test_a_folder_in_place_of_a_file(make_rank: Make, file: str) -> None:
    folder = make_rank(info=INFO, files={name: text for name, text in FILES.items() if name != file})
    (folder / "ASCEND_PROFILER_OUTPUT" / file).mkdir()
    tables = read(folder)
    if file != "operator_details.csv":  # not read where the timeline gives the host's operators
        assert ("not_a_file", "error", f"ASCEND_PROFILER_OUTPUT/{file}") in issues(tables)
    assert names(tables) >= set().union(*(t for name, t in TABLES.items() if name != file)) - {"kernels"}


@pytest.mark.parametrize("file", ["step_trace_time.csv", "communication.json", "trace_view.json"])
def test_a_file_that_may_not_be_read(make_rank: Make, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    folder = make_rank(info=INFO, files=FILES)
    opened = os.open

    def refusing(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith(file):
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refusing)
    tables = read(folder)
    assert ("unreadable_file", "error", f"ASCEND_PROFILER_OUTPUT/{file}") in issues(tables)
    assert any("permission denied" in h.detail for h in tables.health)


def test_links_to_nowhere_and_pipes(make_rank: Make) -> None:
    folder = make_rank(info=INFO, files={"step_trace_time.csv": STEPS})
    output = folder / "ASCEND_PROFILER_OUTPUT"
    (output / "communication.json").symlink_to(output / "gone.json")
    os.mkfifo(output / "trace_view.json")
    assert issues(read(folder)) == [
        ("unreadable_file", "error", "ASCEND_PROFILER_OUTPUT/communication.json"),
        ("not_a_file", "error", "ASCEND_PROFILER_OUTPUT/trace_view.json"),
    ]


def test_without_profiler_info_the_tables_are_the_same(make_rank: Make) -> None:
    tables = read(make_rank(info=None, files=FILES))
    assert names(tables) == set().union(*TABLES.values())
    assert {issue for issue, *_ in issues(tables)} == {"unknown_rank", "no_profiler_info"}
    assert (tables.rank, tables.rank_known, tables.settings.level) == (0, False, "")


def test_nothing_that_can_be_read(make_rank: Make) -> None:
    tables = read(make_rank(info=INFO, files={"step_trace_time.csv": ""}))
    assert names(tables) == set()
    assert [issue for issue, *_ in issues(tables)] == ["empty_file", "no_tables"]


def test_kernels_from_the_timeline(make_rank: Make) -> None:
    tables = read(make_rank(info=INFO, files={"trace_view.json": TRACE}))
    assert tables.kernels is not None
    kernels = tables.kernels.frame
    assert kernels[
        ["name", "op_type", "core_type", "step", "duration_ns", "wait_ns", "block_dim", "state", "row"]
    ].to_numpy().tolist() == [["k", "", "AI_CORE", -1, 1000, -1, -1, "", -1]]
    assert not kernels["has_shapes"].any()
    assert np.isnan(kernels["mac_ratio"]).all()
    assert tables.kernels.file == "ASCEND_PROFILER_OUTPUT/trace_view.json"
    assert [issue for issue, *_ in issues(tables)] == ["kernels_from_timeline"]


@pytest.mark.parametrize(
    ("name", "task_type", "is_kernel"),
    [
        ("aclnnAdd_AddAiCore_Add", "AI_CORE", True), ("aclnnAdd_AddAiCore_Add", "Other", True), ("x", "AI_VECTOR_CORE", True),
        ("x", "MIX_AIC", True), ("x", "AI_CPU", True), ("x", "DSA_SQE", True), ("x", "KERNEL_AICORE", True),
        ("EventConv", "AI_CORE", True), ("MEMCPY_ASYNC", "Other", False), ("MEMCPY_ASYNC", "PCIE_DMA_SQE", False),
        ("EVENT_RECORD", "EVENT_RECORD_SQE", False), ("EVENT_WAIT", "Other", False), ("Notify Wait", "Notify Wait", False),
        ("NOTIFY_WAIT", "Other", False), ("PROFILING_ENABLE", "PLACE_HOLDER_SQE", False), ("PROFILING_ENABLE", "Other", False),
        ("SDMA", "SDMA", False), ("Write Value", "Write Value", False), ("hcom_allReduce__1", "Other", False),
    ],
)  # fmt: skip
def test_which_tasks_are_kernels(make_rank: Make, name: str, task_type: str, is_kernel: bool) -> None:
    trace = [event(3, name, "1.000", args={"Task Type": task_type})]
    tables = read(make_rank(info=INFO, files={"trace_view.json": json.dumps(trace)}))
    assert (tables.kernels is not None) == is_kernel


def test_operator_details_serve_where_the_timeline_is_missing(make_rank: Make) -> None:
    tables = read(make_rank(info=INFO, files={"operator_details.csv": OPERATORS}))
    assert tables.host_op_totals is not None
    assert tables.host_op_totals.frame.to_numpy().tolist() == [["aten::add", 1, 1000, 2000, 1]]


def test_a_timeline_given_alone(make_rank: Make) -> None:
    folder = make_rank(info=INFO, files=FILES)
    tables = read(folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json")
    assert names(tables) == TABLES["trace_view.json"] | {"kernels"}
    assert (tables.rank, tables.rank_known, tables.label) == (0, True, "trace_view.json")
    assert {table.file for _, table in tables.tables()} == {"trace_view.json"}


def test_rounded_memory_times_do_not_move_the_origin(make_rank: Make) -> None:
    files = {"kernel_details.csv": KERNELS, "memory_record.csv": MEMORY.replace("999.500\t", "9.9E+02")}
    tables = read(make_rank(info=INFO, files=files))
    assert tables.origin_ns == 1_000_500
    assert tables.memory is not None
    assert tables.memory.frame["time_ns"].tolist() == [990_000 - 1_000_500]


def test_the_result_can_be_sent_to_another_process(make_rank: Make) -> None:
    tables = read(make_rank(info=INFO, files=FILES))
    again = pickle.loads(pickle.dumps(tables))
    assert names(again) == names(tables)


def test_only_steps(make_rank: Make) -> None:
    tables = read(make_rank(info=INFO, files={"step_trace_time.csv": STEPS}))
    assert (names(tables), tables.origin_ns, tables.health) == ({"steps"}, 0, [])
