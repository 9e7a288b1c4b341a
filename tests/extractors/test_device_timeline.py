from __future__ import annotations

import pytest

from hermes_advisor.extractors.device import copies
from hermes_advisor.extractors.free_time import free_time
from hermes_advisor.extractors.launches import launch_profile
from hermes_advisor.extractors.steps import Capture

US = 1_000
ONE_STEP = Capture({1: 1_000 * US}, 1, 1_000 * US)


def task(name, start_us, end_us, task_type="AI_CORE"):
    return {"name": name, "task_type": task_type, "start_ns": start_us * US,
            "duration_ns": (end_us - start_us) * US}  # fmt: skip


def kernel(name, start_us, end_us):
    return {"name": name, "start_ns": start_us * US, "duration_ns": (end_us - start_us) * US}


def lane(name, start_us, end_us):
    return {"lane": name, "start_ns": start_us * US, "duration_ns": (end_us - start_us) * US}


def link(launch_us, device_us, category="HostToDevice", thread="1"):
    return {"link": category, "launch_ns": launch_us * US, "device_ns": device_us * US, "thread": thread}


# Device: k1 100–200, k2 300–350, k3 360–400, a collective 400–600, k4 610–700, k5 800–810. The device runs dry before k2
# (launched at 250, after 200) and before k5 (launched at 720, after 700): 100 + 100 µs. k3 was launched before 350, k4
# while the collective ran; the wait on an event keeps nothing busy.
KERNELS = [kernel("k1", 100, 200), kernel("k2", 300, 350), kernel("k3", 360, 400), kernel("k4", 610, 700),
           kernel("k5", 800, 810)]  # fmt: skip
TASKS = [task("EVENT_WAIT", 200, 300, "EVENT_WAIT_SQE"), task("k1", 100, 200)]
LANES = [lane("Communication", 400, 600)]
LINKS = [link(50, 100), link(250, 300), link(340, 360), link(590, 610), link(720, 800)]


def test_starved_kernels_and_their_gaps(build):
    (fact,) = launch_profile(
        4, build.rank(kernels=KERNELS, device_tasks=TASKS, overlap_lanes=LANES, launches=LINKS), ONE_STEP
    )
    assert (fact.rank, fact.kernel_count, fact.linked_count) == (4, 5, 5)
    assert (fact.starved_count, fact.starved_kernel_ratio) == (2, 0.4)
    assert (fact.starved_us, fact.starved_per_step_us, fact.starved_step_ratio) == (200, 200, 0.2)
    # Delays 50, 50, 20, 20, 80; kernels 100, 50, 40, 90, 10; intervals 200, 90, 250, 130.
    assert (fact.median_delay_us, fact.median_kernel_us, fact.median_launch_interval_us) == (50, 50, 165)
    assert [(i.name, i.start_us, i.duration_us) for i in fact.worst] == [
        ("idle before k2", 200, 100), ("idle before k5", 700, 100)
    ]  # fmt: skip
    assert fact.worst[0].detail == "launched 50.000 µs after the device ran dry"


def test_without_the_collective_its_time_counts_as_dry_once_the_launch_is_late(build):
    (fact,) = launch_profile(0, build.rank(kernels=KERNELS, device_tasks=TASKS, launches=LINKS), ONE_STEP)
    assert (fact.starved_count, fact.starved_us) == (3, 100 + 210 + 100)


def test_copies_keep_the_device_busy(build):
    tasks = [*TASKS, task("MEMCPY_ASYNC", 690, 790, "PCIE_DMA_SQE")]
    (fact,) = launch_profile(
        0, build.rank(kernels=KERNELS, device_tasks=tasks, overlap_lanes=LANES, launches=LINKS), ONE_STEP
    )
    assert (fact.kernel_count, fact.starved_us) == (5, 100)


def test_kernels_that_start_together_share_one_gap(build):
    kernels = [kernel("k1", 0, 100), kernel("k2", 300, 310), kernel("k3", 300, 320)]
    (fact,) = launch_profile(0, build.rank(kernels=kernels, launches=[link(0, 0), link(200, 300)]), ONE_STEP)
    assert (fact.starved_count, fact.starved_us) == (1, 200)


def test_launch_calls_are_preferred_to_framework_operators(build):
    links = [*LINKS, *(link(10, device, "async_npu") for device in (100, 300, 360, 610, 800))]
    (fact,) = launch_profile(
        0, build.rank(kernels=KERNELS, device_tasks=TASKS, overlap_lanes=LANES, launches=links), ONE_STEP
    )
    assert fact.starved_us == 200
    (fact,) = launch_profile(
        0, build.rank(kernels=KERNELS, device_tasks=TASKS, overlap_lanes=LANES, launches=links[5:]), ONE_STEP
    )
    assert fact.starved_us == 0


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_half_of_the_kernels_linked_give_no_fact(build, count):
    launches = {"launches": LINKS[:count]} if count else {}
    assert launch_profile(0, build.rank(kernels=KERNELS, device_tasks=TASKS, **launches), ONE_STEP) == []


def test_a_launch_at_the_very_end_of_earlier_work_starves(build):
    kernels = [kernel("k1", 100, 200), kernel("k2", 250, 300), kernel("k3", 400, 450)]
    (fact,) = launch_profile(
        0, build.rank(kernels=kernels, launches=[link(0, 100), link(200, 250), link(299, 400)]), ONE_STEP
    )
    assert (fact.starved_count, fact.starved_us) == (1, 50)


@pytest.mark.parametrize("count", [2, 8])
def test_half_of_the_kernels_linked_is_enough(build, count):
    kernels = [kernel(f"k{i}", 200 * i + 100, 200 * i + 200) for i in range(count)]
    launches = [link(200 * i + 50, 200 * i + 100) for i in range(count // 2, count)]
    (fact,) = launch_profile(0, build.rank(kernels=kernels, launches=launches), ONE_STEP)
    assert (fact.kernel_count, fact.linked_count, fact.starved_us) == (count, count // 2, 100 * (count // 2))


def test_launches_after_their_kernels_are_the_offset_of_the_clocks(build):
    # k3's launch seems 15 µs late, so all launches move back by 15: k5's 715 is then before the end of k4 at 720.
    kernels = [kernel("k1", 100, 200), kernel("k2", 300, 350), kernel("k3", 360, 400), kernel("k4", 610, 720),
               kernel("k5", 800, 810)]  # fmt: skip
    links = [link(50, 100), link(250, 300), link(375, 360), link(590, 610), link(730, 800)]
    (fact,) = launch_profile(0, build.rank(kernels=kernels, overlap_lanes=LANES, launches=links), ONE_STEP)
    # Delays 65, 65, 0, 35, 85; starved are k2 (235 >= 200) and k3 (360 >= 350, a gap of 10).
    assert (fact.linked_count, fact.median_delay_us, fact.starved_count, fact.starved_us) == (5, 65, 2, 110)
    assert fact.source.locator.endswith("host clock moved by -15.000 µs")


def test_a_launch_long_after_its_kernel_is_no_link(build):
    links = [link(201, 100), link(401, 300), link(461, 360), *LINKS[3:]]
    assert launch_profile(0, build.rank(kernels=KERNELS, launches=links), ONE_STEP) == []


def test_the_captured_time_begins_with_the_first_kernel(build):
    tasks = [task("MEMCPY_ASYNC", 0, 10, "PCIE_DMA_SQE")]
    (fact,) = launch_profile(0, build.rank(kernels=KERNELS[:2], device_tasks=tasks, launches=LINKS), ONE_STEP)
    assert (fact.starved_count, fact.starved_us) == (1, 100)
    (fact,) = launch_profile(
        0, build.rank(kernels=KERNELS[:2], overlap_lanes=[lane("Communication", 0, 10)], launches=LINKS), ONE_STEP
    )
    assert (fact.starved_count, fact.starved_us) == (2, 90 + 100)


def test_copies_by_type_or_where_types_say_nothing_by_name(build):
    pairs = [
        ("MEMCPY_ASYNC", "PCIE_DMA_SQE"), ("MEMCPY_ASYNC", "Other"), ("MEMCPY_ASYNC", "SDMA_SQE"), ("SDMA", "SDMA"),
        ("EVENT_WAIT", "EVENT_WAIT_SQE"), ("Notify Wait", "Notify Wait"), ("MEMCPY_like_kernel", "AI_CORE"),
        ("aclnnAdd", "Other"),
    ]  # fmt: skip
    found = copies(build.rank(device_tasks=[{"name": n, "task_type": t} for n, t in pairs]))
    assert list(zip(found["name"], found["task_type"], strict=True)) == pairs[:4]


def test_free_lane_gives_the_gaps_with_their_neighbours(build):
    lanes = [lane("Computing", 0, 100), lane("Computing", 160, 200), lane("Communication", 200, 300),
             lane("Computing", 700, 800), lane("Free", 100, 160), lane("Free", 300, 700)]  # fmt: skip
    kernels = [kernel("first", 0, 100), kernel("within", 50, 60), kernel("second", 160, 200), kernel("last", 700, 800)]
    (fact,) = free_time(1, build.rank(overlap_lanes=lanes, kernels=kernels), ONE_STEP)
    assert (fact.gap_count, fact.free_us, fact.free_per_step_us) == (2, 460, 460)
    assert (fact.largest_gap_us, fact.median_gap_us) == (400, 230)
    assert (fact.span_ratio, fact.largest_gap_share_ratio) == (0.575, round(400 / 460, 6))
    assert [(i.start_us, i.duration_us, i.detail) for i in fact.worst] == [
        (300, 400, "after second, before last"), (100, 60, "after first, before second")
    ]  # fmt: skip
    assert fact.source.locator == "events 0.000–0.800 ms"


def test_without_lanes_the_gaps_between_all_work_count(build):
    comm = [{"start_ns": 200 * US, "elapse_ns": 100 * US}]
    (fact,) = free_time(0, build.rank(kernels=KERNELS, device_tasks=TASKS, comm_ops=comm), ONE_STEP)
    # Work: 100–350 (k1, the collective at 200, k2), 360–400, 610–700, 800–810.
    assert (fact.gap_count, fact.free_us, fact.largest_gap_us) == (3, 10 + 210 + 100, 210)


def test_without_a_free_lane_the_gaps_between_the_others_count(build):
    lanes = [lane("Computing", 0, 100), lane("Communication", 130, 200)]
    (fact,) = free_time(0, build.rank(overlap_lanes=lanes), ONE_STEP)
    assert (fact.gap_count, fact.free_us, fact.span_ratio) == (1, 30, 0.15)


def test_a_device_that_never_idles_has_measured_zero_free_time(build):
    (fact,) = free_time(0, build.rank(overlap_lanes=[lane("Computing", 0, 100), lane("Computing", 100, 300)]), ONE_STEP)
    assert (fact.gap_count, fact.free_us, fact.largest_gap_us, fact.span_ratio, fact.worst) == (0, 0, 0, 0, ())


def test_no_timeline_no_free_time(build):
    assert free_time(0, build.rank(steps=[{}]), ONE_STEP) == []
