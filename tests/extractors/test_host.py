from __future__ import annotations

import pytest

from hermes_advisor.extractors.host_calls import api_calls, host_api, host_synchronization, operator_compile
from hermes_advisor.extractors.input_pipeline import dataloader_wait, host_to_device_copy
from hermes_advisor.extractors.steps import Capture

US, MS = 1_000, 1_000_000
TWO_STEPS = Capture({1: 50 * MS, 2: 50 * MS}, 2, 100 * MS)


def totals(level, api, count, total_us, max_us=0, row=2):
    return {"level": level, "api": api, "call_count": count, "total_ns": total_us * US, "max_ns": max_us * US,
            "mean_ns": total_us * US // count, "row": row}  # fmt: skip


LEVEL2 = [
    totals("acl", "aclrtSynchronizeStreamWithTimeout", 7, 4000, 3000, row=2),
    totals("acl", "aclrtSynchronizeDevice", 1, 400, 400, row=3),
    totals("acl", "aclrtMemcpy", 5, 300, 80, row=4),
    totals("acl", "aclrtMemcpyAsync", 9, 900, 100, row=5),
    totals("acl", "aclopCompileAndExecute", 4, 2000, 900, row=6),
    totals("acl", "opCompile", 4, 1500, 700, row=7),
    totals("runtime", "StreamSynchronize", 7, 3900, 2950, row=8),
    totals("runtime", "DeviceSynchronize", 1, 390, 390, row=9),
    totals("runtime", "MemCopySync", 5, 250, 70, row=10),
    totals("runtime", "StreamSyncTaskFinish", 25, 1, 1, row=11),
]


def test_the_costliest_apis_come_first_with_their_row(build):
    facts = host_api(3, build.rank(api_totals=LEVEL2), TWO_STEPS)
    assert [fact.api for fact in facts[:2]] == ["aclrtSynchronizeStreamWithTimeout", "StreamSynchronize"]
    assert (facts[0].total_us, facts[0].per_step_us, facts[0].step_ratio) == (4000, 2000, 0.04)
    assert (facts[0].mean_us, facts[0].max_us) == (round(4000 / 7, 3), 3000)
    assert facts[0].source.locator == "data row 2"


def test_at_most_twenty_apis_and_none_that_took_no_time(build):
    rows = [totals("acl", f"api{i:02}", 1, i, row=i) for i in range(30)]
    facts = host_api(0, build.rank(api_totals=rows), TWO_STEPS)
    assert [fact.total_us for fact in facts] == list(range(29, 9, -1))


def test_compilation_counts_the_outer_call_only(build):
    (fact,) = operator_compile(0, build.rank(api_totals=LEVEL2), TWO_STEPS)
    assert (fact.compile_count, fact.per_step_count) == (4, 2)
    assert (fact.total_us, fact.per_step_us, fact.step_ratio, fact.longest_us) == (2000, 1000, 0.02, 900)
    assert (fact.op_compile_us, fact.op_compile_ratio) == (1500, 0.75)
    assert fact.source.locator == "data rows 6, 7"
    (fact,) = operator_compile(0, build.rank(api_totals=[*LEVEL2[:5], *LEVEL2[6:]]), TWO_STEPS)
    assert (fact.total_us, fact.op_compile_us, fact.op_compile_ratio) == (2000, None, None)


def test_no_compilation_is_a_measured_zero_where_acl_calls_are_recorded(build):
    (fact,) = operator_compile(0, build.rank(api_totals=[totals("acl", "aclnnAdd", 3, 9)]), TWO_STEPS)
    assert (fact.compile_count, fact.total_us, fact.longest_us) == (0, 0, 0)


def test_without_acl_calls_compilation_was_not_measured(build):
    tables = build.rank(api_totals=[totals("communication", "Launch_Ffts", 3, 9)])
    assert operator_compile(0, tables, TWO_STEPS) == []
    assert host_synchronization(0, tables, TWO_STEPS) == []
    assert api_calls(build.rank()) is None


def test_a_synchronisation_that_both_levels_show_counts_once(build):
    tables = build.rank(api_totals=LEVEL2)
    (fact,) = host_synchronization(0, tables, TWO_STEPS)
    assert (fact.sync_count, fact.per_step_count) == (13, 6.5)
    assert (fact.total_us, fact.per_step_us, fact.step_ratio, fact.longest_us) == (4700, 2350, 0.047, 3000)
    assert (fact.scalar_read_count, fact.worst) == (None, ())
    assert fact.source.locator == "data rows 2, 3, 4"


def test_synchronisations_below_acl_count_where_the_runtime_shows_more(build):
    rows = [*LEVEL2[:3], totals("runtime", "StreamSynchronize", 31, 5000, 2950), *LEVEL2[8:]]
    tables = build.rank(api_totals=rows)
    (fact,) = host_synchronization(0, tables, TWO_STEPS)
    assert (fact.sync_count, fact.total_us) == (31 + 1 + 5 - 1, 5000 + 250)


def test_level1_has_no_runtime_calls(build):
    tables = build.rank(api_totals=LEVEL2[:6])
    (fact,) = host_synchronization(0, tables, TWO_STEPS)
    assert (fact.sync_count, fact.total_us) == (13, 4700)


def call(api, start_us, length_us, level="acl", thread="1"):
    return {"api": api, "level": level, "start_ns": start_us * US, "duration_ns": length_us * US, "thread": thread}


def test_timeline_calls_serve_as_evidence_and_are_not_added(build):
    timeline = [call("AscendCL@aclrtSynchronizeStreamWithTimeout", 10, 3000), call("aclrtMemcpy", 5000, 80),
                call("StreamSynchronize", 11, 2950, "runtime")]  # fmt: skip
    tables = build.rank(api_totals=LEVEL2, host_apis=timeline)
    (fact,) = host_synchronization(0, tables, TWO_STEPS)
    assert (fact.sync_count, fact.total_us) == (13, 4700)
    assert [(i.name, i.start_us, i.duration_us) for i in fact.worst] == [
        ("aclrtSynchronizeStreamWithTimeout", 10, 3000), ("aclrtMemcpy", 5000, 80)
    ]  # fmt: skip


def test_a_synchronisation_is_shown_with_the_operators_around_it(build):
    operators = [("aten::item", 90, 40), ("aten::_local_scalar_dense", 95, 30), ("ProfilerStep#4", 0, 900),
                 ("aten::add", 60, 40)]  # fmt: skip
    host = [{"name": n, "start_ns": s * US, "duration_ns": d * US} for n, s, d in operators]
    host.append({"name": "aten::elsewhere", "start_ns": 0, "duration_ns": MS, "thread": "2"})
    host.append({"name": "train.py(3): step", "start_ns": 0, "duration_ns": MS, "category": "python_function"})
    tables = build.rank(host_apis=[call("aclrtSynchronizeStream", 100, 20)], host_ops=host)
    (fact,) = host_synchronization(0, tables, TWO_STEPS)
    assert [i.detail for i in fact.worst] == ["in aten::item / aten::_local_scalar_dense"]


def test_timeline_alone_gives_the_sums_too(build):
    timeline = [call("aclopCompileAndExecute", t, 50 + t) for t in (0, 100, 200)]
    (fact,) = operator_compile(0, build.rank(host_apis=timeline), TWO_STEPS)
    assert (fact.compile_count, fact.total_us, fact.longest_us) == (3, 450, 250)


def read(start_us, length_us, thread="1"):
    return {"name": "aten::_local_scalar_dense", "start_ns": start_us * US, "duration_ns": length_us * US,
            "thread": thread}  # fmt: skip


def test_a_scalar_read_counts_when_its_thread_synchronises_meanwhile(build):
    tables = build.rank(
        host_apis=[call("aclrtSynchronizeStream", 120, 50), call("aclrtSynchronizeStream", 520, 10, thread="9")],
        host_ops=[read(100, 100), read(300, 2), read(500, 50), read(121, 40)],
    )
    (fact,) = host_synchronization(0, tables, TWO_STEPS)
    assert fact.scalar_read_count == 1


@pytest.mark.parametrize(
    ("name", "multi"),
    [
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", False),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", True),
    ],
)
def test_dataloader_wait(build, name, multi):
    ops = [{"name": name, "duration_ns": n * US} for n in (300, 700)] + [{"name": "aten::to", "duration_ns": MS}]
    (fact,) = dataloader_wait(2, build.rank(host_ops=ops), TWO_STEPS)
    assert (fact.call_count, fact.total_us, fact.per_step_us, fact.step_ratio) == (2, 1000, 500, 0.01)
    assert (fact.longest_us, fact.multi_process) == (700, multi)


def test_of_several_loaders_the_costlier_kind_counts(build):
    def loader(kind, length_us):
        return {"name": f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__", "duration_ns": length_us * US}

    ops = [loader("SingleProcess", 30), loader("MultiProcessing", 20)]
    assert dataloader_wait(0, build.rank(host_ops=ops), TWO_STEPS)[0].multi_process is False
    ops = [loader("SingleProcess", 10), loader("MultiProcessing", 20)]
    assert dataloader_wait(0, build.rank(host_ops=ops), TWO_STEPS)[0].multi_process is True


def test_no_dataloader_operator_is_not_a_fast_dataloader(build):
    assert dataloader_wait(0, build.rank(host_ops=[{"name": "aten::to"}]), TWO_STEPS) == []


def copy(direction, size, length_us):
    return {"name": "MEMCPY_ASYNC", "task_type": "PCIE_DMA_SQE", "direction": direction, "size_bytes": size,
            "duration_ns": length_us * US}  # fmt: skip


def test_host_to_device_copies_only(build):
    tasks = [copy("host to device", 4_000_000, 200), copy("host to device ex", 1_000, 10),
             copy("device to device", 10**9, 9_000), {"name": "MatMul"}]  # fmt: skip
    (fact,) = host_to_device_copy(0, build.rank(device_tasks=tasks), TWO_STEPS)
    assert (fact.copy_count, fact.size_bytes, fact.total_us, fact.per_step_us) == (2, 4_001_000, 210, 105)
    assert fact.bandwidth_gb_per_s == round(4_001_000 / 210_000, 4)
    assert fact.step_ratio == 0.0021


def test_copies_without_direction_were_not_measured_but_another_direction_means_zero(build):
    assert host_to_device_copy(0, build.rank(device_tasks=[copy("", 5, 5)]), TWO_STEPS) == []
    (fact,) = host_to_device_copy(0, build.rank(device_tasks=[copy("device to device", 5, 5)]), TWO_STEPS)
    assert (fact.copy_count, fact.size_bytes, fact.bandwidth_gb_per_s) == (0, 0, 0)
