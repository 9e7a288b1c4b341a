"""How each step of a rank divides into compute, communication and free time (Hermes §4.2.1).

Comes in: the tables of one rank. Goes out: ``StepParts`` per captured step, the facts ``step_breakdown``, and a
``Capture``, which turns sums over the capture into values per step. The parts come from step_trace_time; else from the
overlap lanes of the timeline, cut where the ``ProfilerStep#N`` marks stand, or taken whole where there is no mark. What
the host did is counted and divided within the marks, since it begins before the device does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hermes_advisor.extractors.device import COMMUNICATION, COMPUTING, busy, kernel_time, lane
from hermes_advisor.extractors.evidence import events, frame_of, measured, ratio, rows, source, t0, us
from hermes_advisor.extractors.intervals import Intervals
from hermes_advisor.extractors.readers.tables import Health, RankTables, Table
from hermes_advisor.extractors.windows import Window, covered, step_windows
from hermes_advisor.facts.base import WHOLE_CAPTURE, Source
from hermes_advisor.facts.steps import StepBreakdown

COMPLETE_KERNELS = 0.9
"""Kernels that cover less of the steps' computing time than this are a part of what ran: the file was cut."""

_UNRECORDED = -1


@dataclass(frozen=True)
class StepParts:
    """One step of one rank, in ns; ``StepBreakdown`` says which parts add up to the duration."""

    step: int
    duration_ns: int
    compute_ns: int
    communication_ns: int
    exposed_ns: int
    free_ns: int
    bubble_ns: int
    preparing_ns: int
    source: Source
    window: Window | None = None
    """When the step took place; None: only its parts are known."""


@dataclass(frozen=True)
class Capture:
    """The captured steps: what sums over the capture are divided by."""

    durations_ns: dict[int, int]
    step_count: int
    total_ns: int
    kernels_cover: float | None = None
    """Time of the kernels listed over the computing time of the steps; None: the steps' parts are not known."""
    windows: Intervals | None = None
    """When the captured steps took place: only what began then is summed; None: not known."""

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
                bubble_ns=int(bubble), preparing_ns=int(preparing), source=source(steps, rows([row])),
            )
        )  # fmt: skip
    return out


def _from_lanes(tables: RankTables, lanes: Table) -> tuple[list[StepParts], list[Health]]:
    compute, communication = lane(tables, COMPUTING), lane(tables, COMMUNICATION)
    worked = compute.union(communication)
    if not len(worked):
        return [], []
    first, last = int(worked.starts[0]), int(worked.ends[-1])
    windows = _device_windows(tables, last)
    health = []
    if not windows:
        detail = "no step_trace_time and no ProfilerStep mark: the whole capture is taken as one step"
        health.append(Health("missing_step_marks", "info", 1, detail, lanes.file))
    out = []
    for window in windows or [Window(WHOLE_CAPTURE, first, last)]:
        begin, end = window.begin, window.end
        inside = worked.clipped(begin, end)
        if not len(inside):
            continue
        compute_ns = compute.clipped(begin, end).length
        edges = max(0, first - begin) + max(0, end - last)
        out.append(
            StepParts(
                step=window.step, duration_ns=window.length, compute_ns=compute_ns,
                communication_ns=communication.clipped(begin, end).length, exposed_ns=inside.length - compute_ns,
                free_ns=window.length - edges - inside.length, bubble_ns=_UNRECORDED,
                preparing_ns=edges if windows else _UNRECORDED,
                source=source(lanes, t0(events([begin], [end]), tables.origin_ns)), window=window,
            )
        )  # fmt: skip
    return out, health


def _device_windows(tables: RankTables, last: int) -> list[Window]:
    """The marked steps; the device may end the last one after the host does."""
    windows = step_windows(tables)
    return [*windows[:-1], replace(windows[-1], end=max(windows[-1].end, last))] if windows else []


def capture_of(tables: RankTables, parts: Sequence[StepParts]) -> Capture | None:
    """The captured steps; without step parts the span of the device's work counts as the captured time."""
    durations: dict[int, int] = {}
    for part in parts:
        durations[part.step] = durations.get(part.step, 0) + part.duration_ns
    if sum(durations.values()) > 0:
        computed, listed = sum(part.compute_ns for part in parts), kernel_time(tables).length
        cover = listed / computed if computed > 0 and listed > 0 else None
        windows = [part.window for part in parts if part.window is not None]
        return Capture(durations, len(durations), sum(durations.values()), cover, covered(windows) if windows else None)
    worked: Intervals = busy(tables)
    if not len(worked):
        return None
    return Capture({}, max(1, len(_numbered(tables))), int(worked.ends[-1] - worked.starts[0]))


def host_capture_of(tables: RankTables, parts: Sequence[StepParts], capture: Capture) -> Capture:
    """What the host's sums are divided by: the marked steps, else what the device's are divided by.

    step_trace_time begins a step with the device's first work, which is after the host began: its durations are not
    those of the host's part.
    """
    if capture.windows is not None:
        return capture
    windows, steps = step_windows(tables), {part.step for part in parts}
    if any(window.step in steps for window in windows):
        windows = [window for window in windows if window.step in steps]
    durations = {window.step: window.length for window in windows if window.length > 0}
    if not durations:
        return capture
    return Capture(durations, len(durations), sum(durations.values()), windows=covered(windows))


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
