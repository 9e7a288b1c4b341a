"""Real profiles: facts equal the files, verdicts are those that are known. Skipped where the profiles are absent."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK_FAULTS = {
    "comm.slow_link",
    "comm.small_packet",
    "comm.alignment",
    "comm.retransmission",
    "comm.contention",
    "comm.saturated",
}


@cache
def diagnosis(folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "hermes_advisor", "diagnose", str(folder), "--format", "json"],
        capture_output=True, text=True, timeout=120, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / ".pkg")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def facts(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [f for f in diagnosis(folder)["facts"] if f["type"] == kind]


def step_trace(file: Path) -> dict[str, float]:
    with file.open(encoding="utf-8") as stream:
        row = next(csv.DictReader(stream))
    return {k: float(v) for k, v in row.items() if v}


def test_four_ranks_facts_equal_the_files(field_dir: Path) -> None:
    folder = field_dir / "ascend-4rank-pp2dp2-level2"
    d = diagnosis(folder)
    assert (d["run"]["ranks"], d["run"]["ranks_expected"], d["run"]["steps"]) == ([0, 1, 2, 3], 4, [13])
    steps = facts(folder, "step_breakdown")
    assert [f["rank"] for f in steps] == [0, 1, 2, 3]
    for fact in steps:
        row = step_trace(folder / fact["source"]["file"])
        assert fact["compute_us"] == pytest.approx(row["Computing"], abs=0.01)
        assert fact["exposed_communication_us"] == pytest.approx(row["Communication(Not Overlapped)"], abs=0.01)
        assert fact["free_us"] == pytest.approx(row["Free"], abs=0.01)
        assert fact["overlapped_us"] == fact["overlap_ratio"] == 0
    assert [f["compute_us"] for f in steps] == pytest.approx([231290.10, 230903.72, 400448.26, 401131.70])
    assert [round(f["exposed_communication_us"] / 1000, 3) for f in steps] == [420.174, 441.708, 277.650, 261.498]


def test_four_ranks_the_loaded_stage_is_blamed_first(field_dir: Path) -> None:
    folder = field_dir / "ascend-4rank-pp2dp2-level2"
    d = diagnosis(folder)
    first = d["findings"][0]
    assert (first["cause"], first["ranks"], first["steps"]) == ("parallel.load_imbalance", [2, 3], [13])
    # Stage means from the files: 231,096.91 and 400,789.98 µs; the heavier one lies 84,846.535 above their mean.
    assert first["recoverable_us"] == pytest.approx(84846.535, abs=0.01)
    (balance,) = facts(folder, "pipeline_balance")
    assert (balance["heaviest_stage"], balance["loaded_ranks"], balance["waiting_ranks"]) == (1, [2, 3], [0, 1])
    causes = {f["cause"] for f in d["findings"]}
    assert not causes & (LINK_FAULTS | {"comm.slow_rank"})
    proof = next(f for f in d["firings"] if f["id"] == first["proof"])
    assert any(v["field"] == "recoverable_us" for v in proof["values"])


def test_four_ranks_nobody_is_blamed_when_the_stages_are_not_known(field_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(field_dir / "ascend-4rank-pp2dp2-level2", folder)
    for file in folder.glob("*/profiler_metadata.json"):
        file.unlink()
    d = diagnosis(folder)
    assert not {f["cause"] for f in d["findings"]} & (LINK_FAULTS | {"comm.slow_rank", "parallel.load_imbalance"})
    assert {"comm.slow_rank", "parallel.load_imbalance"} <= {n["cause"] for n in d["not_evaluated"]}


def test_four_ranks_kernels_of_two_ranks_are_not_guessed(field_dir: Path) -> None:
    folder = field_dir / "ascend-4rank-pp2dp2-level2"
    assert {f["rank"] for f in facts(folder, "kernel_summary")} == {0, 2}
    partial = [n for n in diagnosis(folder)["not_evaluated"] if n["cause"] == "compute.aicpu"]
    assert partial
    assert all(n["ranks"] == [1, 3] for n in partial)


@pytest.mark.parametrize(
    ("level", "rank", "expected"),
    [("level2", 0, (129.863, 8.868, 95.962, 25.033)), ("level1", 0, (136.581, 8.874, 101.963, 25.744))],
)
def test_two_ranks_breakdown(field_dir: Path, level: str, rank: int, expected: tuple[float, ...]) -> None:
    folder = field_dir / "ascend-2rank-text" / level
    fact = next(f for f in facts(folder, "step_breakdown") if f["rank"] == rank)
    shown = [fact[n] / 1000 for n in ("duration_us", "compute_us", "exposed_communication_us", "free_us")]
    assert shown == pytest.approx(expected, abs=0.002)
    assert diagnosis(folder)["run"]["ranks"] == [0, 1]


@pytest.mark.parametrize("level", ["level1", "level2"])
def test_two_ranks_no_slow_rank_and_no_transfer_fault_is_claimed(field_dir: Path, level: str) -> None:
    d = diagnosis(field_dir / "ascend-2rank-text" / level)
    causes = {f["cause"] for f in d["findings"]}
    assert not causes & (LINK_FAULTS | {"comm.slow_rank", "parallel.load_imbalance", "compute.aicpu"})
    # The group has eight members (communication_matrix.json), two were profiled: who is late cannot be told.
    assert d["run"]["ranks_expected"] == 8
    slow_rank = [n for n in d["not_evaluated"] if n["cause"] == "comm.slow_rank"]
    assert slow_rank
    assert all(n["collect"] for n in slow_rank)


def test_two_ranks_alignment_is_what_the_timeline_shows(field_dir: Path) -> None:
    folder = field_dir / "ascend-2rank-text" / "level2"
    for fact in facts(folder, "transfer_alignment"):
        trace = json.loads((folder / fact["source"]["file"]).read_text(encoding="utf-8"))
        sizes = [
            e["args"]["size(Byte)"]
            for e in trace
            if e.get("ph") == "X" and e.get("args", {}).get("transport type") == "SDMA"
            and e["args"].get("link type") not in ("ON_CHIP", "INVALID_TYPE", "RESERVED") and e["args"]["size(Byte)"] > 512
        ]  # fmt: skip
        assert fact["transfer_count"] == len(sizes) > 0
        assert fact["unaligned_count"] == sum(s % 512 != 0 for s in sizes)


def test_small_timeline_is_host_bound(field_dir: Path) -> None:
    folder = field_dir / "ascend-timeline-small"
    d = diagnosis(folder)
    assert d["findings"][0]["cause"] == "cpu.dispatch"
    (step,) = facts(folder, "step_breakdown")
    trace = json.loads((folder / "trace_view.json").read_text(encoding="utf-8"))
    free_us = sum(e["dur"] for e in trace if e.get("ph") == "X" and e["name"] == "Free")
    assert step["free_us"] == pytest.approx(free_us, abs=0.5)
    assert 9_400 < step["free_us"] < 9_600


def test_trimmed_profiles_are_read(field_dir: Path) -> None:
    d = diagnosis(field_dir / "ascend-trimmed-2rank")
    assert d["run"]["ranks"] == [0, 1]
    assert not {f["cause"] for f in d["findings"]} & {"comm.slow_rank", "comm.slow_link"}


def test_every_leaf_of_every_proof_names_a_file_that_exists(field_dir: Path) -> None:
    for name in (
        "ascend-4rank-pp2dp2-level2",
        "ascend-2rank-text/level1",
        "ascend-2rank-text/level2",
        "ascend-timeline-small",
    ):
        folder = field_dir / name
        d = diagnosis(folder)
        known = {f["id"]: f for f in d["facts"]}
        for firing in d["firings"]:
            for fact_id in firing["bound"].values():
                source = known[fact_id]["source"]
                assert known[fact_id]["derived_by"] or (folder / source["file"]).exists(), (name, known[fact_id])
