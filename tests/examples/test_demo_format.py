"""The demo has the shape of the real files: columns, keys and their order compared with profiles from the field."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOUR_RANKS = "ascend-4rank-pp2dp2-level2/rank_0_ascend_pt"
TWO_RANKS = "ascend-2rank-text/level1/rank0_ascend_pt"
OUTPUT = "ASCEND_PROFILER_OUTPUT"


def header(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file))


def keys(value: Any) -> Any:
    """The nested keys of a JSON object, lists and leaves left out."""
    return {key: keys(inner) for key, inner in value.items()} if isinstance(value, dict) else None


@pytest.mark.parametrize(
    ("name", "source"),
    [(name, FOUR_RANKS) for name in ("kernel_details.csv", "step_trace_time.csv", "op_statistic.csv",
     "api_statistic.csv", "memory_record.csv", "operator_memory.csv", "npu_module_mem.csv")]
    + [("operator_details.csv", TWO_RANKS)],
)  # fmt: skip
def test_columns(demo_rank: Callable[[str, int], Any], field_dir: Path, name: str, source: str) -> None:
    assert header(demo_rank("slow", 0).output / name) == header(field_dir / source / OUTPUT / name)


def test_settings(demo_rank: Callable[[str, int], Any], field_dir: Path) -> None:
    text = demo_rank("slow", 0)
    info = json.loads((field_dir / FOUR_RANKS / "profiler_info_0.json").read_text())
    metadata = json.loads((field_dir / FOUR_RANKS / "profiler_metadata.json").read_text())
    assert keys(text.info) == keys(info)
    assert list(text.metadata) == list(metadata)
    assert list(text.metadata["distributed_args"]) == list(metadata["distributed_args"])
    assert list(text.metadata["ENV_VARIABLES"]) == list(metadata["ENV_VARIABLES"])
    assert (text.info["torch_npu_version"], text.info["cann_version"]) == ("2.7.1", "8.3.RC1")
    experimental = text.info["config"]["experimental_config"]
    assert experimental["_profiler_level"] == "Level1"
    assert experimental["_aic_metrics"] == info["config"]["experimental_config"]["_aic_metrics"]


def test_communication_keys(demo_rank: Callable[[str, int], Any], field_dir: Path) -> None:
    def shape(document: Any) -> tuple[Any, Any]:
        collective = next(iter(document.values()))["collective"]
        entry = next(v for k, v in collective.items() if v.get("Communication Bandwidth Info", {}).get("HCCS", {}))
        for part in (entry, collective["Total Op Info"]):
            for transport in part["Communication Bandwidth Info"].values():
                transport["Size Distribution"] = None
        return keys(entry), keys(collective["Total Op Info"])

    real = json.loads((field_dir / TWO_RANKS / OUTPUT / "communication.json").read_text())
    assert shape(demo_rank("slow", 0).json("communication.json")) == shape(real)


def test_matrix_keys(demo_rank: Callable[[str, int], Any], field_dir: Path) -> None:
    real = json.loads((field_dir / TWO_RANKS / OUTPUT / "communication_matrix.json").read_text())
    real_ops = next(iter(real.values()))["collective"]
    ours = next(iter(demo_rank("slow", 0).json("communication_matrix.json").values()))["collective"]
    assert [k.partition("@")[0] for k in ours] == [k.partition("@")[0] for k in real_ops]
    for one, other in zip(ours.values(), real_ops.values(), strict=True):
        assert list(one["0-1"]) == list(other["0-1"])


def test_event_keys_and_their_order(demo_rank: Callable[[str, int], Any], field_dir: Path) -> None:
    real = json.loads((field_dir / TWO_RANKS / OUTPUT / "trace_view.json").read_text())

    def kinds(events: list[dict[str, Any]]) -> dict[tuple[str, ...], set[tuple[Any, ...]]]:
        process = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
        out: dict[tuple[str, ...], set[tuple[Any, ...]]] = {}
        for event in events:
            lane = {"HCCL": "Communication"}.get(process[event["pid"]], process[event["pid"]])
            args = event.get("args", {})
            level = args.get("level", "") if lane == "CANN" else str("connection_id" in args)
            nested = [key for key in args if key != "Call stack"]
            kind = (event["ph"], lane, event.get("cat", ""), level, args.get("task type", ""))
            out.setdefault(kind, set()).add((*event, "|", *nested))
        return out

    seen = kinds(real)
    for kind, shapes in kinds(demo_rank("slow", 0).events).items():
        assert shapes <= seen[kind], kind


def test_cells_are_written_as_in_the_field(demo_rank: Callable[[str, int], Any]) -> None:
    lines = (demo_rank("slow", 0).output / "kernel_details.csv").read_text().splitlines()
    assert all("\t," in line for line in lines[1:])
    assert '"""10240,768;3072,768""",DT_BF16;DT_BF16,ND;ND,"""10240,3072""",DT_BF16,ND,' in lines[2]
    raw = (demo_rank("slow", 0).output / "trace_view.json").read_text()
    assert raw.startswith('[{"ph": "X", "name": "') and raw.endswith('"cat": "async_npu"}]')
    assert raw.count('},{"name": "process_name"') == 1
