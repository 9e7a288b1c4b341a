"""All files of a rank tell one story: sums and times recomputed from the raw text, to the ns where it holds them."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

Spans = list[tuple[int, int]]
LANES = {"Computing": "Computing", "Communication": "Communication", "Free": "Free",
         "Communication(Not Overlapped)": "Communication(Not Overlapped)"}  # fmt: skip


def length(spans: Spans) -> int:
    return sum(high - low for low, high in spans)


def test_step_parts_add_up(rank_text: Any) -> None:
    assert list(rank_text.steps) == ["10", "11"]
    for step in rank_text.steps.values():
        exposed = step["Communication(Not Overlapped)"]
        assert step["Computing"] + exposed + step["Free"] == step["Stage"]
        assert step["Overlapped"] == step["Communication"] - exposed
        assert step["Bubble"] == 0
        assert step["Communication(Not Overlapped and Exclude Receive)"] == exposed


def test_steps_follow_from_kernel_details(rank_text: Any, union: Callable[..., Spans]) -> None:
    starts = {s: min(rank_text.span(r)[0] for r in rank_text.kernels if r["Step Id"] == s) for s in ("10", "11")}
    for step, parts in rank_text.steps.items():
        computing = union(rank_text.span(r) for r in rank_text.kernels if r["Step Id"] == step)
        communication = union(rank_text.span(r) for r in rank_text.collective_rows if r["Step Id"] == step)
        busy = union([*computing, *communication])
        end = starts["11"] if step == "10" else busy[-1][1]
        assert parts["Computing"] == length(computing)
        assert parts["Communication"] == length(communication)
        assert parts["Communication(Not Overlapped)"] == length(busy) - length(computing)
        assert parts["Stage"] == end - starts[step]


def test_steps_follow_from_the_overlap_lanes(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    events = rank_text.lane("Overlap Analysis")
    boundary = min(rank_text.span(r)[0] for r in rank_text.kernels if r["Step Id"] == "11")
    for lane, column in LANES.items():
        sums = Counter[str]()
        for event in events:
            if event["name"] == lane:
                sums["10" if to_ns(event["ts"]) < boundary else "11"] += round(event["dur"] * 1000)
        assert sums == {step: parts[column] for step, parts in rank_text.steps.items()}


def test_preparing_runs_from_the_step_mark_to_the_first_kernel(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    marks = {
        e["name"].partition("#")[2]: to_ns(e["ts"]) for e in rank_text.lane("Python") if "ProfilerStep" in e["name"]
    }
    for step, parts in rank_text.steps.items():
        first = min(rank_text.span(r)[0] for r in rank_text.kernels if r["Step Id"] == step)
        assert parts["Preparing"] == first - marks[step] > 0


def test_trace_and_kernel_details_hold_the_same_kernels(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    def key(event: dict[str, Any]) -> tuple[str, int, int, str, str]:
        args = event["args"]
        return (event["name"], to_ns(event["ts"]), round(event["dur"] * 1000), args["Task Type"], str(args["Task Id"]))

    seen = [key(e) for e in rank_text.lane("Ascend Hardware") if e["args"]["Task Type"] != "PCIE_DMA_SQE"]
    rows = [
        (
            r["Name"],
            rank_text.span(r)[0],
            rank_text.span(r)[1] - rank_text.span(r)[0],
            r["Accelerator Core"],
            r["Task ID"],
        )
        for r in rank_text.kernels
    ]
    assert seen == rows and len(rows) == 140


def test_kernels_of_a_stream_follow_each_other(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    spans = [rank_text.span(r) for r in rank_text.kernels]
    for before, after, row in zip(spans, spans[1:], rank_text.kernels[1:], strict=False):
        assert to_ns(row["Wait Time(us)"]) == after[0] - before[1] > 0


def test_op_statistic_sums_the_kernels(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    durations = defaultdict(list)
    for row in rank_text.kernels:
        durations[row["Type"], row["Accelerator Core"]].append(to_ns(row["Duration(us)"]))
    table = rank_text.table("op_statistic.csv")
    assert {(r["OP Type"], r["Core Type"]) for r in table} == set(durations)
    for row in table:
        times = durations[row["OP Type"], row["Core Type"]]
        assert int(row["Count"]) == len(times)
        assert to_ns(row["Total Time(us)"]) == sum(times)
        assert (to_ns(row["Min Time(us)"]), to_ns(row["Max Time(us)"])) == (min(times), max(times))
        assert float(row["Avg Time(us)"]) == pytest.approx(sum(times) / len(times) / 1000, abs=5.1e-4)
    assert sum(float(row["Ratio(%)"]) for row in table) == pytest.approx(100, abs=0.01)


def test_api_statistic_sums_the_cann_lane(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    durations = defaultdict(list)
    for event in rank_text.lane("CANN"):
        durations[event["args"]["level"], event["name"].partition("@")[2]].append(round(event["dur"] * 1000))
    table = {(r["Level"], r["API Name"]): r for r in rank_text.table("api_statistic.csv")}
    assert set(table) == set(durations)
    for key, times in durations.items():
        row = table[key]
        assert (int(row["Count"]), to_ns(row["Time(us)"])) == (len(times), sum(times))
        assert (to_ns(row["Min(us)"]), to_ns(row["Max(us)"])) == (min(times), max(times))


def test_operator_details_carry_all_device_time(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    rows = rank_text.table("operator_details.csv")
    copies = [e for e in rank_text.lane("Ascend Hardware") if e["args"]["Task Type"] == "PCIE_DMA_SQE"]
    kernels = sum(to_ns(r["Duration(us)"]) for r in rank_text.kernels)
    collectives = sum(to_ns(r["Duration(us)"]) for r in rank_text.collective_rows)
    whole = kernels + collectives + sum(round(e["dur"] * 1000) for e in copies)
    on_cores = kernels - sum(to_ns(r["Duration(us)"]) for r in rank_text.kernels if r["Accelerator Core"] == "AI_CPU")
    assert sum(to_ns(r["Device Self Duration(us)"]) for r in rows) == whole
    assert sum(to_ns(r["Device Self Duration With AICore(us)"]) for r in rows) == on_cores
    host = [e for e in rank_text.lane("Python") if e["cat"] == "cpu_op" and "ProfilerStep" not in e["name"]]
    assert Counter(r["Name"] for r in rows) == Counter(e["name"] for e in host)
    assert all(0 <= to_ns(r["Host Self Duration(us)"]) <= to_ns(r["Host Total Duration(us)"]) for r in rows)


def test_every_device_task_is_tied_to_its_launch(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    tasks = list(rank_text.lane("Ascend Hardware"))
    tasks += [e for e in rank_text.lane("Communication") if e["tid"] == 0]
    for category in ("HostToDevice", "async_npu"):
        ends: dict[str, list[dict[str, Any]]] = {"s": [], "f": []}
        for event in rank_text.events:
            if event.get("cat") == category:
                ends[event["ph"]].append(event)
        start = {e["id"]: e for e in ends["s"]}
        assert len(start) == len(ends["s"]) == len(ends["f"]) == len(tasks)
        arrivals = {(e["pid"], e["tid"], e["ts"]) for e in ends["f"]}
        assert arrivals == {(e["pid"], e["tid"], e["ts"]) for e in tasks}
        assert all(to_ns(start[e["id"]]["ts"]) < to_ns(e["ts"]) for e in ends["f"])
    calls = {e["args"]["connection_id"]: e for e in rank_text.lane("CANN")}
    for task in tasks:
        call = calls[task["args"]["connection_id"]]
        assert to_ns(call["ts"]) + round(call["dur"] * 1000) <= to_ns(task["ts"])


def test_launch_queue_is_first_in_first_out(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    def spans(category: str) -> list[tuple[int, int, int]]:
        events = [e for e in rank_text.lane("Python") if e["cat"] == category]
        ends = [(to_ns(e["ts"]), to_ns(e["ts"]) + round(e["dur"] * 1000), e["args"]["correlation_id"]) for e in events]
        return sorted(ends)

    puts, takes = spans("enqueue"), spans("dequeue")
    assert [p[2] for p in puts] == [t[2] for t in takes]
    assert all(put[1] < take[0] for put, take in zip(puts, takes, strict=True))
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(takes))


def test_host_operators_nest(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    threads = defaultdict(list)
    for event in rank_text.lane("Python"):
        threads[event["tid"]].append((to_ns(event["ts"]), to_ns(event["ts"]) + round(event["dur"] * 1000)))
    assert len(threads) == 3
    for spans in threads.values():
        stack: Spans = []
        for low, high in sorted(spans, key=lambda s: (s[0], -s[1])):
            while stack and stack[-1][1] <= low:
                stack.pop()
            assert not stack or high <= stack[-1][1]
            stack.append((low, high))


def test_msprof_part_is_sorted_by_time(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    part = [e for e in rank_text.events if e["ph"] in "XC" and rank_text.process[e["pid"]] != "Python"]
    times = [to_ns(e["ts"]) for e in part]
    assert times == sorted(times)
    assert all(isinstance(e["ts"], str) and len(e["ts"].partition(".")[2]) == 3 for e in rank_text.events if "ts" in e)


def test_memory_record_replays_the_allocations(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    changes = Counter[int]()
    blocks = rank_text.table("operator_memory.csv")
    for block in blocks:
        taken, given = to_ns(block["Allocation Time(us)"]), to_ns(block["Release Time(us)"])
        assert given - taken == to_ns(block["Duration(us)"]) > 0
        size = round(float(block["Size(KB)"]) * 1024)
        assert size % 512 == 0
        changes[taken] += size
        changes[given] -= size
    record = [r for r in rank_text.table("memory_record.csv") if r["Component"] == "PTA"]
    assert [to_ns(r["Timestamp(us)"]) for r in record] == sorted(changes)
    totals = [round(float(r["Total Allocated(MB)"]) * 2**20) for r in record]
    for before, after, at_ns in zip(totals, totals[1:], sorted(changes)[1:], strict=False):
        assert after - before == changes[at_ns]
    for block in blocks:
        assert block["Allocation Total Allocated(MB)"] in {r["Total Allocated(MB)"] for r in record}
