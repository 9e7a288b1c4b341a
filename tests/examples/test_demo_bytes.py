"""The committed demo is what the generator writes: on any run, hash seed and working folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SIZE_LIMIT_BYTES = 2_600_000


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_generator_reproduces_the_committed_files(tmp_path: Path, seed: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONHASHSEED": seed}
    subprocess.run(
        [sys.executable, str(EXAMPLES / "generate.py"), "out"], check=True, cwd=tmp_path, env=environment,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    made, committed = contents(tmp_path / "out"), contents(EXAMPLES / "demo")
    assert sorted(made) == sorted(committed)
    assert [name for name, data in made.items() if data != committed[name]] == []


def test_folder_layout_and_size() -> None:
    committed = contents(EXAMPLES / "demo")
    tables = {
        "trace_view.json", "kernel_details.csv", "step_trace_time.csv", "communication.json",
        "communication_matrix.json", "op_statistic.csv", "api_statistic.csv", "operator_details.csv",
        "memory_record.csv", "operator_memory.csv", "npu_module_mem.csv",
    }  # fmt: skip
    expected = set()
    for run in ("slow", "healthy"):
        for rank in (0, 1):
            folder = f"{run}/rank{rank}_ascend_pt"
            expected |= {f"{folder}/ASCEND_PROFILER_OUTPUT/{name}" for name in tables}
            expected |= {f"{folder}/profiler_info_{rank}.json", f"{folder}/profiler_metadata.json"}
    assert set(committed) == expected
    assert sum(map(len, committed.values())) < SIZE_LIMIT_BYTES


def test_no_trace_of_the_machine_that_wrote_them() -> None:
    for name, data in contents(EXAMPLES / "demo").items():
        assert not any(word in data for word in (b"/home", b"/work", b"/tmp", b"/root", b"\r\n")), name


@pytest.mark.parametrize("arguments", [["--help"], ["a", "b"]])
def test_wrong_use_is_one_line_and_exit_code_2(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, str(EXAMPLES / "generate.py"), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "usage: python examples/generate.py [OUT]\n"
    assert list(tmp_path.iterdir()) == []
