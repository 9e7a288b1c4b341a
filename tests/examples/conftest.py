"""The committed demo folders, read with nothing but csv and json: none of the package's readers is involved."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"


def ns(text: str) -> int:
    """'1767322800250.654' µs (a trailing tab allowed) → ns, without a detour over floats."""
    whole, _, decimals = text.strip().partition(".")
    assert len(decimals) <= 3, text
    return int(whole) * 1000 + int(decimals.ljust(3, "0"))


def spans_union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if out and low <= out[-1][1]:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return out


class RankText:
    """One rank's files."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.rank = rank
        self.folder = folder
        self.output = folder / "ASCEND_PROFILER_OUTPUT"

    def table(self, name: str) -> list[dict[str, str]]:
        with (self.output / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def json(self, name: str) -> Any:
        return json.loads((self.output / name).read_text(encoding="utf-8"))

    @cached_property
    def info(self) -> Any:
        return json.loads((self.folder / f"profiler_info_{self.rank}.json").read_text(encoding="utf-8"))

    @cached_property
    def metadata(self) -> Any:
        return json.loads((self.folder / "profiler_metadata.json").read_text(encoding="utf-8"))

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json("trace_view.json")
        return found

    @cached_property
    def process(self) -> dict[int, str]:
        return {e["pid"]: e["args"]["name"] for e in self.events if e["ph"] == "M" and e["name"] == "process_name"}

    def lane(self, process: str, phase: str = "X") -> list[dict[str, Any]]:
        return [e for e in self.events if e["ph"] == phase and self.process[e["pid"]] == process]

    @cached_property
    def kernels(self) -> list[dict[str, str]]:
        return [r for r in self.table("kernel_details.csv") if r["Accelerator Core"] != "COMMUNICATION"]

    @cached_property
    def collective_rows(self) -> list[dict[str, str]]:
        return [r for r in self.table("kernel_details.csv") if r["Accelerator Core"] == "COMMUNICATION"]

    @cached_property
    def steps(self) -> dict[str, dict[str, int]]:
        rows = self.table("step_trace_time.csv")
        return {row["Step"]: {k: ns(v) for k, v in row.items() if k not in ("Step", "Device_id")} for row in rows}

    @cached_property
    def collectives(self) -> dict[str, dict[str, Any]]:
        """'step10/hcom_…@group' → the operator's entry of communication.json."""
        out = {}
        for step, traffic in self.json("communication.json").items():
            for name, entry in traffic["collective"].items():
                if name != "Total Op Info":
                    out[f"{step}/{name}"] = entry
        return out

    @staticmethod
    def span(row: dict[str, str]) -> tuple[int, int]:
        start = ns(row["Start Time(us)"])
        return start, start + ns(row["Duration(us)"])


RUNS = [("slow", 0), ("slow", 1), ("healthy", 0), ("healthy", 1)]
_CACHE: dict[tuple[str, int], RankText] = {}


def load(run: str, rank: int) -> RankText:
    if (run, rank) not in _CACHE:
        _CACHE[run, rank] = RankText(DEMO / run / f"rank{rank}_ascend_pt", rank)
    return _CACHE[run, rank]


@pytest.fixture(params=RUNS, ids=lambda run: f"{run[0]}-{run[1]}")
def rank_text(request: pytest.FixtureRequest) -> RankText:
    return load(*request.param)


@pytest.fixture(scope="session")
def demo_rank() -> Callable[[str, int], RankText]:
    return load


@pytest.fixture(scope="session")
def to_ns() -> Callable[[str], int]:
    return ns


@pytest.fixture(scope="session")
def union() -> Callable[[Iterable[tuple[int, int]]], list[tuple[int, int]]]:
    return spans_union
