"""Numerator and denominator cover the same time: only what happened in the captured steps is summed."""

from __future__ import annotations

import numpy as np
import pytest

from hermes_advisor.extractors.free_time import free_time
from hermes_advisor.extractors.host_calls import host_api, host_synchronization, operator_compile
from hermes_advisor.extractors.input_pipeline import dataloader_wait, host_to_device_copy
from hermes_advisor.extractors.intervals import merged
from hermes_advisor.extractors.launches import launch_profile
from hermes_advisor.extractors.rank import extract_tables
from hermes_advisor.extractors.steps import Capture

US = 1_000


def spans(*pairs):
    return merged(*(np.array([pair[i] * US for pair in pairs], dtype=np.int64) for i in (0, 1)))


# Two steps of 100 µs each with 50 µs between them that belong to none.
STEPS = Capture({1: 100 * US, 2: 100 * US}, 2, 200 * US, windows=spans((100, 200), (250, 350)))


def row(start_us, end_us, **more):
    return {"start_ns": start_us * US, "duration_ns": (end_us - start_us) * US, **more}


def call(api, start_us, end_us):
    return row(start_us, end_us, api=api, level="acl")


def test_calls_before_between_and_after_the_steps_do_not_count(build):
    calls = [
        call("aclrtSynchronizeDevice", *span) for span in ((0, 90), (110, 130), (205, 245), (340, 390), (350, 360))
    ]
    calls += [
        call("aclopCompileAndExecute", 260, 290),
        call("opCompile", 261, 270),
        call("aclopCompileAndExecute", 0, 99),
    ]
    tables = build.rank(host_apis=calls)
    (sync,) = host_synchronization(0, tables, STEPS)
    # 110–130, and of 340–390 what lies before 350.
    assert (sync.sync_count, sync.total_us, sync.per_step_us, sync.step_ratio) == (2, 30, 15, 0.15)
    assert [(i.start_us, i.duration_us) for i in sync.worst] == [(110, 20), (340, 10)]
    (compiled,) = operator_compile(0, tables, STEPS)
    assert (compiled.compile_count, compiled.total_us, compiled.op_compile_us) == (1, 30, 9)
    assert [(fact.api, fact.total_us) for fact in host_api(0, tables, STEPS)] == [
        ("aclopCompileAndExecute", 30), ("aclrtSynchronizeDevice", 30), ("opCompile", 9)
    ]  # fmt: skip


def test_no_call_within_the_steps_is_a_measured_zero(build):
    tables = build.rank(host_apis=[call("aclrtSynchronizeDevice", 0, 90), call("aclopCompileAndExecute", 400, 420)])
    (sync,) = host_synchronization(0, tables, STEPS)
    (compiled,) = operator_compile(0, tables, STEPS)
    assert (sync.sync_count, sync.total_us, compiled.compile_count, compiled.total_us) == (0, 0, 0, 0)


@pytest.mark.parametrize(("counted", "expected"), [(2, (1, 20)), (3, (3, 500))])
def test_sums_over_the_capture_serve_only_where_the_timeline_lacks_calls(build, counted, expected):
    totals = [{"api": "aclrtSynchronizeDevice", "call_count": counted, "total_ns": 500 * US, "row": 1}]
    calls = [call("aclrtSynchronizeDevice", 0, 90), call("aclrtSynchronizeDevice", 110, 130)]
    (sync,) = host_synchronization(0, build.rank(api_totals=totals, host_apis=calls), STEPS)
    assert (sync.sync_count, sync.total_us) == expected


def test_the_loader_before_the_step_does_not_count(build):
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    (fact,) = dataloader_wait(0, build.rank(host_ops=[row(10, 95, name=name), row(100, 130, name=name)]), STEPS)
    assert (fact.call_count, fact.total_us, fact.step_ratio, fact.longest_us) == (1, 30, 0.15, 30)
    (fact,) = dataloader_wait(0, build.rank(host_ops=[row(10, 95, name=name)]), STEPS)
    assert (fact.call_count, fact.total_us, fact.longest_us, fact.multi_process) == (0, 0, 0, False)


def test_copies_outside_the_steps_do_not_count(build):
    def copy(start, end):
        return row(start, end, name="MEMCPY_ASYNC", direction="host to device", size_bytes=1000)

    (fact,) = host_to_device_copy(0, build.rank(device_tasks=[copy(0, 50), copy(300, 310), copy(200, 249)]), STEPS)
    assert (fact.copy_count, fact.size_bytes, fact.total_us, fact.bandwidth_gb_per_s) == (1, 1000, 10, 0.1)


def test_idle_time_outside_the_steps_does_not_count(build):
    kernels = [row(0, 50), row(120, 180), row(300, 320), row(400, 410)]
    links = [{"launch_ns": (k["start_ns"] // US - 5) * US, "device_ns": k["start_ns"]} for k in kernels]
    (fact,) = launch_profile(0, build.rank(kernels=kernels, launches=links), STEPS)
    # Of 50–120 the part from 100, of 180–300 the parts to 200 and from 250, of 320–400 the part to 350.
    assert (fact.starved_count, fact.starved_us, fact.starved_step_ratio) == (3, 20 + 20 + 50 + 30, 0.6)
    (fact,) = free_time(0, build.rank(kernels=kernels), STEPS)
    assert (fact.free_us, fact.largest_gap_us) == (120, 50)


def test_common_time_of_intervals():
    one, other = spans((0, 10), (20, 30), (40, 50)), spans((5, 25), (28, 45), (60, 70))
    both = one.common(other)
    assert list(zip(both.starts // US, both.ends // US, strict=True)) == [(5, 10), (20, 25), (28, 30), (40, 45)]
    assert len(one.common(spans((10, 20)))) == len(one.common(spans())) == len(spans().common(one)) == 0


def test_a_marked_timeline_divides_by_its_marks(build):
    host = [row(0, 100, name="ProfilerStep#7"), row(1, 31, name="enumerate(DataLoader)#_SingleProcessDataLoaderIter")]
    lanes = [row(40, 60, lane="Computing"), row(80, 90, lane="Computing"), row(60, 80, lane="Free")]
    facts = {fact.kind: fact for fact in extract_tables(build.rank(host_ops=host, overlap_lanes=lanes)).facts}
    step = facts["step_breakdown"]
    assert (step.duration_us, step.compute_us, step.free_us, step.preparing_us) == (100, 30, 20, 50)
    assert facts["dataloader_wait"].step_ratio == 0.3
    assert facts["free_time"].free_per_step_us == 20
