"""The compute kernels of one rank: how many, which types, on which cores (Hermes §4.2.2, computation).

Comes in: kernels. Goes out: ``kernel_summary``, ``kernel_type``, ``aicpu_kernels``, ``dynamic_shape_kernels``,
``format_conversion``. Kernels that were taken from the timeline have a core but no type, state or shapes.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from hermes_advisor.extractors.device import is_aicpu
from hermes_advisor.extractors.evidence import (
    clean,
    events,
    grouped,
    instances,
    ints,
    matches,
    measured,
    ratio,
    source,
    total,
    us,
    where,
)
from hermes_advisor.extractors.readers.tables import RankTables
from hermes_advisor.extractors.steps import Capture
from hermes_advisor.facts.compute import (
    AicpuKernels,
    DynamicShapeKernels,
    FormatConversion,
    KernelSummary,
    KernelType,
)

MOST_TYPES = 100
"""Operator types per rank that become facts: all of any real model, so that a type without a fact did not run."""

SHORT_NS = 10_000
"""Below about the cost of a launch a kernel cannot hide the launch of the next."""

_CONVERSIONS = {
    "transdata": frozenset({"transdata", "transdatarnn"}),
    "cast": frozenset({"cast"}),
    "transpose": frozenset({"transpose", "transposed"}),
}


def kernel_summary(rank: int, tables: RankTables, capture: Capture) -> list[KernelSummary]:
    """All kernels of the capture."""
    kernels = measured(tables.kernels)
    if kernels is None:
        return []
    durations = ints(kernels.frame, "duration_ns")
    starts, spent, short = ints(kernels.frame, "start_ns"), total(durations), int((durations < SHORT_NS).sum())
    return [
        KernelSummary(
            rank=rank,
            kernel_count=len(durations),
            per_step_count=len(durations) / capture.step_count,
            total_us=us(spent),
            per_step_us=capture.per_step_us(spent),
            median_us=us(float(np.median(durations))),
            short_kernel_count=short,
            short_kernel_ratio=ratio(short, len(durations)),
            source=source(kernels, f"all kernels, {events(starts, starts + durations)}"),
        )
    ]


def kernel_type(rank: int, tables: RankTables, capture: Capture) -> list[KernelType]:
    """Every operator type, costliest first; absent where the types are not recorded."""
    table = measured(tables.kernels)
    if table is None:
        return []
    kernels = table.frame
    whole = total(kernels["duration_ns"])
    typed = grouped(kernels[kernels["op_type"] != ""], "op_type", "core_type")
    costs = [(total(group["duration_ns"]), str(op_type), str(core), group) for (op_type, core), group in typed]
    costs.sort(key=lambda item: (-item[0], item[1], item[2]))
    return [
        KernelType(
            rank=rank,
            op_type=clean(op_type),
            core_type=clean(core),
            kernel_count=len(group),
            total_us=us(spent),
            per_step_us=capture.per_step_us(spent),
            mean_us=us(spent) / len(group),
            max_us=us(group["duration_ns"].max()),
            compute_ratio=ratio(spent, whole),
            source=source(table, where(group)),
        )
        for spent, op_type, core, group in costs[:MOST_TYPES]
    ]


def aicpu_kernels(rank: int, tables: RankTables, capture: Capture) -> list[AicpuKernels]:
    """Kernels on the AI CPU; zero where all kernels ran on the AI cores, absent where no core is recorded."""
    kernels = measured(tables.kernels)
    if kernels is None or not (kernels.frame["core_type"] != "").any():
        return []
    chosen = kernels.frame[matches(kernels.frame["core_type"], is_aicpu)]
    spent = total(chosen["duration_ns"])
    return [
        AicpuKernels(
            rank=rank,
            kernel_count=len(chosen),
            total_us=us(spent),
            per_step_us=capture.per_step_us(spent),
            compute_ratio=ratio(spent, total(kernels.frame["duration_ns"])),
            longest_us=us(chosen["duration_ns"].max()) if len(chosen) else 0.0,
            costliest_type=_costliest_type(chosen),
            worst=instances(chosen),
            source=source(kernels, where(chosen) or "no AI CPU kernel in the table"),
        )
    ]


def _costliest_type(chosen: pd.DataFrame) -> str:
    costs = sorted((-total(group["duration_ns"]), str(name)) for (name,), group in grouped(chosen, "op_type"))
    return clean(costs[0][1]) if costs else ""


def dynamic_shape_kernels(rank: int, tables: RankTables) -> list[DynamicShapeKernels]:
    """Kernels marked dynamic; absent where no kernel's state is recorded (no OP State column before CANN 8)."""
    table = measured(tables.kernels)
    if table is None:
        return []
    kernels = table.frame
    state = kernels["state"].str.casefold()
    known, dynamic = kernels[state.isin(["dynamic", "static"])], kernels[state == "dynamic"]
    if known.empty:
        return []
    return [
        DynamicShapeKernels(
            rank=rank,
            known_count=len(known),
            dynamic_count=len(dynamic),
            dynamic_ratio=ratio(len(dynamic), len(known)),
            dynamic_us=us(total(dynamic["duration_ns"])),
            source=source(table, where(dynamic) or where(known)),
        )
    ]


def format_conversion(rank: int, tables: RankTables, capture: Capture) -> list[FormatConversion]:
    """TransData, Cast and Transpose kernels, zeros included; absent where operator types are not recorded."""
    table = measured(tables.kernels)
    if table is None or not (table.frame["op_type"] != "").any():
        return []
    kernels = table.frame
    whole, op_type = total(kernels["duration_ns"]), kernels["op_type"].str.casefold()
    out = []
    for conversion, types in _CONVERSIONS.items():
        chosen = kernels[op_type.isin(types)]
        spent = total(chosen["duration_ns"])
        out.append(
            FormatConversion(
                rank=rank,
                conversion=conversion,
                kernel_count=len(chosen),
                total_us=us(spent),
                per_step_us=capture.per_step_us(spent),
                compute_ratio=ratio(spent, whole),
                source=source(table, where(chosen) or f"no {conversion} kernel in the table"),
            )
        )
    return out
