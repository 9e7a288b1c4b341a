"""communication.json → ``comm_ops``, ``comm_bandwidth`` and ``comm_packets`` of one rank.

Sizes there are MB of 10^6 bytes and times milliseconds, both with the noise of a double; starts are Unix times in µs.
``Total Op Info`` sums the operators above it and is left out. SDMA is the sum of HCCS, PCIE and SIO: it is kept only
where none of these carries bytes, so that no byte is counted twice.
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
    bad = 0
    for step, traffic, key, value in operators(read_json(path)):
        name, _, group = key.rpartition("@") if "@" in key else (key, "", "")
        times = value.get("Communication Time Info") if isinstance(value, dict) else None
        start = scaled(times.get("Start Timestamp(us)"), 3, missing=-1) if isinstance(times, dict) else -1
        elapse = scaled(times.get("Elapse Time(ms)"), _MS, missing=-1) if isinstance(times, dict) else -1
        if not isinstance(times, dict) or start < 0 or elapse < 0:
            bad += 1
            continue
        parts = (scaled(times.get(f"{part} Time(ms)"), _MS) for part in ("Transit", "Wait", "Synchronization", "Idle"))
        ops.append((step, traffic, operator_kind(name), name, group, start, elapse, *parts))
        for transport, record, size, transit in _transports(value.get("Communication Bandwidth Info")):
            bandwidth.append((step, traffic, name, group, transport, size, transit, elapse))
            packets.extend((step, name, group, transport, *packet) for packet in _packets(record))
    if bad:
        note("unreadable_operators", "warning", "left out: they carry no start or elapse time", count=bad)
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


def _transports(info: Any) -> list[tuple[str, Mapping[str, Any], int, int]]:
    if not isinstance(info, dict):
        return []
    carried: list[tuple[str, Mapping[str, Any], int, int]] = []
    for transport, record in info.items():
        if isinstance(record, dict):
            size, transit = scaled(record.get("Transit Size(MB)"), _MB), scaled(record.get("Transit Time(ms)"), _MS)
            if size > 0:
                carried.append((transport, record, size, transit))
    if any(transport in _PARTS_OF_SDMA for transport, *_ in carried):
        carried = [item for item in carried if item[0] != "SDMA"]
    return carried


def _packets(record: Mapping[str, Any]) -> Iterator[tuple[float, int, int]]:
    distribution = record.get("Size Distribution")
    if not isinstance(distribution, dict):
        return
    for size, pair in distribution.items():
        if isinstance(pair, list) and len(pair) >= 2:
            count, size_bytes = scaled(pair[0], 0), scaled(size, _MB, missing=-1)
            if count > 0 and size_bytes >= 0:
                yield float(size_bytes), count, scaled(pair[1], _MS)


def _frame(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> pd.DataFrame | None:
    if not rows:
        return None
    columns = zip(*rows, strict=True)
    return frame({name: np.array(column, dtype=_dtype(name)) for name, column in zip(names, columns, strict=True)})


def _dtype(name: str) -> Any:
    if name == "packet_bytes":
        return np.float64
    return np.int64 if name == "step" or name.endswith(("_ns", "_bytes", "_count")) else object
