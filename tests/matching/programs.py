"""Random matching programs, and a matcher that tries every combination: a seed in, programs, facts and matches out.

``brute_force`` is written from the interface's words alone and shares no code with the matchers it judges.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hermes_advisor.engine.matching.interface import (
    Alpha,
    Arith,
    Beta,
    Conjunction,
    Const,
    Expr,
    Match,
    MatchFact,
    Op,
    Pattern,
    Program,
    Ref,
)

FIELDS: dict[str, type] = {
    "i": int, "j": int, "f": float, "g": float, "s": str, "u": str, "b": bool, "c": bool,
}  # fmt: skip
NUMERIC = ("i", "j", "f", "g")
ORDERINGS: tuple[Op, ...] = ("lt", "le", "gt", "ge")
HOSTILE_TEXTS = (
    "", " ", "a", "A", "true", "false", "null", "NaN", "1", "1.0", "0", '"', '\\"', "'", "\\", "\\\\", "}", "{", "]",
    ",", "\x00", "a\x00b", "\n", "\r\n", "\t", "\x7f", "\u2028", "é", "e\u0301", "昇腾", "🚀", "\ud800",
    "id", "sid", "one", "$s", "p0", "f000000001", '{"id":"x"}', "x" * 5000, "%s%n", "$not", "boot",
)  # fmt: skip
ODD_INTS = (
    0, 1, -1, 2, 10**9, 2**31, 2**32, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**61, 2**62 - 1, 2**62, -(2**62),
    2**62 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30,
)  # fmt: skip
ODD_FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.1, 0.2, 0.30000000000000004, 0.3, 1e-5, 1e-7, -1e-7, 5e-324, 2.2250738585072014e-308, 1e15,
    1e16, 1e17, 123456789.12345679, 9007199254740992.0, 9007199254740994.0, 1e22, 1e23, 1.7976931348623157e308, -1e300,
    4.35, 2.675, 1 / 3, 1e-300, 3.141592653589793,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A program with its facts."""

    program: Program
    facts: tuple[MatchFact, ...]


def random_case(seed: int) -> Case:
    """The same case for the same seed, on every platform and version."""
    return _Maker(random.Random(seed)).case()


def wide_case(seed: int) -> Case:
    """Many rules and facts: too many for every combination, enough for several shards."""
    return _Maker(random.Random(seed), wide=True).case()


def brute_force(program: Program, facts: Sequence[MatchFact]) -> list[Match]:
    """Every combination of different facts, tested test by test."""
    found = set()
    for conjunction in program.conjunctions:
        pools = [[fact for fact in facts if fact.fact_type == p.fact_type] for p in conjunction.patterns]
        for filled in itertools.product(*pools):
            if len({fact.number for fact in filled}) == len(filled) and _holds(conjunction, filled):
                found.add((conjunction.key, tuple(fact.number for fact in filled)))
    return sorted(found)


def _holds(conjunction: Conjunction, filled: Sequence[MatchFact]) -> bool:
    for pattern, fact in zip(conjunction.patterns, filled, strict=True):
        for alpha in pattern.alpha:
            if alpha.field not in fact.values or not _compare(fact.values[alpha.field], alpha.op, alpha.value):
                return False
        for beta in pattern.beta:
            right = _value(beta.expr, filled)
            if beta.field not in fact.values or right is None or not _compare(fact.values[beta.field], beta.op, right):
                return False
    return True


def _value(expr: Expr, filled: Sequence[MatchFact]) -> Any:
    """None where a field is missing or the result is no number."""
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, Ref):
        return filled[expr.pattern].values.get(expr.field)
    left, right = _value(expr.left, filled), _value(expr.right, filled)
    if left is None or right is None:
        return None
    try:
        result = left + right if expr.op == "add" else left - right if expr.op == "sub" else left * right
    except OverflowError:
        return None
    return result if result == result else None


def _compare(left: Any, op: str, right: Any) -> bool:
    if op == "eq":
        return bool(left == right)
    if op == "ne":
        return bool(left != right)
    if op == "lt":
        return bool(left < right)
    if op == "le":
        return bool(left <= right)
    return bool(left > right) if op == "gt" else bool(left >= right)


class _Maker:
    """Draws one case; ``odd`` cases use extreme values, the others few small ones so that joins often meet."""

    def __init__(self, draw: random.Random, wide: bool = False) -> None:
        self.draw = draw
        self.wide = wide
        self.odd = draw.random() < 0.25
        # Extreme integers put a program outside what durable_rules can do; most cases must stay inside.
        self.huge = self.odd and not wide and draw.random() < 0.3
        self.types = [f"kind_{n}" for n in range(draw.choice((1, 1, 2, 3)))]
        self.texts = draw.sample(HOSTILE_TEXTS, 3) if draw.random() < 0.5 else ["a", "b", "c"]
        self.presence = draw.choice((1.0, 1.0, 1.0, 0.8))

    def case(self) -> Case:
        draw = self.draw
        facts: list[MatchFact] = []
        numbers = draw.sample(range(100), 40 if self.wide else draw.choice((0, 2, 5, 8, 11, 14)))
        for number in numbers:
            if facts and draw.random() < 0.15:
                twin = draw.choice(facts)
                facts.append(MatchFact(number, twin.fact_type, twin.values))
            else:
                values = {f: self.scalar(t) for f, t in FIELDS.items() if draw.random() < self.presence}
                facts.append(MatchFact(number, draw.choice([*self.types * 4, "unused"]), values))
        conjunctions = tuple(self.conjunction(key) for key in range(120 if self.wide else draw.choice((1, 1, 2, 3, 5))))
        return Case(Program(conjunctions, dict.fromkeys([*self.types, "unused"], FIELDS)), tuple(facts))

    def scalar(self, kind: type) -> Any:
        draw = self.draw
        if kind is bool:
            return draw.random() < 0.5
        if kind is str:
            return draw.choice(self.texts)
        if kind is int:
            if self.odd and draw.random() < 0.3:
                return draw.choice(ODD_INTS if self.huge else ODD_INTS[:9])
            return draw.randrange(-3, 5)
        if self.odd and draw.random() < 0.5:
            return draw.choice((*ODD_FLOATS, draw.uniform(-1e3, 1e3), draw.random() * 10.0 ** draw.randrange(-12, 12)))
        # Whole numbers in a float field, also undeclared as such, must join like the floats they stand for.
        return draw.choice((draw.randrange(-6, 9) / 2, float(draw.randrange(-3, 5)), draw.randrange(-3, 5)))

    def constant(self, field: str) -> Any:
        kind = FIELDS[field]
        if field in NUMERIC and self.draw.random() < 0.2:
            kind = int if kind is float else float
        return self.scalar(kind)

    def conjunction(self, key: int) -> Conjunction:
        patterns: list[Pattern] = []
        for place in range(self.draw.choice((1, 1, 2, 2, 2, 2, 3, 3, 4))):
            alpha = tuple(self.alpha() for _ in range(self.draw.choice((1, 2) if self.wide else (0, 0, 0, 1, 2))))
            joins = self.draw.choice((0, 1, 1, 1, 2)) if place else self.draw.choice((0,) * 9 + (1,))
            beta = tuple(self.beta(place) for _ in range(joins))
            patterns.append(Pattern(self.draw.choice(self.types), alpha, beta))
        return Conjunction(key, tuple(patterns))

    def op(self, field: str) -> Op:
        return self.draw.choice(("eq", "eq", "ne", *ORDERINGS) if field in NUMERIC else ("eq", "eq", "ne"))

    def alpha(self) -> Alpha:
        field = self.draw.choice(tuple(FIELDS))
        return Alpha(field, self.op(field), self.constant(field))

    def beta(self, place: int) -> Beta:
        field = self.draw.choice(tuple(FIELDS))
        if field not in NUMERIC and place:
            other = self.draw.choice([f for f, t in FIELDS.items() if t is FIELDS[field]])
            return Beta(field, self.op(field), Ref(self.draw.randrange(place), other))
        field = field if field in NUMERIC else "i"
        depth = self.draw.choice((0, 0, 1, 2))
        return Beta(field, self.op(field), self.expression(place, depth))

    def expression(self, place: int, depth: int) -> Expr:
        if depth:
            ops: tuple[Literal["add", "sub", "mul"], ...] = ("add", "sub", "mul")
            return Arith(
                self.draw.choice(ops),
                self.expression(place, self.draw.randrange(depth)),
                self.expression(place, depth - 1),
            )
        if not place or self.draw.random() < 0.2:
            return Const(self.constant(self.draw.choice(NUMERIC)))
        return Ref(self.draw.randrange(place), self.draw.choice(NUMERIC))
