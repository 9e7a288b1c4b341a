from __future__ import annotations

import pytest

from hermes_advisor.extractors.rank import extract_tables
from hermes_advisor.extractors.steps import capture_of, host_capture_of, step_breakdown, step_parts

MS = 1_000_000


def lane(name, start_ms, end_ms):
    return {"lane": name, "start_ns": int(start_ms * MS), "duration_ns": int((end_ms - start_ms) * MS)}


def mark(step, start_ms, end_ms):
    return {"name": f"ProfilerStep#{step}", "start_ns": start_ms * MS, "duration_ns": (end_ms - start_ms) * MS}


# Compute 2–4, 6–9 and 12–14 ms, communication 3–7 ms: 1 ms + 1 ms of it lie under compute, 2 ms are exposed.
LANES = [
    lane("Computing", 2, 4), lane("Computing", 6, 9), lane("Computing", 12, 14), lane("Communication", 3, 7),
]  # fmt: skip


def test_step_table_gives_parts_ratios_and_row(build):
    row = {"step": 50, "compute_ns": 60 * MS, "communication_ns": 30 * MS, "exposed_communication_ns": 20 * MS,
           "free_ns": 20 * MS, "duration_ns": 100 * MS, "bubble_ns": 0, "preparing_ns": 3 * MS, "row": 2}  # fmt: skip
    parts, health = step_parts(build.rank(steps=[row]))
    (fact,) = step_breakdown(7, parts)
    assert (fact.rank, fact.step, fact.duration_us) == (7, 50, 100_000)
    assert (fact.compute_us, fact.exposed_communication_us, fact.free_us) == (60_000, 20_000, 20_000)
    assert (fact.compute_ratio, fact.exposed_communication_ratio, fact.free_ratio) == (0.6, 0.2, 0.2)
    assert (fact.overlapped_us, fact.overlap_ratio) == (10_000, 0.1)
    assert fact.communication_overlap_ratio == round(1 / 3, 6)
    assert (fact.bubble_us, fact.preparing_us) == (0, 3_000)
    assert (fact.source.file, fact.source.locator) == ("rank/ASCEND_PROFILER_OUTPUT/steps", "data row 2")
    assert health == []


def test_unrecorded_parts_are_none_and_a_step_without_communication_has_no_overlap(build):
    parts, _ = step_parts(build.rank(steps=[{"compute_ns": 9 * MS, "free_ns": MS}]))
    (fact,) = step_breakdown(0, parts)
    assert (fact.bubble_us, fact.preparing_us, fact.communication_overlap_ratio) == (None, None, None)


@pytest.mark.parametrize("host", [{}, {"host_ops": [{"name": "aten::add"}]}])
def test_lanes_without_marks_are_one_step_and_say_so(build, host):
    tables = build.rank(overlap_lanes=LANES, **host)
    parts, health = step_parts(tables)
    (fact,) = step_breakdown(0, parts)
    assert fact.step == -1
    assert (fact.duration_us, fact.compute_us, fact.free_us) == (12_000, 7_000, 3_000)
    assert (fact.communication_us, fact.exposed_communication_us, fact.overlapped_us) == (4_000, 2_000, 2_000)
    assert fact.preparing_us is None
    assert [(entry.issue, entry.severity) for entry in health] == [("missing_step_marks", "info")]
    assert ("missing_step_marks", 1) in [(entry.issue, entry.count) for entry in extract_tables(tables).health]


def test_lanes_are_cut_at_the_step_marks(build):
    # Step 4 lasts 1–8 ms: compute 2–4 and 6–8, exposed 4–6, and 1 ms before the first work. Step 5 lasts 8–16 ms:
    # compute 8–9 and 12–14, free 9–12, and 2 ms after the last work.
    parts, health = step_parts(build.rank(overlap_lanes=LANES, host_ops=[mark(5, 8, 16), mark(4, 1, 7)]))
    four, five = step_breakdown(0, parts)
    assert health == []
    assert (four.step, four.duration_us, four.compute_us, four.exposed_communication_us) == (4, 7_000, 4_000, 2_000)
    assert (four.free_us, four.preparing_us) == (0, 1_000)
    assert (five.step, five.duration_us, five.compute_us, five.free_us) == (5, 8_000, 3_000, 3_000)
    assert (five.exposed_communication_us, five.preparing_us) == (0, 2_000)


def test_the_device_may_end_the_last_step_after_the_host(build):
    parts, _ = step_parts(build.rank(overlap_lanes=LANES, host_ops=[mark(4, 1, 8), mark(5, 8, 13)]))
    assert [(part.step, part.duration_ns, part.preparing_ns) for part in parts] == [(4, 7 * MS, MS), (5, 6 * MS, 0)]


def test_what_the_host_did_is_divided_by_the_marked_steps(build):
    # step_trace_time begins with the device's first work; the marks say when the host's step was.
    rows = [{"step": 4, "compute_ns": 5 * MS}, {"step": 5, "compute_ns": 5 * MS}]
    tables = build.rank(steps=rows, host_ops=[mark(4, 1, 9), mark(5, 9, 17), mark(6, 17, 99)])
    parts, _ = step_parts(tables)
    host = host_capture_of(tables, parts, capture_of(tables, parts))
    assert (host.step_count, host.total_ns, host.step_ns(5)) == (2, 16 * MS, 8 * MS)
    assert (host.windows.starts.tolist(), host.windows.ends.tolist()) == ([MS], [17 * MS])
    unmarked = build.rank(steps=rows)
    capture = capture_of(unmarked, parts)
    assert host_capture_of(unmarked, parts, capture) is capture
    assert capture.windows is None


def test_sums_over_the_capture_divide_by_its_steps(build):
    rows = [{"step": step, "compute_ns": 10 * MS, "row": step} for step in (1, 2, 3, 4)]
    tables = build.rank(steps=rows)
    capture = capture_of(tables, step_parts(tables)[0])
    assert (capture.step_count, capture.total_ns, capture.step_ns(3)) == (4, 40 * MS, 10 * MS)
    assert (capture.per_step_us(2 * MS), capture.ratio(2 * MS)) == (500, 0.05)


def test_without_step_parts_the_span_of_device_work_is_the_captured_time(build):
    kernels = [{"step": s, "start_ns": s * 10 * MS, "duration_ns": 5 * MS} for s in (1, 2)]
    tables = build.rank(kernels=kernels)
    parts, health = step_parts(tables)
    capture = capture_of(tables, parts)
    assert (parts, health) == ([], [])
    assert (capture.step_count, capture.total_ns) == (2, 15 * MS)


def test_nothing_measured_gives_no_capture_and_no_fact(build):
    assert extract_tables(build.rank()).facts == ()
    assert extract_tables(build.rank(steps=[{}])).facts == ()


def test_kernels_that_cover_too_little_of_the_computing_time_are_incomplete(build):
    steps = [{"compute_ns": 100 * MS, "free_ns": 50 * MS}]
    kernels = [{"name": "a", "start_ns": 0, "duration_ns": 60 * MS}, {"start_ns": 90 * MS, "duration_ns": 29 * MS}]
    extract = extract_tables(build.rank(steps=steps, kernels=kernels))
    assert [(entry.issue, entry.detail.split(" cover ")[1][:4]) for entry in extract.health] == [
        ("incomplete_kernels", "89 %")
    ]  # fmt: skip
    assert "free_time" not in {fact.kind for fact in extract.facts}
    kernels[1]["duration_ns"] = 30 * MS
    extract = extract_tables(build.rank(steps=steps, kernels=kernels))
    assert extract.health == ()
    (gaps,) = [fact for fact in extract.facts if fact.kind == "free_time"]
    assert gaps.free_us == 30_000
