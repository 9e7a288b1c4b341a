"""The reasoning tree: every step shows rule, version, threshold, measured value and file; hostile names stay inert."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from hermes_advisor.engine.diagnose import diagnose
from hermes_advisor.engine.explain import Node, explain, find
from hermes_advisor.engine.kbtest import build_fact
from hermes_advisor.engine.loader import load_folders
from hermes_advisor.engine.matching.select import create_matcher
from hermes_advisor.engine.result import Diagnosis, Run, Unexplained
from hermes_advisor.facts.base import Source
from hermes_advisor.reports.terminal import render, render_tree

_spec = importlib.util.spec_from_file_location("rule_texts", Path(__file__).with_name("rule_texts.py"))
assert _spec and _spec.loader
texts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(texts)

RUN = Run(path="x", format="test", ranks=[0], ranks_expected=1, steps=[], duration_us=100000.0)


def make(write_base: Callable[[dict[str, str]], Path], file: str = "rank0/trace_view.json") -> Diagnosis:
    base = load_folders([write_base(texts.FILES)])
    source = Source(file=file, locator="events 1-9", reader="trace_view")
    facts = [
        build_fact({"fact": "launch_profile", "starved_step_ratio": 0.5, "starved_per_step_us": 50000}),
        build_fact({"fact": "kernel_summary", "short_kernel_ratio": 0.9}),
        build_fact({"fact": "operator_compile"}),
    ]
    facts = [f.model_copy(update={"source": source}) for f in facts]
    return diagnose(facts, RUN, base, create_matcher("reference"))


def lines(node: Node) -> Iterator[str]:
    yield node.text
    for child in node.children:
        yield from lines(child)


def test_the_tree_walks_from_the_finding_to_the_file(write_base: Callable[[dict[str, str]], Path]) -> None:
    d = make(write_base)
    text = "\n".join(lines(explain(d, d.findings[0])))
    for part in (
        "HMS-CPU-001 v1.2.3", "CAU-001 v1.0.0", "SYM-001 v1.0.0", "symptoms/starved.yaml",
        "starved for 50.0 %",  # the rule's words, its placeholder filled
        "starved_step_ratio 50.0 % ≥ 20.0 %", "margin 150 %",  # (0.5 - 0.2) / 0.2
        "limit ratio_min = 20.0 %: r [s]",
        "looked for and not found: operator_compile where rank = symptom.rank, step_ratio ≥ compile_max",
        "read from rank0/trace_view.json, events 1-9 (trace_view)",
        "recoverable_us = (0.5 × cause.cost_us) = 25.0 ms", "at most: half of the starved time",
        "do: Fuse them.", "set: export X=1", "check afterwards: launch_profile: starved_step_ratio < 10.0 %",
    ):  # fmt: skip
        assert part in text, part


def test_chinese_words(write_base: Callable[[dict[str, str]], Path]) -> None:
    d = make(write_base)
    text = "\n".join(lines(explain(d, d.findings[0], "zh")))
    assert "大量短算子" in text
    assert "由规则 SYM-001" in text
    assert "已查找且不存在" in text


def test_only_the_stored_result_is_read(write_base: Callable[[dict[str, str]], Path]) -> None:
    d = make(write_base)
    again = Diagnosis.model_validate_json(d.to_json())
    assert again == d
    assert explain(again, again.findings[0]).as_dict() == explain(d, d.findings[0]).as_dict()


@pytest.mark.parametrize("name", ["1", "HMS-CPU-001", "finding:HMS-CPU-001", "cpu.dispatch"])
def test_a_finding_is_found_by(write_base: Callable[[dict[str, str]], Path], name: str) -> None:
    d = make(write_base)
    assert find(d, name) is d.findings[0]


@pytest.mark.parametrize("name", ["0", "2", "io.reading", ""])
def test_no_finding_is_found_by(write_base: Callable[[dict[str, str]], Path], name: str) -> None:
    assert find(make(write_base), name) is None


def test_hostile_names_cannot_steer_the_terminal(write_base: Callable[[dict[str, str]], Path]) -> None:
    d = make(write_base, "r\x1b[2J\x1b]0;x\x07[bold red]\u202e\u2028.json")
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system=None, markup=False)
    render_tree(explain(d, d.findings[0]), console)
    assert "\x1b" not in out.getvalue()
    assert "\x07" not in out.getvalue()
    assert "\u202e" not in out.getvalue()
    assert "[bold red]" in out.getvalue()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_report_fits_eighty_columns(write_base: Callable[[dict[str, str]], Path], lang: str) -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, markup=False, highlight=False)
    render(make(write_base), console, lang)  # type: ignore[arg-type]
    from rich.cells import cell_len

    lines = out.getvalue().splitlines()
    assert max(cell_len(line) for line in lines) <= 80
    assert not [line for line in lines if line != line.rstrip()]
    assert "HMS-CPU-001" in out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_nothing_is_cut_whatever_the_width(write_base: Callable[[dict[str, str]], Path], lang: str, width: int) -> None:
    long = "a very long setting that must stay copyable --" + "x" * 120 + "=1"
    words = "很长的一句话没有空格" * 12
    case = texts.CASE.replace("export X=1", long).replace("一半的等待时间", words).replace("融合算子。", words)
    base = load_folders([write_base({**texts.FILES, "cases/cpu/many-short-kernels.yaml": case})])
    facts = [
        build_fact({"fact": "launch_profile", "starved_step_ratio": 0.5, "starved_per_step_us": 50000}),
        build_fact({"fact": "kernel_summary", "short_kernel_ratio": 0.9}),
        build_fact({"fact": "operator_compile"}),
    ]
    out = io.StringIO()
    d = diagnose(facts, RUN, base, create_matcher("reference"))
    render(d, Console(file=out, width=width, markup=False, highlight=False), lang)  # type: ignore[arg-type]
    text = out.getvalue()
    assert long in text
    if lang == "zh":
        assert words in "".join(line.strip() for line in text.splitlines())
    assert "…" not in text.replace("diagnose … -f", "")


def test_what_outweighs_every_finding_is_said_first(write_base: Callable[[dict[str, str]], Path]) -> None:
    d = make(write_base)
    big = Unexplained(
        symptom="exposed", ranks=[0], cost_us=90000.0, step_ratio=0.9, facts=[], i18n={"en": "e", "zh": "z"}
    )
    for seen, first in (([big], True), ([big.model_copy(update={"cost_us": 30000.0, "step_ratio": 0.3})], False)):
        out = io.StringIO()
        render(d.model_copy(update={"unexplained": seen}), Console(file=out, width=100, markup=False))
        text = out.getvalue()
        assert ("exposed takes 90.0 %" in text.split("1. [")[0]) is first
        assert "exposed (on rank 0): e" in text.split("1. [")[1]
