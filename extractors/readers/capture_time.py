"""When a rank was captured, from the first times in its files; a look at their beginnings, not a reading.

In: the files of one rank. Out: Unix nanoseconds, 0 where none of them tells.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from hermes_advisor.extractors.readers.cells import scaled
from hermes_advisor.extractors.readers.errors import UnreadableFileError
from hermes_advisor.extractors.readers.files import open_file

EARLIEST_NS = 10**18
"""September 2001: a smaller number counts from the start of a machine, not of the Unix era."""

_HEAD_BYTES = 64 << 10
_TIME_IN = {
    "trace_view.json": re.compile(rb'"ts"\s*:\s*"?(\d{1,19}(?:\.\d{1,9})?)'),
    "communication.json": re.compile(rb'"Start Timestamp\(us\)"\s*:\s*"?(\d{1,19}(?:\.\d{1,9})?)'),
}
_TABLE, _TIME_COLUMN = "kernel_details.csv", "Start Time(us)"


def plausible(time_ns: int) -> int:
    """The time, or 0 where it is no Unix time."""
    return time_ns if EARLIEST_NS <= time_ns < 2**63 else 0


def first_time_ns(output: Path) -> int:
    """The first time in a rank's output folder, or in its one timeline."""
    if output.is_file():
        return _first_in(output, _TIME_IN["trace_view.json"])
    found = (_first_in(output / name, pattern) for name, pattern in _TIME_IN.items())
    return next((time for time in found if time), 0) or _first_row(output / _TABLE)


def _head(path: Path) -> bytes:
    try:
        with open_file(path) as handle:
            return handle.read(_HEAD_BYTES)
    except (UnreadableFileError, OSError):
        return b""


def _first_in(path: Path, pattern: re.Pattern[bytes]) -> int:
    times = (plausible(scaled(found[1].decode(), 3)) for found in pattern.finditer(_head(path)))
    return next((time for time in times if time), 0)


def _first_row(path: Path) -> int:
    lines = _head(path).decode("utf-8-sig", "replace").splitlines()[:2]
    try:
        header, first = csv.reader(lines)
        return plausible(scaled(first[header.index(_TIME_COLUMN)].strip(), 3))
    except (ValueError, IndexError, csv.Error):
        return 0
