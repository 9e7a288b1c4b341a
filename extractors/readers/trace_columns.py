"""Trace events → growing numpy columns; in: lists of ``Event``, out: columns by the form of the arguments.

Which process an event belongs to is told by metadata that may come after it, and that a cut-off file lacks. So events
are kept by the form of their arguments first; ``trace_view`` gives them to tables once all processes are known. Texts
become numbers of an ``Interner``, lists of a piece become arrays: what stays in memory is some 40 bytes per event.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hermes_advisor.extractors.readers.cells import Mask, ns_from_us, scaled
from hermes_advisor.extractors.readers.trace_events import Args, Event

Array = npt.NDArray[Any]

PLAIN, DEVICE, API, COMM = "plain", "device", "api", "comm"
"""Forms of complete events: no known arguments, a device task, a CANN call, a communication task or operator."""

COUNTER_SERIES = (("MHz", "mhz"), ("Read(MB/s)", "read_mb_per_s"), ("Write(MB/s)", "write_mb_per_s"), ("KB", "kb"))
_NO_RANK = 0xFFFFFFFF
_INT64_MAX = 2**63 - 1
_LONGEST_NS = float(2**62)


class Interner(dict[Any, int]):
    """Numbers the texts it is asked for, in the order of their first appearance."""

    def __missing__(self, key: Any) -> int:
        """Number a text not seen before."""
        self[key] = number = len(self)
        return number

    def texts(self) -> Array:
        """The texts by number."""
        return np.array([*map(str, self)], dtype=object)


class Columns:
    """Columns that grow by arrays of equal length."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Array]] = {}

    def append(self, **arrays: Array) -> None:
        """Add rows."""
        for name, array in arrays.items():
            self._parts.setdefault(name, []).append(array)

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def __getitem__(self, name: str) -> Array:
        """A whole column; the parts are joined once and let go."""
        parts = self._parts[name]
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0]

    def __len__(self) -> int:
        return sum(map(len, next(iter(self._parts.values()), [])))


class TraceColumns:
    """All that is kept of the events of one timeline."""

    def __init__(self) -> None:
        self.names = Interner()
        self.labels = Interner()
        """Categories, levels, task types, transports, link types and copy directions."""
        self.pids = Interner()
        self.complete = {form: Columns() for form in (PLAIN, DEVICE, API, COMM)}
        self.flows = Columns()
        self.counters = Columns()
        self.processes: dict[Any, str] = {}
        self.lanes: dict[tuple[Any, int], str] = {}
        self.faults: Counter[str] = Counter()
        self._odd_threads = Interner()
        self.labels[""]  # number 0: not written

    def add(self, events: Iterable[Event]) -> None:
        """Take over one piece of the timeline."""
        forms: dict[str, list[Event]] = {PLAIN: [], DEVICE: [], API: [], COMM: []}
        plain, device, api, comm = (forms[f].append for f in (PLAIN, DEVICE, API, COMM))
        flows: list[Event] = []
        counters: list[Event] = []
        for event in events:
            phase = event.ph
            if phase == "X":
                args = event.args
                if args is None:
                    plain(event)
                elif args.task_type is not None:
                    device(event)
                elif args.level is not None:
                    api(event)
                elif args.connection_id is not None or args.hccl_task is not None or args.transport is not None:
                    comm(event)
                else:
                    plain(event)
            elif phase == "s" or phase == "f":
                flows.append(event)
            elif phase == "C":
                counters.append(event)
            elif phase == "M":
                self._metadata(event)
        for form, found in forms.items():
            if found:
                self._add_complete(form, found)
        if flows:
            self._add_flows(flows)
        if counters:
            self._add_counters(counters)

    def _metadata(self, event: Event) -> None:
        name = event.args.name if event.args is not None else None
        if isinstance(name, str):
            if event.name == "process_name":
                self.processes[event.pid] = name.strip()
            elif event.name == "thread_name":
                self.lanes[event.pid, self._thread(event.tid)] = name.strip()

    def _add_complete(self, form: str, events: list[Event]) -> None:
        start, good = self._times(events)
        duration = np.array([e.dur for e in events]) * 1000.0
        unknown = np.isnan(duration)
        if unknown.any():
            self.faults["events_without_duration"] += int(unknown.sum())
            duration[unknown] = 0.0
        # Shorter than nothing or longer than a century: the clock or the file is broken there.
        bad = ~good | (duration < 0) | (duration > _LONGEST_NS)
        columns: dict[str, Array] = {
            "name": np.array([self.names[e.name] for e in events], np.int32),
            "pid": np.array([self.pids[e.pid] for e in events], np.int32),
            "tid": self._threads(events),
            "start_ns": start,
        }
        if form == PLAIN:
            columns["category"] = np.array([self.labels[e.cat] for e in events], np.int32)
        else:
            columns |= self._argument_columns(form, [e.args for e in events])
        if bad.any():
            self.faults["unreadable_times"] += int(bad.sum())
            columns = {name: column[~bad] for name, column in columns.items()}
            duration = duration[~bad]
        self.complete[form].append(duration_ns=np.rint(duration).astype(np.int64), **columns)

    def _argument_columns(self, form: str, args: Sequence[Any]) -> dict[str, Array]:
        columns = {"connection_id": _integers([a.connection_id for a in args])}
        if form == API:
            return columns | {"level": self._labelled([a.level for a in args])}
        if form == DEVICE:
            return columns | {
                "task_type": self._labelled([a.task_type for a in args]),
                "size_bytes": _integers([a.copied_bytes for a in args]),
                "direction": self._labelled([a.direction for a in args]),
            }
        return columns | {
            "size_bytes": _integers([a.size_bytes for a in args]),
            "src": _ranks([a.src for a in args]),
            "dst": _ranks([a.dst for a in args]),
            "transport": self._labelled([a.transport for a in args]),
            "link_type": self._labelled([a.link_type for a in args]),
        }

    def _add_flows(self, events: list[Event]) -> None:
        time, good = self._times(events)
        identity = self._identities([e.id for e in events])
        self.flows.append(
            begins=np.array([e.ph == "s" for e in events], np.bool_)[good],
            category=np.array([self.labels[e.cat] for e in events], np.int32)[good],
            pid=np.array([self.pids[e.pid] for e in events], np.int32)[good],
            tid=self._threads(events)[good],
            id=identity[good],
            time_ns=time[good],
        )
        self.faults["unreadable_times"] += int((~good).sum())

    def _add_counters(self, events: list[Event]) -> None:
        for series, field in COUNTER_SERIES:
            found = [e for e in events if e.args is not None and getattr(e.args, field) is not None]
            if found:
                time, good = self._times(found)
                value = np.array([_float(getattr(e.args, field)) for e in found], np.float64)
                good &= np.isfinite(value)
                self.counters.append(
                    name=np.array([self.names[e.name] for e in found], np.int32)[good],
                    series=np.full(int(good.sum()), self.labels[series], np.int32),
                    time_ns=time[good],
                    value=value[good],
                )

    def _times(self, events: Sequence[Event]) -> tuple[npt.NDArray[np.int64], Mask]:
        return ns_from_us([e.ts for e in events])

    def _labelled(self, values: Iterable[str | None]) -> Array:
        return np.array([self.labels[v or ""] for v in values], np.int32)

    def _threads(self, events: Sequence[Event]) -> Array:
        tids = [e.tid for e in events]
        try:
            return np.array(tids, np.int64)
        except (TypeError, ValueError, OverflowError):
            return np.array([self._thread(t) for t in tids], np.int64)

    def _thread(self, tid: int | str) -> int:
        """A thread's number; those that have none get -2, -3, …."""
        try:
            number = int(tid)
        except ValueError:
            return -2 - self._odd_threads[tid]
        return number if abs(number) <= _INT64_MAX else -2 - self._odd_threads[tid]

    def _identities(self, ids: list[Any]) -> npt.NDArray[np.int64]:
        try:
            return np.array(list(map(int, ids)), np.int64)
        except (TypeError, ValueError, OverflowError):
            return np.array([self._unique() if i is None else self._thread(i) for i in ids], np.int64)

    def _unique(self) -> int:
        """A number for an absent id, which joins nothing."""
        return self._thread(f"absent {len(self._odd_threads)}")


def _integers(values: list[Any]) -> npt.NDArray[np.int64]:
    present = [-1 if v is None else v for v in values]
    try:
        return np.array(present, np.int64)
    except (TypeError, ValueError, OverflowError):
        return np.array([_integer(v) for v in present], np.int64)


def _integer(value: Any) -> int:
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and abs(value) < _LONGEST_NS else -1
    return scaled(value, 0, missing=-1)


def _ranks(values: list[Any]) -> npt.NDArray[np.int64]:
    ranks = _integers(values)
    ranks[ranks == _NO_RANK] = -1
    return ranks


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


__all__ = ["API", "COMM", "COUNTER_SERIES", "DEVICE", "PLAIN", "Args", "Columns", "Interner", "TraceColumns"]
