"""The communication of one rank: time, transports, packet sizes, alignment (Hermes §4.2.2, Table 3).

Comes in: comm_ops, comm_bandwidth, comm_packets, comm_tasks. Goes out: ``communication_time``, ``link_bandwidth``,
``packet_size``, ``transfer_alignment``.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from hermes_advisor.extractors.evidence import (
    WORST,
    clean,
    floats,
    frame_of,
    grouped,
    instances,
    ints,
    largest,
    measured,
    ratio,
    source,
    texts,
    total,
    us,
    where,
)
from hermes_advisor.extractors.readers.tables import RankTables
from hermes_advisor.extractors.steps import Capture
from hermes_advisor.facts.base import Instance
from hermes_advisor.facts.communication import CommunicationTime, LinkBandwidth, PacketSize, TransferAlignment

_OPERATOR = ["step", "traffic", "group", "name"]
_SUM_OF_OTHERS = "SDMA"
_NO_LINK = ("LOCAL", "", "INVALID_TYPE")

ALIGNMENT_BYTES = 512
"""Transfers between cards above this size should be multiples of it (Hermes Table 3)."""


def communication_time(rank: int, tables: RankTables, capture: Capture) -> list[CommunicationTime]:
    """Per step and traffic; where an export leaves transfer times at zero, they are taken from the links."""
    table = measured(tables.comm_ops)
    if table is None:
        return []
    ops = _with_transit(table.frame, frame_of(tables.comm_bandwidth), frame_of(tables.comm_links))
    out = []
    for (step, traffic), group in grouped(ops, "step", "traffic"):
        elapse = total(group["elapse_ns"])
        out.append(
            CommunicationTime(
                rank=rank,
                step=int(step),
                traffic=str(traffic),
                op_count=len(group),
                elapse_us=us(elapse),
                transit_us=us(total(group["transit_ns"])),
                wait_us=us(total(group["wait_ns"])),
                idle_us=us(total(group["idle_ns"])),
                step_ratio=ratio(elapse, capture.step_ns(int(step))),
                wait_ratio=ratio(total(group["wait_ns"]), elapse),
                idle_ratio=ratio(total(group["idle_ns"]), elapse),
                largest_idle_us=us(group["idle_ns"].max()),
                worst=_longest(group),
                source=source(table, f"{_step_key(int(step))}{traffic}/{_from_links(group)}"),
            )
        )
    return out


def _with_transit(ops: pd.DataFrame, bandwidth: pd.DataFrame | None, links: pd.DataFrame | None) -> pd.DataFrame:
    """The operators, those without a transfer time given that of their links, and idle the rest.

    The links of an operator run side by side, so that their summed time is divided by their number, which the matrix
    tells; without it nothing is changed. CANN 8.3 exports zero transit although its links carried the data.
    """
    keys = _OPERATOR
    out = ops.assign(from_links=False)
    if bandwidth is None or links is None or ops.empty:
        return out
    between = links[(links["src"] != links["dst"]) & (links["transport"] != "LOCAL")]
    lanes = between.groupby(["step", "group"])["dst"].nunique()
    moved = bandwidth.groupby(keys, sort=True)["transit_ns"].max()
    summed = moved.reindex(pd.MultiIndex.from_frame(ops[keys])).fillna(0).to_numpy(dtype=np.float64)
    count = lanes.reindex(pd.MultiIndex.from_frame(ops[["step", "group"]])).fillna(0).to_numpy(dtype=np.float64)
    room = np.maximum(ints(ops, "elapse_ns") - ints(ops, "wait_ns"), 0)
    found = np.minimum(np.divide(summed, count, out=np.zeros(len(ops)), where=count > 0), room).astype(np.int64)
    taken = (ints(ops, "transit_ns") == 0) & (found > 0)
    return out.assign(
        transit_ns=np.where(taken, found, ints(ops, "transit_ns")),
        idle_ns=np.where(taken, room - found, ints(ops, "idle_ns")),
        from_links=taken,
    )


def _transfer_times(tables: RankTables) -> pd.Series | None:
    """Each operator's own wall-clock transfer time, 0 where neither it nor its links tell; None: no operators."""
    ops = frame_of(tables.comm_ops)
    if ops is None:
        return None
    known = _with_transit(ops, frame_of(tables.comm_bandwidth), frame_of(tables.comm_links))
    found: pd.Series = known.groupby(_OPERATOR, sort=True)["transit_ns"].sum()
    return found


def _transfer_ns(carriers: pd.DataFrame, times: pd.Series | None) -> int | None:
    """Wall-clock transfer time of the operators on one transport.

    The time summed over parallel links bounds it, which counts where an operator uses several transports.
    """
    if times is None or carriers.empty:
        return None
    own = times.reindex(pd.MultiIndex.from_frame(carriers[_OPERATOR])).fillna(0).to_numpy(dtype=np.int64)
    bound = np.minimum(ints(carriers, "elapse_ns"), ints(carriers, "transit_ns"))
    return total(np.minimum(own, bound)) or None


def _from_links(ops: pd.DataFrame) -> str:
    count = int(ops["from_links"].sum())
    return f", transfer time of {count} operators from their links" if count else ""


def _longest(ops: pd.DataFrame) -> tuple[Instance, ...]:
    worst = largest(ops, "elapse_ns", WORST)
    columns = ["name", "group", "start_ns", "elapse_ns", "idle_ns", "wait_ns"]
    return tuple(
        Instance(
            name=clean(f"{name}@{group}"),
            start_us=us(start) if start >= 0 else None,
            duration_us=us(elapse),
            detail=f"idle {us(idle):.3f} µs, wait {us(wait):.3f} µs",
        )
        for name, group, start, elapse, idle, wait in worst[columns].itertuples(index=False)
    )


def link_bandwidth(rank: int, tables: RankTables, capture: Capture) -> list[LinkBandwidth]:
    """Per step and transport over which bytes went."""
    table = measured(tables.comm_bandwidth)
    if table is None:
        return []
    rows = _transports(table.frame)
    rows = rows[(rows["size_bytes"] > 0) & (rows["transit_ns"] > 0)]
    times = _transfer_times(tables)
    out = []
    for (step, transport), group in grouped(rows, "step", "transport"):
        transfer, step_ns = _transfer_ns(group, times), capture.step_ns(int(step))
        out.append(
            LinkBandwidth(
                rank=rank,
                step=int(step),
                transport=clean(transport),
                size_bytes=total(group["size_bytes"]),
                transit_us=us(total(group["transit_ns"])),
                bandwidth_gb_per_s=ratio(total(group["size_bytes"]), total(group["transit_ns"])),
                op_count=len(group),
                longest_op_us=us(group["elapse_ns"].max()),
                step_ratio=ratio(total(group["elapse_ns"]), step_ns),
                transfer_us=None if transfer is None else us(transfer),
                transfer_step_ratio=None if transfer is None else ratio(transfer, step_ns),
                source=source(table, f"{_step_key(int(step))}*/*/Communication Bandwidth Info/{clean(transport)}"),
            )
        )
    return out


def packet_size(rank: int, tables: RankTables, capture: Capture) -> list[PacketSize]:
    """Per step and transport; the step share needs the operators' times, so both tables must be there."""
    table, ops = measured(tables.comm_packets), frame_of(tables.comm_bandwidth)
    if table is None or ops is None:
        return []
    packets = _transports(table.frame)
    packets = packets[(packets["packet_count"] > 0) & packets["packet_bytes"].between(0, 2.0**53)]
    ops = ops[(ops["size_bytes"] > 0) & (ops["transit_ns"] > 0)]
    times = _transfer_times(tables)
    out = []
    for (step, transport), group in grouped(packets, "step", "transport"):
        counts, sizes = ints(group, "packet_count"), floats(group, "packet_bytes")
        carriers = ops[(ops["step"] == step) & (ops["transport"] == transport)]
        transfer, step_ns = _transfer_ns(carriers, times), capture.step_ns(int(step))
        out.append(
            PacketSize(
                rank=rank,
                step=int(step),
                transport=clean(transport),
                packet_count=total(counts),
                mean_bytes=math.fsum((sizes * counts).tolist()) / total(counts),
                largest_bytes=float(sizes.max()),
                transit_us=us(total(group["transit_ns"])),
                step_ratio=ratio(total(carriers["elapse_ns"]), step_ns),
                transfer_us=None if transfer is None else us(transfer),
                transfer_step_ratio=None if transfer is None else ratio(transfer, step_ns),
                source=source(
                    table,
                    f"{_step_key(int(step))}*/*/Communication Bandwidth Info/{clean(transport)}/Size Distribution",
                ),
            )
        )
    return out


def transfer_alignment(rank: int, tables: RankTables, capture: Capture) -> list[TransferAlignment]:
    """SDMA transfers between cards whose size is not a multiple of 512 bytes; zero is a measured zero."""
    table = measured(tables.comm_tasks)
    if table is None:
        return []
    tasks = table.frame
    transport, link = tasks["transport"].str.upper(), tasks["link_type"].str.upper()
    between = (transport == "SDMA") & ~link.isin(["ON_CHIP", *_NO_LINK]) & (tasks["src"] != tasks["dst"])
    transfers = tasks[between & (tasks["size_bytes"] > ALIGNMENT_BYTES)]
    unaligned = transfers[transfers["size_bytes"] % ALIGNMENT_BYTES != 0]
    spent = total(unaligned["duration_ns"])
    return [
        TransferAlignment(
            rank=rank,
            transfer_count=len(transfers),
            unaligned_count=len(unaligned),
            unaligned_bytes=total(unaligned["size_bytes"]),
            unaligned_us=us(spent),
            unaligned_per_step_us=capture.per_step_us(spent),
            unaligned_ratio=ratio(len(unaligned), len(transfers)),
            unaligned_step_ratio=capture.ratio(spent),
            worst=_unaligned(unaligned),
            source=source(table, where(unaligned) or where(transfers)),
        )
    ]


def _unaligned(tasks: pd.DataFrame) -> tuple[Instance, ...]:
    worst = largest(tasks, "duration_ns")
    sizes = zip(ints(worst, "size_bytes").tolist(), texts(worst, "src"), texts(worst, "dst"), strict=True)
    return tuple(
        found.model_copy(update={"detail": f"{size} bytes from {src} to {dst}, {size % ALIGNMENT_BYTES} beyond 512·n"})
        for found, (size, src, dst) in zip(instances(worst, name="op"), sizes, strict=True)
    )


def _transports(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows per transport; SDMA repeats the sum of HCCS, PCIE and SIO, and LOCAL leaves no card."""
    rows = rows[~rows["transport"].isin(_NO_LINK)]
    others = rows[rows["transport"] != _SUM_OF_OTHERS]
    return others if len(others) else rows


def _step_key(step: int) -> str:
    return f"step{step}/" if step >= 0 else "step/"
