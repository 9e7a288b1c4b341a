"""The framework allocator's memory on one rank.

Comes in: memory (memory_record). Goes out: ``memory_peak``.
"""

from __future__ import annotations

import numpy as np

from hermes_advisor.extractors.evidence import ints, measured, ratio, source
from hermes_advisor.extractors.readers.tables import RankTables
from hermes_advisor.facts.memory import MemoryPeak

_ALLOCATORS = ("PTA", "PTA+GE")
"""The framework's own allocator first; APP rows are the whole process, GE rows the graph engine."""


def memory_peak(rank: int, tables: RankTables) -> list[MemoryPeak]:
    """Absent where the allocator was not recorded."""
    table = measured(tables.memory)
    if table is None:
        return []
    memory = table.frame
    recorded = memory[(memory["allocated_bytes"] >= 0) & (memory["reserved_bytes"] >= 0)]
    component = next((name for name in _ALLOCATORS if (recorded["component"] == name).any()), None)
    if component is None:
        return []
    chosen = recorded[recorded["component"] == component].sort_values("time_ns", kind="stable")
    allocated, reserved = ints(chosen, "allocated_bytes"), ints(chosen, "reserved_bytes")
    peak = int(np.argmax(allocated))
    unused = max(0, int(reserved[peak] - allocated[peak]))
    at_ms = int(chosen["time_ns"].iloc[peak]) / 1e6
    return [
        MemoryPeak(
            rank=rank,
            peak_reserved_bytes=int(reserved.max()),
            peak_allocated_bytes=int(allocated[peak]),
            unused_reserved_bytes=unused,
            unused_reserved_ratio=ratio(unused, int(reserved[peak])),
            growth_bytes=int(allocated[-1] - allocated[0]),
            source=source(table, f"{component} rows; peak at {at_ms:.3f} ms"),
        )
    ]
