"""How far ahead of the device the host launches kernels, and when the device had to wait for it.

Comes in: kernels, launches and everything that kept the device busy, of one rank. Goes out: ``launch_profile``. A
kernel is starved when its launch began only after all earlier device work had ended; the gap before it is host-bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from hermes_advisor.extractors.device import COMMUNICATION, copies, lane
from hermes_advisor.extractors.evidence import (
    WORST,
    Ints,
    clean,
    events,
    frame_of,
    ints,
    measured,
    ratio,
    source,
    total,
    us,
)
from hermes_advisor.extractors.intervals import Intervals
from hermes_advisor.extractors.readers.tables import RankTables
from hermes_advisor.extractors.steps import Capture
from hermes_advisor.facts.base import Instance
from hermes_advisor.facts.host import LaunchProfile

_LINKS = ("HostToDevice", "async_npu")
"""Flow categories, best first: the launch call itself, else the framework operator that enqueued it."""

MAX_CLOCK_OFFSET_NS = 100_000
"""The clocks of host and device are aligned to some 20 µs in real profiles; a launch later than this is no link."""


@dataclass(frozen=True)
class _Launched:
    """Kernels with a known launch, in order of start; ``ran_dry`` is when all earlier work had ended (-1: none)."""

    names: npt.NDArray[np.object_]
    start: Ints
    duration: Ints
    launch: Ints
    thread: npt.NDArray[np.object_]
    ran_dry: Ints
    clock_offset_ns: int


def launch_profile(rank: int, tables: RankTables, capture: Capture) -> list[LaunchProfile]:
    """Absent without links, or where fewer than half of the kernels have one: then the rest may tell another story."""
    kernels, links = measured(tables.kernels), measured(tables.launches)
    if kernels is None or links is None:
        return []
    found = _joined(kernels.frame, _chosen(links.frame), tables)
    if found is None or 2 * len(found.start) < len(kernels.frame):
        return []
    gap = _within(found.ran_dry, found.start, capture.windows)
    starved = (found.ran_dry >= 0) & (found.launch >= found.ran_dry) & ((gap > 0) | (found.start == found.ran_dry))
    waited = np.where(starved, gap, 0)
    starved_ns, starved_count = total(waited), int(starved.sum())
    moved = f", host clock moved by -{us(found.clock_offset_ns):.3f} µs" if found.clock_offset_ns else ""
    return [
        LaunchProfile(
            rank=rank,
            kernel_count=len(kernels.frame),
            linked_count=len(found.start),
            median_delay_us=us(float(np.median(found.start - found.launch))),
            median_kernel_us=us(float(np.median(found.duration))),
            median_launch_interval_us=us(_launch_interval(found)),
            starved_count=starved_count,
            starved_kernel_ratio=ratio(starved_count, len(found.start)),
            starved_us=us(starved_ns),
            starved_per_step_us=capture.per_step_us(starved_ns),
            starved_step_ratio=capture.ratio(starved_ns),
            worst=_worst(found, waited),
            source=source(links, events(found.launch, found.start + found.duration) + moved),
        )
    ]


def _chosen(links: pd.DataFrame) -> pd.DataFrame:
    present = set(links["link"].unique())
    category = next((name for name in _LINKS if name in present), None)
    return links[links["link"] == category].sort_values(["device_ns", "launch_ns"], kind="stable")


def _joined(kernels: pd.DataFrame, links: pd.DataFrame, tables: RankTables) -> _Launched | None:
    """Join kernels and launches by the time at which the device started; None: nothing to join."""
    if links.empty:
        return None
    first = links.drop_duplicates("device_ns")
    at, launches = ints(first, "device_ns"), ints(first, "launch_ns")
    kernels = kernels.sort_values(["start_ns", "duration_ns"], kind="stable")
    start, duration = ints(kernels, "start_ns"), ints(kernels, "duration_ns")
    place = np.minimum(np.searchsorted(at, start), len(at) - 1)
    late = launches[place] - start
    linked = (at[place] == start) & (late <= MAX_CLOCK_OFFSET_NS)
    if not linked.any():
        return None
    # No kernel starts before its launch: what seems so is the offset between the clocks.
    offset = max(0, int(late[linked].max()))
    return _Launched(
        names=kernels["name"].to_numpy(dtype=object)[linked],
        start=start[linked],
        duration=duration[linked],
        launch=launches[place][linked] - offset,
        thread=first["thread"].to_numpy(dtype=object)[place][linked],
        ran_dry=_ran_dry(tables, start, duration)[linked],
        clock_offset_ns=offset,
    )


def _ran_dry(tables: RankTables, start: Ints, duration: Ints) -> Ints:
    """For each kernel (sorted by start) the latest end of all device work that began before it.

    -1 for the kernel before which the device neither computed nor communicated: the captured time begins there.
    """
    begins, ends = [start], [start + duration]
    if len(collectives := lane(tables, COMMUNICATION)):
        begins.append(collectives.starts)
        ends.append(collectives.ends)
    elif (ops := frame_of(tables.comm_ops)) is not None:
        begins.append(ints(ops, "start_ns"))
        ends.append(begins[-1] + ints(ops, "elapse_ns"))
    first = min(int(begin.min()) for begin in begins)
    if (moved := copies(tables)) is not None:
        begins.append(ints(moved, "start_ns"))
        ends.append(begins[-1] + ints(moved, "duration_ns"))
    begin, end = np.concatenate(begins), np.concatenate(ends)
    order = np.argsort(begin, kind="stable")
    reach = np.concatenate([[-1], np.maximum.accumulate(end[order])])
    dry: Ints = reach[np.searchsorted(begin[order], start, side="left")]
    # Of kernels that start together only one ends the gap.
    together = np.concatenate([[False], start[1:] == start[:-1]])
    dry = np.where(together, np.maximum(dry, start + 1), dry)
    return np.where(start == first, -1, dry)


def _within(begins: Ints, ends: Ints, windows: Intervals | None) -> Ints:
    """How much of each span lies within the captured steps."""
    if windows is None or not len(windows):
        return ends - begins
    reach = np.concatenate([[0], np.cumsum(windows.ends - windows.starts)])

    def before(times: Ints) -> Ints:
        place = np.searchsorted(windows.starts, times, side="right") - 1
        into = np.minimum(times, windows.ends[np.maximum(place, 0)]) - windows.starts[np.maximum(place, 0)]
        passed: Ints = np.where(place >= 0, reach[np.maximum(place, 0)] + into, 0)
        return passed

    return before(ends) - before(begins)


def _launch_interval(found: _Launched) -> float:
    """Median time between successive launches of one thread."""
    launches = pd.DataFrame({"thread": found.thread, "launch_ns": found.launch}).sort_values("launch_ns")
    steps = launches.groupby("thread", sort=True)["launch_ns"].diff().dropna()
    return float(steps.median()) if len(steps) else 0.0


def _worst(found: _Launched, waited: Ints) -> tuple[Instance, ...]:
    order = np.argsort(-waited, kind="stable")[:WORST]
    return tuple(
        Instance(
            name=f"idle before {clean(found.names[i])}",
            start_us=us(found.ran_dry[i]),
            duration_us=us(waited[i]),
            detail=f"launched {us(found.launch[i] - found.ran_dry[i]):.3f} µs after the device ran dry",
        )
        for i in order.tolist()
        if waited[i] > 0
    )
