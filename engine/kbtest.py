"""The tests inside rule files: a knowledge base in, one outcome per test out. The runner is public, so that anyone who
writes rules can use it (``hermes kb test``).

Facts that a test lists are completed with each field's healthy example value; kinds that it does not list were not
measured. Besides the in-file tests, a profile of all fact kinds at their healthy values must fire nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from hermes_advisor.engine import chain
from hermes_advisor.engine.chain import Outcome
from hermes_advisor.engine.diagnose import diagnose
from hermes_advisor.engine.loader import KnowledgeBase
from hermes_advisor.engine.matching.select import MatcherStack
from hermes_advisor.engine.problems import did_you_mean
from hermes_advisor.engine.result import Run
from hermes_advisor.engine.rules import Rule
from hermes_advisor.engine.schema import RuleTest
from hermes_advisor.facts.base import Fact
from hermes_advisor.facts.vocabulary import DERIVED_KINDS, FACT_TYPES


@dataclass(frozen=True)
class TestOutcome:
    """One test as it came out; ``message`` says what was expected and what happened."""

    __test__ = False  # not a pytest class
    rule: str
    name: str
    passed: bool
    message: str
    file: str
    line: int
    column: int


class BadTestFact(Exception):
    """A fact in a test is not one of the vocabulary; says what was expected."""


def run_tests(knowledge: KnowledgeBase, matcher: MatcherStack) -> Iterator[TestOutcome]:
    """Run every test of every rule, and the healthy profile."""
    for _, rule in sorted(knowledge.rules.items()):
        doc = knowledge.documents[rule.file]
        for i, test in enumerate(rule.tests):
            line, column = doc.at(("tests", i))
            try:
                message = _check(knowledge, rule, test, matcher)
            except BadTestFact as error:
                message = str(error)
            yield TestOutcome(rule.id, test.name, not message, message, rule.file, line, column)
    yield _healthy(knowledge, matcher)


def build_fact(raw: Mapping[str, Any]) -> Fact:
    """A fact from a test entry, completed with healthy values. Raises BadTestFact."""
    data = dict(raw)
    kind = data.pop("fact", None)
    if not isinstance(kind, str) or kind not in FACT_TYPES:
        raise BadTestFact(f"unknown fact '{kind}'{did_you_mean(str(kind), FACT_TYPES)}")
    model = FACT_TYPES[kind]
    for name in data:
        if name not in model.model_fields:
            raise BadTestFact(f"'{kind}' has no field '{name}'{did_you_mean(name, model.model_fields)}")
    try:
        return model.model_validate(
            {**example(model), **{k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}}
        )
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise BadTestFact(f"{kind}.{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from error


def example(model: type[Fact]) -> dict[str, Any]:
    """The healthy value of every field of a fact kind."""
    return {name: info.examples[0] for name, info in model.model_fields.items() if info.examples}


def _check(knowledge: KnowledgeBase, rule: Rule, test: RuleTest, matcher: MatcherStack) -> str:
    facts = [build_fact(raw) for raw in test.facts]
    rules = knowledge.active()
    if rule not in rules:
        rules = [*rules, rule]
    outcome = chain.run(knowledge, facts, matcher, rules)
    got = _verdict(rule, outcome)
    if got != test.expect:
        return f"expected {test.expect}, got {got}{_why(rule, outcome)}"
    if test.expect == "fires" and rule.case is not None:
        return _numbers(knowledge, rule, test, facts, matcher)
    return ""


def _verdict(rule: Rule, outcome: Outcome) -> str:
    if any(f.rule == rule.id for f in outcome.firings):
        return "fires"
    if outcome.coverage.missing(rule) or rule.id in outcome.withheld:
        return "not_evaluated"
    return "silent"


def _why(rule: Rule, outcome: Outcome) -> str:
    missing = sorted(m.what for m in outcome.coverage.missing(rule)) or sorted(
        m.what for m in outcome.withheld.get(rule.id, {})
    )
    if missing:
        return f" (not measured: {', '.join(missing)})"
    concluded = sorted({str(e.values["name"]) for e in outcome.facts if e.fact.kind in DERIVED_KINDS})
    return f" (concluded: {', '.join(concluded) or 'nothing'})"


def _numbers(knowledge: KnowledgeBase, rule: Rule, test: RuleTest, facts: list[Fact], matcher: MatcherStack) -> str:
    if test.ranks is None and test.recoverable_us is None and test.recoverable_share is None:
        return ""
    run = Run(path="", format="", ranks=[], ranks_expected=0, steps=[], duration_us=0.0)
    awake = dataclasses.replace(knowledge, enabled=knowledge.enabled | {rule.id})  # drafts are tested, too
    finding = next(f for f in diagnose(facts, run, awake, matcher).findings if f.case == rule.id)
    if test.ranks is not None and finding.ranks != test.ranks:
        return f"expected ranks {test.ranks}, got {finding.ranks}"
    for name in ("recoverable_us", "recoverable_share"):
        wanted, got = getattr(test, name), getattr(finding, name)
        if wanted is not None and not math.isclose(wanted, got, rel_tol=1e-6, abs_tol=1e-6):
            return f"expected {name} {wanted}, got {got}"
    return ""


def _healthy(knowledge: KnowledgeBase, matcher: MatcherStack) -> TestOutcome:
    facts = [m.model_validate(example(m)) for kind, m in FACT_TYPES.items() if kind not in DERIVED_KINDS]
    outcome = chain.run(knowledge, facts, matcher)
    fired = sorted({f.rule for f in outcome.firings})
    message = f"fires on healthy values: {', '.join(fired)}" if fired else ""
    return TestOutcome("(all)", "a healthy profile fires nothing", not fired, message, "manifest.yaml", 1, 1)
