"""The collectives: sums over tasks, operators and links agree, and both ranks leave each of them together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

MS = 1_000_000
TIME = "Communication Time Info"
BANDWIDTH = "Communication Bandwidth Info"


def ms_to_ns(value: float) -> int:
    return round(value * MS)


def test_operators_agree_over_three_files(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    lane = {e["name"]: e for e in rank_text.lane("Communication") if e["tid"] == 0}
    rows = {r["Name"]: r for r in rank_text.collective_rows}
    group = next(iter(rank_text.collectives)).partition("@")[2]
    names = [f"hcom_allReduce__{group[-3:]}_{k}_1" for k in range(12)]
    assert list(rows) == sorted(lane, key=names.index) == names
    assert [k.partition("/")[2] for k in rank_text.collectives] == [f"{name}@{group}" for name in names]
    for key, entry in rank_text.collectives.items():
        step, _, name = key.partition("@")[0].partition("/")
        info, row, event = entry[TIME], rows[name], lane[name]
        assert step == f"step{row['Step Id']}"
        start, end = rank_text.span(row)
        assert to_ns(event["ts"]) == start
        assert info["Start Timestamp(us)"] == float(event["ts"])  # a double holds Unix µs to 0.25 µs only
        assert ms_to_ns(info["Elapse Time(ms)"]) == round(event["dur"] * 1000) == end - start


def test_group_is_the_one_the_metadata_declares(rank_text: Any) -> None:
    group = next(iter(rank_text.collectives)).partition("@")[2]
    # Two polynomial hashes (29, 131) of the declared name, modulo 2**32, side by side.
    hashes = {}
    for name in rank_text.metadata["parallel_group_info"]:
        parts = [sum(ord(c) * base**i for i, c in enumerate(reversed(name))) % 2**32 for base in (29, 131)]
        hashes[str(parts[0] * 2**32 + parts[1])] = rank_text.metadata["parallel_group_info"][name]
    assert hashes[group] == {"group_name": "dp", "group_rank": rank_text.rank, "global_ranks": [0, 1]}


def test_times_and_sizes_follow_from_the_tasks(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    tasks = [e for e in rank_text.lane("Communication") if e["tid"] == 1]
    for name, entry in rank_text.collectives.items():
        info = entry[TIME]
        event = next(e for e in rank_text.lane("Communication") if f"/{e['name']}@" in name)
        low, high = to_ns(event["ts"]), to_ns(event["ts"]) + round(event["dur"] * 1000)
        mine = sorted((t for t in tasks if low <= to_ns(t["ts"]) < high), key=lambda t: to_ns(t["ts"]))
        ends = [to_ns(t["ts"]) + round(t["dur"] * 1000) for t in mine]
        assert ends[-1] == high and all(e <= to_ns(t["ts"]) for e, t in zip(ends, mine[1:], strict=False))
        moves = [t for t in mine if t["args"]["link type"] == "HCCS"]
        waits = [t for t in mine if t["name"] == "Notify_Wait"]
        transit, wait = (sum(round(t["dur"] * 1000) for t in some) for some in (moves, waits))
        assert ms_to_ns(info["Transit Time(ms)"]) == transit
        assert ms_to_ns(info["Wait Time(ms)"]) == wait
        assert ms_to_ns(info["Synchronization Time(ms)"]) == round(waits[0]["dur"] * 1000)
        assert ms_to_ns(info["Elapse Time(ms)"]) == transit + wait + ms_to_ns(info["Idle Time(ms)"])
        assert info["Wait Time Ratio"] == pytest.approx(wait / (wait + transit), abs=1e-4)
        hccs = entry[BANDWIDTH]["HCCS"]
        size = sum(t["args"]["size(Byte)"] for t in moves)
        assert round(hccs["Transit Size(MB)"] * 1e6) == size == 2 * event["args"]["count"]
        assert hccs["Bandwidth(GB/s)"] == pytest.approx(size / transit, abs=1e-4)
        assert [(round(float(mb) * 1e6), n) for mb, (n, _) in hccs["Size Distribution"].items()] == [(size // 2, 2)]
        for task in moves:
            assert task["args"]["bandwidth(GB/s)"] == pytest.approx(size / 2 / (task["dur"] * 1000), rel=1e-9)


def test_totals_sum_the_operators(rank_text: Any) -> None:
    for traffic in rank_text.json("communication.json").values():
        assert traffic["p2p"] == {}
        entries = dict(traffic["collective"])
        total = entries.pop("Total Op Info")
        for column in ("Elapse", "Transit", "Wait", "Synchronization", "Idle"):
            name = f"{column} Time(ms)"
            parts = sum(ms_to_ns(entry[TIME][name]) for entry in entries.values())
            assert ms_to_ns(total[TIME][name]) == parts


def test_matrix_follows_from_the_tasks(rank_text: Any, to_ns: Callable[[str], int]) -> None:
    tasks = [e for e in rank_text.lane("Communication") if e["tid"] == 1]
    moved: dict[tuple[str, str, str], list[int]] = {}
    for row in rank_text.collective_rows:
        low, high = rank_text.span(row)
        for task in tasks:
            args = task["args"]
            if low <= to_ns(task["ts"]) < high and args["size(Byte)"]:
                link = f"{args['src rank']}-{args['dst rank']}"
                for name in (row["Name"], "total"):
                    sums = moved.setdefault((f"step{row['Step Id']}", name, link), [0, 0])
                    sums[0] += args["size(Byte)"]
                    sums[1] += round(task["dur"] * 1000)
    transport = {f"{rank_text.rank}-{rank_text.rank}": "LOCAL", f"{rank_text.rank}-{1 - rank_text.rank}": "HCCS"}
    for step, traffic in rank_text.json("communication_matrix.json").items():
        assert traffic["p2p"] == {}
        places = {key.partition("@")[0].removeprefix("allreduce-"): row for key, row in traffic["collective"].items()}
        for row in places.values():
            assert {link: record["Transport Type"] for link, record in row.items()} == transport
            for link, record in row.items():
                size, time = moved[step, record.get("Op Name", "total"), link]
                assert round(record["Transit Size(MB)"] * 1e6) == size
                assert ms_to_ns(record["Transit Time(ms)"]) == time
                assert record["Bandwidth(GB/s)"] == pytest.approx(size / time, abs=1e-4)
        ranked = ("top1", "middle", "bottom3", "bottom2", "bottom1")
        for link in transport:
            speeds = [places[place][link]["Bandwidth(GB/s)"] for place in ranked]
            assert speeds == sorted(speeds, reverse=True)
            every = [size / time for (s, name, at), (size, time) in moved.items() if (s, at) == (step, link)
                     and name != "total"]  # fmt: skip
            assert speeds[0] == pytest.approx(max(every), abs=1e-4)
            assert speeds[-1] == pytest.approx(min(every), abs=1e-4)


@pytest.mark.parametrize("run", ["slow", "healthy"])
def test_both_ranks_leave_each_collective_together(demo_rank: Callable[[str, int], Any], run: str) -> None:
    first, second = demo_rank(run, 0), demo_rank(run, 1)
    for mine, theirs in zip(first.collective_rows, second.collective_rows, strict=True):
        assert mine["Name"] == theirs["Name"]
        assert first.span(mine)[1] == second.span(theirs)[1]
        assert abs(first.span(mine)[0] - second.span(theirs)[0]) < 12 * MS


def test_gradients_are_reduced_after_they_exist_and_before_they_are_used(rank_text: Any) -> None:
    for step in ("10", "11"):
        scaled = [rank_text.span(r)[1] for r in rank_text.kernels if r["Step Id"] == step and r["Type"] == "Mul"]
        reduced = [rank_text.span(r) for r in rank_text.collective_rows if r["Step Id"] == step]
        adam = [rank_text.span(r)[0] for r in rank_text.kernels if r["Step Id"] == step and "Adam" in r["Type"]]
        assert len(scaled) == len(reduced) == 6
        assert all(ready < span[0] for ready, span in zip(scaled, reduced, strict=True))
        assert max(span[1] for span in reduced) < min(adam)
