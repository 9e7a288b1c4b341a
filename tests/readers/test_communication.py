"""communication.json: units, double counting, and what may be missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hermes_advisor.extractors.readers.communication import CommunicationTables, operator_kind, read_communication
from hermes_advisor.extractors.readers.errors import UnreadableFileError

Write = Callable[[str, str | bytes], Path]
NOTHING = {
    "Transit Size(MB)": 0,
    "Transit Time(ms)": 0,
    "Bandwidth(GB/s)": 0,
    "Large Packet Ratio": 0,
    "Size Distribution": {},
}


def carried(size: float, time: float, **distribution: list[float]) -> dict[str, Any]:
    return {"Transit Size(MB)": size, "Transit Time(ms)": time, "Bandwidth(GB/s)": 1, "Size Distribution": distribution}


def operator(start: str, elapse: float, transit: float = 0, **transports: dict[str, Any]) -> dict[str, Any]:
    times = {
        "Start Timestamp(us)": float(start), "Elapse Time(ms)": elapse, "Transit Time(ms)": transit,
        "Wait Time(ms)": 0.5, "Synchronization Time(ms)": 0.25, "Idle Time(ms)": 0.125, "Wait Time Ratio": 1.0,
    }  # fmt: skip
    return {"Communication Time Info": times, "Communication Bandwidth Info": transports}


def read(write: Write, notes: Any, document: Any) -> CommunicationTables:
    text = document if isinstance(document, str | bytes) else json.dumps(document)
    return read_communication(write("communication.json", text), notes)


def records(table: pd.DataFrame | None) -> list[list[Any]]:
    assert table is not None
    return table.to_numpy().tolist()


ALL_REDUCE = operator(
    "1764246877147674.5", 158.55328, 0.40168,
    RDMA=NOTHING, HCCS=carried(8.388608, 0.40168, **{"8.388608": [1, 0.40168]}), PCIE=NOTHING,
    SDMA=carried(8.388608, 0.40168), SIO=NOTHING,
)  # fmt: skip


def test_one_operator(write: Write, notes: list[Any]) -> None:
    found = read(write, notes, {"step13": {"p2p": {}, "collective": {"hcom_allReduce__128_4_1@39853": ALL_REDUCE}}})
    assert records(found.ops) == [
        [13, "collective", "allReduce", "hcom_allReduce__128_4_1", "39853", 1764246877147674500, 158553280, 401680,
         500000, 250000, 125000]
    ]  # fmt: skip
    # SDMA repeats the bytes of HCCS: counted once.
    assert records(found.bandwidth) == [
        [13, "collective", "hcom_allReduce__128_4_1", "39853", "HCCS", 8388608, 401680, 158553280]
    ]
    assert records(found.packets) == [[13, "hcom_allReduce__128_4_1", "39853", "HCCS", 8388608.0, 1, 401680]]
    assert notes == []


def test_totals_are_left_out(write: Write, notes: list[Any]) -> None:
    total = {"Communication Time Info": {"Elapse Time(ms)": 9}, "Communication Bandwidth Info": {"HCCS": carried(9, 9)}}
    found = read(
        write,
        notes,
        {"step1": {"collective": {"hcom_x@g": ALL_REDUCE, "Total Op Info": total, "Total Op Info@g": total}}},
    )
    assert len(records(found.ops)) == len(records(found.bandwidth)) == 1


@pytest.mark.parametrize(
    ("transports", "expected"),
    [
        ({"SDMA": carried(1, 1)}, ["SDMA"]),
        ({"SDMA": carried(1, 1), "HCCS": NOTHING}, ["SDMA"]),
        ({"SDMA": carried(2, 1), "HCCS": carried(1, 1), "PCIE": carried(1, 1)}, ["HCCS", "PCIE"]),
        ({"SDMA": carried(1, 1), "SIO": carried(1, 1)}, ["SIO"]),
        ({"SDMA": carried(1, 1), "RDMA": carried(5, 1), "HCCS": carried(1, 1)}, ["RDMA", "HCCS"]),
        ({"RDMA": carried(5, 1), "SDMA": carried(1, 1)}, ["RDMA", "SDMA"]),
    ],
)
def test_no_byte_is_counted_twice(
    write: Write, notes: list[Any], transports: dict[str, Any], expected: list[str]
) -> None:
    found = read(write, notes, {"1": {"collective": {"hcom_x@g": operator("1", 2, **transports)}}})
    assert found.bandwidth is not None
    assert found.bandwidth["transport"].tolist() == expected


def test_missing_keys_and_odd_numbers(write: Write, notes: list[Any]) -> None:
    sparse = {
        "Communication Time Info": {
            "Start Timestamp(us)": 10, "Elapse Time(ms)": "2", "Transit Time(ms)": 0, "Wait Time(ms)": 0,
            "Idle Time(ms)": "1.5",
        },
        "Communication Bandwidth Info": {
            "HCCS": {"Transit Size(MB)": "4e-05", "Transit Time(ms)": 0},
            "RDMA": None,
        },
    }  # fmt: skip
    found = read(write, notes, {"step": {"p2p": {"hcom_send__1_0": sparse}}})
    assert records(found.ops) == [[-1, "p2p", "send", "hcom_send__1_0", "", 10000, 2000000, 0, 0, -1, 1500000]]
    assert records(found.bandwidth) == [[-1, "p2p", "hcom_send__1_0", "", "HCCS", 40, 0, 2000000]]
    assert found.packets is None


def test_operators_without_times_are_counted(write: Write, notes: list[Any]) -> None:
    broken: dict[str, Any] = {
        "a@g": {},
        "b@g": None,
        "c@g": [1],
        "d@g": {"Communication Time Info": {"Elapse Time(ms)": 1}},
    }
    found = read(write, notes, {"step1": {"collective": {**broken, "hcom_x@g": ALL_REDUCE}}})
    assert len(records(found.ops)) == 1
    assert notes == [("unreadable_operators", "warning", 4)]


GONE = object()


@pytest.mark.parametrize("value", [GONE, "N/A", None, -5])
@pytest.mark.parametrize("part", ["Elapse", "Transit", "Wait", "Idle"])
def test_a_time_that_is_not_written_is_no_zero(write: Write, notes: list[Any], part: str, value: Any) -> None:
    bad = operator("1", 2, HCCS=carried(1, 1))
    times = bad["Communication Time Info"]
    times[f"{part} Time(ms)"] = value
    if value is GONE:
        del times[f"{part} Time(ms)"]
    found = read(write, notes, {"1": {"collective": {"hcom_x@g": bad, "hcom_y@g": operator("1", 2)}}})
    assert found.ops is not None
    assert found.ops["name"].tolist() == ["hcom_y"]
    assert found.bandwidth is None
    assert notes == [("unreadable_operators", "warning", 1)]


@pytest.mark.parametrize("value", [GONE, "N/A", None, -5])
@pytest.mark.parametrize("key", ["Transit Size(MB)", "Transit Time(ms)"])
def test_a_transport_without_size_or_time_is_left_out(write: Write, notes: list[Any], key: str, value: Any) -> None:
    bad = {**carried(9, 9, **{"9": [1, 9]}), key: value}
    if value is GONE:
        del bad[key]
    transports = {"HCCS": bad, "RDMA": carried(1, 1, **{"1": [1, 1]})}
    found = read(write, notes, {"1": {"collective": {"hcom_x@g": operator("1", 2, **transports)}}})
    assert records(found.bandwidth) == [[1, "collective", "hcom_x", "g", "RDMA", 1000000, 1000000, 2000000]]
    assert records(found.packets) == [[1, "hcom_x", "g", "RDMA", 1000000.0, 1, 1000000]]
    assert notes == [("unreadable_numbers", "warning", 1)]


def test_packets_of_one_operator(write: Write, notes: list[Any]) -> None:
    sizes = {
        "2.064384": [12, 1.578891625],
        "1.937312": [2, 0.25],
        "bad": [1, 1],
        "1": 7,
        "3": [0, 1],
        "4": [1, "N/A"],
        "5": [-1, 1],
    }
    found = read(
        write,
        notes,
        {"1": {"collective": {"hcom_x@g": operator("1", 2, HCCS=carried(28.647232000000002, 2, **sizes))}}},
    )  # type: ignore[arg-type]
    assert records(found.packets) == [
        [1, "hcom_x", "g", "HCCS", 2064384.0, 12, 1578892],
        [1, "hcom_x", "g", "HCCS", 1937312.0, 2, 250000],
    ]
    assert notes == [("unreadable_numbers", "warning", 4)]


def test_a_file_without_the_level_of_steps(write: Write, notes: list[Any]) -> None:
    found = read(write, notes, {"p2p": {}, "collective": {"hcom_x@g": ALL_REDUCE}})
    assert records(found.ops)[0][:2] == [-1, "collective"]


def test_no_operators(write: Write, notes: list[Any]) -> None:
    found = read(write, notes, {"step1": {"p2p": {}, "collective": {}}})
    assert (found.ops, found.bandwidth, found.packets) == (None, None, None)
    assert notes == [("no_operators", "info", 1)]


def test_json_that_is_not_strict(write: Write, notes: list[Any]) -> None:
    text = json.dumps({"step1": {"collective": {"hcom_x@g": ALL_REDUCE}}}).replace(
        '"Wait Time Ratio": 1.0', '"Wait Time Ratio": NaN'
    )
    text = text.replace("hcom_x@g", "hcom_\xff@g\\ud800")
    found = read(write, notes, b"\xef\xbb\xbf" + text.encode("latin-1"))
    assert records(found.ops)[0][3:6] == ["hcom_\ufffd", "g?", 1764246877147674500]


@pytest.mark.parametrize(
    ("content", "issue"),
    [
        ("", "empty_file"),
        ("  \n", "empty_file"),
        ("[]", "unexpected_json"),
        ("3", "unexpected_json"),
        ('{"step1": 3}', "unexpected_json"),
        ('{"step1": {"collective": {"a@g": {', "damaged_json"),
        ("[" * 100_000, "damaged_json"),
        ('{"step1": ' + "9" * 10_000 + "}", "damaged_json"),
        (b"\x00\x01\x02\xff", "damaged_json"),
    ],
)
def test_a_file_that_is_not_the_document(write: Write, notes: list[Any], content: str | bytes, issue: str) -> None:
    with pytest.raises(UnreadableFileError) as error:
        read(write, notes, content)
    assert error.value.issue == issue


def test_operator_kinds() -> None:
    names = ("hcom_allReduce__586_0_1", "hcom_batchSendRecv__128_3_1", "hcom_send__822_0", "AllToAll-7", "7")
    assert [operator_kind(name) for name in names] == ["allReduce", "batchSendRecv", "send", "AllToAll", "7"]
