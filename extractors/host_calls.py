"""The host's API calls of one rank: costliest APIs, operator compilation, synchronisation (Hermes §4.2.2, Table 2).

Comes in: api_totals (sums) and host_apis (single calls of the timeline, for the worst instances), never added together.
Goes out: ``host_api``, ``operator_compile``, ``host_synchronization``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hermes_advisor.extractors.evidence import (
    clean,
    frame_of,
    grouped,
    instances,
    ints,
    largest,
    mapped,
    matches,
    measured,
    ratio,
    rows,
    source,
    texts,
    total,
    us,
)
from hermes_advisor.extractors.intervals import Intervals
from hermes_advisor.extractors.readers.tables import RankTables, Table
from hermes_advisor.extractors.steps import Capture
from hermes_advisor.extractors.windows import inside
from hermes_advisor.facts.base import Instance, Source
from hermes_advisor.facts.host import HostApi, HostSynchronization, OperatorCompile

COSTLIEST = 20
"""How many APIs per rank become facts."""

_ACL, _RUNTIME = "acl", "runtime"
# The compile time of opCompile lies inside this call, so that it alone is counted.
_COMPILE = re.compile(r"aclopCompileAndExecute(V2)?")
_COMPILING = re.compile(r"opCompile")
# MemcpyAsync and StreamSyncTaskFinish do not block the host.
_BLOCKING = {
    _ACL: re.compile(r"aclrtSynchronize\w*|aclrtMemcpy(2d)?"),
    _RUNTIME: re.compile(r"(Stream|Device|Event)Synchronize\w*|Mem[Cc]o?py(2D)?Sync"),
}
_OPERATOR = "cpu_op"
_SCALAR_READ = "aten::_local_scalar_dense"


@dataclass(frozen=True)
class Calls:
    """API calls summed per level and API: a frame of level, api, call_count, total_ns, max_ns (and row, if any)."""

    frame: pd.DataFrame
    table: Table
    levels: frozenset[str]
    """The levels that were recorded, be it with no call within the steps."""
    within: str = ""
    """Which part of the capture is summed, in words; empty: all of it."""

    def matching(self, level: str, pattern: re.Pattern[str]) -> pd.DataFrame:
        """The rows of one level whose API name matches as a whole."""
        return _matching(self.frame, level, pattern)

    def source(self, chosen: pd.DataFrame) -> Source:
        """Where the chosen rows, or with none of them the whole table, were read."""
        if chosen.empty:
            return source(self.table, f"no such call{self.within}")
        names = ", ".join(sorted({clean(api) for api in texts(chosen, "api")}))
        return source(self.table, rows(chosen["row"].tolist()) or f"events of {names}{self.within}")


def api_calls(tables: RankTables, windows: Intervals | None = None) -> Calls | None:
    """The calls of the captured steps, else of the whole capture; None: no API level was recorded.

    api_totals sums over all that was captured, the profiler's own start and stop included. Where the steps' windows are
    known and the timeline has every call, those within the steps are summed instead.
    """
    totals, calls = measured(tables.api_totals), measured(tables.host_apis)
    if calls is not None and (totals is None or (windows is not None and _has_all(calls.frame, totals.frame))):
        named = _named(calls.frame)
        spent = inside(named, windows).groupby(["level", "api"], sort=True)["duration_ns"]
        summed = pd.DataFrame(
            {"call_count": spent.size(), "total_ns": spent.agg(total), "max_ns": spent.max()}
        ).reset_index()
        summed["row"] = -1
        return Calls(summed, calls, frozenset(named["level"]), "" if windows is None else " within the steps")
    if totals is None:
        return None
    named = _named(totals.frame)
    return Calls(named[["level", "api", "call_count", "total_ns", "max_ns", "row"]], totals, frozenset(named["level"]))


def _has_all(calls: pd.DataFrame, totals: pd.DataFrame) -> bool:
    return len(calls) >= total(totals["call_count"])


def host_api(rank: int, tables: RankTables, capture: Capture) -> list[HostApi]:
    """The costliest APIs. Levels nest: an acl call contains its runtime calls, so sums over levels mean nothing."""
    calls = api_calls(tables, capture.windows)
    if calls is None:
        return []
    spent = calls.frame[calls.frame["total_ns"] > 0]
    ordered = spent.sort_values(["total_ns", "level", "api"], ascending=[False, True, True], kind="stable")
    return [
        HostApi(
            rank=rank,
            level=clean(level),
            api=clean(api),
            call_count=int(count),
            total_us=us(spent_ns),
            mean_us=us(spent_ns) / max(1, int(count)),
            # Without a recorded maximum the mean is what is known of the longest call.
            max_us=us(max(longest, spent_ns / max(1, int(count)))),
            per_step_us=capture.per_step_us(spent_ns),
            step_ratio=capture.ratio(spent_ns),
            source=source(calls.table, rows([row]) or f"events of {clean(api)}{calls.within}"),
        )
        for level, api, count, spent_ns, longest, row in ordered.head(COSTLIEST).itertuples(index=False)
    ]


def operator_compile(rank: int, tables: RankTables, capture: Capture) -> list[OperatorCompile]:
    """Operators compiled while training; absent where AscendCL calls are not recorded (Level0)."""
    calls = api_calls(tables, capture.windows)
    if calls is None or _ACL not in calls.levels:
        return []
    found = calls.matching(_ACL, _COMPILE)
    count, spent_ns = total(found["call_count"]), total(found["total_ns"])
    inner = calls.matching(_ACL, _COMPILING)
    # Where no inner call is listed, how the time divides was not recorded.
    compiling_ns = None if inner.empty or spent_ns <= 0 else min(total(inner["total_ns"]), spent_ns)
    return [
        OperatorCompile(
            rank=rank,
            compile_count=count,
            per_step_count=count / capture.step_count,
            total_us=us(spent_ns),
            per_step_us=capture.per_step_us(spent_ns),
            step_ratio=capture.ratio(spent_ns),
            longest_us=_longest_us(found),
            op_compile_us=None if compiling_ns is None else us(compiling_ns),
            op_compile_ratio=None if compiling_ns is None else ratio(compiling_ns, spent_ns),
            source=calls.source(pd.concat([found, inner]) if compiling_ns is not None else found),
        )
    ]


def host_synchronization(rank: int, tables: RankTables, capture: Capture) -> list[HostSynchronization]:
    """Calls that block the host until the device is done; absent where neither acl nor runtime calls are recorded.

    Both levels show the same call once each. The level that shows more calls is the complete one: CANN operators such
    as NonZero synchronise below AscendCL, and Level1 does not record the runtime.
    """
    calls = api_calls(tables, capture.windows)
    recorded = [] if calls is None else [level for level in (_ACL, _RUNTIME) if level in calls.levels]
    if calls is None or not recorded:
        return []
    level = max(recorded, key=lambda name: total(calls.matching(name, _BLOCKING[name])["call_count"]))
    found = calls.matching(level, _BLOCKING[level])
    count, spent_ns = total(found["call_count"]), total(found["total_ns"])
    timeline, host = _within(tables.host_apis, capture), _within(tables.host_ops, capture)
    single = None if timeline is None else _matching(_named(timeline), level, _BLOCKING[level])
    return [
        HostSynchronization(
            rank=rank,
            sync_count=count,
            per_step_count=count / capture.step_count,
            total_us=us(spent_ns),
            per_step_us=capture.per_step_us(spent_ns),
            step_ratio=capture.ratio(spent_ns),
            longest_us=_longest_us(found),
            scalar_read_count=_scalar_reads(host, timeline),
            worst=() if single is None else _longest(single, frame_of(tables.host_ops)),
            source=calls.source(found),
        )
    ]


def _within(table: Table | None, capture: Capture) -> pd.DataFrame | None:
    frame = frame_of(table)
    return None if frame is None else inside(frame, capture.windows)


def _longest(calls: pd.DataFrame, host: pd.DataFrame | None) -> tuple[Instance, ...]:
    """The longest calls, and the framework operators during which their thread made them, outermost first."""
    found = instances(calls, name="api")
    if host is None:
        return found
    operators = host[(host["category"] == _OPERATOR) & ~host["name"].str.startswith("ProfilerStep#")]
    out = []
    worst = largest(calls, "duration_ns")
    for instance, start, thread in zip(found, ints(worst, "start_ns").tolist(), worst["thread"].tolist(), strict=True):
        begins = ints(operators, "start_ns")
        around = operators[
            (operators["thread"] == thread).to_numpy(dtype=np.bool_)
            & (begins <= start)
            & (begins + ints(operators, "duration_ns") > start)
        ]
        names = [clean(name) for name in largest(around, "duration_ns")["name"].tolist()]
        out.append(instance.model_copy(update={"detail": f"in {' / '.join(names)}"}) if names else instance)
    return tuple(out)


def _scalar_reads(host: pd.DataFrame | None, calls: pd.DataFrame | None) -> int | None:
    """Reads of a scalar (item()) during which the same thread synchronised: the tensor was on the device."""
    if host is None or calls is None:
        return None
    reads = host[host["name"] == _SCALAR_READ]
    blocking = _named(calls)
    blocking = pd.concat([_matching(blocking, level, pattern) for level, pattern in _BLOCKING.items()])
    count = 0
    for (thread,), group in grouped(reads, "thread"):
        begins = np.sort(ints(blocking[blocking["thread"] == thread], "start_ns"))
        starts = ints(group, "start_ns")
        within = np.searchsorted(begins, starts + ints(group, "duration_ns"), side="right")
        count += int((within > np.searchsorted(begins, starts, side="left")).sum())
    return count


def _longest_us(found: pd.DataFrame) -> float:
    return us(max(0, int(found["max_ns"].max()))) if len(found) else 0.0


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """Levels in lower case, API names without the ``AscendCL@`` prefix of the timeline."""
    return frame.assign(
        level=mapped(frame["level"], str.casefold), api=mapped(frame["api"], lambda text: text.rsplit("@", 1)[-1])
    )


def _matching(frame: pd.DataFrame, level: str, pattern: re.Pattern[str]) -> pd.DataFrame:
    chosen = frame[frame["level"] == level]
    return chosen[matches(chosen["api"], lambda name: pattern.fullmatch(name) is not None)]
