"""Writes api_statistic.csv and operator_details.csv: in: a timeline; out: the host's tables."""

from __future__ import annotations

from pathlib import Path

from hermes_advisor.examples.simulation.overlap import Span
from hermes_advisor.examples.simulation.text import shape, short, write_csv
from hermes_advisor.examples.simulation.timeline import HostOp, RankTimeline

_CORES = ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC")


def write_host_tables(timeline: RankTimeline, folder: Path) -> None:
    """Write both tables of one rank."""
    _write_api_statistic(timeline, folder)
    _write_operator_details(timeline, folder)


def _write_api_statistic(timeline: RankTimeline, folder: Path) -> None:
    calls: dict[tuple[str, str], list[int]] = {}
    for call in timeline.api_calls:
        calls.setdefault((call.api, call.level), []).append(call.duration_ns)
    rows = []
    for (api, level), times in sorted(calls.items()):
        count, total = len(times), sum(times)
        # In whole ns, as the sum of floats differs between Python versions.
        variance = (count * sum(time * time for time in times) - total * total) / (count * count * 1_000_000)
        spans = (total / count, min(times), max(times))
        rows.append(["host", level, api, short(total / 1000), count, *(short(time / 1000) for time in spans),
                     short(variance)])  # fmt: skip
    header = ["Device_id", "Level", "API Name", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)", "Variance"]
    write_csv(folder / "api_statistic.csv", header, rows)


def _write_operator_details(timeline: RankTimeline, folder: Path) -> None:
    operators = [op for op in timeline.host_ops if op.category == "cpu_op"]
    operators = [op for op in operators if not op.name.startswith("ProfilerStep#")]
    own = {id(op): op.duration_ns for op in operators}
    device: dict[int, Span] = {id(op): (0, 0) for op in operators}
    caused: dict[int, Span] = {}
    for task in timeline.device:
        on_cores = task.kernel is not None and task.kernel.core in _CORES
        caused[id(task.cause)] = (task.duration_ns, task.duration_ns if on_cores else 0)
    for collective in timeline.collectives:
        caused[id(collective.cause)] = (collective.duration_ns, 0)
    for op, parents in _nesting(operators):
        if parents:
            own[id(parents[-1])] -= op.duration_ns
        for holder in (*parents, op):
            whole, cores = device[id(holder)]
            more, more_cores = caused.get(id(op), (0, 0))
            device[id(holder)] = (whole + more, cores + more_cores)
    rows = []
    for op in sorted(operators, key=lambda op: (op.end_ns, -op.start_ns)):
        self_time, self_cores = caused.get(id(op), (0, 0))
        total_time, total_cores = device[id(op)]
        times = (own[id(op)], op.duration_ns, self_time, total_time, self_cores, total_cores)
        shapes = ";\n".join(shape(tensor) for tensor in op.inputs or ())
        rows.append([op.name, shapes, "", *(short(time / 1000) for time in times)])
    header = ["Name", "Input Shapes", "Call Stack", "Host Self Duration(us)", "Host Total Duration(us)",
              "Device Self Duration(us)", "Device Total Duration(us)", "Device Self Duration With AICore(us)",
              "Device Total Duration With AICore(us)"]  # fmt: skip
    write_csv(folder / "operator_details.csv", header, rows)


def _nesting(operators: list[HostOp]) -> list[tuple[HostOp, list[HostOp]]]:
    """Each operator with those of its thread that enclose it, outermost first."""
    out = []
    open_ops: dict[int, list[HostOp]] = {}
    for op in sorted(operators, key=lambda op: (op.start_ns, -op.end_ns)):
        stack = open_ops.setdefault(op.thread, [])
        while stack and stack[-1].end_ns <= op.start_ns:
            stack.pop()
        out.append((op, list(stack)))
        stack.append(op)
    return out
