"""Bad input as people bring it: one clear line or a health fact, the right exit code, no traceback, nothing written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hermes_advisor.cli import app

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo" / "slow"
OUTPUT = "ASCEND_PROFILER_OUTPUT"


def hermes(*args: str | Path) -> Any:
    """Run the command in this process; anything but a clean exit is a failure here and now."""
    result = CliRunner().invoke(app, [str(a) for a in args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr
    return result


def diagnosis(folder: Path) -> dict[str, Any]:
    done = hermes("diagnose", folder, "--format", "json", "--matcher", "reference")
    assert done.exit_code == 0, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def snapshot(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()
    }


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    shutil.copytree(DEMO, folder)
    return folder


def nothing(path: Path) -> Path:
    return path / "absent"


def empty(path: Path) -> Path:
    (path / "empty").mkdir()
    return path / "empty"


def something_else(path: Path) -> Path:
    (path / "src").mkdir()
    (path / "src" / "main.py").write_text("print(1)\n")
    (path / "src" / "data.json").write_text('{"a": 1}')
    return path / "src"


def text_file(path: Path) -> Path:
    (path / "notes.txt").write_text("hello")
    return path / "notes.txt"


def raw_profile(path: Path) -> Path:
    folder = path / "host_1_20260101000000000_ascend_pt"
    (folder / "PROF_000001_20260101000000000_ABC" / "device_0").mkdir(parents=True)
    (folder / "FRAMEWORK").mkdir()
    (folder / "profiler_info_0.json").write_text('{"rank_id": 0}')
    return folder


@pytest.mark.parametrize("make", [nothing, empty, something_else, text_file, raw_profile])
@pytest.mark.parametrize("command", ["diagnose", "facts"])
def test_unusable_input_is_one_line_and_exit_4(tmp_path: Path, make: Callable[[Path], Path], command: str) -> None:
    done = hermes(command, make(tmp_path))
    assert done.exit_code == 4
    assert done.stdout == ""
    assert done.stderr.startswith("hermes: ")
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("cut", [0.001, 0.02, 0.3, 0.77, 0.9999])
def test_a_cut_timeline_costs_only_what_needs_it(profile: Path, cut: float) -> None:
    whole = diagnosis(profile)
    trace = profile / "rank0_ascend_pt" / OUTPUT / "trace_view.json"
    data = trace.read_bytes()
    trace.write_bytes(data[: int(len(data) * cut)])
    d = diagnosis(profile)
    assert any(h["file"].endswith("trace_view.json") for h in d["run"]["health"])
    # kernel_details.csv still shows the AICPU kernels.
    assert "compute.aicpu" in {f["cause"] for f in whole["findings"]}
    assert "compute.aicpu" in {f["cause"] for f in d["findings"]}


@pytest.mark.parametrize("name", ["kernel_details.csv", "step_trace_time.csv", "communication.json", "api_statistic.csv",
                                  "communication_matrix.json", "memory_record.csv", "trace_view.json"])  # fmt: skip
@pytest.mark.parametrize("damage", ["empty", "header", "binary", "folder", "missing"])
def test_a_broken_file_is_a_health_fact_and_the_rest_still_runs(profile: Path, name: str, damage: str) -> None:
    for rank in (0, 1):
        file = profile / f"rank{rank}_ascend_pt" / OUTPUT / name
        data = file.read_bytes()
        if damage == "empty":
            file.write_bytes(b"")
        elif damage == "header":
            file.write_bytes(data.split(b"\n", 1)[0] + b"\n" if name.endswith("csv") else b"[]")
        elif damage == "binary":
            file.write_bytes(bytes(range(256)) * 40)
        else:
            file.unlink()
            if damage == "folder":
                file.mkdir()
    before = snapshot(profile)
    d = diagnosis(profile)
    assert d["run"]["ranks"] == [0, 1]
    if damage != "missing":
        assert any(h["file"].endswith(name) for h in d["run"]["health"]), d["run"]["health"]
    # The AICPU kernels stand in kernel_details.csv and in the timeline: each alone is enough.
    assert "compute.aicpu" in {f["cause"] for f in d["findings"]}
    assert snapshot(profile) == before


def test_missing_profiler_info_is_said(profile: Path) -> None:
    for rank in (0, 1):
        for file in (profile / f"rank{rank}_ascend_pt").glob("profiler_*.json"):
            file.unlink()
    d = diagnosis(profile)
    assert d["run"]["ranks"] == [0, 1]
    assert any("rank" in h["kind"] for h in d["run"]["health"])


def test_not_available_cells_do_not_hide_the_other_rows(profile: Path) -> None:
    file = profile / "rank0_ascend_pt" / OUTPUT / "kernel_details.csv"
    lines = file.read_text().splitlines()
    columns = lines[0].split(",")
    position = columns.index("Wait Time(us)")
    for i in range(1, min(20, len(lines))):
        if '"' not in ",".join(lines[i].split(",")[: position + 1]):
            cells = lines[i].split(",")
            cells[position] = "N/A"
            lines[i] = ",".join(cells)
    file.write_text("\n".join(lines) + "\n")
    d = diagnosis(profile)
    aicpu = next(f for f in d["findings"] if f["cause"] == "compute.aicpu")
    assert aicpu["ranks"] == [0, 1]


def test_a_file_that_is_no_result_cannot_be_explained(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    for target in (tmp_path / "x.json", tmp_path / "absent.json", tmp_path):
        done = hermes("explain", target)
        assert done.exit_code == 4
        assert done.stderr.startswith("hermes: ")
        assert len(done.stderr.strip().splitlines()) == 1


def test_an_altered_result_is_refused(tmp_path: Path) -> None:
    whole = tmp_path / "whole.json"
    assert hermes("demo", "--format", "json", "-o", whole).exit_code == 0
    assert hermes("explain", whole).exit_code == 0

    def circle(d: dict[str, Any]) -> None:
        used = {i: f["id"] for f in d["firings"] for i in f["bound"].values()}
        fact = next(f for f in d["facts"] if f["derived_by"] and f["id"] in used)
        fact["derived_by"] = used[fact["id"]]

    damages: list[Callable[[dict[str, Any]], object]] = [
        circle, lambda d: d["firings"].pop(), lambda d: d["facts"].clear(), lambda d: d["rules"].clear(),
        lambda d: d["firings"][0].update(stratum=10**6), lambda d: d["findings"][0].update(proof="firing:none"),
    ]  # fmt: skip
    for number, damage in enumerate(damages):
        data = json.loads(whole.read_text())
        damage(data)
        target = tmp_path / f"{number}.json"
        target.write_text(json.dumps(data))
        done = hermes("explain", target)
        assert (done.exit_code, len(done.stderr.strip().splitlines())) == (4, 1), (number, done.stderr)


def test_a_faulty_overlay_is_refused_with_positions(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "overlay.yaml").write_text("params:\n  HMS-XXX-999: {a: 1}\n")
    done = hermes("diagnose", DEMO, "--kb", tmp_path / "kb")
    assert done.exit_code == 3
    assert "kb/overlay.yaml:2:3: error [unknown-id]" in done.stderr


def test_usage_errors_exit_2() -> None:
    assert hermes("diagnose").exit_code == 2
    assert hermes("diagnose", DEMO, "--format", "poem").exit_code == 2
    assert hermes("facts", DEMO, "--kind", "poem").exit_code == 2


def test_output_that_is_no_file_name_is_one_line(tmp_path: Path) -> None:
    for target in (tmp_path, Path("/"), tmp_path / ("x" * 300), tmp_path / "no" / "x.json"):
        done = hermes("demo", "-o", target)
        assert (done.exit_code, len(done.stderr.strip().splitlines())) == (2, 1), done.stderr


def test_a_link_is_followed_and_a_device_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    assert hermes("demo", "-f", "json", "-o", tmp_path / "link.json").exit_code == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["schema_version"] == 1
    assert hermes("demo", "-o", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("name", ["²", "9" * 5000, "-1"])
def test_a_number_that_is_none_names_no_finding(tmp_path: Path, name: str) -> None:
    hermes("demo", "-f", "json", "-o", tmp_path / "r.json")
    assert hermes("explain", tmp_path / "r.json", "--", name).exit_code == 2


def test_a_folder_name_that_is_no_utf8_is_shown_and_written(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xffn"))
    shutil.copytree(DEMO, folder)
    for command in ("diagnose", "facts"):
        for form in ("json", "table"):
            assert hermes(command, folder, "-f", form, "-o", tmp_path / "out").exit_code == 0


def test_values_that_no_diagnosis_writes_end_in_one_line(tmp_path: Path) -> None:
    whole = tmp_path / "whole.json"
    hermes("demo", "--format", "json", "-o", whole)
    damages: list[Callable[[dict[str, Any]], object]] = [
        lambda d: d["firings"][0]["tests"][0].update(op="like"), lambda d: d["findings"][0]["i18n"].pop("en"),
        lambda d: d["findings"][0]["remedies"][0].update(effort="huge"), lambda d: [f.update(rank={}) for f in d["facts"]],
        lambda d: [f.update(ranks=[{}], rank="x", step=[]) for f in d["facts"]],
    ]  # fmt: skip
    for number, damage in enumerate(damages):
        data = json.loads(whole.read_text())
        damage(data)
        target = tmp_path / f"{number}.json"
        target.write_text(json.dumps(data))
        done = hermes("explain", target)
        assert (done.exit_code, len(done.stderr.strip().splitlines())) in ((4, 1), (0, 0)), (number, done.stderr)
