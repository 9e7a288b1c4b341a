"""Checks of a loaded knowledge base beyond what makes it unusable: small classes, each with a code; problems out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from hermes_advisor.engine.kbtest import BadTestFact, build_fact
from hermes_advisor.engine.loader import KnowledgeBase
from hermes_advisor.engine.operands import Const, ParamRef
from hermes_advisor.engine.problems import Problem
from hermes_advisor.engine.rules import Rule, Test
from hermes_advisor.engine.tests_on_facts import compare
from hermes_advisor.engine.yamlio import Path
from hermes_advisor.facts.base import unit_of
from hermes_advisor.facts.conclusions import Cause
from hermes_advisor.facts.vocabulary import DERIVED_KINDS


class Check(Protocol):
    """One check; ``code`` names it in messages and in the documentation."""

    code: str

    def run(self, rule: Rule) -> Iterator[tuple[Path, str]]:
        """Yield where and what."""
        ...


class MissingTestKind:
    """Every rule shows that it fires, stays silent, and says when it cannot tell."""

    code = "missing-test-kind"

    def run(self, rule: Rule) -> Iterator[tuple[Path, str]]:
        """Yield the kinds of test that are missing."""
        have = {t.expect for t in rule.tests}
        for kind in ("fires", "silent", "not_evaluated"):
            if kind not in have:
                yield ("tests",), f"no test with 'expect: {kind}'"


class BadTest:
    """Facts in tests exist and have the fields that they are given."""

    code = "bad-test-fact"

    def run(self, rule: Rule) -> Iterator[tuple[Path, str]]:
        """Yield facts that cannot be built."""
        for i, test in enumerate(rule.tests):
            for j, raw in enumerate(test.facts):
                try:
                    build_fact(raw)
                except BadTestFact as error:
                    yield ("tests", i, "facts", j), str(error)


class LiteralThreshold:
    """A number with a unit that a condition compares with is a named parameter with a reason and a source."""

    code = "literal-threshold"

    def run(self, rule: Rule) -> Iterator[tuple[Path, str]]:
        """Yield comparisons with unnamed numbers (0, 1 and -1 are allowed)."""
        for path, test in _tests(rule):
            value = test.operand.value if isinstance(test.operand, Const) else None
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if number and value not in (0, 1, -1) and (unit_of(test.field) or isinstance(value, float)):
                yield path, f"'{test.field} {test.op} {value}': make {value} a parameter with a reason and a source"


class OneSidedThreshold:
    """Tests hold a measured value on both sides of every parameter that a field is compared with."""

    code = "one-sided-threshold"

    def run(self, rule: Rule) -> Iterator[tuple[Path, str]]:
        """Yield thresholds that no test crosses."""
        for fact, test, path in _threshold_tests(rule):
            assert isinstance(test.operand, ParamRef)
            limit = rule.params[test.operand.name]
            stated = _stated(rule, fact, test.field)
            if fact in DERIVED_KINDS and not stated:
                continue  # its tests start from measured facts; the values of conclusions follow from those
            sides = {compare(test.op, v, limit) for v in stated}
            for side, word in ((True, "holds"), (False, "does not hold")):
                if side not in sides:
                    yield path, f"no test has a {fact}.{test.field} for which '{test.op} {test.operand.name}' {word}"


class CauseNotBound:
    """A case rests on the cause that it names: a cause rule concluded it, and the proof shows why."""

    code = "cause-not-bound"

    def run(self, rule: Rule) -> Iterator[tuple[Path, str]]:
        """Yield cases whose conditions do not bind their own cause."""
        if rule.case is not None and (Cause.kind, rule.case.cause) not in {p.predicate for p in rule.patterns}:
            yield (
                ("cause",),
                f"no condition binds the cause: add {{alias: cause, fact: cause, where: {{name: {rule.case.cause}}}}}",
            )


CHECKS: tuple[Check, ...] = (
    MissingTestKind(),
    BadTest(),
    LiteralThreshold(),
    OneSidedThreshold(),
    CauseNotBound(),
)


def lint(knowledge: KnowledgeBase) -> list[Problem]:
    """Run every check on every rule."""
    out: list[Problem] = []
    for _, rule in sorted(knowledge.rules.items()):
        doc = knowledge.documents[rule.file]
        for check in CHECKS:
            for path, message in check.run(rule):
                line, column = doc.at(path)
                out.append(Problem(rule.file, line, column, check.code, message))
    return sorted(out)


def _tests(rule: Rule) -> Iterator[tuple[Path, Test]]:
    order: dict[str, int] = {}
    spec = rule.case or rule.chain
    for i, item in enumerate(spec.when if spec else ()):
        order[item.alias] = i
    for pattern in rule.patterns:
        for test in pattern.tests:
            yield ("when", order[pattern.alias], "where", test.field), test
    for aggregate in rule.aggregates:
        for test in aggregate.where:
            yield ("when", order[aggregate.alias], "where", test.field), test
        for test in aggregate.tests:
            yield ("when", order[aggregate.alias], "test"), test
    for i, absence in enumerate(rule.absences):
        for test in absence.tests:
            yield ("unless", i, "where", test.field), test


def _threshold_tests(rule: Rule) -> Iterator[tuple[str, Test, Path]]:
    owners: dict[Path, str] = {}
    spec = rule.case or rule.chain
    for i, item in enumerate(spec.when if spec else ()):
        for pattern in rule.patterns:
            if pattern.alias == item.alias:
                owners[("when", i)] = pattern.fact
    for i, absence in enumerate(rule.absences):
        owners[("unless", i)] = absence.fact
    for path, test in _tests(rule):
        if (
            isinstance(test.operand, ParamRef)
            and path[:2] in owners
            and not isinstance(rule.params[test.operand.name], str)
        ):
            yield owners[path[:2]], test, path


def _stated(rule: Rule, fact: str, field: str) -> list[Any]:
    values = []
    for test in rule.tests:
        for raw in test.facts:
            if raw.get("fact") == fact:
                try:
                    value = getattr(build_fact(raw), field, None)
                except BadTestFact:
                    continue
                if value is not None:
                    values.append(value)
    return values
