"""The profiler's own summaries: api_statistic.csv → ``api_totals``, op_statistic.csv → ``op_totals`` and
operator_details.csv → ``host_op_totals``. They serve where the events behind them were not exported.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from hermes_advisor.extractors.readers.cells import Mask, ns_from_us, scaled_int
from hermes_advisor.extractors.readers.csv_frames import Array, read_frame, texts
from hermes_advisor.extractors.readers.csv_rows import Block, Column
from hermes_advisor.extractors.readers.files import Note

_API_COLUMNS = (
    Column("level", ("Level",), required=True),
    Column("api", ("API Name",), required=True),
    Column("total_ns", ("Time(us)",), required=True),
    Column("call_count", ("Count",), required=True),
    Column("mean_ns", ("Avg(us)",)),
    Column("max_ns", ("Max(us)",)),
)
_OP_COLUMNS = (
    Column("op_type", ("OP Type",), required=True),
    Column("core_type", ("Core Type",), required=True),
    Column("kernel_count", ("Count",), required=True),
    Column("total_ns", ("Total Time(us)",), required=True),
    Column("mean_ns", ("Avg Time(us)",)),
    Column("max_ns", ("Max Time(us)",)),
)
_HOST_COLUMNS = (
    Column("name", ("Name",), required=True),
    Column("self_ns", ("Host Self Duration(us)",), required=True),
    Column("total_ns", ("Host Total Duration(us)",), required=True),
)


def read_api_statistic(path: Path, note: Note) -> pd.DataFrame | None:
    """Calls of each runtime and CANN API, summed over the capture."""
    return read_frame(path, _API_COLUMNS, note, lambda block: _totals(block, ("level", "api"), "call_count"))


def read_op_statistic(path: Path, note: Note) -> pd.DataFrame | None:
    """Kernels of each operator type and core, summed over the capture."""
    return read_frame(path, _OP_COLUMNS, note, lambda block: _totals(block, ("op_type", "core_type"), "kernel_count"))


def read_operator_details(path: Path, note: Note) -> pd.DataFrame | None:
    """Host time of each framework operator, summed over its calls; ``row`` is that of its first call."""
    calls = read_frame(path, _HOST_COLUMNS, note, _host_operator)
    if calls is None:
        return None
    totals = calls.groupby("name", sort=True).agg(
        call_count=("row", "size"), self_ns=("self_ns", "sum"), total_ns=("total_ns", "sum"), row=("row", "min")
    )
    totals = totals.reset_index()
    totals["name"] = totals["name"].astype(object)
    return totals


def _totals(block: Block, labels: tuple[str, str], counted: str) -> tuple[dict[str, Array], Mask]:
    made: dict[str, Array] = {label: texts(block.cells[label]) for label in labels}
    made[counted], counts_good = scaled_int(block.cells[counted], 0)
    made["total_ns"], totals_good = ns_from_us(block.cells["total_ns"])
    for name in ("mean_ns", "max_ns"):
        numbers, valid = ns_from_us(block.cells.get(name, [""] * block.count))
        made[name] = np.where(valid, numbers, -1)
    return made, counts_good & totals_good


def _host_operator(block: Block) -> tuple[dict[str, Array], Mask]:
    own, own_good = ns_from_us(block.cells["self_ns"])
    total, total_good = ns_from_us(block.cells["total_ns"])
    return {"name": texts(block.cells["name"]), "self_ns": own, "total_ns": total}, own_good & total_good
