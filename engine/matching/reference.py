"""The matcher whose answer counts: pure Python, any type and size; a program and its facts in, all matches out.

It is the oracle of the differential tests, checks durable_rules at run time, and takes over where durable_rules cannot
be used. Equality joins look facts up in a dict, ordering joins bisect a sorted list, every other test is a closure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hermes_advisor.engine.matching.interface import (
    Arith,
    Beta,
    Conjunction,
    Const,
    Expr,
    Match,
    MatcherFailure,
    MatchFact,
    Pattern,
    Program,
)
from hermes_advisor.engine.matching.semantics import COMPARE, apply, check, required_fields

DEFAULT_MAX_MATCHES: Final = 200_000
DEFAULT_MAX_STEPS: Final = 20_000_000

Evaluate = Callable[[Sequence[MatchFact]], Any]
Accept = Callable[[MatchFact, Sequence[MatchFact]], bool]


class ReferenceMatcher:
    """Nested-loop joins over indexes, pattern by pattern in the order of the conjunction."""

    name = "reference"

    def __init__(self, *, max_matches: int = DEFAULT_MAX_MATCHES, max_steps: int = DEFAULT_MAX_STEPS) -> None:
        """``max_steps`` bounds the facts looked at while joining: a limit that does not depend on the machine."""
        self.max_matches = max_matches
        self.max_steps = max_steps

    def match(self, program: Program, facts: Sequence[MatchFact]) -> list[Match]:
        """All matches, sorted and without duplicates."""
        check(program, facts)
        store = _Store(facts)
        budget = _Budget(self.max_steps)
        found: set[Match] = set()
        for conjunction in program.conjunctions:
            for filled in _fill(_compile(conjunction, store), [], budget):
                found.add((conjunction.key, filled))
                if len(found) > self.max_matches:
                    raise MatcherFailure(f"more than {self.max_matches} matches")
        return sorted(found)

    def close(self) -> None:
        """Nothing is held."""


def unsound(program: Program, facts: Sequence[MatchFact], matches: Sequence[Match]) -> list[Match]:
    """The matches that do not satisfy their conjunction: a check linear in the matches, for any number of facts."""
    by_number = {fact.number: fact for fact in facts}
    checks: dict[int, list[Callable[[Sequence[MatchFact]], bool]]] = {}
    for conjunction in program.conjunctions:
        checks.setdefault(conjunction.key, []).append(_verifier(conjunction))
    bad = []
    for key, numbers in matches:
        filled = [by_number[number] for number in numbers if number in by_number]
        if len(filled) < len(numbers) or not any(holds(filled) for holds in checks.get(key, ())):
            bad.append((key, numbers))
    return bad


class _Budget:
    def __init__(self, steps: int) -> None:
        self.limit = self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise MatcherFailure(f"more than {self.limit} join steps")


@dataclass(frozen=True, slots=True)
class _Group:
    """Facts with one join key; with an ordering join sorted by the field it tests, whose values stand beside them."""

    facts: list[MatchFact]
    values: list[Any]


class _Store:
    """The facts by type, and the filtered and indexed views that conjunctions share."""

    def __init__(self, facts: Sequence[MatchFact]) -> None:
        self._by_type: dict[str, list[MatchFact]] = {}
        for fact in facts:
            self._by_type.setdefault(fact.fact_type, []).append(fact)
        self._passing: dict[Hashable, list[MatchFact]] = {}
        self._indexes: dict[Hashable, Mapping[Hashable, _Group]] = {}

    def passing(self, pattern: Pattern, required: tuple[str, ...]) -> list[MatchFact]:
        """Facts of the pattern's type that carry every required field and pass the tests against constants."""
        wanted = (pattern.fact_type, pattern.alpha, required)
        if wanted not in self._passing:
            found = self._by_type.get(pattern.fact_type, [])
            for field in required:
                found = [fact for fact in found if field in fact.values]
            for test in pattern.alpha:
                compare, field, value = COMPARE[test.op], test.field, test.value
                found = [fact for fact in found if compare(fact.values[field], value)]
            self._passing[wanted] = found
        return self._passing[wanted]

    def index(
        self, pattern: Pattern, required: tuple[str, ...], keys: tuple[str, ...], order: str | None
    ) -> Mapping[Hashable, _Group]:
        """The passing facts by the values of ``keys``, each group sorted by ``order``."""
        wanted = (pattern.fact_type, pattern.alpha, required, keys, order)
        if wanted not in self._indexes:
            groups: dict[Hashable, _Group] = {}
            facts = self.passing(pattern, required)
            for fact in sorted(facts, key=lambda f: f.values[order]) if order else facts:
                key = tuple(fact.values[field] for field in keys)
                group = groups.setdefault(key, _Group([], []))
                group.facts.append(fact)
                if order:
                    group.values.append(fact.values[order])
            self._indexes[wanted] = groups
        return self._indexes[wanted]


@dataclass(frozen=True, slots=True)
class _Join:
    """How to find the facts that fill one pattern, given those that fill the earlier ones."""

    options: Callable[[Sequence[MatchFact]], Sequence[MatchFact]]
    tests: tuple[Accept, ...]


def _fill(joins: Sequence[_Join], bound: list[MatchFact], budget: _Budget) -> Iterator[tuple[int, ...]]:
    if len(bound) == len(joins):
        yield tuple(fact.number for fact in bound)
        return
    join = joins[len(bound)]
    options = join.options(bound)
    budget.spend(len(options))
    for fact in options:
        # G11: one fact never fills two patterns.
        if any(fact is other for other in bound) or not all(test(fact, bound) for test in join.tests):
            continue
        bound.append(fact)
        yield from _fill(joins, bound, budget)
        bound.pop()


def _compile(conjunction: Conjunction, store: _Store) -> list[_Join]:
    joins = []
    for pattern, required in zip(conjunction.patterns, required_fields(conjunction), strict=True):
        equal = [test for test in pattern.beta if test.op == "eq"]
        ordered = next((test for test in pattern.beta if test.op in ("lt", "le", "gt", "ge")), None)
        rest = [test for test in pattern.beta if test.op != "eq" and test is not ordered]
        groups = store.index(pattern, required, tuple(t.field for t in equal), ordered.field if ordered else None)
        joins.append(_Join(_lookup(groups, [_expression(t.expr) for t in equal], ordered), tuple(map(_accept, rest))))
    return joins


def _lookup(
    groups: Mapping[Hashable, _Group], key: Sequence[Evaluate], ordered: Beta | None
) -> Callable[[Sequence[MatchFact]], Sequence[MatchFact]]:
    limit = _expression(ordered.expr) if ordered else None

    def options(bound: Sequence[MatchFact]) -> Sequence[MatchFact]:
        group = groups.get(tuple([value(bound) for value in key]))
        if group is None:
            return ()
        if ordered is None or limit is None:
            return group.facts
        bar = limit(bound)
        if bar != bar:  # NaN, which bisect would place anywhere
            return ()
        cut = (bisect_left if ordered.op in ("lt", "ge") else bisect_right)(group.values, bar)
        return group.facts[:cut] if ordered.op in ("lt", "le") else group.facts[cut:]

    return options


def _expression(expr: Expr) -> Evaluate:
    if isinstance(expr, Const):
        value = expr.value
        return lambda bound: value
    if isinstance(expr, Arith):
        op, left, right = expr.op, _expression(expr.left), _expression(expr.right)
        return lambda bound: apply(op, left(bound), right(bound))
    place, field = expr.pattern, expr.field
    return lambda bound: bound[place].values[field]


def _accept(test: Beta) -> Accept:
    compare, field, value = COMPARE[test.op], test.field, _expression(test.expr)
    return lambda fact, bound: compare(fact.values[field], value(bound))


def _verifier(conjunction: Conjunction) -> Callable[[Sequence[MatchFact]], bool]:
    required = required_fields(conjunction)
    joins = [[_accept(test) for test in pattern.beta] for pattern in conjunction.patterns]

    def holds(filled: Sequence[MatchFact]) -> bool:
        if len(filled) != len(conjunction.patterns) or len({fact.number for fact in filled}) != len(filled):
            return False
        # Presence first: the joins read fields of earlier facts.
        for pattern, fields, fact in zip(conjunction.patterns, required, filled, strict=True):
            if fact.fact_type != pattern.fact_type or any(field not in fact.values for field in fields):
                return False
            if not all(COMPARE[test.op](fact.values[test.field], test.value) for test in pattern.alpha):
                return False
        return all(test(fact, filled) for tests, fact in zip(joins, filled, strict=True) for test in tests)

    return holds
