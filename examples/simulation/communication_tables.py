"""Writes communication.json and communication_matrix.json: in: a timeline; out: times, sizes and links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes_advisor.examples.simulation.text import microseconds, milliseconds, write_json
from hermes_advisor.examples.simulation.timeline import Collective, RankTimeline

_TRANSPORTS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")
_LARGE_PACKET_BYTES = 32e6
Json = dict[str, Any]


def write_communication(timeline: RankTimeline, folder: Path) -> None:
    """Write both files of one rank."""
    times: Json = {}
    matrix: Json = {}
    for step in sorted(timeline.step_marks):
        ops = [op for op in timeline.collectives if op.step == step]
        group = timeline.group_comm_name()
        collective = {f"{timeline.collective_name(op)}@{group}": _op(op) for op in ops}
        collective["Total Op Info"] = _total(ops)
        times[f"step{step}"] = {"p2p": {}, "collective": collective}
        matrix[f"step{step}"] = {"p2p": {}, "collective": _matrix(timeline, ops, group)}
    write_json(folder / "communication.json", times)
    write_json(folder / "communication_matrix.json", matrix)


def _times(ops: list[Collective]) -> tuple[int, int, int, int]:
    """Elapsed, transfer, wait and first wait of operators (ns)."""
    elapse = transit = wait = sync = 0
    for op in ops:
        elapse += op.duration_ns
        moved = False
        for task in op.tasks:
            if task.link == "HCCS":
                moved = True
                transit += task.duration_ns
            elif task.name == "Notify_Wait":
                wait += task.duration_ns
                sync += 0 if moved else task.duration_ns
    return elapse, transit, wait, sync


def _time_info(ops: list[Collective]) -> Json:
    elapse, transit, wait, sync = _times(ops)
    parts = {"Elapse": elapse, "Transit": transit, "Wait": wait, "Synchronization": sync,
             "Idle": elapse - transit - wait}  # fmt: skip
    info: Json = {f"{name} Time(ms)": milliseconds(value) for name, value in parts.items()}
    info["Wait Time Ratio"] = round(wait / (wait + transit), 4)
    info["Synchronization Time Ratio"] = round(sync / (sync + transit), 4)
    return info


def _packets(ops: list[Collective]) -> tuple[int, int, Json]:
    """HCCS bytes, time (ns) and the distribution {packet MB: [count, ms]}."""
    packets: dict[int, tuple[int, int]] = {}
    for op in ops:
        for task in op.tasks:
            if task.link == "HCCS":
                count, time = packets.get(task.size_bytes, (0, 0))
                packets[task.size_bytes] = (count + 1, time + task.duration_ns)
    size = sum(packet * count for packet, (count, _) in packets.items())
    time = sum(spent for _, spent in packets.values())
    return size, time, {str(packet / 1e6): [n, milliseconds(spent)] for packet, (n, spent) in packets.items()}


def _op(op: Collective) -> Json:
    size, time, packets = _packets([op])
    large = sum(count for packet, (count, _) in packets.items() if float(packet) * 1e6 >= _LARGE_PACKET_BYTES)
    bandwidth: Json = {}
    for transport in _TRANSPORTS:
        moved = transport in ("HCCS", "SDMA")
        bandwidth[transport] = {
            "Transit Size(MB)": size / 1e6 if moved else 0,
            "Transit Time(ms)": milliseconds(time) if moved else 0,
            "Bandwidth(GB/s)": round(size / time, 4) if moved else 0,
            "Large Packet Ratio": large / sum(n for n, _ in packets.values()) if transport == "HCCS" else 0,
            "Size Distribution": packets if transport == "HCCS" else {},
        }
    start = {"Start Timestamp(us)": microseconds(op.start_ns)}
    return {"Communication Time Info": {**start, **_time_info([op])}, "Communication Bandwidth Info": bandwidth}


def _total(ops: list[Collective]) -> Json:
    size, time, packets = _packets(ops)
    bandwidth: Json = {}
    for transport in _TRANSPORTS:
        moved = transport in ("HCCS", "SDMA")
        bandwidth[transport] = {
            "Transit Time(ms)": milliseconds(time) if moved else 0,
            "Transit Size(MB)": size / 1e6 if moved else 0,
            "Size Distribution": packets if transport == "HCCS" else {},
        }
    return {"Communication Time Info": _time_info(ops), "Communication Bandwidth Info": bandwidth}


def _matrix(timeline: RankTimeline, ops: list[Collective], group: str) -> Json:
    """Per link: the fastest, middle and slowest operators, and the sum over all."""
    links = {"LOCAL": f"{timeline.rank}-{timeline.rank}", "HCCS": f"{timeline.rank}-{1 - timeline.rank}"}
    ranked: dict[str, list[tuple[str, int, int]]] = {}
    for transport in links:
        kind = "ON_CHIP" if transport == "LOCAL" else transport
        moved = []
        for op in ops:
            tasks = [task for task in op.tasks if task.link == kind]
            size, time = sum(task.size_bytes for task in tasks), sum(task.duration_ns for task in tasks)
            moved.append((timeline.collective_name(op), size, time))
        ranked[transport] = sorted(moved, key=lambda item: item[2] / item[1])
    places = {"top1": 0, "middle": len(ops) // 2, "bottom1": -1, "bottom2": -2, "bottom3": -3}
    out: Json = {}
    for place in ("top1", "middle", "bottom1", "total", "bottom2", "bottom3"):
        rows: Json = {}
        for transport, link in links.items():
            if place == "total":
                row = _link(transport, sum(m[1] for m in ranked[transport]), sum(m[2] for m in ranked[transport]))
            else:
                name, size, time = ranked[transport][places[place]]
                row = {**_link(transport, size, time), "Op Name": name}
            rows[link] = row
        out[f"allreduce-{place}@{group}"] = rows
    return out


def _link(transport: str, size: int, time_ns: int) -> Json:
    return {"Transport Type": transport, "Transit Size(MB)": size / 1e6, "Transit Time(ms)": milliseconds(time_ns),
            "Bandwidth(GB/s)": round(size / time_ns, 4)}  # fmt: skip
