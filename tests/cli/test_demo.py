"""The main job on the embedded example: two planted faults, nothing in the healthy twin, always the same bytes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SLOW = ROOT / "examples" / "demo" / "slow"


def hermes(*args: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hermes_advisor", *map(str, args)],
        capture_output=True, text=True, cwd=ROOT, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".pkg"), **env},
    )  # fmt: skip


def test_the_two_planted_faults_are_found_and_nothing_else() -> None:
    done = hermes("demo", "--format", "json")
    assert done.returncode == 0, done.stderr
    d = json.loads(done.stdout)
    assert {(f["cause"], tuple(f["ranks"])) for f in d["findings"]} == {
        ("compute.downclock", (1,)), ("compute.aicpu", (0, 1)),
    }  # fmt: skip
    assert [h for h in d["run"]["health"] if h["severity"] != "info"] == []


def test_the_healthy_twin_is_silent() -> None:
    done = hermes("demo", "--healthy", "--format", "json")
    d = json.loads(done.stdout)
    assert d["findings"] == []
    assert [h for h in d["run"]["health"] if h["severity"] != "info"] == []


def test_fail_on_sets_the_exit_code() -> None:
    assert hermes("diagnose", SLOW, "--fail-on", "info").returncode == 1
    assert hermes("diagnose", SLOW, "--fail-on", "never").returncode == 0
    assert hermes("diagnose", SLOW.parent / "healthy", "--fail-on", "info").returncode == 0


def test_same_bytes_for_any_hash_seed_jobs_and_file_order(tmp_path: Path) -> None:
    # Two copies whose folders and files were created in opposite order, diagnosed under one relative name.
    outputs = set()
    for turn, (seed, jobs) in enumerate([("0", "1"), ("1", "2"), ("12345", "1")]):
        parent = tmp_path / str(turn)
        files = sorted(p for p in SLOW.rglob("*") if p.is_file())
        for file in files if turn % 2 else reversed(files):
            target = parent / "run" / file.relative_to(SLOW)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        done = subprocess.run(
            [sys.executable, "-m", "hermes_advisor", "diagnose", "run", "--format", "json", "--jobs", jobs],
            capture_output=True, cwd=parent, timeout=120,
            env={**os.environ, "PYTHONPATH": str(ROOT / ".pkg"), "PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_output_goes_to_a_file_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    assert hermes("demo", "--format", "json", "-o", target).returncode == 0
    assert json.loads(target.read_text())["schema_version"] == 1
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]
    done = hermes("demo", "-o", tmp_path / "no" / "such" / "folder.json")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_finding_is_explained_down_to_a_file(tmp_path: Path, lang: str) -> None:
    target = tmp_path / "result.json"
    hermes("demo", "--format", "json", "-o", target)
    count = len(json.loads(target.read_text())["findings"])
    assert count == 2
    for number in range(1, count + 1):
        done = hermes("explain", target, str(number), "--lang", lang, COLUMNS="200")
        assert done.returncode == 0, done.stderr
        assert "ASCEND_PROFILER_OUTPUT" in done.stdout
    done = hermes("explain", target, "9")
    assert done.returncode == 2
    assert "1 (HMS-" in done.stderr


def test_every_leaf_of_a_proof_is_a_measured_fact_with_a_source(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    hermes("demo", "--format", "json", "-o", target)
    d = json.loads(target.read_text())
    facts = {f["id"]: f for f in d["facts"]}
    firings = {f["id"]: f for f in d["firings"]}
    for firing in firings.values():
        assert firing["rule"] in d["rules"]
        for fact_id in [*firing["bound"].values(), *(m for a in firing["aggregates"] for m in a["members"])]:
            fact = facts[fact_id]
            if fact["derived_by"]:
                assert firings[fact["derived_by"]]["derived"] == fact_id
            else:
                assert (SLOW / fact["source"]["file"]).exists() or fact["source"]["file"] in ("", "."), fact["source"]


@pytest.mark.parametrize(
    "command", ["demo", "facts examples/demo/slow", "kb list", "kb schema result", "kb test -v", "demo -f json"]
)
def test_a_reader_that_goes_away_is_no_error(command: str) -> None:
    line = f"{sys.executable} -m hermes_advisor {command} | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=ROOT, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT / ".pkg")})  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", ["demo", "demo -f json", "kb list", "kb lint"])
def test_a_full_disk_is_one_line(command: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "hermes_advisor", *command.split()], stdout=full, cwd=ROOT, timeout=120,
                              stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / ".pkg")})  # fmt: skip
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "No space left" in done.stderr
