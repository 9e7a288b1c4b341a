"""How computing and communication overlap on one rank: in: a timeline; out: the four lanes, step times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hermes_advisor.examples.simulation.timeline import RankTimeline

LANES = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")

Span = tuple[int, int]


@dataclass(frozen=True)
class StepTime:
    """One step as step_trace_time.csv splits it (ns)."""

    step: int
    computing: int
    communication: int
    exposed: int
    free: int
    stage: int
    preparing: int


def union(spans: Iterable[Span]) -> list[Span]:
    """The covered time as disjoint spans in order; spans that touch become one."""
    out: list[Span] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


def minus(spans: list[Span], holes: list[Span]) -> list[Span]:
    """What of ``spans`` no hole covers; both are disjoint and in order."""
    out: list[Span] = []
    for start, end in spans:
        for low, high in holes:
            if high <= start or low >= end:
                continue
            if low > start:
                out.append((start, low))
            start = max(start, high)
        if start < end:
            out.append((start, end))
    return out


def lanes(timeline: RankTimeline) -> dict[str, list[Span]]:
    """The four lanes: computing, communication, communication that nothing hides, and neither."""
    computing = union((task.start_ns, task.end_ns) for task in timeline.kernels())
    communication = union((op.start_ns, op.end_ns) for op in timeline.collectives)
    busy = union([*computing, *communication])
    whole = [(busy[0][0], busy[-1][1])]
    return dict(
        zip(LANES, (computing, communication, minus(communication, computing), minus(whole, busy)), strict=True)
    )


def step_times(timeline: RankTimeline) -> list[StepTime]:
    """Split each step; a lane's span belongs to the step in which it starts, a step ends where the next one begins."""
    spans = lanes(timeline)
    steps = sorted(timeline.step_marks)
    starts = [min(task.start_ns for task in timeline.kernels() if task.step == step) for step in steps]
    ends = [*starts[1:], max(end for parts in spans.values() for _, end in parts)]
    out = []
    for step, start, end in zip(steps, starts, ends, strict=True):
        computing, communication, exposed, free = (
            sum(high - low for low, high in spans[lane] if start <= low < end) for lane in LANES
        )
        out.append(
            StepTime(step, computing, communication, exposed, free, end - start, start - timeline.step_marks[step])
        )
    return out
