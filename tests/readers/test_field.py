"""Real profiles: what the readers give equals what the standard library reads from the same files."""

from __future__ import annotations

import csv
import json
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hermes_advisor.extractors.readers.ascend_text import read_rank
from hermes_advisor.extractors.readers.discover import discover
from hermes_advisor.extractors.readers.errors import InputError
from hermes_advisor.extractors.readers.tables import RankTables, Table

FOUR = "ascend-4rank-pp2dp2-level2"
TEXT = "ascend-2rank-text"
PROCESS_OF = {
    "host_ops": "Python", "host_apis": "CANN", "device_tasks": "Ascend Hardware", "comm_tasks": "HCCL",
    "overlap_lanes": "Overlap Analysis",
}  # fmt: skip


@cache
def ranks(folder: Path) -> list[RankTables]:
    return [read_rank(source) for source in discover([folder]).sources]


@pytest.fixture
def four(field_dir: Path) -> list[RankTables]:
    return ranks(field_dir / FOUR)


def frame(table: Table | None) -> pd.DataFrame:
    assert table is not None
    return table.frame


def to_ns(microseconds: str) -> int:
    return int((Decimal(microseconds.strip()) * 1000).to_integral_value(ROUND_HALF_UP))


def csv_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def folders(field_dir: Path) -> list[Path]:
    return sorted(p.parent for p in field_dir.glob("ascend-[4t2]*/**/step_trace_time.csv"))


def test_four_ranks_are_found_without_their_device_ids(four: list[RankTables]) -> None:
    assert [(t.rank, t.rank_known, t.label) for t in four] == [(r, True, f"rank_{r}_ascend_pt") for r in range(4)]
    assert [t.health for t in four] == [[], [], [], []]
    assert [t.settings.level for t in four] == ["Level2"] * 4
    settings = four[2].settings
    assert settings.versions == {"torch_npu": "2.7.1", "cann": "8.3.RC1"}
    assert settings.parallel["pipeline_model_parallel_size"] == 2
    assert {g.comm_name: (g.role, g.ranks) for g in settings.groups}["group_name_19"] == ("pp", (0, 2))
    assert settings.environment is not None
    assert settings.environment["PYTORCH_NPU_ALLOC_CONF"] == "expandable_segments:True"


def test_four_ranks_steps(four: list[RankTables]) -> None:
    columns = [
        "step",
        "compute_ns",
        "exposed_communication_ns",
        "free_ns",
        "overlapped_ns",
        "bubble_ns",
        "preparing_ns",
    ]
    assert [frame(t.steps)[columns].to_numpy().tolist() for t in four] == [
        [[13, 231290100, 420174260, 158558000, 0, 0, 206250]],
        [[13, 230903720, 441708380, 136819560, 0, 0, 205000]],
        [[13, 400448260, 277649660, 131705280, 0, 0, 189000]],
        [[13, 401131700, 261498440, 147520200, 0, 0, 278750]],
    ]


def test_four_ranks_kernels_of_those_that_have_the_file(four: list[RankTables]) -> None:
    assert [t.kernels is None for t in four] == [False, True, False, True]
    # Computing of step_trace_time.csv: kernels do not overlap in this capture.
    assert [int(frame(four[r].kernels)["duration_ns"].sum()) for r in (0, 2)] == [231290100, 400448260]
    assert [len(frame(four[r].kernels)) for r in (0, 2)] == [2448, 2564]


def test_four_ranks_point_to_point_time(four: list[RankTables]) -> None:
    elapsed = [frame(t.comm_ops).query("traffic == 'p2p'")["elapse_ns"].sum() / 1e6 for t in four]
    assert [round(ms) for ms in elapsed] == [314, 323, 73, 75]
    sent = frame(four[0].comm_bandwidth).query("traffic == 'p2p'")
    assert set(sent["size_bytes"]) == {8388608}
    assert set(sent["transport"]) == {"HCCS"}


@pytest.mark.parametrize("folder", [FOUR, f"{TEXT}/level1", f"{TEXT}/level2"])
def test_links_and_operators_carry_the_same_bytes(field_dir: Path, folder: str) -> None:
    for tables in ranks(field_dir / folder):
        links = frame(tables.comm_links)
        between = links[links["transport"] != "LOCAL"].groupby(["group", "transport"])["size_bytes"].sum()
        carried = frame(tables.comm_bandwidth).groupby(["group", "transport"])["size_bytes"].sum()
        assert between.index.equals(carried.index)
        assert between.to_numpy() == pytest.approx(carried.to_numpy(), abs=4)


def test_links_of_the_old_layout_add_up_to_the_total_that_was_left_out(field_dir: Path) -> None:
    for tables in ranks(field_dir / "ascend-trimmed-2rank"):
        (path,) = (field_dir / "ascend-trimmed-2rank" / tables.label).glob("*/communication_matrix.json")
        total = json.loads(path.read_text())["step2"]["collective"]["Total Op Info"]
        links = frame(tables.comm_links).query("traffic == 'collective'")
        summed = links.groupby(["src", "dst"])["size_bytes"].sum()
        assert {f"{src}-{dst}" for src, dst in summed.index} == set(total)
        for (src, dst), size in summed.items():  # type: ignore[misc]
            assert size == pytest.approx(total[f"{src}-{dst}"]["Transit Size(MB)"] * 1e6, abs=4)


def test_every_kernel_row_equals_the_file(field_dir: Path) -> None:
    for output in folders(field_dir):
        path = output / "kernel_details.csv"
        if not path.exists():
            continue
        (tables,) = ranks(output.parent)
        expected = [
            [i, r["Name"], r["Type"], to_ns(r["Start Time(us)"]), to_ns(r["Duration(us)"]), to_ns(r["Wait Time(us)"]),
             int(r["Block Dim"]), {"N/A": ""}.get(r.get("OP State", ""), r.get("OP State", ""))]
            for i, r in enumerate(csv_rows(path), 1) if r["Accelerator Core"] not in ("HCCL", "COMMUNICATION")
        ]  # fmt: skip
        columns = ["row", "name", "op_type", "start_ns", "duration_ns", "wait_ns", "block_dim", "state"]
        found = frame(tables.kernels)[columns].copy()
        found["start_ns"] += tables.origin_ns
        assert found.sort_values("row").to_numpy().tolist() == expected


def test_every_memory_time_and_api_total_equals_the_file(field_dir: Path) -> None:
    for output in folders(field_dir):
        (tables,) = ranks(output.parent)
        if tables.memory is not None and not any(h.issue == "rounded_times" for h in tables.health):
            times = [to_ns(r["Timestamp(us)"]) for r in csv_rows(output / "memory_record.csv")]
            assert (frame(tables.memory)["time_ns"] + tables.origin_ns).tolist() == times
        if tables.api_totals is not None:
            apis = csv_rows(output / "api_statistic.csv")
            assert frame(tables.api_totals)["total_ns"].tolist() == [to_ns(r["Time(us)"]) for r in apis]


def traces(field_dir: Path) -> list[Path]:
    return [
        field_dir / "ascend-timeline-small/trace_view.json",
        *sorted((field_dir / TEXT).glob("*/*/*/trace_view.json")),
    ]


def test_every_timeline_event_is_in_its_table(field_dir: Path) -> None:
    for path in traces(field_dir):
        (tables,) = ranks(path)
        events = json.loads(path.read_text())
        process = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        expected: dict[str, Counter[Any]] = {name: Counter() for name in PROCESS_OF}
        for event in events:
            for table, name in PROCESS_OF.items():
                if event["ph"] == "X" and process[event["pid"]] == name:
                    expected[table][to_ns(event["ts"])] += 1
        for table, counted in expected.items():
            if not counted:
                assert getattr(tables, table) is None
                continue
            found = frame(getattr(tables, table))
            assert Counter((found["start_ns"] + tables.origin_ns).tolist()) == counted
            assert found["start_ns"].is_monotonic_increasing
        flows = Counter((e["cat"], e["ph"]) for e in events if e["ph"] in "sf")
        links = Counter(frame(tables.launches)["link"])
        assert links == {cat: count for (cat, phase), count in flows.items() if phase == "f" and cat != "fwdbwd"}


def test_two_ranks_overlap_lanes_add_up_to_the_steps(field_dir: Path) -> None:
    for tables in ranks(field_dir / TEXT / "level2"):
        lanes = frame(tables.overlap_lanes).groupby("lane")["duration_ns"].sum()
        step = frame(tables.steps).iloc[0]
        assert (lanes["Computing"], lanes["Free"]) == pytest.approx((step["compute_ns"], step["free_ns"]), abs=400)
    step = frame(ranks(field_dir / TEXT / "level2")[0].steps).iloc[0]
    assert [step[c] for c in ("step", "duration_ns", "compute_ns", "exposed_communication_ns", "free_ns")] == [
        50, 129862875, 8868240, 95962016, 25032619,
    ]  # fmt: skip


def test_two_ranks_details_of_the_timeline(field_dir: Path) -> None:
    tables = ranks(field_dir / TEXT / "level2")[0]
    frequency = frame(tables.counters).query("name == 'AI Core Freq'")
    assert (frequency["series"].tolist(), frequency["value"].tolist()) == (["MHz"] * 2, [1800.0] * 2)
    copies = frame(tables.device_tasks).query("direction == 'host to device'")
    assert 19267584 in set(copies["size_bytes"])
    tasks = frame(tables.comm_tasks)
    assert sorted(set(tasks["plane"])) == [-1, 0, 1, 2, 3, 4, 5, 6, 7]
    assert tasks.query("plane == -1")["duration_ns"].tolist()[0] == 86470908
    loader = frame(tables.host_ops).query("name.str.startswith('enumerate(DataLoader)')")
    assert loader[["duration_ns", "category"]].to_numpy().tolist() == [[3562460, "cpu_op"]]
    events = json.loads(
        (field_dir / TEXT / "level2" / tables.label / "ASCEND_PROFILER_OUTPUT/trace_view.json").read_text()
    )
    levels = Counter(event["args"]["level"] for event in events if "level" in event.get("args", {}))
    assert Counter(frame(tables.host_apis)["level"]) == levels
    assert levels["node"] == 191


def test_two_runs_in_one_folder_the_later_is_taken(field_dir: Path) -> None:
    discovery = discover([field_dir / TEXT])
    assert [s.label for s in discovery.sources] == ["level2/rank0_ascend_pt", "level2/rank1_ascend_pt"]
    assert [(h.issue, h.count) for h in discovery.health] == [("several_captures", 2)]


@pytest.mark.parametrize("name", ["ascend-timeline-small", "ascend-timeline-small/trace_view.json"])
def test_small_timeline(field_dir: Path, name: str) -> None:
    (tables,) = ranks(field_dir / name)
    assert (tables.rank, tables.rank_known, tables.steps) == (0, False, None)
    kernels = frame(tables.kernels)
    # The Computing lane of the file: 274 events of 1.788 ms; two memory copies are no kernels.
    assert len(kernels) == 274
    assert kernels["duration_ns"].sum() == pytest.approx(1788266, abs=274)  # each rounded to a nanosecond
    assert Counter(kernels["core_type"]) == {"": 272, "AI_CPU": 2}
    free = frame(tables.overlap_lanes).query("lane == 'Free'")["duration_ns"].sum()
    assert round(free / 1e6, 1) == 9.5
    assert {h.issue for h in tables.health} == {"unknown_rank", "no_profiler_info", "kernels_from_timeline"}


def test_trimmed_ranks(field_dir: Path) -> None:
    first, second = ranks(field_dir / "ascend-trimmed-2rank")
    assert (first.label, second.label) == ("test_rank_0", "test_rank_1")
    assert frame(first.steps)["preparing_ns"].tolist() == [-1]
    assert set(frame(first.kernels)["state"]) == {""}
    assert [h.issue for h in second.health] == ["rounded_times"]
    assert frame(second.memory)["time_ns"].nunique() == 1


@pytest.mark.parametrize(
    "name", ["ascend-2rank-db", "kineto-hta", "training-logs", "ascend-16rank-cluster-analysis", "README.md"]
)
def test_what_is_not_read_is_refused(field_dir: Path, name: str) -> None:
    with pytest.raises(InputError):
        discover([field_dir / name])
