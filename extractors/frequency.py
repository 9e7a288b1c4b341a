"""The AI core clock of one rank over the capture (Hermes §4.2.2: down-clocking).

Comes in: counters. Goes out: ``core_frequency``.
"""

from __future__ import annotations

import math

import numpy as np

from hermes_advisor.extractors.device import busy
from hermes_advisor.extractors.evidence import events, floats, ints, measured, ratio, source
from hermes_advisor.extractors.readers.tables import RankTables
from hermes_advisor.facts.compute import CoreFrequency

_COUNTER, _SERIES = "AI Core Freq", "MHz"
_PLAUSIBLE_MHZ = 100_000


def core_frequency(rank: int, tables: RankTables) -> list[CoreFrequency]:
    """Each sample holds until the next one, the last one until the device's work ends."""
    table = measured(tables.counters)
    if table is None:
        return []
    counters = table.frame
    chosen = counters[(counters["name"] == _COUNTER) & (counters["series"] == _SERIES)]
    chosen = chosen[(chosen["value"] > 0) & (chosen["value"] < _PLAUSIBLE_MHZ)].sort_values(
        ["time_ns", "value"], kind="stable"
    )
    if chosen.empty:
        return []
    times, values = ints(chosen, "time_ns"), floats(chosen, "value")
    worked = busy(tables)
    end = max(int(times[-1]), int(worked.ends[-1]) if len(worked) else 0)
    held = np.diff(np.concatenate([times, [end]]))
    lasted = int(held.sum())
    weighted = math.fsum((values * held).tolist()) / lasted if lasted > 0 else math.fsum(values.tolist()) / len(values)
    return [
        CoreFrequency(
            rank=rank,
            sample_count=len(chosen),
            max_mhz=float(values.max()),
            min_mhz=float(values.min()),
            mean_mhz=weighted,
            drop_ratio=max(0.0, 1 - ratio(weighted, values.max())),
            source=source(table, events(times, times)),
        )
    ]
