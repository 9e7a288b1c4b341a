"""api_statistic.csv, op_statistic.csv and operator_details.csv."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hermes_advisor.extractors.readers.memory import read_memory_record
from hermes_advisor.extractors.readers.statistics import read_api_statistic, read_op_statistic, read_operator_details

Write = Callable[[str, str | bytes], Path]


def test_api_statistic(write: Write, notes: list[Any]) -> None:
    content = (
        "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n"
        "host,acl,aclnnAdd,666.3,114,5.845,0.25,29.17,34.995\n"
        "host,runtime,KernelLaunch,1.5,1,1.5,1.5,N/A,0\n"
        "host,runtime,Broken,N/A,1,1.5,1.5,1.5,0\n"
    )
    table = read_api_statistic(write("a.csv", content), notes)  # type: ignore[arg-type]
    assert table is not None
    assert table.to_dict("records") == [
        {
            "api": "aclnnAdd",
            "level": "acl",
            "call_count": 114,
            "total_ns": 666300,
            "mean_ns": 5845,
            "max_ns": 29170,
            "row": 1,
        },
        {
            "api": "KernelLaunch",
            "level": "runtime",
            "call_count": 1,
            "total_ns": 1500,
            "mean_ns": 1500,
            "max_ns": -1,
            "row": 2,
        },
    ]
    assert notes == [("unreadable_rows", "warning", 1)]


def test_api_statistic_of_an_older_version(write: Write, notes: list[Any]) -> None:
    content = "Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\r\nhccl,Launch_Ffts,474.41,4,118.603,89.18,138.75,389.155\r\n"
    table = read_api_statistic(write("a.csv", content), notes)  # type: ignore[arg-type]
    assert table is not None
    assert table[["level", "api", "total_ns"]].to_numpy().tolist() == [["hccl", "Launch_Ffts", 474410]]


def test_op_statistic(write: Write, notes: list[Any]) -> None:
    content = (
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        "0,FlashAttentionScoreGrad,MIX_AIC,28,63128.66,2219.14,2254.595,2286.72,27.294\n"
    )
    table = read_op_statistic(write("o.csv", content), notes)  # type: ignore[arg-type]
    assert table is not None
    assert table.to_dict("records") == [
        {
            "op_type": "FlashAttentionScoreGrad", "core_type": "MIX_AIC", "kernel_count": 28, "total_ns": 63128660,
            "mean_ns": 2254595, "max_ns": 2286720, "row": 1,
        }
    ]  # fmt: skip


def test_operator_details_are_summed_by_name_over_stacks_of_many_lines(write: Write, notes: list[Any]) -> None:
    content = (
        "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),Device Self Duration(us)\n"
        'aten::to,"1,2;\r\n;\r\n","a.py(1): f;\r\nb.py(2): ""g""",1.5,4.25,0\n'
        "aten::add,,,2,2,1\n"
        'aten::to,,"a.py(1): f;\n",0.5,1,0\n'
    )
    table = read_operator_details(write("d.csv", content), notes)  # type: ignore[arg-type]
    assert table is not None
    assert table.to_dict("records") == [
        {"name": "aten::add", "call_count": 1, "self_ns": 2000, "total_ns": 2000, "row": 2},
        {"name": "aten::to", "call_count": 2, "self_ns": 2000, "total_ns": 5250, "row": 1},
    ]


def test_memory_sizes_are_mebibytes(write: Write, notes: list[Any]) -> None:
    content = (
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n"
        "APP,1764246877082702.440\t,,2109.6015625,,,NPU:0\n"
        "PTA,1764246877082703.440\t,0.5,4,0.25,7,NPU:0\n"
    )
    table = read_memory_record(write("m.csv", content), notes)  # type: ignore[arg-type]
    assert table is not None
    # 2109.6015625 MiB = 2160232 KiB, as the NPU MEM counter of the same capture says.
    assert table.drop(columns="row").to_numpy().tolist() == [
        ["APP", 1764246877082702440, -1, 2160232 * 1024, -1],
        ["PTA", 1764246877082703440, 1 << 19, 4 << 20, 1 << 18],
    ]


def test_memory_of_an_old_file_saved_by_a_spreadsheet(write: Write, notes: list[Any]) -> None:
    content = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device Type\nAPP,1.69512E+15,,1,NPU:1\n"
    table = read_memory_record(write("m.csv", content), notes)  # type: ignore[arg-type]
    assert table is not None
    assert table[["time_ns", "active_bytes"]].to_numpy().tolist() == [[1695120000000000000, -1]]
    assert notes == [("rounded_times", "warning", 1)]
