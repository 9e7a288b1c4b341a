"""How the input reaches the device: waiting for the DataLoader, host-to-device copies (Hermes §4.2.2, I/O).

Comes in: host_ops and device_tasks of one rank. Goes out: ``dataloader_wait``, ``host_to_device_copy``.
"""

from __future__ import annotations

from hermes_advisor.extractors.evidence import ints, measured, ratio, source, total, us, where
from hermes_advisor.extractors.readers.tables import RankTables
from hermes_advisor.extractors.steps import Capture
from hermes_advisor.extractors.windows import inside
from hermes_advisor.facts.host import DataLoaderWait, HostToDeviceCopy

_LOADER = "enumerate(DataLoader)"
_SINGLE_PROCESS = "_SingleProcess"


def dataloader_wait(rank: int, tables: RankTables, capture: Capture) -> list[DataLoaderWait]:
    """Time in ``next()`` of the DataLoader; absent where the loop uses none or host operators are not recorded."""
    table = measured(tables.host_ops)
    if table is None:
        return []
    host = table.frame
    everywhere = host[host["name"].str.startswith(_LOADER)]
    if everywhere.empty:
        return []
    calls = inside(everywhere, capture.windows)
    spent = ints(calls, "duration_ns")
    single = calls["name"].str.contains(_SINGLE_PROCESS, regex=False).to_numpy(dtype=bool)
    return [
        DataLoaderWait(
            rank=rank,
            call_count=len(calls),
            total_us=us(total(spent)),
            per_step_us=capture.per_step_us(total(spent)),
            step_ratio=capture.ratio(total(spent)),
            longest_us=us(max(spent.tolist(), default=0)),
            # With several loaders the kind is that of the costlier calls.
            multi_process=total(spent[single]) <= total(spent[~single]) and not bool(single.all()),
            source=source(table, where(calls) or "no DataLoader call within the steps"),
        )
    ]


def host_to_device_copy(rank: int, tables: RankTables, capture: Capture) -> list[HostToDeviceCopy]:
    """Copies from the host; absent where no copy carries its direction (not recorded by this version)."""
    table = measured(tables.device_tasks)
    if table is None:
        return []
    tasks = table.frame
    directed = tasks[tasks["direction"] != ""]
    if directed.empty:
        return []
    copies = inside(directed[directed["direction"].str.casefold().str.startswith("host to device")], capture.windows)
    size, spent = total(copies["size_bytes"].clip(lower=0)), total(copies["duration_ns"])
    return [
        HostToDeviceCopy(
            rank=rank,
            copy_count=len(copies),
            size_bytes=size,
            total_us=us(spent),
            per_step_us=capture.per_step_us(spent),
            step_ratio=capture.ratio(spent),
            bandwidth_gb_per_s=ratio(size, spent),
            source=source(table, where(copies) or "no host-to-device copy among the tasks"),
        )
    ]
