"""Compiled rules: what the chain runs. Frozen, checked, free of YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hermes_advisor.engine.operands import Const, Operand, Scalar
from hermes_advisor.engine.schema import CaseFile, ChainRuleFile, ParamSpec, RuleTest
from hermes_advisor.facts.conclusions import Cause, Symptom

TestOp = Literal["eq", "ne", "lt", "le", "gt", "ge", "in"]
OP_SIGNS = {"eq": "=", "ne": "≠", "lt": "<", "le": "≤", "gt": ">", "ge": "≥", "in": "in"}


@dataclass(frozen=True)
class Test:
    """``field op operand``; for ``in``, ``choices`` holds the constants and ``operand`` is None."""

    __test__ = False  # not a pytest class
    field: str
    op: TestOp
    operand: Operand | None = None
    choices: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class FactPattern:
    """One fact of a kind that passes every test."""

    alias: str
    fact: str
    tests: tuple[Test, ...]

    @property
    def predicate(self) -> Predicate:
        """What the pattern depends on: the kind and, for a conclusion, its name."""
        return predicate_of(self.fact, self.tests)


@dataclass(frozen=True)
class Aggregate:
    """count, sum, max or min over the facts that pass ``where``, and tests on the result (field ``value``)."""

    alias: str
    function: Literal["count", "sum", "max", "min"]
    fact: str
    field: str | None
    where: tuple[Test, ...]
    tests: tuple[Test, ...]

    @property
    def predicate(self) -> Predicate:
        """What the aggregate reads."""
        return predicate_of(self.fact, self.where)


@dataclass(frozen=True)
class Absence:
    """No fact of the kind passes every test; ``hold``: without measurement the rule does not fire."""

    fact: str
    tests: tuple[Test, ...]
    hold: bool

    @property
    def predicate(self) -> Predicate:
        """What must be absent."""
        return predicate_of(self.fact, self.tests)


@dataclass(frozen=True)
class Need:
    """A fact that must exist for the rule to be evaluated at all."""

    fact: str
    tests: tuple[Test, ...]
    collect: Mapping[str, str] | None


Predicate = tuple[str, str | None]
"""(fact kind, conclusion name); the name is None for a measured fact, or for any conclusion of the kind."""


def predicate_of(fact: str, tests: tuple[Test, ...]) -> Predicate:
    """The predicate that tests on ``name`` narrow a conclusion pattern to."""
    if fact not in (Symptom.kind, Cause.kind):
        return (fact, None)
    for test in tests:
        if test.field == "name" and test.op == "eq" and isinstance(test.operand, Const):
            return (fact, str(test.operand.value))
    return (fact, None)


@dataclass(frozen=True)
class Rule:
    """One rule of any stratum. ``derives`` is empty for a case, ``case`` is None for a chain rule."""

    id: str
    slug: str
    version: str
    status: str
    file: str
    kind: Literal["symptom", "cause", "case"]
    params: Mapping[str, Scalar]
    param_specs: Mapping[str, ParamSpec]
    patterns: tuple[FactPattern, ...]
    aggregates: tuple[Aggregate, ...]
    absences: tuple[Absence, ...]
    needs: tuple[Need, ...]
    tests: tuple[RuleTest, ...]
    derives_name: str = ""
    derives: Mapping[str, Operand] = field(default_factory=dict)
    chain: ChainRuleFile | None = None
    case: CaseFile | None = None
    gain_us: Operand | None = None
    gain_share: Operand | None = None
    scope_ranks: Operand | None = None
    scope_steps: Operand | None = None
    overlaid: tuple[str, ...] = ()
    """Parameters that an overlay changed."""

    @property
    def positive(self) -> tuple[FactPattern | Aggregate, ...]:
        """Conditions that look for something."""
        return (*self.patterns, *self.aggregates)

    @property
    def conditions(self) -> tuple[FactPattern | Aggregate | Absence, ...]:
        """All conditions, those on absence included."""
        return (*self.patterns, *self.aggregates, *self.absences)

    @property
    def head(self) -> Predicate | None:
        """The conclusion that the rule derives; None for a case."""
        return None if self.kind == "case" else (self.kind, self.derives_name)
