"""communication.json → ``comm_ops``, ``comm_bandwidth`` and ``comm_packets`` of one rank.

Sizes there are MB of 10^6 bytes and times milliseconds, both with the noise of a double; starts are Unix times in µs.
``Total Op Info`` sums the operators above it and is left out. SDMA is the sum of HCCS, PCIE and SIO: it is kept only
where none of these carries bytes, so that no byte is counted twice. A number that is missing or negative is not a zero:
what needs it is left out and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hermes_advisor.extractors.readers.cells import scaled
from hermes_advisor.extractors.readers.csv_frames import frame
from hermes_advisor.extractors.readers.errors import UnreadableFileError
from hermes_advisor.extractors.readers.files import Note, read_json
from hermes_advisor.extractors.readers.step_trace import step_number

TOTAL = "Total Op Info"
_TRAFFICS = ("collective", "p2p")
_PARTS_OF_SDMA = ("HCCS", "PCIE", "SIO")
_KIND = re.compile(r"(?:hcom_)?([A-Za-z]+)")
_MS, _MB = 6, 6  # decimals: ms → ns, MB → bytes

_OPS = (
    "step", "traffic", "kind", "name", "group", "start_ns", "elapse_ns", "transit_ns", "wait_ns", "sync_ns", "idle_ns",
)  # fmt: skip
_BANDWIDTH = ("step", "traffic", "name", "group", "transport", "size_bytes", "transit_ns", "elapse_ns")
_PACKETS = ("step", "name", "group", "transport", "packet_bytes", "packet_count", "transit_ns")


@dataclass
class CommunicationTables:
    """The three tables of the file; None where it holds no such row."""

    ops: pd.DataFrame | None = None
    bandwidth: pd.DataFrame | None = None
    packets: pd.DataFrame | None = None


def read_communication(path: Path, note: Note) -> CommunicationTables:
    """Read the communication operators of one rank."""
    ops: list[tuple[Any, ...]] = []
    bandwidth: list[tuple[Any, ...]] = []
    packets: list[tuple[Any, ...]] = []
    bad = unreadable = 0
    for step, traffic, key, value in operators(read_json(path)):
        name, _, group = key.rpartition("@") if "@" in key else (key, "", "")
        times = value.get("Communication Time Info") if isinstance(value, dict) else None
        found = _times(times) if isinstance(times, dict) else None
        if found is None:
            bad += 1
            continue
        ops.append((step, traffic, operator_kind(name), name, group, *found))
        carried, faulty = _transports(value.get("Communication Bandwidth Info"))
        unreadable += faulty
        for transport, record, size, transit in carried:
            bandwidth.append((step, traffic, name, group, transport, size, transit, found[1]))
            sizes, faulty = _packets(record)
            unreadable += faulty
            packets.extend((step, name, group, transport, *packet) for packet in sizes)
    if bad:
        detail = "left out: their start, elapse, transit, wait or idle time is missing or negative"
        note("unreadable_operators", "warning", detail, count=bad)
    if unreadable:
        detail = "left out: a transport's size or time, or a packet's size, count or time, is missing or negative"
        note("unreadable_numbers", "warning", detail, count=unreadable)
    if not ops:
        note("no_operators", "info", "holds no communication operators")
    return CommunicationTables(_frame(_OPS, ops), _frame(_BANDWIDTH, bandwidth), _frame(_PACKETS, packets))


def operators(document: Any) -> Iterator[tuple[int, str, str, Any]]:
    """(step, traffic, operator key, record) of communication.json or communication_matrix.json, without the totals."""
    if not isinstance(document, dict):
        raise UnreadableFileError("unexpected_json", "holds no object of steps")
    # Without step marks some versions leave the level of steps out.
    steps = {"": document} if any(isinstance(document.get(t), dict) for t in _TRAFFICS) else document
    for step, traffics in steps.items():
        if not isinstance(traffics, dict):
            raise UnreadableFileError("unexpected_json", f"step {step[:40]!r} holds no object of operators")
        for traffic, entries in traffics.items():
            if isinstance(entries, dict):
                for key, record in entries.items():
                    if not key.startswith(TOTAL):
                        yield step_number(step), traffic, key, record


def operator_kind(name: str) -> str:
    """``hcom_allReduce__586_0_1`` → ``allReduce``."""
    found = _KIND.match(name)
    return found.group(1) if found else name


def _times(times: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Start, elapse, transit, wait, synchronization (-1: not recorded) and idle; None where one needed is no time."""
    start = scaled(times.get("Start Timestamp(us)"), 3, missing=-1)
    elapse, transit, wait, sync, idle = (
        scaled(times.get(f"{part} Time(ms)"), _MS, missing=-1)
        for part in ("Elapse", "Transit", "Wait", "Synchronization", "Idle")
    )
    return None if min(start, elapse, transit, wait, idle) < 0 else (start, elapse, transit, wait, max(sync, -1), idle)


def _transports(info: Any) -> tuple[list[tuple[str, Mapping[str, Any], int, int]], int]:
    """The transports that carried bytes, and how many records hold no size or no time."""
    carried: list[tuple[str, Mapping[str, Any], int, int]] = []
    unreadable = 0
    for transport, record in info.items() if isinstance(info, dict) else ():
        if isinstance(record, dict):
            size, transit = size_and_time(record)
            if size < 0 or transit < 0:
                unreadable += 1
            elif size > 0:
                carried.append((transport, record, size, transit))
    if any(transport in _PARTS_OF_SDMA for transport, *_ in carried):
        carried = [item for item in carried if item[0] != "SDMA"]
    return carried, unreadable


def size_and_time(record: Mapping[str, Any]) -> tuple[int, int]:
    """Bytes and ns of a transport or a link; negative where none is written."""
    size, transit = record.get("Transit Size(MB)"), record.get("Transit Time(ms)")
    return scaled(size, _MB, missing=-1), scaled(transit, _MS, missing=-1)


def _packets(record: Mapping[str, Any]) -> tuple[list[tuple[float, int, int]], int]:
    """Bytes, count and ns of each size of packet, and how many entries hold no such numbers."""
    packets: list[tuple[float, int, int]] = []
    unreadable = 0
    distribution = record.get("Size Distribution")
    for size, pair in distribution.items() if isinstance(distribution, dict) else ():
        count, transit = pair[:2] if isinstance(pair, list) and len(pair) >= 2 else (None, None)
        found = scaled(size, _MB, missing=-1), scaled(count, 0, missing=-1), scaled(transit, _MS, missing=-1)
        if min(found) < 0:
            unreadable += 1
        elif found[1] > 0:
            packets.append((float(found[0]), found[1], found[2]))
    return packets, unreadable


def _frame(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> pd.DataFrame | None:
    if not rows:
        return None
    columns = zip(*rows, strict=True)
    return frame({name: np.array(column, dtype=_dtype(name)) for name, column in zip(names, columns, strict=True)})


def _dtype(name: str) -> Any:
    if name == "packet_bytes":
        return np.float64
    return np.int64 if name == "step" or name.endswith(("_ns", "_bytes", "_count")) else object
