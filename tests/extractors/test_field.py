"""Facts of real profiles against the files themselves: every expected value was read or added up from the files."""

from __future__ import annotations

import pytest

from hermes_advisor.extractors.readers.discover import discover
from hermes_advisor.extractors.run import extract_run

DP0, DP1 = "5862276114690318097", "5862276123280252691"


@pytest.fixture(scope="module")
def facts_of():
    known = {}

    def extract(folder):
        if folder not in known:
            found = {}
            run = extract_run(discover([folder]))
            assert not [fact for fact in run.health if fact.issue == "question_failed"]
            for fact in run.facts:
                found.setdefault(fact.kind, []).append(fact)
            known[folder] = run, found
        return known[folder]

    return extract


@pytest.fixture
def four(field_dir, facts_of):
    return facts_of(field_dir / "ascend-4rank-pp2dp2-level2")


@pytest.fixture
def two(field_dir, facts_of):
    return facts_of(field_dir / "ascend-2rank-text" / "level2")


@pytest.fixture
def small(field_dir, facts_of):
    return facts_of(field_dir / "ascend-timeline-small")


def test_four_ranks_and_their_step(four):
    run, facts = four
    assert (run.ranks, run.ranks_expected, run.steps) == ((0, 1, 2, 3), 4, (13,))
    steps = [(f.rank, f.compute_us, f.exposed_communication_us, f.overlapped_us) for f in facts["step_breakdown"]]
    assert steps == [(0, 231290.10, 420174.26, 0), (1, 230903.72, 441708.38, 0), (2, 400448.26, 277649.66, 0),
                     (3, 401131.70, 261498.44, 0)]  # fmt: skip
    assert all(f.duration_us == pytest.approx(810_000, rel=0.002) for f in facts["step_breakdown"])


def test_four_ranks_idle_time_from_kernels_agrees_with_the_step_trace(four):
    _, facts = four
    free = {f.rank: f.free_us for f in facts["step_breakdown"]}
    assert {f.rank for f in facts["free_time"]} == {0, 2}
    assert all(f.free_us == pytest.approx(free[f.rank], rel=1e-3) for f in facts["free_time"])
    assert "launch_profile" not in facts and "transfer_alignment" not in facts  # no timeline was exported


def test_four_ranks_the_second_stage_is_heavier(four):
    _, facts = four
    (balance,) = facts["pipeline_balance"]
    # Stage means (231.2901 + 230.90372) / 2 and (400.44826 + 401.1317) / 2 ms.
    assert (balance.heaviest_stage, balance.loaded_ranks, balance.waiting_ranks) == (1, (2, 3), (0, 1))
    assert (balance.compute_min_us, balance.compute_max_us) == (231096.91, 400789.98)
    assert (balance.compute_mean_us, balance.excess_us) == (315943.445, 84846.535)
    assert balance.stage_source == "parallel_group_info"
    (bubble,) = facts["pipeline_bubble"]
    # Elapse of the send/receive operators: 313.88, 322.98, 72.66, 74.99 ms.
    assert bubble.mean_p2p_us == pytest.approx((313_880 + 322_980 + 72_660 + 74_990) / 4, abs=10)
    assert all(abs(f.excess_ratio) < 0.002 for f in facts["rank_compute"])


def test_four_ranks_groups(four):
    _, facts = four
    groups = {f.group: f for f in facts["communication_group"]}
    assert (groups[DP0].role, groups[DP0].ranks, groups[DP0].crosses_stages) == ("dp_cp", (0, 1), False)
    # dp and dp_cp are both declared with ranks 2 and 3: the hashed name tells them apart.
    assert (groups[DP1].role, groups[DP1].ranks, groups[DP1].missing_count) == ("dp_cp", (2, 3), 0)
    assert groups["3985310405473756128"].role == "pp"
    assert groups["3985310491373102170"].role == "embd"
    assert groups["5862276106100383503"].role == "dp"
    assert sum(f.crosses_stages for f in groups.values()) == 7
    assert all(f.missing_count == 0 for f in groups.values())


def test_four_ranks_waits(four):
    _, facts = four
    waits = {f.group: f for f in facts["communication_wait"]}
    # Elapse on ranks 0 and 1: 26.30914 and 35.73014, 18.5891 and 18.61094, 12.0179 and 13.94306, 8.5… each, in ms.
    assert (waits[DP0].late_rank, waits[DP0].op_count) == (0, 4)
    assert waits[DP0].imposed_wait_us == pytest.approx(9421.00 + 21.84 + 1925.16, abs=2)
    assert waits[DP0].r_wait_ratio == pytest.approx(0, abs=1e-3)  # 23.5656 and 23.56664 ms, …: equal transfers
    embedding = waits["3985310491373102170"]
    assert (embedding.late_rank, embedding.crosses_stages) == (0, True)
    assert embedding.imposed_wait_us == pytest.approx(120988.48 - 34623.92, abs=0.01)
    (link,) = facts["slowest_link"]
    assert link.deficit_ratio < 0.01


def test_four_ranks_kernels(four):
    _, facts = four
    summary = {f.rank: f for f in facts["kernel_summary"]}
    assert summary[0].total_us == 231290.1
    top = next(f for f in facts["kernel_type"] if f.rank == 0)
    assert (top.op_type, top.kernel_count, top.total_us) == ("FlashAttentionScoreGrad", 28, 63128.66)
    assert all(f.kernel_count == 0 for f in facts["aicpu_kernels"])
    assert all((f.compile_count, f.total_us) == (0, 0) for f in facts["operator_compile"])
    # The runtime shows 24 synchronisations below AscendCL: 8 + 65 + 41 calls on rank 0.
    assert [f.sync_count for f in facts["host_synchronization"]] == [114, 8 + 72 + 48]


def test_two_ranks_of_eight(two):
    run, facts = two
    assert (run.ranks, run.ranks_expected, run.steps) == ((0, 1), 8, (50,))
    step = facts["step_breakdown"][0]
    assert (step.compute_us, step.exposed_communication_us, step.free_us) == (8868.24, 95962.016, 25032.619)
    assert step.duration_us == 129862.875
    (group,) = facts["communication_group"]
    assert (group.seen_count, group.expected_count, group.missing_count) == (2, 8, 6)
    (wait,) = facts["communication_wait"]
    assert (wait.missing_count, wait.late_rank) == (6, 1)
    assert wait.imposed_step_ratio < 0.02  # 86.47 against 83.95 ms, of a step of 130 ms: neither rank is slow


def test_two_ranks_timeline(two):
    _, facts = two
    assert [f.free_us for f in facts["free_time"]] == [25032.619, 26441.689]  # as in step_trace_time.csv
    assert [(f.kernel_count, f.linked_count) for f in facts["launch_profile"]] == [(187, 187), (187, 187)]
    assert [(f.compile_count, f.total_us) for f in facts["operator_compile"]] == [(19, 14231.86), (19, 16491.36)]
    first = facts["host_synchronization"][0]
    # Seven streams and five copies; aclrtSynchronizeDevice comes after the step, when the profiler stops.
    assert (first.sync_count, first.total_us) == (12, pytest.approx(90719.82 + 260.31, abs=0.01))
    # Over the marked step of 148.786 ms, in which the host waited: step_trace_time leaves its beginning out.
    assert first.step_ratio == pytest.approx(90980.13 / 148786.1, abs=1e-6)
    assert first.scalar_read_count == 5
    alignment = facts["transfer_alignment"][0]
    assert (alignment.transfer_count, alignment.unaligned_count) == (56, 4)
    assert [f.mean_mhz for f in facts["core_frequency"]] == [1800, 1800]
    copies = facts["host_to_device_copy"][0]
    assert (copies.copy_count, copies.total_us) == (14, 859.917)


def test_small_timeline_waits_for_the_host(small):
    run, facts = small
    (step,) = facts["step_breakdown"]
    assert (step.step, run.steps) == (1, (1,))
    assert step.free_us == pytest.approx(9481.667, abs=0.1)
    assert step.compute_us == pytest.approx(1788.25, abs=0.1)
    (launch,) = facts["launch_profile"]
    assert (launch.kernel_count, launch.linked_count) == (274, 274)
    assert launch.starved_us == pytest.approx(step.free_us, rel=0.05)
    assert launch.starved_us < step.free_us
    (loader,) = facts["dataloader_wait"]
    assert (loader.call_count, loader.total_us, loader.multi_process) == (2, pytest.approx(1318.584), False)
    (aicpu,) = facts["aicpu_kernels"]
    assert (aicpu.kernel_count, aicpu.total_us) == (2, pytest.approx(327.567, abs=0.01))


def test_a_cut_kernel_file_is_named_and_gives_no_idle_time(field_dir, facts_of):
    run, facts = facts_of(field_dir / "ascend-trimmed-2rank")
    assert [(f.rank, f.issue) for f in run.health if f.issue == "incomplete_kernels"] == [
        (0, "incomplete_kernels"), (1, "incomplete_kernels")
    ]  # fmt: skip
    assert "free_time" not in facts
