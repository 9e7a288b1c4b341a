"""When the device had nothing to do: the idle gaps between compute and communication.

Comes in: the overlap lanes of one rank, else its kernels, copies and collectives. Goes out: ``free_time``.
"""

from __future__ import annotations

import numpy as np

from hermes_advisor.extractors.device import COMMUNICATION, COMPUTING, FREE, busy, lane
from hermes_advisor.extractors.evidence import WORST, Ints, clean, events, ints, measured, ratio, source, us
from hermes_advisor.extractors.intervals import NOTHING, Intervals
from hermes_advisor.extractors.readers.tables import RankTables, Table
from hermes_advisor.extractors.steps import Capture
from hermes_advisor.facts.base import Instance
from hermes_advisor.facts.host import FreeTime

_ROUNDING_NS = 1_000


def free_time(rank: int, tables: RankTables, capture: Capture) -> list[FreeTime]:
    """Absent where there is no timeline of the device, or one with kernels missing: those would look like idle time."""
    table = measured(tables.overlap_lanes)
    if table is not None:
        worked = lane(tables, COMPUTING).union(lane(tables, COMMUNICATION))
        free = lane(tables, FREE) if (table.frame["lane"] == FREE).any() else worked.gaps()
        span = worked.union(free)
    else:
        table = measured(tables.kernels) if capture.lists_all_kernels else None
        worked = span = busy(tables)
        free = worked.gaps()
    if table is None or not len(worked):
        return []
    if capture.windows is not None:
        free, span = free.common(capture.windows), span.common(capture.windows)
    if not len(span):
        return []
    span_ns = int(span.ends[-1] - span.starts[0])
    lengths = free.ends - free.starts
    longest = int(lengths.max()) if len(free) else 0
    return [
        FreeTime(
            rank=rank,
            gap_count=len(free),
            free_us=us(free.length),
            free_per_step_us=capture.per_step_us(free.length),
            largest_gap_us=us(longest),
            median_gap_us=us(float(np.median(lengths))) if len(free) else 0.0,
            span_ratio=ratio(free.length, span_ns),
            largest_gap_share_ratio=ratio(longest, free.length),
            worst=_worst(free, lengths, measured(tables.kernels)),
            source=source(table, events(span.starts, span.ends)),
        )
    ]


def _worst(free: Intervals, lengths: Ints, kernels: Table | None) -> tuple[Instance, ...]:
    """The largest gaps, with the kernels around them by name."""
    names: list[str] = []
    starts = ends = NOTHING.starts
    if kernels is not None:
        names, starts = kernels.frame["name"].tolist(), ints(kernels.frame, "start_ns")
        ends = starts + ints(kernels.frame, "duration_ns")
    out = []
    for i in np.argsort(-lengths, kind="stable")[:WORST].tolist():
        # A gap's edge and a kernel's end can differ by the rounding of the exporter.
        before = np.flatnonzero(ends <= free.starts[i] + _ROUNDING_NS)
        after = np.flatnonzero(starts >= free.ends[i] - _ROUNDING_NS)
        around = []
        if len(before):
            around.append(f"after {clean(names[int(before[np.argmax(ends[before])])])}")
        if len(after):
            around.append(f"before {clean(names[int(after[np.argmin(starts[after])])])}")
        out.append(
            Instance(
                name="device idle",
                start_us=us(free.starts[i]),
                duration_us=us(lengths[i]),
                detail=", ".join(around),
            )
        )
    return tuple(out)
