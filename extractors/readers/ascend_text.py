"""Reading one rank of the Ascend PyTorch profiler's text files.

In: a ``RankSource``. Out: ``RankTables`` with every table that the files there can give. A missing file gives an absent
table; a broken one gives an absent table and a named health fact; the other files are read all the same.
A pure function of the files, picklable, so that ranks can be read by other processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hermes_advisor.extractors.readers.communication import read_communication
from hermes_advisor.extractors.readers.communication_matrix import read_communication_matrix
from hermes_advisor.extractors.readers.errors import UnreadableFileError
from hermes_advisor.extractors.readers.files import Note, read_json
from hermes_advisor.extractors.readers.kernel_details import read_kernel_details
from hermes_advisor.extractors.readers.kernels_from_tasks import kernels_from_tasks
from hermes_advisor.extractors.readers.memory import ROUNDED_TIMES, read_memory_record
from hermes_advisor.extractors.readers.rank_source import RankSource
from hermes_advisor.extractors.readers.settings import rank_settings
from hermes_advisor.extractors.readers.statistics import (
    read_api_statistic,
    read_op_statistic,
    read_operator_details,
)
from hermes_advisor.extractors.readers.step_trace import read_step_trace
from hermes_advisor.extractors.readers.tables import NO_TABLES, RankTables, Table
from hermes_advisor.extractors.readers.trace_view import read_trace_view

FORMAT = "ascend_pytorch_text"
_TIMES = ("start_ns", "launch_ns", "device_ns", "time_ns")
_Read = Callable[[Path, Note], Any]

# File → its reader, and the table it gives; a reader of several tables gives an object with a field for each.
_SINGLE: tuple[tuple[str, str, _Read], ...] = (
    ("step_trace_time.csv", "steps", read_step_trace),
    ("kernel_details.csv", "kernels", read_kernel_details),
    ("api_statistic.csv", "api_totals", read_api_statistic),
    ("op_statistic.csv", "op_totals", read_op_statistic),
    ("communication_matrix.json", "comm_links", read_communication_matrix),
    ("memory_record.csv", "memory", read_memory_record),
)
_SEVERAL: tuple[tuple[str, dict[str, str], _Read], ...] = (
    (
        "communication.json",
        {"ops": "comm_ops", "bandwidth": "comm_bandwidth", "packets": "comm_packets"},
        read_communication,
    ),
    (
        "trace_view.json",
        {name: name for name in (
            "host_ops", "host_apis", "launches", "device_tasks", "comm_tasks", "overlap_lanes", "counters",
        )},
        read_trace_view,
    ),
)  # fmt: skip


def read_rank(source: RankSource) -> RankTables:
    """Read all that is there of one rank."""
    return _RankReader(source).read()


class _RankReader:
    def __init__(self, source: RankSource) -> None:
        self._source = source
        self._tables = RankTables(
            rank=source.rank, rank_known=source.rank_known, path=source.path, label=source.label, format=FORMAT,
            health=list(source.health),
        )  # fmt: skip

    def read(self) -> RankTables:
        """Read every file there is."""
        self._settings()
        for file, table, read in _SINGLE:
            self._keep(file, table, self._attempt(file, read))
        for file, fields, read in _SEVERAL:
            found = self._attempt(file, read)
            for field, table in fields.items():
                self._keep(file, table, getattr(found, field, None))
        if self._tables.host_ops is None:
            # It repeats the timeline's host lanes, call stacks included, and can be larger than they are.
            file = "operator_details.csv"
            self._keep(file, "host_op_totals", self._attempt(file, read_operator_details))
        self._derive_kernels()
        if not any(True for _ in self._tables.tables()):
            self._tables.note(
                NO_TABLES, "error", "the rank is left out: no file of it could be read", file=self._source.label
            )
        self._set_origin()
        return self._tables

    def _path(self, file: str) -> tuple[Path, str] | None:
        """Where a file lies and how reports name it; None when it is not there."""
        source = self._source
        if source.timeline_only:
            return (source.output, source.label) if file == "trace_view.json" else None
        path = source.output / file
        folder = "" if source.output == source.path else f"{source.output.name}/"
        # A link that leads nowhere is a file that cannot be read, not one that is missing.
        return (path, f"{source.prefix}{folder}{file}") if os.path.lexists(path) else None

    def _attempt(self, file: str, read: _Read) -> Any:
        located = self._path(file)
        if located is None:
            return None
        path, name = located

        def note(issue: str, severity: str, detail: str, *, count: int = 1) -> None:
            self._tables.note(issue, severity, detail, count=count, file=name)

        try:
            return read(path, note)
        except UnreadableFileError as error:
            note(error.issue, error.severity, error.detail)
        except MemoryError:
            note("file_too_large", "error", "needs more memory than there is")
        return None

    def _keep(self, file: str, table: str, frame: pd.DataFrame | None) -> None:
        if frame is not None:
            located = self._path(file)
            setattr(self._tables, table, Table(frame, located[1] if located else file, file.rpartition(".")[0]))

    def _settings(self) -> None:
        source = self._source
        info, metadata = self._document(source.info), self._document(source.metadata)
        self._tables.settings = rank_settings(info, metadata, source.info_file, source.metadata_file)
        if source.info is None:
            detail = "no profiler_info*.json: profiling level and versions are not known"
            self._tables.note("no_profiler_info", "warning", detail, file=source.label)

    def _document(self, path: Path | None) -> dict[str, Any]:
        try:
            value = read_json(path) if path else {}
        except UnreadableFileError:
            return {}  # noted when the rank was found
        return value if isinstance(value, dict) else {}

    def _derive_kernels(self) -> None:
        tables = self._tables
        if tables.kernels is not None or tables.device_tasks is None:
            return
        kernels = kernels_from_tasks(tables.device_tasks.frame)
        if kernels is not None:
            file = tables.device_tasks.file
            tables.kernels = Table(kernels, file, "trace_view")
            tables.note(
                "kernels_from_timeline", "info", "no kernel_details.csv: kernels were taken from the timeline, without "
                "operator types, shapes and counters", file=file,
            )  # fmt: skip

    def _set_origin(self) -> None:
        """Move all times to the smallest one of the rank."""
        rounded = any(health.issue == ROUNDED_TIMES for health in self._tables.health)
        frames = {name: table.frame for name, table in self._tables.tables()}
        starts = [
            int(frame[column].min())
            for name, frame in frames.items()
            for column in _TIMES
            if column in frame and len(frame) and not (rounded and name == "memory")
        ]
        origin = min(starts, default=0)
        for frame in frames.values():
            for column in _TIMES:
                if column in frame:
                    frame[column] = frame[column].to_numpy(dtype=np.int64) - origin
        self._tables.origin_ns = origin
