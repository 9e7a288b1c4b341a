"""What kept the device busy: kernels, copies and collectives.

Comes in: the tables of one rank. Goes out: the intervals in which the device worked. Waiting for events and bookkeeping
are no work; a collective is, from its start on the device to its end, whether bytes flow or ranks wait.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from hermes_advisor.extractors.evidence import Ints, frame_of, ints
from hermes_advisor.extractors.intervals import NOTHING, Intervals, merged
from hermes_advisor.extractors.readers.tables import RankTables

COMPUTING, COMMUNICATION, FREE = "Computing", "Communication", "Free"

_AICPU = re.compile(r"AI[_ -]?CPU", re.IGNORECASE)
_COPY = re.compile(r"MEMCPY|DMA", re.IGNORECASE)
_NO_TYPE = ("", "other", "n/a")
"""Task types of old exports that say nothing; then the name must tell."""


def is_aicpu(core: str) -> bool:
    """Whether a core or task type names the AI CPU, whatever the spelling."""
    return _AICPU.search(core) is not None


def copies(tables: RankTables) -> pd.DataFrame | None:
    """The copy tasks of the device lanes; None: the timeline of the device is absent."""
    tasks = frame_of(tables.device_tasks)
    if tasks is None:
        return None
    pairs = pd.MultiIndex.from_arrays([tasks["name"].astype(str), tasks["task_type"].astype(str)])
    codes, distinct = pairs.factorize()
    is_copy = [_COPY.search(name if kind.casefold() in _NO_TYPE else kind) is not None for name, kind in distinct]
    found: pd.DataFrame = tasks.loc[np.array(is_copy, dtype=np.bool_)[codes]]
    return found


def lane(tables: RankTables, name: str) -> Intervals:
    """One lane of the overlap analysis; nothing where it is absent."""
    lanes = frame_of(tables.overlap_lanes)
    if lanes is None:
        return NOTHING
    chosen = lanes[lanes["lane"] == name]
    starts = ints(chosen, "start_ns")
    return merged(starts, starts + ints(chosen, "duration_ns"))


def kernel_time(tables: RankTables) -> Intervals:
    """When kernels ran; nothing where they are not listed."""
    kernels = frame_of(tables.kernels)
    if kernels is None:
        return NOTHING
    starts = ints(kernels, "start_ns")
    return merged(starts, starts + ints(kernels, "duration_ns"))


def busy(tables: RankTables) -> Intervals:
    """When the device computed, communicated or copied, from everything that the rank's tables show."""
    computed = kernel_time(tables)
    starts: list[Ints] = [computed.starts]
    ends: list[Ints] = [computed.ends]

    def add(frame: pd.DataFrame, length: str) -> None:
        begin = ints(frame, "start_ns")
        starts.append(begin)
        ends.append(begin + ints(frame, length))

    if (moved := copies(tables)) is not None:
        add(moved, "duration_ns")
    if (lanes := frame_of(tables.overlap_lanes)) is not None:
        add(lanes[lanes["lane"].isin([COMPUTING, COMMUNICATION])], "duration_ns")
    elif (ops := frame_of(tables.comm_ops)) is not None:
        add(ops, "elapse_ns")
    return merged(np.concatenate(starts), np.concatenate(ends))
