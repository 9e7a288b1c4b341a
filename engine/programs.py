"""Rules of one layer → a matcher program: or-expansion of ``in``, parameters put in, joins separated from constants."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from hermes_advisor.engine.matching.interface import Alpha, Arith, Beta, Conjunction, Expr, Pattern, Program, Ref
from hermes_advisor.engine.matching.interface import Const as MatchConst
from hermes_advisor.engine.operands import Calc, Const, FieldRef, Operand, ParamRef, Scalar, evaluate, references
from hermes_advisor.engine.rules import Rule, Test
from hermes_advisor.facts.base import scalar_types
from hermes_advisor.facts.vocabulary import FACT_TYPES

FIELD_TYPES: Mapping[str, Mapping[str, type]] = {kind: scalar_types(model) for kind, model in FACT_TYPES.items()}


def build(rules: Sequence[Rule]) -> tuple[Program, list[Rule]]:
    """The program of these rules and, per conjunction key, its rule; rules without fact patterns have none."""
    conjunctions: list[Conjunction] = []
    owners: list[Rule] = []
    for rule in rules:
        if not rule.patterns:
            continue
        for patterns in _expand(rule):
            conjunctions.append(Conjunction(len(owners), patterns))
            owners.append(rule)
    return Program(tuple(conjunctions), FIELD_TYPES), owners


def _expand(rule: Rule) -> list[tuple[Pattern, ...]]:
    places = {p.alias: i for i, p in enumerate(rule.patterns)}
    options = [
        [_pattern(rule, p.fact, tests, places) for tests in _choices(p.tests)] for p in rule.patterns
    ]  # fmt: skip
    return list(itertools.product(*options))


def _choices(tests: Sequence[Test]) -> list[tuple[Test, ...]]:
    options = [
        [Test(t.field, "eq", Const(c)) for c in dict.fromkeys(t.choices)] if t.op == "in" else [t] for t in tests
    ]  # fmt: skip
    return list(itertools.product(*options))


def _pattern(rule: Rule, fact: str, tests: Sequence[Test], places: Mapping[str, int]) -> Pattern:
    alpha: list[Alpha] = []
    beta: list[Beta] = []
    for test in tests:
        assert test.operand is not None and test.op != "in"
        if any(isinstance(r, FieldRef) for r in references(test.operand)):
            beta.append(Beta(test.field, test.op, _expr(test.operand, rule.params, places)))
        else:
            value = evaluate(test.operand, rule.params, lambda alias, field: None)
            assert value is not None
            alpha.append(Alpha(test.field, test.op, value))
    return Pattern(fact, tuple(alpha), tuple(beta))


def _expr(operand: Operand, params: Mapping[str, Scalar], places: Mapping[str, int]) -> Expr:
    if isinstance(operand, FieldRef):
        return Ref(places[operand.alias], operand.field)
    if isinstance(operand, ParamRef | Const):
        value = params[operand.name] if isinstance(operand, ParamRef) else operand.value
        assert not isinstance(value, str)
        return MatchConst(value)
    assert isinstance(operand, Calc)
    first, *rest = (_expr(a, params, places) for a in operand.args)
    for nxt in rest:
        first = Arith(operand.op, first, nxt)  # type: ignore[arg-type]  # add, sub, mul: checked when compiled
    return first
