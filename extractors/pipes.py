"""How well the kernels of one rank use the cores: pipe ratios, block dim (Hermes §4.2.2, under-utilised kernels).

Comes in: kernels. Goes out: ``pipe_utilization``, ``block_dim_usage``.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from hermes_advisor.extractors.evidence import (
    clean,
    floats,
    grouped,
    instances,
    ints,
    measured,
    ratio,
    source,
    total,
    us,
    where,
)
from hermes_advisor.extractors.readers.tables import RankTables
from hermes_advisor.extractors.steps import Capture
from hermes_advisor.facts.compute import BlockDimUsage, PipeUtilization

COSTLIEST = 10
"""How many operator types per rank become pipe facts."""

MOST_CORES = 80
"""No chip has more cores of a kind; a larger block dim is a kernel that takes several rounds, and no core count."""

_CUBE = ("AI_CORE", "MIX_AIC")
_VECTOR = ("AI_VECTOR_CORE", "MIX_AIV")

_PIPES = {
    "cube": {
        "mac": "mac_ratio", "vec": "vec_ratio", "mte1": "aic_mte1_ratio", "mte2": "aic_mte2_ratio",
        "fixpipe": "aic_fixpipe_ratio", "scalar": "aic_scalar_ratio",
    },
    "vector": {
        "vec": "vec_ratio", "mte2": "aiv_mte2_ratio", "mte3": "aiv_mte3_ratio", "scalar": "aiv_scalar_ratio",
    },
}  # fmt: skip
"""Pipe → column, per core. A cube kernel has a vector pipe too: on mixed kernels and on cores that are not split."""


def pipe_utilization(rank: int, tables: RankTables, capture: Capture) -> list[PipeUtilization]:
    """The costliest operator types; absent where pipe ratios are not recorded (aic_metrics is not PipeUtilization)."""
    table = measured(tables.kernels)
    if table is None:
        return []
    kernels = table.frame
    whole = total(kernels["duration_ns"])
    out: list[tuple[int, PipeUtilization]] = []
    for core, core_types in (("cube", _CUBE), ("vector", _VECTOR)):
        chosen = kernels[kernels["core_type"].isin(core_types) & (kernels["op_type"] != "")]
        for (op_type,), group in grouped(chosen, "op_type"):
            pipes = {pipe: _weighted(group, column) for pipe, column in _PIPES[core].items()}
            # Exactly zero: the column is filled in, but this core has no such pipe, or it was not measured.
            known = {pipe: value for pipe, value in pipes.items() if value}
            if not known:
                continue
            busiest = max(known, key=lambda pipe: known[pipe])
            spent = total(group["duration_ns"])
            out.append(
                (
                    spent,
                    PipeUtilization(
                        rank=rank,
                        op_type=clean(op_type),
                        core=core,
                        kernel_count=len(group),
                        total_us=us(spent),
                        per_step_us=capture.per_step_us(spent),
                        mean_us=us(spent) / len(group),
                        compute_ratio=ratio(spent, whole),
                        mac_ratio=known.get("mac"),
                        mte2_ratio=known.get("mte2"),
                        vec_ratio=known.get("vec"),
                        scalar_ratio=known.get("scalar"),
                        busiest_pipe=busiest,
                        busiest_ratio=known[busiest],
                        source=source(table, where(group)),
                    ),
                )
            )
    out.sort(key=lambda item: -item[0])
    return [fact for _, fact in out[:COSTLIEST]]


def _weighted(group: pd.DataFrame, column: str) -> float | None:
    """The mean ratio, weighted by duration, over the kernels that recorded it."""
    values, weights = floats(group, column), ints(group, "duration_ns")
    # Overlapping counters give a little more than one; anything else outside is damage. NaN fails both tests.
    known = (values >= 0) & (values <= 2) & (weights > 0)
    if not known.any():
        return None
    weighted = math.fsum((values[known] * weights[known].astype(np.float64)).tolist())
    return weighted / total(weights[known])


def block_dim_usage(rank: int, tables: RankTables, capture: Capture) -> list[BlockDimUsage]:
    """Per core type; absent where no block dim is recorded."""
    table = measured(tables.kernels)
    if table is None:
        return []
    kernels = table.frame
    whole = total(kernels["duration_ns"])
    sized = kernels[kernels["block_dim"].between(1, MOST_CORES) & kernels["core_type"].isin(_CUBE + _VECTOR)]
    out = []
    for (core_type,), group in grouped(sized, "core_type"):
        widest = int(group["block_dim"].max())
        narrow = group[group["block_dim"] * 2 < widest]
        spent = total(narrow["duration_ns"])
        out.append(
            BlockDimUsage(
                rank=rank,
                core_type=str(core_type),
                widest_count=widest,
                narrow_kernel_count=len(narrow),
                narrow_us=us(spent),
                narrow_per_step_us=capture.per_step_us(spent),
                narrow_compute_ratio=ratio(spent, whole),
                worst=instances(narrow),
                source=source(table, where(narrow) or f"no narrow {core_type} kernel in the table"),
            )
        )
    return out
