"""step_trace_time.csv → ``steps``: how each step of one rank divides into compute, communication and free time.

The step's duration is the sum of its three parts (computing, communication not overlapped, free). The file's own
``Stage`` leaves receive operations (``Bubble``) out and is a difference of doubles. A row that cannot be true, with a
negative part or no duration, is left out and counted.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from hermes_advisor.extractors.readers.cells import IntColumn, Mask, ns_from_us
from hermes_advisor.extractors.readers.csv_frames import Array, read_frame
from hermes_advisor.extractors.readers.csv_rows import Block, Column
from hermes_advisor.extractors.readers.files import Note

_COLUMNS = (
    Column("step", ("Step",), required=True),
    Column("compute_ns", ("Computing",), required=True),
    Column("communication_ns", ("Communication",), required=True),
    Column("exposed_communication_ns", ("Communication(Not Overlapped)",), required=True),
    Column("overlapped_ns", ("Overlapped",)),
    Column("free_ns", ("Free",), required=True),
    Column("bubble_ns", ("Bubble",)),
    Column("preparing_ns", ("Preparing",)),
)
_PARTS = ["compute_ns", "communication_ns", "exposed_communication_ns", "overlapped_ns", "free_ns"]
_TRAILING_NUMBER = re.compile(r"(?<!\d)(\d{1,18})\s*$")


def step_number(text: object) -> int:
    """``step13``, ``13`` or 13 → 13; -1 where no number is written (a capture without step marks)."""
    found = _TRAILING_NUMBER.search(str(text))
    return int(found.group(1)) if found else -1


def step_numbers(values: list[str]) -> IntColumn:
    """``step_number`` of a column."""
    known = {value: step_number(value) for value in set(values)}
    return np.array([known[v] for v in values], dtype=np.int64)


def read_step_trace(path: Path, note: Note) -> pd.DataFrame | None:
    """Read the steps of one rank."""
    table = read_frame(path, _COLUMNS, note, _convert)
    if table is None:
        return None
    impossible = (table[_PARTS] < 0).any(axis=1) | (table["duration_ns"] <= 0)
    if impossible.any():
        first = int(table.loc[impossible, "row"].iloc[0])
        detail = f"steps left out: a part is negative or the step takes no time (first: data row {first})"
        note("impossible_values", "warning", detail, count=int(impossible.sum()))
        table = table[~impossible].reset_index(drop=True)
    return table if len(table) else None


def _convert(block: Block) -> tuple[dict[str, Array], Mask]:
    good = np.ones(block.count, np.bool_)
    made: dict[str, Array] = {"step": step_numbers(block.cells["step"])}
    for name in ("compute_ns", "communication_ns", "exposed_communication_ns", "free_ns"):
        made[name], valid = ns_from_us(block.cells[name])
        good &= valid
    made["duration_ns"] = made["compute_ns"] + made["exposed_communication_ns"] + made["free_ns"]
    made["overlapped_ns"] = made["communication_ns"] - made["exposed_communication_ns"]
    if "overlapped_ns" in block.cells:
        written, valid = ns_from_us(block.cells["overlapped_ns"])
        made["overlapped_ns"] = np.where(valid, written, made["overlapped_ns"])
    for name in ("bubble_ns", "preparing_ns"):
        written, valid = ns_from_us(block.cells.get(name, [""] * block.count))
        made[name] = np.where(valid, written, -1)
    return made, good
