"""CSV files in every state: what is whole is read, what is not is left out and noted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_advisor.extractors.readers import csv_rows
from hermes_advisor.extractors.readers.csv_rows import Column, read_blocks
from hermes_advisor.extractors.readers.errors import UnreadableFileError

Write = Callable[[str, str | bytes], Path]
COLUMNS = (Column("a", ("A",), required=True), Column("c", ("C", "See"), required=True), Column("d", ("D",)))


def rows(path: Path, note: object, columns: tuple[Column, ...] = COLUMNS) -> list[tuple[str, ...]]:
    return [row for b in read_blocks(path, columns, note) for row in zip(*b.cells.values(), strict=True)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("A,B,C\n1,2,3\n4,5,6\n", [("1", "3"), ("4", "6")]),
        ("A,B,C\r\n1,2,3\r\n4,5,6\r\n", [("1", "3"), ("4", "6")]),
        ("A,B,C\r1,2,3\r4,5,6\r", [("1", "3"), ("4", "6")]),
        (b"\xef\xbb\xbfA,B,C\n1,2,3\n", [("1", "3")]),
        (b'\xef\xbb\xbf"A","B","C"\n1,2,3\n', [("1", "3")]),
        (" A , B,See \n1,2,3\n", [("1", "3")]),
        ("C,A\n3,1\n", [("1", "3")]),
        ('A,B,C\n1,"x\ny, ""z""",3\n', [("1", "3")]),
        ('A,B,C\n"""1,2""",x,3\t\n', [('"1,2"', "3\t")]),
        ("A,B,C\n1,2,3,4,5\n6,7\n8,9,10\n", [("1", "3"), ("6", ""), ("8", "10")]),
        ("A,B,C\n\n1,2,3\n\n", [("1", "3")]),
        ("A,B,C\nNA,null,N/A\n", [("NA", "N/A")]),
        (b"A,B,C\n\xff\xfe,2,3\n", [("\ufffd\ufffd", "3")]),
    ],
)
def test_what_is_whole(
    write: Write, notes: list[object], content: str | bytes, expected: list[tuple[str, ...]]
) -> None:
    assert rows(write("t.csv", content), notes) == expected
    assert notes == []


@pytest.mark.parametrize("first", ["1", "1,2", "1,2,"])
def test_a_short_first_row_does_not_shift_the_others(write: Write, notes: list[object], first: str) -> None:
    assert rows(write("t.csv", f"A,B,C\n{first}\n4,5,6\n"), notes) == [("1", ""), ("4", "6")]


@pytest.mark.parametrize("tail", ["4", "4,5", '4,"5\n5', '"4'])
def test_a_file_cut_within_a_row(write: Write, notes: list[tuple[str, str, int]], tail: str) -> None:
    assert rows(write("t.csv", f"A,B,C\n1,2,3\n{tail}"), notes) == [("1", "3")]
    assert notes == [("truncated_file", "warning", 1)]


def test_a_quote_that_is_never_closed_costs_what_follows_it(write: Write, notes: list[object]) -> None:
    found = rows(write("t.csv", 'A,B,C\n1,2,3\n4,"5,6\n7,8,9\n'), notes)
    assert found[0] == ("1", "3")
    assert found[1] == ("4", "")  # its needed cell is empty: the row is left out by the reader of the table


def test_a_complete_last_row_without_line_end_is_read(write: Write, notes: list[object]) -> None:
    assert rows(write("t.csv", "A,B,C\n1,2,3\n4,5,6"), notes) == [("1", "3"), ("4", "6")]
    assert notes == [("unterminated_last_row", "info", 1)]


@pytest.mark.parametrize(
    ("content", "issue"),
    [
        ("", "empty_file"),
        ("A,B\n1,2\n", "unexpected_columns"),
        ("\n", "unexpected_columns"),
        (bytes(range(256)) * 40, "unexpected_columns"),
        ("A" * (2 << 20), "unexpected_columns"),
        ("{}", "unexpected_columns"),
    ],
)
def test_a_file_that_is_not_the_table(write: Write, notes: list[object], content: str | bytes, issue: str) -> None:
    with pytest.raises(UnreadableFileError) as error:
        rows(write("t.csv", content), notes)
    assert error.value.issue == issue


def test_a_folder_is_no_file(tmp_path: Path, notes: list[object]) -> None:
    with pytest.raises(UnreadableFileError) as error:
        rows(tmp_path, notes)
    assert error.value.issue == "not_a_file"


def test_a_header_alone_has_no_rows(write: Write, notes: list[object]) -> None:
    assert rows(write("t.csv", "A,B,C\n"), notes) == []


@pytest.mark.parametrize("broken", [False, True])
def test_rows_are_numbered_over_blocks(
    write: Write, notes: list[object], monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    monkeypatch.setattr(csv_rows, "_BLOCK_ROWS", 3)
    content = "A,B,C\n" + "".join(f"{i},x,{i}\n" for i in range(1, 9)) + ('9,"open,9\n' if broken else "9,x,9\n")
    blocks = list(read_blocks(write("t.csv", content), COLUMNS, notes))  # type: ignore[arg-type]
    numbered = [(b.first_row + i, cell) for b in blocks for i, cell in enumerate(b.cells["a"])]
    assert numbered == [(i, str(i)) for i in range(1, 10)]
