from __future__ import annotations

from hermes_advisor.extractors.frequency import core_frequency
from hermes_advisor.extractors.kernels import (
    aicpu_kernels,
    dynamic_shape_kernels,
    format_conversion,
    kernel_summary,
    kernel_type,
)
from hermes_advisor.extractors.memory import memory_peak
from hermes_advisor.extractors.pipes import block_dim_usage, pipe_utilization
from hermes_advisor.extractors.steps import Capture

US, MS, MIB = 1_000, 1_000_000, 1 << 20
TWO_STEPS = Capture({1: 500 * US, 2: 500 * US}, 2, 1_000 * US)


def kernel(op_type, length_us, core="AI_VECTOR_CORE", row=2, **more):
    return {"name": f"aclnn{op_type}", "op_type": op_type, "core_type": core, "duration_ns": int(length_us * US),
            "row": row, **more}  # fmt: skip


KERNELS = [
    kernel("MatMulV3", 100, "AI_CORE", 2), kernel("MatMulV3", 60, "AI_CORE", 3), kernel("Cast", 8, row=4),
    kernel("TransData", 10, row=5), kernel("TransData", 6, row=6), kernel("Unique", 15, "AI_CPU", 7),
    kernel("Unique", 1, "AI_CPU", 8),
]  # fmt: skip


def test_summary(build):
    (fact,) = kernel_summary(5, build.rank(kernels=KERNELS), TWO_STEPS)
    assert (fact.kernel_count, fact.per_step_count, fact.total_us, fact.per_step_us) == (7, 3.5, 200, 100)
    assert (fact.median_us, fact.short_kernel_count, fact.short_kernel_ratio) == (10, 3, round(3 / 7, 6))


def test_types_by_cost(build):
    facts = kernel_type(5, build.rank(kernels=KERNELS), TWO_STEPS)
    assert [fact.op_type for fact in facts] == ["MatMulV3", "TransData", "Unique", "Cast"]
    first = facts[0]
    assert (first.core_type, first.kernel_count, first.total_us, first.per_step_us) == ("AI_CORE", 2, 160, 80)
    assert (first.mean_us, first.max_us, first.compute_ratio) == (80, 100, 0.8)
    assert first.source.locator == "data rows 2, 3"


def test_a_hostile_number_of_types_is_cut_by_cost(build):
    rows = [kernel(f"Type{i:03}", i + 1, row=i) for i in range(130)]
    assert [f.total_us for f in kernel_type(0, build.rank(kernels=rows), TWO_STEPS)] == list(range(130, 30, -1))


def test_aicpu_by_core_type_however_spelt(build):
    (fact,) = aicpu_kernels(0, build.rank(kernels=KERNELS), TWO_STEPS)
    assert (fact.kernel_count, fact.total_us, fact.per_step_us, fact.compute_ratio) == (2, 16, 8, 0.08)
    assert (fact.longest_us, fact.costliest_type, fact.source.locator) == (15, "Unique", "data rows 7, 8")
    for core in ("AICPU", "ai cpu", "KERNEL_AI-CPU", "AI_CPU"):
        (fact,) = aicpu_kernels(0, build.rank(kernels=[kernel("X", 1, core)]), TWO_STEPS)
        assert fact.kernel_count == 1
    (fact,) = aicpu_kernels(0, build.rank(kernels=KERNELS[:5]), TWO_STEPS)
    assert (fact.kernel_count, fact.total_us, fact.costliest_type, fact.worst) == (0, 0, "", ())


def test_kernels_from_the_timeline_have_no_types(build):
    rows = [kernel("", 30, "AI_CPU", -1, start_ns=5 * US), kernel("", 70, "", -1, start_ns=90 * US)]
    tables = build.rank(kernels=rows)
    (fact,) = aicpu_kernels(0, tables, TWO_STEPS)
    assert (fact.kernel_count, fact.compute_ratio, fact.costliest_type) == (1, 0.3, "")
    assert fact.source.locator == "events 0.005–0.035 ms"
    assert kernel_type(0, tables, TWO_STEPS) == format_conversion(0, tables, TWO_STEPS) == []
    assert aicpu_kernels(0, build.rank(kernels=rows[1:]), TWO_STEPS) == []


def test_dynamic_shapes_only_where_the_state_is_recorded(build):
    rows = [kernel("A", 5, state="dynamic"), kernel("B", 7, state="static"), kernel("C", 9, state="")]
    (fact,) = dynamic_shape_kernels(0, build.rank(kernels=rows))
    assert (fact.known_count, fact.dynamic_count, fact.dynamic_ratio, fact.dynamic_us) == (2, 1, 0.5, 5)
    assert dynamic_shape_kernels(0, build.rank(kernels=[kernel("A", 5)])) == []


def test_conversions_with_measured_zeros(build):
    found = {f.conversion: f for f in format_conversion(0, build.rank(kernels=KERNELS), TWO_STEPS)}
    assert (found["transdata"].kernel_count, found["transdata"].total_us, found["transdata"].compute_ratio) == (
        2,
        16,
        0.08,
    )
    assert (found["cast"].kernel_count, found["cast"].per_step_us) == (1, 4)
    assert (found["transpose"].kernel_count, found["transpose"].total_us) == (0, 0)


def test_pipe_ratios_are_weighted_by_time(build):
    rows = [
        kernel("MatMulV3", 100, "AI_CORE", mac_ratio=0.9, aic_mte2_ratio=0.4, aic_scalar_ratio=0.1, vec_ratio=0.0),
        kernel("MatMulV3", 300, "AI_CORE", mac_ratio=0.5, aic_mte2_ratio=0.8, aic_scalar_ratio=0.1, vec_ratio=0.0),
        kernel("Add", 40, vec_ratio=0.3, aiv_mte2_ratio=0.6, aiv_scalar_ratio=0.2, mac_ratio=0.0),
        kernel("Add", 60),
    ]
    matmul, add = pipe_utilization(0, build.rank(kernels=rows), TWO_STEPS)
    assert (matmul.op_type, matmul.core, matmul.kernel_count, matmul.total_us) == ("MatMulV3", "cube", 2, 400)
    assert (matmul.mac_ratio, matmul.mte2_ratio, matmul.busiest_pipe, matmul.busiest_ratio) == (0.6, 0.7, "mte2", 0.7)
    assert (matmul.per_step_us, matmul.mean_us, matmul.compute_ratio) == (200, 200, 0.8)
    # The Add without recorded ratios does not pull the mean down.
    assert (add.core, add.vec_ratio, add.mte2_ratio, add.mac_ratio) == ("vector", 0.3, 0.6, None)
    assert (add.busiest_pipe, add.busiest_ratio, add.kernel_count) == ("mte2", 0.6, 2)


def test_pipes_beyond_the_contract_count_where_the_reader_has_them(build):
    rows = [kernel("TransData", 10, vec_ratio=0.2, aiv_mte2_ratio=0.5, aiv_mte3_ratio=0.7)]
    (fact,) = pipe_utilization(0, build.rank(kernels=rows), TWO_STEPS)
    assert (fact.busiest_pipe, fact.busiest_ratio) == ("mte3", 0.7)


def test_no_pipe_columns_or_only_zeros_is_not_measured(build):
    zeros = {"mac_ratio": 0.0, "aic_mte2_ratio": 0.0, "aic_scalar_ratio": 0.0, "vec_ratio": 0.0}
    assert pipe_utilization(0, build.rank(kernels=KERNELS), TWO_STEPS) == []
    assert pipe_utilization(0, build.rank(kernels=[kernel("X", 9, "AI_CORE", **zeros)]), TWO_STEPS) == []


def test_block_dim_below_half_of_the_widest(build):
    rows = [kernel("A", 50, "AI_CORE", 2, block_dim=24), kernel("B", 30, "AI_CORE", 3, block_dim=12),
            kernel("C", 20, "AI_CORE", 4, block_dim=11), kernel("D", 60, "AI_VECTOR_CORE", 5, block_dim=48),
            kernel("E", 40, "AI_CPU", 6, block_dim=1)]  # fmt: skip
    cube, vector = block_dim_usage(0, build.rank(kernels=rows), TWO_STEPS)
    assert (cube.core_type, cube.widest_count, cube.narrow_kernel_count) == ("AI_CORE", 24, 1)
    assert (cube.narrow_us, cube.narrow_per_step_us, cube.narrow_compute_ratio) == (20, 10, 0.1)
    assert [(i.name, i.detail) for i in cube.worst] == [("aclnnC", "data row 4")]
    assert (vector.core_type, vector.narrow_kernel_count, vector.narrow_us) == ("AI_VECTOR_CORE", 0, 0)
    assert block_dim_usage(0, build.rank(kernels=KERNELS), TWO_STEPS) == []


def test_a_block_dim_beyond_any_chip_is_no_core_count(build):
    rows = [kernel("A", 50, block_dim=48), kernel("B", 30, block_dim=256), kernel("C", 20, block_dim=40)]
    (fact,) = block_dim_usage(0, build.rank(kernels=rows), TWO_STEPS)
    assert (fact.widest_count, fact.narrow_kernel_count) == (48, 0)
    (fact,) = block_dim_usage(0, build.rank(kernels=[*rows, kernel("D", 7, block_dim=1)]), TWO_STEPS)
    assert (fact.narrow_kernel_count, fact.narrow_us) == (1, 7)


def test_frequency_is_weighted_by_how_long_each_value_held(build):
    counters = [{"time_ns": 300, "value": 800.0}, {"time_ns": 100, "value": 1800.0},
                {"name": "HBM 0/Read", "series": "Read(MB/s)", "time_ns": 150, "value": 9.0}]  # fmt: skip
    lanes = [{"start_ns": 0, "duration_ns": 1_100}]
    # 1800 MHz for 200 ns, 800 MHz for the 800 ns up to the end of the device's work.
    (fact,) = core_frequency(0, build.rank(counters=counters, overlap_lanes=lanes))
    assert (fact.sample_count, fact.max_mhz, fact.min_mhz, fact.mean_mhz) == (2, 1800, 800, 1000)
    assert fact.drop_ratio == round(1 - 1000 / 1800, 6)
    (fact,) = core_frequency(0, build.rank(counters=counters[:1]))
    assert (fact.mean_mhz, fact.drop_ratio) == (800, 0)
    assert core_frequency(0, build.rank(counters=counters[2:])) == []


def sample(component, time, allocated, reserved):
    return {"component": component, "time_ns": time * MS, "allocated_bytes": allocated, "reserved_bytes": reserved}


def test_memory_is_the_allocators_not_the_process(build):
    rows = [sample("APP", 0, -1, 90 * MIB), sample("PTA+GE", 1, 80 * MIB, 90 * MIB),
            sample("PTA", 1, 10 * MIB, 20 * MIB), sample("PTA", 2, 40 * MIB, 50 * MIB), sample("PTA", 3, 15 * MIB, 60 * MIB)]  # fmt: skip
    (fact,) = memory_peak(0, build.rank(memory=rows))
    assert (fact.peak_reserved_bytes, fact.peak_allocated_bytes) == (60 * MIB, 40 * MIB)
    assert (fact.unused_reserved_bytes, fact.unused_reserved_ratio) == (10 * MIB, 0.2)
    assert fact.growth_bytes == 5 * MIB
    assert "peak at 2.000 ms" in fact.source.locator
    (fact,) = memory_peak(0, build.rank(memory=rows[:2]))
    assert fact.peak_allocated_bytes == 80 * MIB
    assert memory_peak(0, build.rank(memory=rows[:1])) == []
