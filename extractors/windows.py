"""When the captured steps took place, by the ``ProfilerStep#N`` marks of the host.

Comes in: host_ops of one rank. Goes out: a ``Window`` per step, and the rows of a table that lie within windows: what
is summed must come from the same time as what it is divided by.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hermes_advisor.extractors.evidence import frame_of, ints, texts
from hermes_advisor.extractors.intervals import Intervals, merged
from hermes_advisor.extractors.readers.tables import RankTables

_MARK = re.compile(r"ProfilerStep#(\d{1,12})$")


@dataclass(frozen=True)
class Window:
    """One step, from its mark to the next one; the last step ends with its own mark."""

    step: int
    begin: int
    end: int

    @property
    def length(self) -> int:
        """In ns."""
        return self.end - self.begin


def step_windows(tables: RankTables) -> list[Window]:
    """The marked steps in order of time; empty where no step is marked."""
    host = frame_of(tables.host_ops)
    if host is None:
        return []
    spans: dict[int, tuple[int, int]] = {}
    chosen = host[host["name"].str.startswith("ProfilerStep#")]
    starts = ints(chosen, "start_ns")
    ends = starts + ints(chosen, "duration_ns")
    for name, start, end in zip(texts(chosen, "name"), starts.tolist(), ends.tolist(), strict=True):
        if found := _MARK.match(name):
            step = int(found.group(1))
            spans[step] = min((start, end), spans.get(step, (start, end)))
    ordered = sorted((start, end, step) for step, (start, end) in spans.items())
    following = [start for start, _, _ in ordered[1:]]
    return [
        Window(step, start, following[i] if i < len(following) else end) for i, (start, end, step) in enumerate(ordered)
    ]


def covered(windows: Sequence[Window]) -> Intervals:
    """The time that windows cover."""
    return merged(
        np.array([window.begin for window in windows], dtype=np.int64),
        np.array([window.end for window in windows], dtype=np.int64),
    )


def inside(frame: pd.DataFrame, windows: Intervals | None) -> pd.DataFrame:
    """The rows that begin within the windows, cut at their ends; all rows where no windows are known."""
    if windows is None:
        return frame
    starts = ints(frame, "start_ns")
    if not len(windows):
        return frame[np.zeros(len(frame), dtype=np.bool_)]
    place = np.searchsorted(windows.starts, starts, side="right") - 1
    ends = windows.ends[np.maximum(place, 0)]
    within = (place >= 0) & (starts < ends)
    rows = frame[within]
    lengths = np.minimum(ints(rows, "duration_ns"), (ends - starts)[within])
    return rows.assign(duration_ns=lengths)
