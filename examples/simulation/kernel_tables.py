"""Writes kernel_details.csv, op_statistic.csv and step_trace_time.csv: in: a timeline; out: the device's tables."""

from __future__ import annotations

from pathlib import Path

from hermes_advisor.examples.simulation.hardware import Cost
from hermes_advisor.examples.simulation.job import Tensor
from hermes_advisor.examples.simulation.overlap import step_times
from hermes_advisor.examples.simulation.text import cell_stamp, microseconds, shape, short, write_csv
from hermes_advisor.examples.simulation.timeline import Collective, DeviceTask, RankTimeline

_CUBE_PIPES = ("mac", "scalar", "mte1", "mte2", "fixpipe")
_VECTOR_PIPES = ("vec", "scalar", "mte2", "mte3")
_PIPE_COLUMNS = [
    "aicore_time(us)", "aic_total_cycles",
    *(f"aic_{pipe}_{unit}" for pipe in _CUBE_PIPES for unit in ("time(us)", "ratio")), "aic_icache_miss_rate",
    "aiv_time(us)", "aiv_total_cycles",
    *(f"aiv_{pipe}_{unit}" for pipe in _VECTOR_PIPES for unit in ("time(us)", "ratio")), "aiv_icache_miss_rate",
    "cube_utilization(%)",
]  # fmt: skip
_COLUMNS = [
    "Step Id", "Device_id", "Model ID", "Task ID", "Stream ID", "Name", "Type", "OP State", "Accelerator Core",
    "Start Time(us)", "Duration(us)", "Wait Time(us)", "Block Dim", "Mix Block Dim", "HF32 Eligible", "Input Shapes",
    "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types", "Output Formats", "Context ID",
    *_PIPE_COLUMNS,
]  # fmt: skip
_TYPE = {"bf16": "DT_BF16", "fp32": "FLOAT", "int64": "INT64", "bool": "BOOL"}
_MODEL = 4294967295
_ABSENT = "N/A"


def write_kernel_tables(timeline: RankTimeline, folder: Path) -> None:
    """Write the three tables of one rank."""
    rows = [(task.start_ns, _kernel_row(timeline, task)) for task in timeline.kernels()]
    rows += [(op.start_ns, _collective_row(timeline, op)) for op in timeline.collectives]
    rows.sort(key=lambda item: item[0])
    write_csv(folder / "kernel_details.csv", _COLUMNS, [row for _, row in rows])
    _write_op_statistic(timeline, folder)
    _write_step_trace_time(timeline, folder)


def _kernel_row(timeline: RankTimeline, task: DeviceTask) -> list[str]:
    kernel, cost = task.kernel, task.cost
    assert kernel is not None and cost is not None
    on_cores = kernel.core != "AI_CPU"
    return [
        str(task.step), str(timeline.rank), str(_MODEL), str(task.task_id), str(task.stream), kernel.name,
        kernel.op_type, "dynamic" if on_cores else "static", kernel.core, cell_stamp(task.start_ns),
        f"{microseconds(task.duration_ns):.3f}", f"{microseconds(task.wait_ns):.3f}", str(cost.block_dim),
        str(cost.mix_block_dim), "NO", *_tensors(kernel.inputs), *_tensors(kernel.outputs),
        "0" if cost.mix_block_dim else _ABSENT,
        *(_pipes(timeline.mhz, task.duration_ns, cost) if on_cores else [_ABSENT] * len(_PIPE_COLUMNS)),
    ]  # fmt: skip


def _tensors(tensors: tuple[Tensor, ...]) -> list[str]:
    if not tensors:
        return [_ABSENT] * 3
    sizes = ";".join(shape(tensor) for tensor in tensors)
    return [f'"{sizes}"', ";".join(_TYPE[tensor.dtype] for tensor in tensors), ";".join("ND" for _ in tensors)]


def _pipes(mhz: int, duration_ns: int, cost: Cost) -> list[str]:
    out: list[str] = []
    cores = (cost.cube_us, cost.block_dim, cost.cube, _CUBE_PIPES), (
        cost.vector_us, cost.mix_block_dim or cost.block_dim, cost.vector, _VECTOR_PIPES)  # fmt: skip
    for time, blocks, pipes, names in cores:
        out += [f"{time:.3f}" if time else "0.0", str(round(time * mhz * blocks))]
        for name in names:
            busy = pipes.get(name, 0.0)
            out += [short(busy), short(busy / time)] if time else ["0.0", "0.0"]
        out.append("0.002" if time else "0.0")
    return [*out, f"{100 * cost.cube_us / microseconds(duration_ns):.3f}"]


def _collective_row(timeline: RankTimeline, op: Collective) -> list[str]:
    name = timeline.collective_name(op)
    head = [
        str(op.step), str(timeline.rank), str(_MODEL), _ABSENT, _ABSENT, name, "hcom_allReduce_", _ABSENT,
        "COMMUNICATION", cell_stamp(op.start_ns), f"{microseconds(op.duration_ns):.3f}",
        f"{microseconds(op.wait_ns):.3f}", "0",
    ]  # fmt: skip
    return head + [_ABSENT] * (len(_COLUMNS) - len(head))


def _write_op_statistic(timeline: RankTimeline, folder: Path) -> None:
    durations: dict[tuple[str, str], list[int]] = {}
    for task in timeline.kernels():
        assert task.kernel is not None
        durations.setdefault((task.kernel.op_type, task.kernel.core), []).append(task.duration_ns)
    whole = sum(map(sum, durations.values()))
    rows = []
    for (op_type, core), spans in sorted(durations.items(), key=lambda item: (-sum(item[1]), item[0])):
        total = sum(spans)
        times = (total, min(spans), total / len(spans), max(spans))
        rows.append([timeline.rank, op_type, core, len(spans), *(short(time / 1000) for time in times),
                     short(100 * total / whole)])  # fmt: skip
    header = ["Device_id", "OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)",
              "Max Time(us)", "Ratio(%)"]  # fmt: skip
    write_csv(folder / "op_statistic.csv", header, rows)


def _write_step_trace_time(timeline: RankTimeline, folder: Path) -> None:
    header = ["Device_id", "Step", "Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free",
              "Stage", "Bubble", "Communication(Not Overlapped and Exclude Receive)", "Preparing"]  # fmt: skip
    rows = []
    for time in step_times(timeline):
        parts = (time.computing, time.exposed, time.communication - time.exposed, time.communication, time.free,
                 time.stage)  # fmt: skip
        rows.append([timeline.rank, time.step, *map(microseconds, parts), 0, microseconds(time.exposed),
                     microseconds(time.preparing)])  # fmt: skip
    write_csv(folder / "step_trace_time.csv", header, rows)
