"""trace_view.json → the timeline tables of one rank; times are Unix nanoseconds here.

In: the path. Out: frames ordered by start, None where the timeline shows nothing of the kind. Lanes are known by the
process they belong to (Python, CANN, Ascend Hardware, HCCL or Communication, Overlap Analysis). Where the metadata that
names processes is cut off, the form of an event's arguments tells, and that is noted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hermes_advisor.extractors.readers.csv_frames import frame
from hermes_advisor.extractors.readers.errors import UnreadableFileError
from hermes_advisor.extractors.readers.event_stream import EventStream
from hermes_advisor.extractors.readers.files import Note, open_file, reason
from hermes_advisor.extractors.readers.trace_columns import API, COMM, DEVICE, PLAIN, Columns, TraceColumns

_Array = npt.NDArray[Any]

_HOST, _OVERLAP, _OTHER, _UNNAMED = "host", "overlap", "other", ""
_KINDS = (_UNNAMED, _HOST, API, DEVICE, COMM, _OVERLAP, _OTHER)
_PROCESSES = {
    "python": _HOST, "cann": API, "ascend hardware": DEVICE, "hccl": COMM, "communication": COMM,
    "overlap analysis": _OVERLAP,
}  # fmt: skip
OVERLAP_LANES = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")
LINKS = ("HostToDevice", "async_npu", "async_task_queue")
_LEVELS = {"ascendcl": "acl"}  # prefix of a CANN event's name → level, where it is not the prefix itself
_GROUP = re.compile(r"^Group (.+?) Communication")
_PLANE = re.compile(r"^Plane (\d{1,9})")

REPAIRS: Mapping[str, tuple[str, str]] = {
    "truncated_timeline": ("warning", "the file is cut off: it was read up to its last complete event"),
    "trailing_data": ("warning", "data after the end of the array was left out"),
    "stray_commas": ("info", "commas with no event between them"),
    "nonstandard_events": ("info", "events that are not strict JSON (NaN, control characters, other types) were read"),
    "bad_utf8": ("info", "events with bytes that are not UTF-8 were read, with the bytes replaced"),
    "unreadable_events": ("warning", "events that are no JSON objects were left out"),
    "oversized_events": ("warning", "events longer than any real one were left out"),
    "nested_too_deep": ("warning", "events nested too deeply were left out"),
    "unreadable_times": ("warning", "events without a readable time or with an impossible duration were left out"),
    "events_without_duration": ("info", "events without a duration count as instants"),
}
"""Health issues of a timeline: severity and words."""


@dataclass
class Timeline:
    """The tables of one timeline."""

    host_ops: pd.DataFrame | None = None
    host_apis: pd.DataFrame | None = None
    launches: pd.DataFrame | None = None
    device_tasks: pd.DataFrame | None = None
    comm_tasks: pd.DataFrame | None = None
    overlap_lanes: pd.DataFrame | None = None
    counters: pd.DataFrame | None = None


def read_trace_view(path: Path, note: Note) -> Timeline:
    """Read the timeline of one rank."""
    columns = TraceColumns()
    with open_file(path) as handle:
        stream = EventStream(handle)
        try:
            for events in stream:
                columns.add(events)
        except OSError as error:
            raise UnreadableFileError("unreadable_file", f"cannot be read to its end: {reason(error)}") from error
    for issue, count in sorted((stream.repairs + columns.faults).items()):
        severity, detail = REPAIRS[issue]
        note(issue, severity, detail, count=count)
    timeline = _Tables(columns, note).build()
    if all(table is None for table in vars(timeline).values()):
        note("empty_timeline", "warning", "holds no event of a kind that is looked at")
    return timeline


class _Tables:
    """Gives the events of each form to the tables, by the process they belong to."""

    def __init__(self, columns: TraceColumns, note: Note) -> None:
        self._columns = columns
        self._note = note
        self._names = columns.names.texts()
        self._labels = columns.labels.texts()
        self._kinds = [
            _PROCESSES.get(columns.processes[pid].lower(), _OTHER) if pid in columns.processes else _UNNAMED
            for pid in columns.pids
        ]
        self._roles = {form: self._role(form) for form in columns.complete}

    def build(self) -> Timeline:
        """All tables."""
        launches = self._launches()
        self._columns.flows = Columns()  # as large as the tables that follow
        timeline = Timeline(
            host_ops=self._host_ops(),
            host_apis=self._host_apis(),
            launches=launches,
            device_tasks=self._device_tasks(),
            comm_tasks=self._comm_tasks(),
            overlap_lanes=self._overlap_lanes(),
            counters=self._counters(),
        )
        unnamed = self._kinds.count(_UNNAMED)
        if unnamed:
            detail = "processes that the timeline does not name: their events are known by their form"
            self._note("unnamed_processes", "info", detail, count=unnamed)
        return timeline

    def _role(self, form: str) -> npt.NDArray[np.int8]:
        """For each event of a form, the kind of process it belongs to, as its place in ``_KINDS``."""
        columns = self._columns.complete[form]
        if not len(columns):
            return np.zeros(0, np.int8)
        role = np.array([_KINDS.index(kind) for kind in self._kinds], np.int8)[columns["pid"]]
        unnamed = role == _KINDS.index(_UNNAMED)
        if unnamed.any() and form != PLAIN:
            role[unnamed] = _KINDS.index(form)
        elif unnamed.any():
            is_lane = np.isin(self._names, OVERLAP_LANES)[columns["name"]]
            guess = np.where(is_lane, _KINDS.index(_OVERLAP), _KINDS.index(_OTHER))
            role[unnamed] = np.where(columns["category"] > 0, _KINDS.index(_HOST), guess)[unnamed]
        return role

    def _gather(self, kind: str, wanted: Mapping[str, Any]) -> dict[str, _Array] | None:
        """Columns of all events of a kind of process, whatever their form, by start; ``wanted``: name → default."""
        mine = {form: self._roles[form] == _KINDS.index(kind) for form in self._columns.complete}
        counts = {form: int(rows.sum()) for form, rows in mine.items() if rows.any()}
        if not counts:
            return None

        def whole(name: str) -> _Array:
            pieces = []
            for form, count in counts.items():
                columns = self._columns.complete[form]
                pieces.append(columns[name][mine[form]] if name in columns else np.full(count, wanted[name]))
            return np.concatenate(pieces) if len(pieces) > 1 else pieces[0]

        order = np.argsort(whole("start_ns"), kind="stable")
        return {name: whole(name)[order] for name in ("name", "tid", "start_ns", "duration_ns", *wanted)}

    def _host_ops(self) -> pd.DataFrame | None:
        found = self._gather(_HOST, {"category": 0})
        if found is None:
            return None
        return frame({
            "name": self._names[found["name"]], "thread": found["tid"], "start_ns": found["start_ns"],
            "duration_ns": found["duration_ns"], "category": self._labels[found["category"]],
        })  # fmt: skip

    def _host_apis(self) -> pd.DataFrame | None:
        found = self._gather(API, {"connection_id": -1, "level": 0})
        if found is None:
            return None
        parts = [name.partition("@") for name in self._names]
        api = np.array([name if at else prefix for prefix, at, name in parts], dtype=object)
        prefixes = np.array([_LEVELS.get(p.lower(), p.lower()) if at else "" for p, at, _ in parts], dtype=object)
        level = np.where(found["level"] > 0, self._labels[found["level"]], prefixes[found["name"]])
        return frame({
            "api": api[found["name"]], "level": level, "thread": found["tid"], "start_ns": found["start_ns"],
            "duration_ns": found["duration_ns"], "connection_id": found["connection_id"],
        })  # fmt: skip

    def _device_tasks(self) -> pd.DataFrame | None:
        found = self._gather(DEVICE, {"task_type": 0, "connection_id": -1, "size_bytes": -1, "direction": 0})
        if found is None:
            return None
        return frame({
            "name": self._names[found["name"]], "task_type": self._labels[found["task_type"]], "stream": found["tid"],
            "start_ns": found["start_ns"], "duration_ns": found["duration_ns"],
            "connection_id": found["connection_id"], "size_bytes": found["size_bytes"],
            "direction": self._labels[found["direction"]],
        })  # fmt: skip

    def _comm_tasks(self) -> pd.DataFrame | None:
        wanted = {"pid": 0, "connection_id": -1, "size_bytes": -1, "src": -1, "dst": -1, "transport": 0, "link_type": 0}
        found = self._gather(COMM, wanted)
        if found is None:
            return None
        group, plane = self._communication_lanes(found["pid"], found["tid"])
        return frame({
            "op": self._names[found["name"]], "group": group, "plane": plane, "start_ns": found["start_ns"],
            "duration_ns": found["duration_ns"], "size_bytes": found["size_bytes"], "src": found["src"],
            "dst": found["dst"], "transport": self._labels[found["transport"]],
            "link_type": self._labels[found["link_type"]], "connection_id": found["connection_id"],
        })  # fmt: skip

    def _communication_lanes(self, pid: _Array, tid: _Array) -> tuple[_Array, _Array]:
        """Group and plane of each task: the planes of a group are the lanes that follow the group's own lane."""
        group = np.full(len(tid), "", dtype=object)
        plane = np.full(len(tid), -1, dtype=np.int64)
        for process, number in self._columns.pids.items():
            current = ""
            for lane in sorted(t for p, t in self._columns.lanes if p == process):
                name = self._columns.lanes[process, lane]
                named, numbered = _GROUP.match(name), _PLANE.match(name)
                current = named[1] if named else current
                mine = (pid == number) & (tid == lane)
                group[mine] = current
                plane[mine] = int(numbered[1]) if numbered else -1
        return group, plane

    def _overlap_lanes(self) -> pd.DataFrame | None:
        found = self._gather(_OVERLAP, {})
        if found is None:
            return None
        return frame({
            "lane": self._names[found["name"]], "start_ns": found["start_ns"], "duration_ns": found["duration_ns"],
        })  # fmt: skip

    def _counters(self) -> pd.DataFrame | None:
        counters = self._columns.counters
        if not len(counters):
            return None
        order = np.lexsort((counters["series"], counters["name"], counters["time_ns"]))
        return frame({
            "name": self._names[counters["name"][order]], "series": self._labels[counters["series"][order]],
            "time_ns": counters["time_ns"][order], "value": counters["value"][order],
        })  # fmt: skip

    def _launches(self) -> pd.DataFrame | None:
        """Join the beginning and the ends of each flow by id, link by link; one beginning can have several ends."""
        flows = self._columns.flows
        if not len(flows):
            return None
        begins, ends = [], []
        unmatched = 0
        for link in LINKS:
            mine = flows["category"] == self._columns.labels.get(link, -1)
            begin, end = np.flatnonzero(mine & flows["begins"]), np.flatnonzero(mine & ~flows["begins"])
            begin, end, lost = _join(begin, end, flows["id"], flows["time_ns"])
            unmatched += lost
            begins.append(begin)
            ends.append(end)
        if unmatched:
            self._note("unmatched_flows", "info", "flows with one end missing were left out", count=unmatched)
        begin, end = np.concatenate(begins), np.concatenate(ends)
        if not len(end):
            return None
        order = np.lexsort((flows["time_ns"][end], flows["time_ns"][begin]))
        begin, end = begin[order], end[order]
        on_comm_lane = np.array([kind == COMM for kind in self._kinds])[flows["pid"][end]]
        return frame({
            "link": self._labels[flows["category"][end]], "launch_ns": flows["time_ns"][begin],
            "device_ns": flows["time_ns"][end], "thread": flows["tid"][begin],
            "stream": np.where(on_comm_lane, -1, flows["tid"][end]),
        })  # fmt: skip


def _join(begin: _Array, end: _Array, identity: _Array, time: _Array) -> tuple[_Array, _Array, int]:
    """Row numbers of matching beginnings and ends, and how many ends and beginnings found no partner.

    An id used again belongs to the last beginning that is not later than the end.
    """
    begin = begin[np.lexsort((time[begin], identity[begin]))]
    ids = identity[begin]
    first = np.searchsorted(ids, identity[end], "left")
    past = np.searchsorted(ids, identity[end], "right")
    choice = first.copy()
    for i in np.flatnonzero(past - first > 1).tolist():
        earlier = np.searchsorted(time[begin[first[i] : past[i]]], time[end[i]], "right")
        choice[i] = first[i] + max(int(earlier) - 1, 0)
    joined = past > first
    lost = int((~joined).sum()) + len(begin) - len(np.unique(choice[joined]))
    return begin[choice[joined]], end[joined], lost
