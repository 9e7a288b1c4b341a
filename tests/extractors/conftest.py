"""Hand-made tables for the extractor tests: every column of the contract, healthy defaults, only what matters said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hermes_advisor.extractors.readers.tables import Health, RankSettings, RankTables, Table

US, MS = 1_000, 1_000_000

DEFAULTS: dict[str, dict[str, Any]] = {
    "steps": {"step": 1, "duration_ns": 0, "compute_ns": 0, "communication_ns": 0, "exposed_communication_ns": 0,
              "overlapped_ns": 0, "free_ns": 0, "bubble_ns": -1, "preparing_ns": -1, "row": 2},
    "host_ops": {"name": "aten::add", "thread": "1", "start_ns": 0, "duration_ns": 0, "category": "cpu_op"},
    "host_apis": {"api": "aclnnAdd", "level": "acl", "thread": "1", "start_ns": 0, "duration_ns": 0,
                  "connection_id": -1},
    "api_totals": {"api": "aclnnAdd", "level": "acl", "call_count": 1, "total_ns": 0, "mean_ns": 0, "max_ns": 0,
                   "row": 2},
    "launches": {"link": "HostToDevice", "launch_ns": 0, "device_ns": 0, "thread": "1", "stream": "2"},
    "kernels": {"name": "k", "op_type": "Add", "core_type": "AI_VECTOR_CORE", "step": 1, "start_ns": 0,
                "duration_ns": 0, "wait_ns": 0, "block_dim": -1, "state": "", "has_shapes": True, "row": 2,
                "mac_ratio": float("nan"), "aic_mte2_ratio": float("nan"), "aic_scalar_ratio": float("nan"),
                "vec_ratio": float("nan"), "aiv_mte2_ratio": float("nan"), "aiv_scalar_ratio": float("nan"),
                "aicore_ns": float("nan"), "aiv_ns": float("nan")},
    "device_tasks": {"name": "k", "task_type": "AI_CORE", "stream": "2", "start_ns": 0, "duration_ns": 0,
                     "connection_id": -1, "size_bytes": -1, "direction": ""},
    "comm_ops": {"step": 1, "traffic": "collective", "kind": "allReduce", "name": "hcom_allReduce__1_0_1", "group": "g",
                 "start_ns": 0, "elapse_ns": 0, "transit_ns": 0, "wait_ns": 0, "sync_ns": 0, "idle_ns": 0},
    "comm_bandwidth": {"step": 1, "traffic": "collective", "name": "hcom_allReduce__1_0_1", "group": "g",
                       "transport": "HCCS", "size_bytes": 0, "transit_ns": 0, "elapse_ns": 0},
    "comm_packets": {"step": 1, "name": "hcom_allReduce__1_0_1", "group": "g", "transport": "HCCS", "packet_bytes": 0.0,
                     "packet_count": 1, "transit_ns": 0},
    "comm_links": {"step": 1, "traffic": "collective", "kind": "allReduce", "group": "g", "src": 0, "dst": 1,
                   "transport": "HCCS", "size_bytes": 0, "transit_ns": 0},
    "comm_tasks": {"op": "Memcpy", "group": "g", "plane": "1", "start_ns": 0, "duration_ns": 0, "size_bytes": 0,
                   "src": 0, "dst": 1, "transport": "SDMA", "link_type": "HCCS"},
    "overlap_lanes": {"lane": "Computing", "start_ns": 0, "duration_ns": 0},
    "counters": {"name": "AI Core Freq", "series": "MHz", "time_ns": 0, "value": 1800.0},
    "memory": {"component": "PTA", "time_ns": 0, "allocated_bytes": -1, "reserved_bytes": -1, "active_bytes": -1},
}  # fmt: skip


class Build:
    """``build.rank(3, steps=[{...}], kernels=[{...}, ...])`` → RankTables; unnamed tables are absent."""

    US, MS = US, MS
    Health = Health

    def table(self, name: str, rows: list[dict[str, Any]]) -> Table:
        unknown = {key for row in rows for key in row} - DEFAULTS[name].keys()
        assert not unknown or name == "kernels", unknown
        frame = pd.DataFrame([DEFAULTS[name] | row for row in rows], columns=list(DEFAULTS[name]) + sorted(unknown))
        texts = [column for column, value in DEFAULTS[name].items() if isinstance(value, str)]
        frame = frame.astype(dict.fromkeys(texts, object))  # as the readers have them
        return Table(frame, f"rank/ASCEND_PROFILER_OUTPUT/{name}", "hand")

    def rank(self, rank: int = 0, settings: RankSettings | None = None, **tables: list[dict[str, Any]]) -> RankTables:
        made = {name: self.table(name, rows) for name, rows in tables.items()}
        return RankTables(
            rank=rank, rank_known=True, path=Path("/nowhere"), label=f"rank_{rank}", format="hand",
            settings=settings or RankSettings(), **made,  # type: ignore[arg-type]
        )  # fmt: skip


@pytest.fixture
def build() -> Build:
    return Build()


@pytest.fixture
def defaults() -> dict[str, dict[str, Any]]:
    return DEFAULTS
