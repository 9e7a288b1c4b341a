"""Small shared pieces: nanoseconds → microseconds, ratios, and where a number was read; in: tables, out: values.

A locator is what a reviewer needs to find a number again: ``data row 3``, ``data rows 3, 8, 12 and 40 more`` of a CSV
(the header is not counted), ``step13/collective/…`` of a JSON file, or ``events 12.345–67.890 ms; t0 = … µs`` of a
timeline: times count from the rank's own origin, the earliest time in its files, which stands there in Unix time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from hermes_advisor.extractors.readers.tables import Table
from hermes_advisor.facts.base import Fact, Instance, Source

AnyFact = TypeVar("AnyFact", bound=Fact)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

WORST = 3
"""How many instances a fact keeps as evidence."""

_ROWS_NAMED = 3
_INT64_SAFE = 2.0**62
_NAME_LENGTH = 200
_T0 = "t0 = "
_TIMED = re.compile(r"\d ms\b")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def us(ns: float) -> float:
    """Nanoseconds as microseconds."""
    return float(ns) / 1000


def ratio(part: float, whole: float) -> float:
    """``part / whole``; 0 where there is no whole."""
    return float(part) / float(whole) if whole > 0 else 0.0


def total(values: Ints | pd.Series) -> int:
    """Exact integer sum; does not wrap around when a hostile file holds huge numbers."""
    array = np.asarray(values, dtype=np.int64)
    if float(np.abs(array.astype(np.float64)).sum()) < _INT64_SAFE:
        return int(array.sum())
    return sum(int(v) for v in array.tolist())


def measured(table: Table | None) -> Table | None:
    """A table that has at least one row; None: not measured."""
    return None if table is None or table.frame.empty else table


def frame_of(table: Table | None) -> pd.DataFrame | None:
    """The frame of a table that has at least one row; None: not measured."""
    return None if table is None or table.frame.empty else table.frame


def ints(frame: pd.DataFrame, column: str) -> Ints:
    """A column as int64."""
    return frame[column].to_numpy(dtype=np.int64)


def floats(frame: pd.DataFrame, column: str) -> Floats:
    """A column as float64; all NaN where the reader does not have it."""
    if column not in frame.columns:
        return np.full(len(frame), np.nan)
    return frame[column].to_numpy(dtype=np.float64)


def texts(frame: pd.DataFrame, column: str) -> list[str]:
    """A column as a list of str."""
    return [str(value) for value in frame[column].tolist()]


def grouped(frame: pd.DataFrame, *keys: str) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """The rows of each combination of keys, in the order of the keys."""
    for key, rows_of_key in frame.groupby(list(keys), sort=True):
        yield key if isinstance(key, tuple) else (key,), rows_of_key


def mapped(series: pd.Series, of: Callable[[str], Any]) -> npt.NDArray[Any]:
    """A function of each text, called once per distinct one: columns of a trace repeat few names millions of times."""
    codes, distinct = pd.factorize(series.astype(str))
    return np.array([of(text) for text in distinct.tolist()], dtype=object)[codes]


def matches(series: pd.Series, of: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
    """Which texts pass a test."""
    return mapped(series, of).astype(np.bool_)


def clean(name: object) -> str:
    """A name from a file, fit for a fact: no control characters, bounded length."""
    text = _UNPRINTABLE.sub("?", str(name))
    return text if len(text) <= _NAME_LENGTH else text[: _NAME_LENGTH - 1] + "…"


def source(table: Table, locator: str) -> Source:
    """Where a number was read."""
    return Source(file=table.file, locator=locator, reader=table.reader)


def t0(locator: str, origin_ns: int) -> str:
    """The locator, with the origin that its times count from."""
    if origin_ns <= 0 or _T0 in locator:
        return locator
    return f"{locator}{'; ' if locator else ''}{_T0}{origin_ns // 1000}.{origin_ns % 1000:03d} µs"


def with_t0(fact: AnyFact, origin_ns: int) -> AnyFact:
    """The fact; where its source or its instances tell times, the source says what they count from."""
    if fact.source is None:
        return fact
    timed = _TIMED.search(fact.source.locator) or any(i.start_us is not None for i in getattr(fact, "worst", ()))
    if not timed:
        return fact
    locator = t0(fact.source.locator, origin_ns)
    return fact.model_copy(update={"source": fact.source.model_copy(update={"locator": locator})})


def rows(numbers: Iterable[int]) -> str:
    """``data row 3``, or the first few of many rows and how many more there are."""
    known = sorted({int(n) for n in numbers if int(n) >= 0})
    if not known:
        return ""
    named = ", ".join(str(n) for n in known[:_ROWS_NAMED])
    more = len(known) - _ROWS_NAMED
    return f"data row{'s' if len(known) > 1 else ''} {named}" + (f" and {more} more" if more > 0 else "")


def events(starts: Ints | Sequence[int], ends: Ints | Sequence[int]) -> str:
    """The time range of timeline events, in ms from the rank's origin."""
    if len(starts) == 0:
        return ""
    return f"events {min(int(s) for s in starts) / 1e6:.3f}–{max(int(e) for e in ends) / 1e6:.3f} ms"


def where(frame: pd.DataFrame) -> str:
    """The locator of a frame's rows: row numbers if the reader kept them, else the time range."""
    if "row" in frame.columns and len(frame) and (found := rows(frame["row"].tolist())):
        return found
    if "start_ns" in frame.columns and len(frame):
        starts = ints(frame, "start_ns")
        length = next((c for c in ("duration_ns", "elapse_ns") if c in frame.columns), None)
        return events(starts, starts + ints(frame, length) if length else starts)
    return ""


def largest(frame: pd.DataFrame, column: str, count: int = WORST) -> pd.DataFrame:
    """The rows with the largest values, largest first; ties by position, so that the choice is reproducible."""
    order = np.argsort(-ints(frame, column), kind="stable")[:count]
    return frame.iloc[order]


def instances(frame: pd.DataFrame, name: str = "name", duration: str = "duration_ns") -> tuple[Instance, ...]:
    """The longest few rows as evidence."""
    worst = largest(frame, duration)
    details = [rows([row]) for row in worst["row"].tolist()] if "row" in worst.columns else [""] * len(worst)
    starts: list[int | None] = list(ints(worst, "start_ns").tolist()) if "start_ns" in worst.columns else []
    return tuple(
        Instance(
            name=clean(label),
            start_us=None if start is None else us(start),
            duration_us=us(length),
            detail=detail,
        )
        for label, length, start, detail in zip(
            worst[name].tolist(), ints(worst, duration).tolist(), starts or [None] * len(worst), details, strict=True
        )
    )
