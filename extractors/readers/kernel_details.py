"""kernel_details.csv → ``kernels``: one row per kernel on the device; communication operators are left out.

Column sets differ by version: ``Block Num`` since 2.14, no ``OP State`` before CANN 8 (then ``state`` is empty: not
recorded is not dynamic), no ``Step Id`` without step marks, pipe counters only with aic_metrics.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from hermes_advisor.extractors.readers.cells import Mask, floats, integers, ns_from_us, scaled_int
from hermes_advisor.extractors.readers.csv_frames import Array, read_frame, texts
from hermes_advisor.extractors.readers.csv_rows import Block, Column
from hermes_advisor.extractors.readers.files import Note
from hermes_advisor.extractors.readers.step_trace import step_numbers

COMMUNICATION_CORES = frozenset({"COMMUNICATION", "HCCL"})
RATIO_COLUMNS = (
    "mac_ratio", "aic_mte1_ratio", "aic_mte2_ratio", "aic_fixpipe_ratio", "aic_scalar_ratio",
    "vec_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio", "aiv_scalar_ratio",
)  # fmt: skip
TIME_COLUMNS = ("aicore_ns", "aiv_ns")

_COLUMNS = (
    Column("name", ("Name",), required=True),
    Column("op_type", ("Type",), required=True),
    Column("core_type", ("Accelerator Core",), required=True),
    Column("start_ns", ("Start Time(us)",), required=True),
    Column("duration_ns", ("Duration(us)",), required=True),
    Column("step", ("Step Id",)),
    Column("wait_ns", ("Wait Time(us)",)),
    Column("block_dim", ("Block Dim", "Block Num")),
    Column("state", ("OP State",)),
    Column("shapes", ("Input Shapes",)),
    # The first AI cores have one set of pipes for cube and vector, named without a prefix.
    Column("mac_ratio", ("aic_mac_ratio", "mac_ratio")),
    Column("aic_mte1_ratio", ("aic_mte1_ratio", "mte1_ratio")),
    Column("aic_mte2_ratio", ("aic_mte2_ratio", "mte2_ratio")),
    Column("aic_fixpipe_ratio", ("aic_fixpipe_ratio", "fixpipe_ratio")),
    Column("aic_scalar_ratio", ("aic_scalar_ratio", "scalar_ratio")),
    Column("vec_ratio", ("aiv_vec_ratio", "vec_ratio")),
    Column("aiv_mte2_ratio", ("aiv_mte2_ratio",)),
    Column("aiv_mte3_ratio", ("aiv_mte3_ratio", "mte3_ratio")),
    Column("aiv_scalar_ratio", ("aiv_scalar_ratio",)),
    Column("aicore_ns", ("aicore_time(us)",)),
    Column("aiv_ns", ("aiv_time(us)",)),
)


def read_kernel_details(path: Path, note: Note) -> pd.DataFrame | None:
    """Read the kernels of one rank, ordered by start; None when the file holds none."""
    kernels = read_frame(path, _COLUMNS, note, _convert)
    if kernels is None:
        return None
    # Left out only now, so that `row` counts every row of the file and one of communication alone is not "no rows".
    kernels = kernels[~kernels["core_type"].isin(COMMUNICATION_CORES)]
    if kernels.empty:
        note("no_kernels", "warning", "holds communication operators and no kernels")
        return None
    return kernels.sort_values("start_ns", kind="stable", ignore_index=True)


def _convert(block: Block) -> tuple[dict[str, Array], Mask]:
    cells, nothing = block.cells, [""] * block.count
    start, start_good = ns_from_us(cells["start_ns"])
    duration, duration_good = ns_from_us(cells["duration_ns"])
    wait, wait_good = ns_from_us(cells.get("wait_ns", nothing))
    made: dict[str, Array] = {
        "name": texts(cells["name"]),
        "op_type": texts(cells["op_type"]),
        "core_type": texts(cells["core_type"]),
        "step": step_numbers(cells.get("step", nothing)),
        "start_ns": start,
        "duration_ns": duration,
        "wait_ns": np.where(wait_good, wait, -1),
        "block_dim": integers(cells.get("block_dim", nothing)),
        "state": texts([state.lower() for state in cells.get("state", nothing)], empty=("n/a",)),
        "has_shapes": np.array([s.strip() not in ("", "N/A") for s in cells.get("shapes", nothing)], dtype=np.bool_),
    }
    for name in RATIO_COLUMNS:
        made[name] = floats(cells[name]) if name in cells else np.full(block.count, np.nan)
    for name in TIME_COLUMNS:
        numbers, valid = scaled_int(cells.get(name, nothing), 3)
        made[name] = np.where(valid, numbers.astype(np.float64), np.nan)
    return made, start_good & duration_good & (duration >= 0)
