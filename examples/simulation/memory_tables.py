"""Writes memory_record.csv, operator_memory.csv and npu_module_mem.csv: in: a timeline; out: these tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes_advisor.examples.simulation.job import buckets, parameters
from hermes_advisor.examples.simulation.text import cell_stamp, write_csv
from hermes_advisor.examples.simulation.timeline import RankTimeline

_MIB = 1 << 20
_SAMPLE_NS = 20_000_000
_MODULES = {"HCCL": 826, "RUNTIME": 71, "DEVMM": 38, "AICPU": 24, "SLOG": 9, "PROFILING": 4}
"""Device memory (MiB) that CANN's own modules hold; constant over a capture as short as this."""


def persistent_bytes() -> int:
    """What lives through all steps: bf16 weights, fp32 master weights and two moments, gradient buckets, a batch."""
    elements = sum(size for _, size in parameters())
    return elements * (2 + 4 + 4 + 4) + sum(size for _, size in buckets()) + 40 * _MIB


def app_samples(timeline: RankTimeline) -> list[tuple[int, int]]:
    """The process's device memory every 20 ms: the allocator's reservation and CANN's modules."""
    total = _reserved(_history(timeline)) + sum(_MODULES.values()) * _MIB
    times = range(timeline.capture_start_ns + 1_300_240, timeline.capture_end_ns, _SAMPLE_NS)
    return [(at_ns, total) for at_ns in times]


def write_memory_tables(timeline: RankTimeline, folder: Path) -> None:
    """Write the three tables of one rank."""
    history = _history(timeline)
    reserved = _mb(_reserved(history))
    device = f"NPU:{timeline.rank}"
    rows: list[list[Any]] = [
        ["APP", cell_stamp(at_ns), "", _mb(size), "", "", device] for at_ns, size in app_samples(timeline)
    ]
    for at_ns, allocated in history:
        for component in ("PTA", "PTA+GE"):
            rows.append([component, cell_stamp(at_ns), _mb(allocated), reserved, _mb(allocated), 2, device])
    header = ["Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Total Active(MB)",
              "Stream Ptr", "Device Type"]  # fmt: skip
    write_csv(folder / "memory_record.csv", header, rows)
    _write_operator_memory(timeline, dict(history), reserved, device, folder)
    _write_modules(timeline, device, folder)


def _history(timeline: RankTimeline) -> list[tuple[int, int]]:
    """(time, allocated bytes) after each change; changes at one time count as one."""
    changes: dict[int, int] = {}
    for block in timeline.allocations:
        changes[block.start_ns] = changes.get(block.start_ns, 0) + block.size_bytes
        changes[block.end_ns] = changes.get(block.end_ns, 0) - block.size_bytes
    out, allocated = [], persistent_bytes()
    for at_ns in sorted(changes):
        allocated += changes[at_ns]
        out.append((at_ns, allocated))
    return out


def _reserved(history: list[tuple[int, int]]) -> int:
    # Expandable segments grow in steps of 20 MiB; the segment before the last one is partly used.
    step = 20 * _MIB
    return (max(size for _, size in history) // step + 4) * step


def _mb(size: int) -> float:
    return size / _MIB


def _write_operator_memory(
    timeline: RankTimeline, allocated: dict[int, int], reserved: float, device: str, folder: Path
) -> None:
    rows = []
    for block in sorted(timeline.allocations, key=lambda block: (block.start_ns, block.op, block.size_bytes)):
        taken = _mb(allocated[block.start_ns])
        row = [block.op, block.size_bytes / 1024, cell_stamp(block.start_ns)]
        end, life = cell_stamp(block.end_ns), cell_stamp(block.end_ns - block.start_ns)
        left = _mb(allocated[block.end_ns])
        rows.append([*row, end, end, life, life, taken, reserved, taken, left, reserved, left, 2, device])
    header = ["Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Active Release Time(us)", "Duration(us)",
              "Active Duration(us)", "Allocation Total Allocated(MB)", "Allocation Total Reserved(MB)",
              "Allocation Total Active(MB)", "Release Total Allocated(MB)", "Release Total Reserved(MB)",
              "Release Total Active(MB)", "Stream Ptr", "Device Type"]  # fmt: skip
    write_csv(folder / "operator_memory.csv", header, rows)


def _write_modules(timeline: RankTimeline, device: str, folder: Path) -> None:
    rows = []
    for module, mebibytes in (*_MODULES.items(), ("APP", -1)):
        for at_ns, total in app_samples(timeline):
            size = _mb(total) if module == "APP" else float(mebibytes)
            rows.append([timeline.rank, module, cell_stamp(at_ns), size, device])
    header = ["Device_id", "Component", "Timestamp(us)", "Total Reserved(MB)", "Device"]
    write_csv(folder / "npu_module_mem.csv", header, rows)
