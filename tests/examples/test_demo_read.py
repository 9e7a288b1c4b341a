"""The package's own readers take the demo without a complaint and find every table in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_advisor.extractors.readers.ascend_text import read_rank
from hermes_advisor.extractors.readers.discover import discover

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"
TABLES = {
    "steps", "host_ops", "host_apis", "api_totals", "launches", "kernels", "device_tasks", "comm_ops",
    "comm_bandwidth", "comm_packets", "comm_links", "comm_tasks", "overlap_lanes", "counters", "memory",
}  # fmt: skip


@pytest.mark.parametrize("run", ["slow", "healthy"])
def test_readers_have_nothing_to_report(run: str) -> None:
    found = discover([DEMO / run])
    assert found.health == ()
    assert [source.rank for source in found.sources] == [0, 1]
    for source in found.sources:
        tables = read_rank(source)
        assert [entry for entry in tables.health if entry.severity != "info"] == []
        assert {name for name, _ in tables.tables()} >= TABLES
        assert tables.kernels is not None and len(tables.kernels.frame) == 140
        assert tables.comm_ops is not None and len(tables.comm_ops.frame) == 12
