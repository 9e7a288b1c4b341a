"""The bundled knowledge base: clean, tested, broad enough, and both matchers agree on it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hermes_advisor.engine import chain
from hermes_advisor.engine.kbtest import build_fact, example, run_tests
from hermes_advisor.engine.lint import lint
from hermes_advisor.engine.loader import KnowledgeBase, load
from hermes_advisor.engine.matching.select import create_matcher
from hermes_advisor.facts.base import Fact, scalar_types
from hermes_advisor.facts.vocabulary import DERIVED_KINDS, FACT_TYPES

MEASURED = [m for kind, m in FACT_TYPES.items() if kind not in DERIVED_KINDS]


@pytest.fixture(scope="module")
def base() -> KnowledgeBase:
    return load()


def test_it_is_clean(base: KnowledgeBase) -> None:
    assert lint(base) == []


def test_its_own_tests_pass(base: KnowledgeBase) -> None:
    outcomes = list(run_tests(base, create_matcher("reference")))
    assert len(outcomes) > 200
    assert [o for o in outcomes if not o.passed] == []


def test_it_holds_what_was_promised(base: KnowledgeBase) -> None:
    cases = base.cases()
    assert len(cases) >= 25
    assert len({r.case.cause for r in cases if r.case}) >= 12


def perturbed(seed: int) -> list[Fact]:
    """Facts of every kind on two ranks, each number pushed around its healthy value, some kinds left out."""
    rng = random.Random(seed)
    out: list[Fact] = []
    for model in MEASURED:
        if rng.random() < 0.15:
            continue
        for rank in (0, 1):
            data: dict[str, Any] = {"fact": model.kind, **example(model)}
            for name, kind in scalar_types(model).items():
                if name in ("rank", "late_rank"):
                    data[name] = rank
                elif name in ("step", "missing_count", "crosses_stages"):
                    continue
                elif kind is float and name.endswith("_ratio"):
                    data[name] = rng.choice([0.0, 0.03, 0.12, 0.4, 0.9])
                elif kind in (int, float) and data[name] is not None:
                    data[name] = kind(data[name] * rng.choice([0, 0.1, 1, 3, 30]))
            out.append(build_fact(data))
    return out


def test_both_matchers_conclude_the_same(base: KnowledgeBase) -> None:
    pytest.importorskip("durable_rules_engine")
    durable, reference = create_matcher("durable"), create_matcher("reference")
    fired: set[str] = set()
    try:
        for seed in range(60):
            facts = perturbed(seed)
            a = chain.run(base, facts, durable)
            b = chain.run(base, facts, reference)
            assert [f.model_dump() for f in a.firings] == [f.model_dump() for f in b.firings], seed
            fired |= {f.rule for f in a.firings}
    finally:
        durable.close()
    assert len(fired) > len(base.active()) / 3  # the facts really exercise the rules


def test_loosening_data_never_invents_a_missing_kind(base: KnowledgeBase) -> None:
    """A case that fires never appears as not evaluable on the same facts."""
    for seed in range(20):
        outcome = chain.run(base, perturbed(seed), create_matcher("reference"))
        for instance in outcome.cases:
            assert not outcome.coverage.missing(instance.rule)


@pytest.mark.parametrize("model", MEASURED, ids=lambda m: m.kind)
def test_every_fact_kind_is_documented_and_says_how_to_collect_it(model: type[Fact]) -> None:
    assert model.__doc__
    assert set(example(model)) == set(model.model_fields)
    if model.kind != "trace_health":
        assert model.collect
        assert model.collect_zh
