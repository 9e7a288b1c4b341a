"""Shared by the readers' tests: writing small files and rank folders, and recording what a reader notes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Notes(list[tuple[str, str, int]]):
    """Records (issue, severity, count) of each note."""

    def __call__(self, issue: str, severity: str, detail: str, *, count: int = 1) -> None:
        assert detail
        self.append((issue, severity, count))

    def counts(self) -> dict[str, int]:
        return {issue: count for issue, _, count in self}


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file below the test's folder and give its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


STEP_TRACE = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n"


@pytest.fixture
def make_rank(tmp_path: Path) -> Callable[..., Path]:
    """Make a rank folder: ``info`` and ``metadata`` (None: no such file), and the text files by name."""

    def make(
        name: str = "host_1_20260101000000000_ascend_pt",
        info: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        files: dict[str, str | bytes] | None = None,
        info_name: str = "profiler_info.json",
    ) -> Path:
        folder = tmp_path / name
        output = folder / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        if info is not None:
            (folder / info_name).write_text(json.dumps(info))
        if metadata is not None:
            (folder / "profiler_metadata.json").write_text(json.dumps(metadata))
        given = {"step_trace_time.csv": f"{STEP_TRACE}7,13,60,30,10,40,10,100,0\n"} if files is None else files
        for file, content in given.items():
            (output / file).write_bytes(content.encode() if isinstance(content, str) else content)
        return folder

    return make
