"""step_trace_time.csv in the versions met, and broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_advisor.extractors.readers.step_trace import read_step_trace, step_number

Write = Callable[[str, str | bytes], Path]
NEW = (
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)
OLD = NEW.removeprefix("Device_id,").removesuffix(",Preparing")


def test_a_recent_file(write: Write, notes: list[Any]) -> None:
    row = "4,13,231290.09999999995,420174.2600000001,0.5,420174.7600000001,158558.00000000032,810022.25,12.5,420161.76,206.25"
    table = read_step_trace(write("s.csv", f"{NEW}\n{row}\n"), notes)  # type: ignore[arg-type]
    assert table is not None
    assert table.to_dict("records") == [
        {
            "step": 13, "compute_ns": 231290100, "communication_ns": 420174760, "exposed_communication_ns": 420174260,
            "free_ns": 158558000, "duration_ns": 810022360, "overlapped_ns": 500, "bubble_ns": 12500,
            "preparing_ns": 206250, "row": 1,
        }
    ]  # fmt: skip
    assert notes == []


def test_an_old_file_has_no_preparing(write: Write, notes: list[Any]) -> None:
    table = read_step_trace(
        write("s.csv", f"{OLD}\r\n2,75422.22,151303.54,7129.46,158433.0,67860.8,294586.5,0,151303.54\r\n"), notes
    )  # type: ignore[arg-type]
    assert table is not None
    assert table[["step", "duration_ns", "bubble_ns", "preparing_ns"]].to_numpy().tolist() == [[2, 294586560, 0, -1]]


def test_steps_are_numbers_however_written(write: Write, notes: list[Any]) -> None:
    rows = [f"{step},1,1,0,1,1,3,N/A,1" for step in ("step5", "5", "", "ProfilerStep#7")]
    table = read_step_trace(write("s.csv", "\n".join([OLD, *rows, ""])), notes)  # type: ignore[arg-type]
    assert table is not None
    assert table["step"].tolist() == [5, 5, -1, 7]
    assert table["bubble_ns"].tolist() == [-1] * 4


def test_a_row_without_its_numbers_is_left_out_and_counted(write: Write, notes: list[Any]) -> None:
    rows = ["1,1,1,0,1,1,3,0,1", "2,N/A,1,0,1,1,3,0,1", "3,1,1,0,1,inf,3,0,1", "4,1,1,0,1,2,4,0,1"]
    table = read_step_trace(write("s.csv", "\n".join([OLD, *rows, ""])), notes)  # type: ignore[arg-type]
    assert table is not None
    assert table[["step", "row"]].to_numpy().tolist() == [[1, 1], [4, 4]]
    assert notes == [("unreadable_rows", "warning", 2)]


IMPOSSIBLE = [
    "2,-60,10,0,10,30,100,0,10", "2,60,-10,0,10,30,100,0,10", "2,60,10,-1,10,30,100,0,10", "2,60,10,0,-10,30,100,0,10",
    "2,60,10,0,10,-30,100,0,10", "2,0,0,0,0,0,0,0,0",
]  # fmt: skip


@pytest.mark.parametrize("row", IMPOSSIBLE)
def test_a_row_that_cannot_be_true_is_left_out_and_counted(write: Write, notes: list[Any], row: str) -> None:
    rows = [row, "3,60,10,0,10,30,100,0,10", row]
    table = read_step_trace(write("s.csv", "\n".join([OLD, *rows, ""])), notes)  # type: ignore[arg-type]
    assert table is not None
    assert table[["step", "duration_ns", "row"]].to_numpy().tolist() == [[3, 100_000, 2]]
    assert notes == [("impossible_values", "warning", 2)]


def test_without_a_possible_row_there_is_no_table(write: Write, notes: list[Any]) -> None:
    assert read_step_trace(write("s.csv", "\n".join([OLD, *IMPOSSIBLE, ""])), notes) is None  # type: ignore[arg-type]
    assert notes == [("impossible_values", "warning", 6)]


def test_a_cell_cut_in_half_is_not_a_number(write: Write, notes: list[Any]) -> None:
    table = read_step_trace(write("s.csv", f"{OLD}\n1,1,1,0,1,1,3,0,1\n2,10,10,0,10,158"), notes)  # type: ignore[arg-type]
    assert table is not None
    assert table["step"].tolist() == [1]
    assert notes == [("truncated_file", "warning", 1)]


@pytest.mark.parametrize("content", [f"{NEW}\n", NEW])
def test_a_header_alone_gives_no_table(write: Write, notes: list[Any], content: str) -> None:
    assert read_step_trace(write("s.csv", content), notes) is None  # type: ignore[arg-type]
    assert ("no_rows", "warning", 1) in notes


@pytest.mark.parametrize(
    ("text", "number"),
    [("step13", 13), ("13", 13), (13, 13), ("", -1), ("step", -1), (None, -1), ("9" * 30, -1), ("step 7 ", 7)],
)
def test_step_numbers(text: object, number: int) -> None:
    assert step_number(text) == number
