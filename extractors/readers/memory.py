"""memory_record.csv → ``memory``: what the framework, the graph engine and the process hold on the device over time.

Sizes are written in MiB under the header ``(MB)``: 2109.6015625 there is 2160232.0 KB in the NPU MEM counter.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from hermes_advisor.extractors.readers.cells import Mask, floats, ns_from_us
from hermes_advisor.extractors.readers.csv_frames import Array, read_frame, texts
from hermes_advisor.extractors.readers.csv_rows import Block, Column
from hermes_advisor.extractors.readers.files import Note

_MIB = 1 << 20
_COLUMNS = (
    Column("component", ("Component",), required=True),
    Column("time_ns", ("Timestamp(us)",), required=True),
    Column("allocated_bytes", ("Total Allocated(MB)",)),
    Column("reserved_bytes", ("Total Reserved(MB)",), required=True),
    Column("active_bytes", ("Total Active(MB)",)),
)
_SIZES = ("allocated_bytes", "reserved_bytes", "active_bytes")


def read_memory_record(path: Path, note: Note) -> pd.DataFrame | None:
    """Memory held by each component over time, in the order of the file."""
    rounded = 0

    def convert(block: Block) -> tuple[dict[str, Array], Mask]:
        nonlocal rounded
        # A spreadsheet that saved the file anew writes 1.69512E+15: all samples then share a few instants.
        rounded += sum("e" in cell or "E" in cell for cell in block.cells["time_ns"])
        time, good = ns_from_us(block.cells["time_ns"])
        made: dict[str, Array] = {"component": texts(block.cells["component"]), "time_ns": time}
        for name in _SIZES:
            mib = floats(block.cells.get(name, [""] * block.count))
            made[name] = np.where(np.isfinite(mib), np.rint(np.nan_to_num(mib) * _MIB), -1).astype(np.int64)
        return made, good

    frame = read_frame(path, _COLUMNS, note, convert)
    if rounded:
        note(ROUNDED_TIMES, "warning", "times are rounded (written as 1.7E+15); only their order holds", count=rounded)
    return frame


ROUNDED_TIMES = "rounded_times"
"""Health issue of a memory record whose times lie on another clock than the rest of the rank."""
