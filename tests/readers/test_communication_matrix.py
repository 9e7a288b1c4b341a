"""communication_matrix.json: each byte of a link is counted once, in the new layout and in the old."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_advisor.extractors.readers.communication_matrix import read_communication_matrix

Write = Callable[[str, str | bytes], Path]


def link(transport: str, size: float, time: float, op: str = "") -> dict[str, Any]:
    record = {"Transport Type": transport, "Transit Size(MB)": size, "Transit Time(ms)": time, "Bandwidth(GB/s)": 1}
    return {**record, "Op Name": op} if op else record


def read(write: Write, notes: Any, document: Any) -> list[list[Any]] | None:
    table = read_communication_matrix(write("m.json", json.dumps(document)), notes)
    return None if table is None else table.to_numpy().tolist()


def test_of_samples_and_total_the_total_is_taken(write: Write, notes: list[Any]) -> None:
    entries = {
        "allreduce-top1@g": {"0-0": link("LOCAL", 4, 1, "a"), "0-1": link("HCCS", 37, 2, "c")},
        "allreduce-middle@g": {"0-0": link("LOCAL", 4, 1, "a"), "0-1": link("HCCS", 16, 1, "b")},
        "allreduce-total@g": {"0-0": link("LOCAL", 61.210656, 0.145802875), "0-1": link("HCCS", 60.332352, 3.77)},
        "allreduce-bottom1@g": {"0-1": link("HCCS", 2, 1, "d")},
    }
    assert read(write, notes, {"step50": {"p2p": {}, "collective": entries}}) == [
        [50, "collective", "allreduce", "g", 0, 0, "LOCAL", 61210656, 145803],
        [50, "collective", "allreduce", "g", 0, 1, "HCCS", 60332352, 3770000],
    ]
    assert notes == []


def test_without_a_total_each_sampled_operator_counts_once(write: Write, notes: list[Any]) -> None:
    entries = {
        "allreduce-top1@g": {"0-1": link("HCCS", 1, 1, "a")},
        "allreduce-middle@g": {"0-1": link("HCCS", 1, 1, "a")},
        "allreduce-bottom1@g": {"0-1": link("HCCS", 2, 3, "b")},
    }
    assert read(write, notes, {"1": {"collective": entries}}) == [
        [1, "collective", "allreduce", "g", 0, 1, "HCCS", 3000000, 4000000]
    ]
    assert notes == [("sampled_links", "warning", 1)]


def test_the_old_layout_is_summed_by_kind_and_its_total_left_out(write: Write, notes: list[Any]) -> None:
    entries = {
        "hcom_allReduce__1_0@g": {"0-1": link("HCCS", 1, 1)},
        "hcom_allReduce__1_1@g": {"0-1": link("HCCS", 2, 2), "1-0": link("RDMA", 5, 1)},
        "hcom_allGather__1_2@g": {"0-1": link("HCCS", 4, 4)},
        "hcom_allReduce__2_0@h": {"0-1": link("HCCS", 8, 8)},
        "Total Op Info": {"0-1": link("HCCS", 15, 15)},
    }
    assert read(write, notes, {"step2": {"collective": entries}}) == [
        [2, "collective", "allReduce", "g", 0, 1, "HCCS", 3000000, 3000000],
        [2, "collective", "allReduce", "g", 1, 0, "RDMA", 5000000, 1000000],
        [2, "collective", "allGather", "g", 0, 1, "HCCS", 4000000, 4000000],
        [2, "collective", "allReduce", "h", 0, 1, "HCCS", 8000000, 8000000],
    ]


def test_what_is_no_link_is_counted(write: Write, notes: list[Any]) -> None:
    entries: dict[str, Any] = {
        "send-total@g": {
            "0-1": link("HCCS", 1, 1),
            "01": link("HCCS", 9, 9),
            "0-2": {},
            "a-b": link("HCCS", 9, 9),
            "1-2": None,
        },
        "recv-total@g": None,
    }
    assert read(write, notes, {"step2": {"p2p": entries}}) == [[2, "p2p", "send", "g", 0, 1, "HCCS", 1000000, 1000000]]
    assert notes == [("unreadable_links", "warning", 4)]


GONE = object()


@pytest.mark.parametrize("value", [GONE, "N/A", None, -5])
@pytest.mark.parametrize("key", ["Transit Size(MB)", "Transit Time(ms)"])
def test_a_link_without_size_or_time_is_left_out(write: Write, notes: list[Any], key: str, value: Any) -> None:
    bad = {**link("HCCS", 9, 9), key: value}
    if value is GONE:
        del bad[key]
    # Neither half of the pair may enter the sum: a time without its bytes would make the link look slow.
    entries = {
        "hcom_send__1_0@g": {"0-1": bad, "0-2": bad},
        "hcom_send__1_1@g": {"0-1": link("HCCS", 2, 1), "0-3": link("HCCS", 0, 0)},
    }
    assert read(write, notes, {"1": {"p2p": entries}}) == [
        [1, "p2p", "send", "g", 0, 1, "HCCS", 2000000, 1000000],
        [1, "p2p", "send", "g", 0, 3, "HCCS", 0, 0],
    ]
    assert notes == [("unreadable_numbers", "warning", 2)]


def test_no_links_give_no_table(write: Write, notes: list[Any]) -> None:
    assert read(write, notes, {"step2": {"p2p": {}, "collective": {"allreduce-total@g": {}}}}) is None
    assert notes == [("no_links", "info", 1)]


def test_huge_numbers_do_not_overflow(write: Write, notes: list[Any]) -> None:
    entries = {f"hcom_x__{i}@g": {"0-1": link("HCCS", 9e12, 1)} for i in range(3)}
    table = read(write, notes, {"1": {"p2p": entries}})
    assert table is not None
    assert table[0][7] == 2**63 - 1
