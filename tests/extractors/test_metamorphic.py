"""Facts under changes that must not matter, or must matter in a known way: time origin, row order, rank order, scale."""

from __future__ import annotations

import random

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_advisor.extractors.across_ranks import facts_over_ranks
from hermes_advisor.extractors.device import busy
from hermes_advisor.extractors.rank import extract_tables
from hermes_advisor.extractors.readers.tables import RankTables, Table
from hermes_advisor.extractors.run import combine
from hermes_advisor.facts.base import unit_of

QUICK = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TIMES = ("start_ns", "launch_ns", "device_ns", "time_ns")


def timeline(build, seed, rank=0, unit=1_000):
    """A rank with kernels, launches, copies, collectives and host calls at random; ``unit`` is the length of a tick."""
    draw = random.Random(seed)
    kernels, launches, tasks, lanes, ops = [], [], [], [], []
    now = 1_000
    for i in range(draw.randint(2, 25)):
        now += draw.choice([0, 1, 20, 300])
        length = draw.randint(1, 200)
        name = draw.choice(["MatMulV3", "Add", "TransData"])
        kernels.append({"name": f"k{i}", "op_type": name, "start_ns": now * unit, "duration_ns": length * unit,
                        "row": i, "state": draw.choice(["dynamic", "static"])})  # fmt: skip
        launches.append({"launch_ns": (now - draw.randint(0, 400)) * unit, "device_ns": now * unit})
        lanes.append({"lane": "Computing", "start_ns": now * unit, "duration_ns": length * unit})
        now += length
        if draw.random() < 0.3:
            length = draw.randint(1, 500)
            ops.append({"name": f"op{i}", "start_ns": now * unit, "elapse_ns": length * unit,
                        "transit_ns": length * unit // 2, "idle_ns": length * unit // 4})  # fmt: skip
            lanes.append({"lane": "Communication", "start_ns": now * unit, "duration_ns": length * unit})
            now += draw.choice([0, length])
        if draw.random() < 0.3:
            tasks.append({"name": "MEMCPY_ASYNC", "task_type": "PCIE_DMA_SQE", "direction": "host to device",
                          "start_ns": now * unit, "duration_ns": 5 * unit, "size_bytes": 4096})  # fmt: skip
    calls = [{"api": "aclrtSynchronizeStream", "start_ns": draw.randint(0, now) * unit, "duration_ns": 3 * unit,
              "thread": 7} for _ in range(3)]  # fmt: skip
    host = [{"name": "aten::_local_scalar_dense", "start_ns": 0, "duration_ns": now * unit // 2, "thread": 7},
            {"name": "ProfilerStep#4", "start_ns": 900 * unit, "duration_ns": now * unit}]  # fmt: skip
    tables = {"kernels": kernels, "launches": launches, "overlap_lanes": lanes, "host_apis": calls, "host_ops": host}
    tables |= {name: rows for name, rows in (("device_tasks", tasks), ("comm_ops", ops)) if rows}
    return build.rank(rank, **tables)


def changed(tables: RankTables, change) -> RankTables:
    for name, table in list(tables.tables()):
        setattr(tables, name, Table(change(table.frame.copy()), table.file, table.reader))
    return tables


def scalars(tables):
    facts = [(fact.kind, fact.scalars()) for fact in extract_tables(tables).facts]
    assert len(facts) > 5
    return facts


@given(st.integers(0, 10_000), st.integers(1, 10**15))
@QUICK
def test_the_time_origin_does_not_matter(build, seed, shift):
    def later(frame: pd.DataFrame) -> pd.DataFrame:
        for column in set(TIMES) & set(frame.columns):
            frame[column] += shift
        return frame

    assert scalars(changed(timeline(build, seed), later)) == scalars(timeline(build, seed))


@given(st.integers(0, 10_000))
@QUICK
def test_the_order_of_rows_does_not_matter(build, seed):
    def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.sample(frac=1, random_state=seed, ignore_index=True)

    assert scalars(changed(timeline(build, seed), shuffled)) == scalars(timeline(build, seed))


@given(st.integers(0, 10_000), st.integers(2, 5))
@QUICK
def test_times_scale_and_shares_stay(build, seed, factor):
    # Absolute limits (short kernels, clock offset) are the exception that this leaves out.
    absolute = {"short_kernel_count", "short_kernel_ratio"}
    plain, scaled = scalars(timeline(build, seed)), scalars(timeline(build, seed, unit=1_000 * factor))
    assert [kind for kind, _ in plain] == [kind for kind, _ in scaled]
    for (kind, before), (_, after) in zip(plain, scaled, strict=True):
        for name in before.keys() - absolute:
            times = factor if unit_of(name) == "us" else 1
            if kind == "host_to_device_copy" and name == "bandwidth_gb_per_s":
                continue
            if isinstance(before[name], str):
                assert before[name] == after[name], (kind, name)
            else:
                assert after[name] == pytest.approx(before[name] * times, abs=0.01, rel=1e-5), (kind, name)


@given(st.integers(0, 10_000))
@QUICK
def test_starved_and_free_time_are_idle_time_and_parts_add_up(build, seed):
    tables = timeline(build, seed)
    facts = {fact.kind: fact for fact in extract_tables(tables).facts}
    idle_us = busy(tables).gaps().length / 1_000
    assert facts["launch_profile"].starved_us <= idle_us + 0.001
    step = facts["step_breakdown"]
    parts = step.compute_us + step.exposed_communication_us + step.free_us + step.preparing_us
    assert step.duration_us == pytest.approx(parts, abs=0.002)
    assert facts["free_time"].free_us == pytest.approx(step.free_us, abs=0.002)


def ranks(build, seed, count=4):
    draw = random.Random(seed)
    out = []
    for rank in range(count):
        ops = [{"name": f"op{i}", "elapse_ns": draw.randint(1, 90) * 1_000_000, "transit_ns": draw.choice([0, 5]) * 1_000}
               for i in range(6)]  # fmt: skip
        links = [{"src": rank, "dst": peer, "size_bytes": draw.randint(1, 9) * 10**6, "transit_ns": draw.randint(1, 10**6)}
                 for peer in range(count) if peer != rank]  # fmt: skip
        step = {"compute_ns": draw.randint(1, 9) * 10**6, "free_ns": 10**8}
        out.append(build.rank(rank, steps=[step], comm_ops=ops, comm_links=links))
    return out


@given(st.integers(0, 10_000))
@QUICK
def test_the_order_of_ranks_does_not_matter(build, seed):
    exchanges = [extract_tables(tables).exchange for tables in ranks(build, seed)]
    shuffled = random.Random(seed).sample(exchanges, len(exchanges))
    assert facts_over_ranks(shuffled) == facts_over_ranks(exchanges)
    extracts = [extract_tables(tables) for tables in ranks(build, seed)]
    shuffled = random.Random(seed).sample(extracts, len(extracts))
    assert combine(shuffled) == combine(extracts)


@given(st.integers(0, 10_000), st.integers(1, 50))
@QUICK
def test_a_longer_stay_of_all_ranks_changes_no_wait(build, seed, longer_ms):
    def stay(frame: pd.DataFrame) -> pd.DataFrame:
        if "elapse_ns" in frame:
            frame["elapse_ns"] += longer_ms * 1_000_000
        return frame

    def waits(tables_of_ranks):
        facts = facts_over_ranks([extract_tables(tables).exchange for tables in tables_of_ranks])
        return [(f.late_rank, f.imposed_wait_us, f.late_share_ratio) for f in facts if f.kind == "communication_wait"]

    assert waits([changed(tables, stay) for tables in ranks(build, seed)]) == waits(ranks(build, seed))
