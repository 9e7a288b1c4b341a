"""Formats of the profiler's text output: in: values in ns and bytes; out: strings as torch_npu writes them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hermes_advisor.examples.simulation.job import Tensor


def stamp(ns: int) -> str:
    """A Unix time in µs with three decimals."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def cell_stamp(ns: int) -> str:
    """A time as CSV files hold it: with a trailing tab, so that spreadsheets keep every digit."""
    return stamp(ns) + "\t"


def microseconds(ns: int) -> float:
    """A duration in µs; the shortest decimal that names it."""
    return ns / 1000


def milliseconds(ns: int) -> float:
    """A duration in ms."""
    return ns / 1_000_000


def short(value: float) -> str:
    """Three decimals at most, no trailing zeros."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def shape(tensor: Tensor) -> str:
    """The sizes of a tensor, joined by commas."""
    return ",".join(map(str, tensor.shape))


def write(path: Path, text: str) -> None:
    """Write UTF-8 with plain line ends on every platform."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; cells that hold a comma, a quote or a line break are quoted."""
    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow(header)
    table.writerows(rows)
    write(path, buffer.getvalue())


def write_json(path: Path, value: Any, *, indent: int | None = None) -> None:
    """Write a JSON value."""
    write(path, json.dumps(value, indent=indent))
