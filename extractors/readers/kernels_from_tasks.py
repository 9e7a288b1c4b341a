"""Device tasks of the timeline → ``kernels``, for a rank without kernel_details.csv.

A task is a kernel when its type names a core, or no type is recorded, and its name is not one of the runtime's own for
copies, waits and marks. What only kernel_details.csv records (operator type, wait, block dim, shapes, counters) stays
unknown.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from hermes_advisor.extractors.readers.csv_frames import frame
from hermes_advisor.extractors.readers.kernel_details import RATIO_COLUMNS, TIME_COLUMNS

# Types of tasks that run on a core; older and Level0 timelines call every task Other.
_CORE = re.compile(r"^(?:KERNEL_)?(?:AI_?CORE|AI_VECTOR_CORE|AIV|AIC|MIX_|AI_?CPU|DSA)|^(?:Other|N/A)?$")
# What the runtime itself calls its copies, waits and marks.
_RUNTIME = re.compile(
    r"^(?:EVENT_|NOTIFY|MEMCPY|MEM_?WAIT|S?DMA|PLACE_HOLDER|PROFILING_|WRITE[_ ]VALUE|STREAM_|hcom_)", re.IGNORECASE
)
_NO_TYPE = ("Other", "N/A")


def kernels_from_tasks(tasks: pd.DataFrame) -> pd.DataFrame | None:
    """The kernels among the device tasks; None when there are none."""
    on_core = {task_type: bool(_CORE.match(task_type)) for task_type in tasks["task_type"].unique()}
    named = {name: not _RUNTIME.match(name) for name in tasks["name"].unique()}
    kernels = tasks[tasks["task_type"].map(on_core).astype(bool) & tasks["name"].map(named).astype(bool)]
    count = len(kernels)
    if not count:
        return None
    core = [("" if task in _NO_TYPE else task) for task in kernels["task_type"]]
    empty = np.full(count, "", dtype=object)
    columns = {
        "name": kernels["name"].to_numpy(dtype=object), "op_type": empty, "core_type": np.array(core, dtype=object),
        "step": np.full(count, -1, np.int64), "start_ns": kernels["start_ns"].to_numpy(dtype=np.int64),
        "duration_ns": kernels["duration_ns"].to_numpy(dtype=np.int64), "wait_ns": np.full(count, -1, np.int64),
        "block_dim": np.full(count, -1, np.int64), "state": empty.copy(), "has_shapes": np.zeros(count, np.bool_),
        "row": np.full(count, -1, np.int64),
    }  # fmt: skip
    columns |= {name: np.full(count, np.nan) for name in (*RATIO_COLUMNS, *TIME_COLUMNS)}
    return frame(columns)
