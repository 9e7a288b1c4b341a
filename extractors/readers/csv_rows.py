"""Reading a CSV of the profiler in blocks of rows, only the columns asked for, all cells as text.

In: a path and the wanted columns, each with the header texts it goes by. Out: blocks of text columns with the number of
their first data row. Handles BOM, CRLF, a file cut off in its last row or inside a quoted cell, rows of a wrong width,
bad UTF-8; what has to be left out is noted.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

import pandas as pd

from hermes_advisor.extractors.readers.errors import UnreadableFileError
from hermes_advisor.extractors.readers.files import Note, open_file, reason

_BLOCK_ROWS = 1 << 16
_LONGEST_LINE = 1 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Column:
    """A wanted column: its name for the reader, the headers it goes by, whether the file is useless without it."""

    name: str
    headers: tuple[str, ...]
    required: bool = False


@dataclass
class Block:
    """Consecutive data rows: ``first_row`` is 1-based; ``cells`` holds one list of texts per column found."""

    first_row: int
    cells: dict[str, list[str]]
    count: int


def read_blocks(path: Path, columns: Sequence[Column], note: Note) -> Iterator[Block]:
    """Yield the rows of ``path`` block by block; raise ``UnreadableFileError`` when it is not the expected table."""
    with open_file(path) as handle:
        try:
            header = _header(handle)
            places = _places(header, columns)
            cut_short = _cut_short(handle, len(header), note)
            yield from _held_back(_blocks(handle, places, len(header)), 1 if cut_short else 0)
        except OSError as error:
            raise UnreadableFileError("unreadable_file", f"cannot be read: {reason(error)}") from error


def _header(handle: BufferedReader) -> list[str]:
    line = handle.readline(_LONGEST_LINE).removeprefix(_BOM)
    return [cell.strip() for cell in _split(line.splitlines()[0] if line else b"")]


def _split(line: bytes) -> list[str]:
    """The cells of one row; none when it is not text."""
    try:
        return next(csv.reader([line.decode("utf-8", "replace").replace("\0", "")]), [])
    except csv.Error:
        return []


def _places(header: Sequence[str], columns: Sequence[Column]) -> dict[str, int]:
    places = {}
    for column in columns:
        place = next((header.index(text) for text in column.headers if text in header), None)
        if place is not None:
            places[column.name] = place
        elif column.required:
            wanted = " or ".join(column.headers)
            raise UnreadableFileError("unexpected_columns", f"has no column {wanted!r}, so it is not read")
    return places


def _cut_short(handle: BufferedReader, width: int, note: Note) -> bool:
    """Whether the last row is incomplete: its last cell may then be half a number."""
    end = handle.seek(0, io.SEEK_END)
    handle.seek(max(0, end - _LONGEST_LINE))
    tail = handle.read(_LONGEST_LINE)
    if tail.endswith((b"\n", b"\r")):
        return False
    line = tail[tail.rfind(b"\n") + 1 :]
    if not line.strip():
        return False
    if len(_split(line)) >= width:
        note("unterminated_last_row", "info", "the last row has no line end; it is complete and was read")
        return False
    note("truncated_file", "warning", "the file ends within a row, which was left out; rows after it are missing")
    return True


def _held_back(blocks: Iterator[Block], dropped: int) -> Iterator[Block]:
    """Yield the blocks without the last ``dropped`` (0 or 1) rows of all."""
    previous: Block | None = None
    for block in blocks:
        if previous is not None:
            yield previous
        previous = block
    if previous is None:
        return
    if dropped:
        count = previous.count - 1
        previous = Block(previous.first_row, {name: c[:count] for name, c in previous.cells.items()}, count)
    if previous.count:
        yield previous


def _blocks(handle: BufferedReader, places: Mapping[str, int], width: int) -> Iterator[Block]:
    done = 0
    try:
        for block in _fast_blocks(handle, places, width):
            yield block
            done += block.count
    except (pd.errors.ParserError, ValueError):
        # A quote that is never closed stops the C parser; the csv module gives what there is.
        yield from _patient_blocks(handle, places, done)


def _fast_blocks(handle: BufferedReader, places: Mapping[str, int], width: int) -> Iterator[Block]:
    handle.seek(0)
    # The names fix the number of columns: pandas would take it from the first row, and shift rows that are longer.
    frames = pd.read_csv(
        handle, header=None, names=range(width), index_col=False, skiprows=1, usecols=sorted(set(places.values())),
        dtype=object, na_filter=False, encoding="utf-8", encoding_errors="replace", chunksize=_BLOCK_ROWS, engine="c",
        low_memory=False,
    )  # fmt: skip
    row = 1
    for frame in frames:
        yield Block(row, {name: frame[place].tolist() for name, place in places.items()}, len(frame))
        row += len(frame)


def _patient_blocks(handle: BufferedReader, places: Mapping[str, int], done: int) -> Iterator[Block]:
    handle.seek(0)
    text = io.TextIOWrapper(handle, encoding="utf-8", errors="replace", newline="")
    csv.field_size_limit(1 << 30)
    rows = csv.reader(line.replace("\0", "") for line in text)
    try:
        next(rows, None)
        row, first, cells = 0, done + 1, {name: [] for name in places}  # type: ignore[var-annotated]
        for values in rows:
            if not values:
                continue
            row += 1
            if row <= done:
                continue
            for name, place in places.items():
                cells[name].append(values[place] if place < len(values) else "")
            if row - first + 1 >= _BLOCK_ROWS:
                yield Block(first, cells, row - first + 1)
                first, cells = row + 1, {name: [] for name in places}
        if row >= first:
            yield Block(first, cells, row - first + 1)
    except csv.Error as error:
        raise UnreadableFileError("damaged_csv", f"cannot be split into cells ({error})") from error
    finally:
        text.detach()
