"""What the demo is meant to show: a healthy twin within its bounds, and two faults that only ``slow`` has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

DemoRank = Callable[[str, int], Any]
RANKS = (0, 1)
HEALTHY = pytest.mark.parametrize("rank", RANKS)


def clocks(text: Any) -> list[int]:
    return [e["args"]["MHz"] for e in text.lane("AI Core Freq", "C")]


def core_time(text: Any, step: str, op_type: str) -> float:
    return sum(
        float(r["Duration(us)"]) for r in text.kernels if r["Step Id"] == step and r["Type"] == op_type
    )  # fmt: skip


@HEALTHY
def test_healthy_step_breakdown(demo_rank: DemoRank, rank: int) -> None:
    for step in demo_rank("healthy", rank).steps.values():
        assert 60_000_000 <= step["Stage"] <= 100_000_000
        assert step["Free"] < 0.04 * step["Stage"]
        assert step["Communication(Not Overlapped)"] < 0.06 * step["Stage"]
        assert step["Overlapped"] > 0.70 * step["Communication"]
        assert step["Preparing"] < 0.05 * step["Stage"]


def test_healthy_ranks_are_alike(demo_rank: DemoRank) -> None:
    first, second = (demo_rank("healthy", rank).steps for rank in RANKS)
    for step in ("10", "11"):
        for column in ("Computing", "Communication", "Stage"):
            assert first[step][column] == pytest.approx(second[step][column], rel=0.01)
    for one, two in zip(
        demo_rank("healthy", 0).collective_rows, demo_rank("healthy", 1).collective_rows, strict=True
    ):  # fmt: skip
        assert float(one["Duration(us)"]) == pytest.approx(float(two["Duration(us)"]), rel=0.05)


@pytest.mark.parametrize("run", ["slow", "healthy"])
@pytest.mark.parametrize("rank", RANKS)
def test_transfers_are_large_aligned_and_fast(demo_rank: DemoRank, run: str, rank: int) -> None:
    text = demo_rank(run, rank)
    for entry in text.collectives.values():
        hccs = entry["Communication Bandwidth Info"]["HCCS"]
        assert 19 <= hccs["Bandwidth(GB/s)"] <= 20
        assert hccs["Large Packet Ratio"] == 1.0
        assert all(float(mb) >= 32 for mb in hccs["Size Distribution"])
    moved = [e["args"] for e in text.lane("Communication") if e["args"].get("link type") == "HCCS"]
    assert len(moved) == 24 and all(args["size(Byte)"] % 512 == 0 for args in moved)


@pytest.mark.parametrize("run", ["slow", "healthy"])
@pytest.mark.parametrize("rank", RANKS)
def test_host_side_is_clean(demo_rank: DemoRank, to_ns: Callable[[str], int], run: str, rank: int) -> None:
    text = demo_rank(run, rank)
    calls = [e["name"] for e in text.lane("CANN")]
    assert not any("ompile" in name for name in calls)
    waits = [e["dur"] for e in text.lane("CANN") if "Synchronize" in e["name"] or e["name"] == "AscendCL@aclrtMemcpy"]
    assert len(waits) <= 2 and all(dur < 500 for dur in waits)
    loading = [e["dur"] for e in text.lane("Python") if e["name"].startswith("enumerate(DataLoader)")]
    assert len(loading) == 2 and all(250 < dur < 350 for dur in loading)
    assert not any("_local_scalar_dense" in e["name"] for e in text.lane("Python"))
    starts = {e["id"]: to_ns(e["ts"]) for e in text.events if e.get("cat") == "HostToDevice" and e["ph"] == "s"}
    lead = [to_ns(e["ts"]) - starts[e["id"]] for e in text.events if e.get("cat") == "HostToDevice" and e["ph"] == "f"]
    assert sorted(lead)[len(lead) // 2] > 20_000_000  # the launch queue keeps the device fed
    short = [r for r in text.kernels if float(r["Duration(us)"]) < 10]
    assert len(short) < 0.05 * len(text.kernels)


@pytest.mark.parametrize("run", ["slow", "healthy"])
@pytest.mark.parametrize("rank", RANKS)
def test_memory_is_clean(demo_rank: DemoRank, run: str, rank: int) -> None:
    record = [r for r in demo_rank(run, rank).table("memory_record.csv") if r["Component"] == "PTA"]
    allocated = [float(r["Total Allocated(MB)"]) for r in record]
    reserved = {float(r["Total Reserved(MB)"]) for r in record}
    assert len(reserved) == 1 and 0 < reserved.pop() - max(allocated) < 0.03 * max(allocated)
    assert abs(allocated[-1] - allocated[0]) < 100  # nothing is left behind


@HEALTHY
def test_healthy_has_neither_fault(demo_rank: DemoRank, rank: int) -> None:
    text = demo_rank("healthy", rank)
    assert {r["Accelerator Core"] for r in text.kernels} == {"AI_CORE", "AI_VECTOR_CORE", "MIX_AIC"}
    assert set(clocks(text)) == {1800}
    ratios = [float(r["aic_mac_ratio"]) for r in text.kernels if r["Type"] == "MatMulV3"]
    assert min(ratios) > 0.84 and max(ratios) < 0.87


@pytest.mark.parametrize("rank", RANKS)
def test_planted_aicpu_kernel(demo_rank: DemoRank, rank: int) -> None:
    text = demo_rank("slow", rank)
    planted = [r for r in text.kernels if r["Accelerator Core"] == "AI_CPU"]
    assert [(r["Type"], r["Step Id"], r["Stream ID"]) for r in planted] == [
        ("IndexPutV2", s, "2") for s in ("10", "11")
    ]
    assert all(5_800 < float(r["Duration(us)"]) < 6_200 for r in planted)
    assert all(r["Input Data Types"] == "INT64;INT64;INT64;INT64" for r in planted)
    assert [r["Count"] for r in text.table("op_statistic.csv") if r["Core Type"] == "AI_CPU"] == ["2"]
    assert [e["args"]["Task Type"] for e in text.lane("Ascend Hardware")].count("AI_CPU") == 2


def test_planted_down_clocking(demo_rank: DemoRank) -> None:
    assert set(clocks(demo_rank("slow", 0))) == {1800}
    assert clocks(demo_rank("slow", 1)) == [1800, 1350, 1350]
    drop = demo_rank("slow", 1).lane("AI Core Freq", "C")[1]
    assert drop["ts"] < min(e["ts"] for e in demo_rank("slow", 1).lane("Python"))
    for step in ("10", "11"):
        growth = {
            op_type: core_time(demo_rank("slow", 1), step, op_type) / core_time(demo_rank("slow", 0), step, op_type)
            for op_type in ("MatMulV3", "FlashAttentionScore", "Add", "ApplyAdamWV2", "IndexPutV2")
        }
        assert 1.29 < growth["MatMulV3"] < 1.34
        assert 1.25 < growth["FlashAttentionScore"] < 1.34
        assert 1.05 < growth["Add"] < 1.15 and 1.05 < growth["ApplyAdamWV2"] < 1.15
        assert 0.97 < growth["IndexPutV2"] < 1.03


def test_cycles_are_time_times_clock(demo_rank: DemoRank) -> None:
    for run, rank, mhz in (("slow", 0, 1800), ("slow", 1, 1350), ("healthy", 1, 1800)):
        for row in demo_rank(run, rank).kernels:
            if row["Type"] == "MatMulV3":
                cycles = float(row["aicore_time(us)"]) * mhz * int(row["Block Dim"])
                assert int(row["aic_total_cycles"]) == pytest.approx(cycles, rel=1e-4)


def test_rank_0_waits_for_rank_1_in_every_collective(demo_rank: DemoRank) -> None:
    waiting, late = demo_rank("slow", 0), demo_rank("slow", 1)
    imposed = 0.0
    for name, entry in waiting.collectives.items():
        mine, theirs = entry["Communication Time Info"], late.collectives[name]["Communication Time Info"]
        assert mine["Elapse Time(ms)"] > theirs["Elapse Time(ms)"] + 1
        assert theirs["Wait Time(ms)"] < 0.05
        assert mine["Transit Time(ms)"] == pytest.approx(theirs["Transit Time(ms)"], rel=0.02)
        imposed += mine["Elapse Time(ms)"] - theirs["Elapse Time(ms)"]
    assert 40 < imposed < 80
    for step in ("10", "11"):
        exposed = [text.steps[step]["Communication(Not Overlapped)"] for text in (waiting, late)]
        assert exposed[0] > 15_000_000 + exposed[1]
        assert late.steps[step]["Computing"] > 1.2 * waiting.steps[step]["Computing"]


def test_both_runs_are_the_same_job(demo_rank: DemoRank) -> None:
    for rank in RANKS:
        slow, healthy = demo_rank("slow", rank), demo_rank("healthy", rank)
        assert slow.info["config"] == healthy.info["config"]
        assert slow.metadata == healthy.metadata
        assert [r["Type"] for r in slow.kernels if r["Type"] != "IndexPutV2"] == [
            r["Type"] for r in healthy.kernels if r["Type"] != "SelectV2"
        ]
        assert slow.info["rank_id"] == str(rank)
        assert slow.metadata["distributed_args"]["world_size"] == 2
