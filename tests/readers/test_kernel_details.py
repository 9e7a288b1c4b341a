"""kernel_details.csv in the versions met."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hermes_advisor.extractors.readers.kernel_details import read_kernel_details

Write = Callable[[str, str | bytes], Path]
HEADER = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,aicore_time(us),aic_mac_ratio,"
    "aic_scalar_ratio,aic_mte1_ratio,aic_mte2_ratio,aic_fixpipe_ratio,aiv_time(us),aiv_vec_ratio,aiv_scalar_ratio,"
    "aiv_mte2_ratio,aiv_mte3_ratio,cube_utilization(%)"
)
MATMUL = '13,0,1,7,2,mm,MatMulV3,dynamic,AI_CORE,1764246877073569.640\t,80.5,12.25,20,0,NO,"""1,2;3,4""",F;F,78.25,0.9,0.1,0.4,0.5,0.05,0.0,0.0,0.0,0.0,0.2,91.5'
ALL_REDUCE = (
    "13,0,1,N/A,N/A,hcom_allReduce__1_0,hcom_allReduce_,N/A,COMMUNICATION,1764246877073660.000\t,5,0,0" + ",N/A" * 16
)
CAST = '13,0,1,8,2,cast,Cast,N/A,AI_CPU,1764246877073569.000,3,N/A,N/A,0,NO,"""""",,N/A,N/A,N/A,N/A,N/A,N/A,inf,1e-05,N/A,N/A,N/A,N/A'


def read(write: Write, notes: list[Any], *lines: str) -> pd.DataFrame | None:
    return read_kernel_details(write("k.csv", "\n".join([*lines, ""])), notes)  # type: ignore[arg-type]


def test_a_recent_file(write: Write, notes: list[Any]) -> None:
    table = read(write, notes, HEADER, MATMUL, ALL_REDUCE)
    assert table is not None
    assert table.to_dict("records") == [
        {
            "name": "mm", "op_type": "MatMulV3", "core_type": "AI_CORE", "step": 13, "start_ns": 1764246877073569640,
            "duration_ns": 80500, "wait_ns": 12250, "block_dim": 20, "state": "dynamic", "has_shapes": True,
            "mac_ratio": 0.9, "aic_mte1_ratio": 0.4, "aic_mte2_ratio": 0.5, "aic_fixpipe_ratio": 0.05,
            "aic_scalar_ratio": 0.1, "vec_ratio": 0.0, "aiv_mte2_ratio": 0.0, "aiv_mte3_ratio": 0.2,
            "aiv_scalar_ratio": 0.0, "aicore_ns": 78250.0, "aiv_ns": 0.0, "row": 1,
        }
    ]  # fmt: skip
    assert notes == []


def test_order_is_by_start_and_rows_are_those_of_the_file(write: Write, notes: list[Any]) -> None:
    table = read(write, notes, HEADER, ALL_REDUCE, MATMUL, CAST)
    assert table is not None
    assert table[["name", "row"]].to_numpy().tolist() == [["cast", 3], ["mm", 2]]


def test_cells_that_hold_no_number(write: Write, notes: list[Any]) -> None:
    table = read(write, notes, HEADER, CAST)
    assert table is not None
    kernel = table.iloc[0]
    assert (kernel["wait_ns"], kernel["block_dim"], kernel["state"], kernel["vec_ratio"]) == (-1, -1, "", 1e-05)
    assert np.isnan(kernel[["mac_ratio", "aic_mte2_ratio", "aicore_ns", "aiv_ns"]].astype(float)).all()


def test_shapes_are_recorded_or_not(write: Write, notes: list[Any]) -> None:
    without = [MATMUL.replace('"""1,2;3,4"""', cell) for cell in ("N/A", "", '""""""')]
    table = read(write, notes, HEADER, MATMUL, *without)
    assert table is not None
    assert table["has_shapes"].tolist() == [True, False, False, True]  # `""` is written for a scalar


@pytest.mark.parametrize(
    ("replaced", "by", "column", "value"),
    [
        ("Block Dim,", "Block Num,", "block_dim", 20),
        ("OP State,", "Something,", "state", ""),
        ("Step Id,", "Something,", "step", -1),
        ("Wait Time(us),", "Something,", "wait_ns", -1),
        ("aic_mac_ratio,", "mac_ratio,", "mac_ratio", 0.9),
    ],
)
def test_other_headers(write: Write, notes: list[Any], replaced: str, by: str, column: str, value: object) -> None:
    table = read(write, notes, HEADER.replace(replaced, by, 1), MATMUL)
    assert table is not None
    assert table[column].tolist() == [value]


def test_a_file_of_2023(write: Write, notes: list[Any]) -> None:
    header = "Step Id,Model ID,Task ID,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim"
    table = read(
        write,
        notes,
        header,
        "2,1,N/A,N/A,hcom_x,hcom_,HCCL,1,2,0,0",
        "2,1,2,2,z,ZerosLike,AI_CORE,1695115378710248,498.4,0,48",
    )
    assert table is not None
    assert table[["name", "start_ns", "duration_ns", "state", "has_shapes"]].to_numpy().tolist() == [
        ["z", 1695115378710248000, 498400, "", False]
    ]
    assert np.isnan(table["mac_ratio"]).all()


def test_impossible_rows_are_counted(write: Write, notes: list[Any]) -> None:
    negative = MATMUL.replace(",80.5,", ",-1,")
    table = read(write, notes, HEADER, MATMUL, negative, MATMUL.replace("1764246877073569.640\t", "N/A"))
    assert table is not None
    assert table["row"].tolist() == [1]
    assert notes == [("unreadable_rows", "warning", 2)]


def test_communication_alone_gives_no_kernels(write: Write, notes: list[Any]) -> None:
    assert read(write, notes, HEADER, ALL_REDUCE) is None
    assert notes == [("no_kernels", "warning", 1)]


def test_names_are_kept_as_they_are(write: Write, notes: list[Any]) -> None:
    hostile = "=cmd|' /C calc'!A0</script>\x1b[31m[bold]"
    table = read(write, notes, HEADER, MATMUL.replace(",mm,", f",{hostile},"))
    assert table is not None
    assert table["name"].tolist() == [hostile]
