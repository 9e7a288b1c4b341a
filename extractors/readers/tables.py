"""The canonical columnar tables of one rank: what every reader produces and every extractor consumes.

Times are int64 nanoseconds from ``RankTables.origin_ns`` (the smallest time of the rank); durations int64 ns; sizes
int64 bytes; ratios float64 with NaN for a cell that holds no number. A source that is missing gives an *absent* table
(None), never an empty one: 'not measured' and 'zero' differ. Every table records the file and the reader it came from.

Columns (pandas frames over numpy columns; texts are objects; ``row`` is the 1-based data row of the file; tables of the
timeline and kernels are ordered by start; -1 in brackets: what stands where nothing is recorded):

=============== ========================================================================================================
steps           step, duration_ns, compute_ns, communication_ns, exposed_communication_ns, overlapped_ns, free_ns,
                bubble_ns (-1: not recorded), preparing_ns (-1: not recorded), row
host_ops        name, thread, start_ns, duration_ns, category (cpu_op, enqueue, dequeue, python_function, …)
host_apis       api, level, thread, start_ns, duration_ns, connection_id (-1: none)      one row per call (timeline)
host_op_totals  name, call_count, self_ns, total_ns, row (of the first call)              only where host_ops is absent
api_totals      api, level, call_count, total_ns, mean_ns (-1), max_ns (-1), row          aggregated (api_statistic.csv)
op_totals       op_type, core_type, kernel_count, total_ns, mean_ns (-1), max_ns (-1), row    (op_statistic.csv)
launches        link (flow category: HostToDevice, async_npu, async_task_queue), launch_ns, device_ns, thread, stream
                (-1: a communication lane; for async_task_queue the dequeuing thread)     host launch → device start
kernels         name, op_type, core_type, step (-1: none), start_ns, duration_ns, wait_ns (-1), block_dim (-1: none),
                state ('dynamic', 'static', …; '' = not recorded), has_shapes, row, and the float64 columns
                mac_ratio, aic_mte1_ratio, aic_mte2_ratio, aic_fixpipe_ratio, aic_scalar_ratio, vec_ratio,
                aiv_mte2_ratio, aiv_mte3_ratio, aiv_scalar_ratio, aicore_ns,
                aiv_ns (NaN: not recorded); communication rows are left out; row is -1 and op_type '' for kernels
                that were taken from the timeline
device_tasks    name, task_type, stream, start_ns, duration_ns, connection_id, size_bytes (-1), direction
                every task of the device lanes of the timeline, kernels and copies alike
comm_ops        step, traffic (collective|p2p), kind (allReduce, …), name, group, start_ns, elapse_ns, transit_ns,
                wait_ns, sync_ns (-1), idle_ns
comm_bandwidth  step, traffic, name, group, transport, size_bytes, transit_ns, elapse_ns (of the operator)
comm_packets    step, name, group, transport, packet_bytes (float64), packet_count, transit_ns
comm_links      step, traffic, kind, group, src, dst (local indices in the group as written), transport, size_bytes,
                transit_ns; each byte once: sums over the operators of a kind, never those and their sum
comm_tasks      op, group, plane (-1: the operator itself, on its group's lane), start_ns, duration_ns, size_bytes (-1),
                src (-1), dst (-1), transport, link_type, connection_id (-1)
                HCCL task events of the timeline; an operator's tasks lie within its own row in time
overlap_lanes   lane (Computing, Communication, Communication(Not Overlapped), Free), start_ns, duration_ns
counters        name, series, time_ns, value
memory          component, time_ns, allocated_bytes (-1), reserved_bytes (-1), active_bytes (-1)
=============== ========================================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

import pandas as pd

NO_TABLES = "no_tables"
"""Health issue of a rank of which no file could be read."""


@dataclass(frozen=True)
class Table:
    """A frame and where it came from: ``file`` is relative to the diagnosed folder."""

    frame: pd.DataFrame
    file: str
    reader: str


@dataclass(frozen=True)
class Health:
    """One kind of fault or assumption met while reading, counted. Severity: info, warning or error."""

    issue: str
    severity: str
    count: int
    detail: str
    file: str = ""


@dataclass(frozen=True)
class GroupInfo:
    """A communication group as ``parallel_group_info`` declares it; communication.json names it by ``hashed_name``."""

    comm_name: str
    role: str
    ranks: tuple[int, ...]

    @property
    def hashed_name(self) -> str:
        """The number behind the ``@`` of an operator: two 32-bit polynomial hashes of the name (bases 29 and 131)."""
        high = low = 0
        for byte in self.comm_name.encode():
            high = (high * 29 + byte) & 0xFFFFFFFF
            low = (low * 131 + byte) & 0xFFFFFFFF
        return str(high << 32 | low)


@dataclass(frozen=True)
class RankSettings:
    """What profiler_info and profiler_metadata say about one rank; empty where they do not."""

    level: str = ""
    aic_metrics: str = ""
    record_shapes: bool | None = None
    with_stack: bool | None = None
    profile_memory: bool | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] | None = None
    parallel: Mapping[str, int] = field(default_factory=dict)
    """``distributed_args``: world_size, pipeline_model_parallel_size, …; integers only."""
    groups: tuple[GroupInfo, ...] = ()
    info_file: str = ""
    metadata_file: str = ""


@dataclass
class RankTables:
    """All that was read of one rank. ``None`` means that the source of a table is not there."""

    rank: int
    rank_known: bool
    path: Path
    """The folder (or file) this rank was read from."""
    label: str
    """``path`` relative to the diagnosed folder, with forward slashes."""
    format: str
    origin_ns: int = 0
    settings: RankSettings = field(default_factory=RankSettings)
    steps: Table | None = None
    host_ops: Table | None = None
    host_op_totals: Table | None = None
    host_apis: Table | None = None
    api_totals: Table | None = None
    op_totals: Table | None = None
    launches: Table | None = None
    kernels: Table | None = None
    device_tasks: Table | None = None
    comm_ops: Table | None = None
    comm_bandwidth: Table | None = None
    comm_packets: Table | None = None
    comm_links: Table | None = None
    comm_tasks: Table | None = None
    overlap_lanes: Table | None = None
    counters: Table | None = None
    memory: Table | None = None
    health: list[Health] = field(default_factory=list)

    def tables(self) -> Iterator[tuple[str, Table]]:
        """The tables that are present, by name."""
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Table):
                yield item.name, value

    def note(self, issue: str, severity: str, detail: str, *, count: int = 1, file: str = "") -> None:
        """Record a fault; the same issue in the same file adds to its count."""
        for i, known in enumerate(self.health):
            if (known.issue, known.file) == (issue, file):
                self.health[i] = Health(issue, known.severity, known.count + count, known.detail, file)
                return
        self.health.append(Health(issue, severity, count, detail, file))
