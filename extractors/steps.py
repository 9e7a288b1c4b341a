"""How each step of a rank divides into compute, communication and free time (Hermes §4.2.1).

Comes in: the tables of one rank. Goes out: ``StepParts`` per captured step, the facts ``step_breakdown``, and a
``Capture``, which turns sums over the capture into values per step. The parts come from step_trace_time; else from the
overlap lanes of the timeline, cut where the ``ProfilerStep#N`` marks stand, or taken whole where there is no mark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hermes_advisor.extractors.device import COMMUNICATION, COMPUTING, busy, kernel_time, lane
from hermes_advisor.extractors.evidence import frame_of, ints, measured, ratio, source, texts, us
from hermes_advisor.extractors.intervals import Intervals
from hermes_advisor.extractors.readers.tables import Health, RankTables, Table
from hermes_advisor.facts.base import WHOLE_CAPTURE, Source
from hermes_advisor.facts.steps import StepBreakdown

_MARK = re.compile(r"ProfilerStep#(\d{1,12})$")
_OPEN_END = 2**62

COMPLETE_KERNELS = 0.9
"""Kernels that cover less of the steps' computing time than this are a part of what ran: the file was cut."""

_UNRECORDED = -1


@dataclass(frozen=True)
class StepParts:
    """One step of one rank, in ns; computing, exposed communication and free add up to the duration."""

    step: int
    duration_ns: int
    compute_ns: int
    communication_ns: int
    exposed_ns: int
    free_ns: int
    bubble_ns: int
    preparing_ns: int
    source: Source


@dataclass(frozen=True)
class Capture:
    """The captured steps: what sums over the capture are divided by."""

    durations_ns: dict[int, int]
    step_count: int
    total_ns: int
    kernels_cover: float | None = None
    """Time of the kernels listed over the computing time of the steps; None: the steps' parts are not known."""

    @property
    def lists_all_kernels(self) -> bool:
        """Whether the kernels listed can stand for all that ran."""
        return self.kernels_cover is None or self.kernels_cover >= COMPLETE_KERNELS

    def per_step_us(self, ns: float) -> float:
        """A sum over the capture, per step."""
        return us(ns) / self.step_count

    def ratio(self, ns: float) -> float:
        """A sum over the capture, over the captured step time."""
        return ratio(ns, self.total_ns)

    def step_ns(self, step: int) -> int:
        """How long a step took; the mean step for a step without a duration of its own."""
        return self.durations_ns.get(step, self.total_ns // self.step_count)


def step_parts(tables: RankTables) -> tuple[list[StepParts], list[Health]]:
    """The parts of every captured step, and what had to be assumed."""
    if (steps := measured(tables.steps)) is not None:
        return _from_table(steps), []
    if (lanes := measured(tables.overlap_lanes)) is not None:
        return _from_lanes(tables, lanes)
    return [], []


def _from_table(steps: Table) -> list[StepParts]:
    columns = ["step", "compute_ns", "communication_ns", "exposed_communication_ns", "free_ns", "bubble_ns",
               "preparing_ns", "row"]  # fmt: skip
    out = []
    for step, compute, communication, exposed, free, bubble, preparing, row in steps.frame[columns].itertuples(
        index=False
    ):
        out.append(
            StepParts(
                step=int(step), duration_ns=int(compute) + int(exposed) + int(free), compute_ns=int(compute),
                communication_ns=int(communication), exposed_ns=int(exposed), free_ns=int(free),
                bubble_ns=int(bubble), preparing_ns=int(preparing), source=source(steps, f"row {int(row)}"),
            )
        )  # fmt: skip
    return out


def _from_lanes(tables: RankTables, lanes: Table) -> tuple[list[StepParts], list[Health]]:
    compute, communication = lane(tables, COMPUTING), lane(tables, COMMUNICATION)
    worked = compute.union(communication)
    if not len(worked):
        return [], []
    marks = _marks(tables)
    health = []
    if not marks:
        detail = "no step_trace_time and no ProfilerStep mark: the whole capture is taken as one step"
        health.append(Health("missing_step_marks", "info", 1, detail, lanes.file))
    first, last = int(worked.starts[0]), int(worked.ends[-1])
    out = []
    for step, begin, end in marks or [(WHOLE_CAPTURE, _UNRECORDED, _OPEN_END)]:
        low, high = max(begin, first), min(end, last)
        inside = worked.clipped(low, high)
        if not len(inside):
            continue
        compute_ns = compute.clipped(low, high).length
        out.append(
            StepParts(
                step=step, duration_ns=high - low, compute_ns=compute_ns,
                communication_ns=communication.clipped(low, high).length, exposed_ns=inside.length - compute_ns,
                free_ns=high - low - inside.length, bubble_ns=_UNRECORDED,
                preparing_ns=int(inside.starts[0]) - begin if begin >= 0 else _UNRECORDED,
                source=source(lanes, f"events {low / 1e6:.3f}–{high / 1e6:.3f} ms"),
            )
        )  # fmt: skip
    return out, health


def _marks(tables: RankTables) -> list[tuple[int, int, int]]:
    """(step, begin, end) by the marks of the host; a step ends where the next begins, the last one never."""
    host = frame_of(tables.host_ops)
    if host is None:
        return []
    begins: dict[int, int] = {}
    chosen = host[host["name"].str.startswith("ProfilerStep#")]
    for name, start in zip(texts(chosen, "name"), ints(chosen, "start_ns").tolist(), strict=True):
        if found := _MARK.match(name):
            step = int(found.group(1))
            begins[step] = min(start, begins.get(step, start))
    ordered = sorted((start, step) for step, start in begins.items())
    following = [*ordered[1:], (_OPEN_END, WHOLE_CAPTURE)]
    return [(step, start, end) for (start, step), (end, _) in zip(ordered, following, strict=False)]


def capture_of(tables: RankTables, parts: Sequence[StepParts]) -> Capture | None:
    """The captured steps; without step parts the span of the device's work counts as the captured time."""
    durations: dict[int, int] = {}
    for part in parts:
        durations[part.step] = durations.get(part.step, 0) + part.duration_ns
    if sum(durations.values()) > 0:
        computed, listed = sum(part.compute_ns for part in parts), kernel_time(tables).length
        cover = listed / computed if computed > 0 and listed > 0 else None
        return Capture(durations, len(durations), sum(durations.values()), cover)
    worked: Intervals = busy(tables)
    if not len(worked):
        return None
    return Capture({}, max(1, len(_numbered(tables))), int(worked.ends[-1] - worked.starts[0]))


def incomplete_kernels(tables: RankTables, capture: Capture | None) -> list[Health]:
    """Says so when the kernels listed are only a part of what ran."""
    if capture is None or capture.lists_all_kernels or tables.kernels is None:
        return []
    share = f"{100 * (capture.kernels_cover or 0):.0f} %"
    detail = f"the kernels listed cover {share} of the steps' computing time: rows are missing"
    return [Health("incomplete_kernels", "warning", 1, detail, tables.kernels.file)]


def _numbered(tables: RankTables) -> set[int]:
    """Step numbers that kernels or communication operators carry."""
    found: set[int] = set()
    for frame in (frame_of(tables.kernels), frame_of(tables.comm_ops)):
        if frame is not None:
            found |= {int(step) for step in frame["step"].unique() if step >= 0}
    return found


def step_breakdown(rank: int, parts: Sequence[StepParts]) -> list[StepBreakdown]:
    """One fact per step."""
    return [_breakdown(rank, part) for part in parts if part.duration_ns > 0]


def _breakdown(rank: int, part: StepParts) -> StepBreakdown:
    overlapped = part.communication_ns - part.exposed_ns
    return StepBreakdown(
        rank=rank,
        step=part.step,
        duration_us=us(part.duration_ns),
        compute_us=us(part.compute_ns),
        communication_us=us(part.communication_ns),
        exposed_communication_us=us(part.exposed_ns),
        overlapped_us=us(overlapped),
        free_us=us(part.free_ns),
        bubble_us=us(part.bubble_ns) if part.bubble_ns >= 0 else None,
        preparing_us=us(part.preparing_ns) if part.preparing_ns >= 0 else None,
        compute_ratio=ratio(part.compute_ns, part.duration_ns),
        exposed_communication_ratio=ratio(part.exposed_ns, part.duration_ns),
        free_ratio=ratio(part.free_ns, part.duration_ns),
        overlap_ratio=ratio(overlapped, part.duration_ns),
        communication_overlap_ratio=ratio(overlapped, part.communication_ns) if part.communication_ns > 0 else None,
        source=part.source,
    )
