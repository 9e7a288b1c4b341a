"""What every matcher must agree on: a program and its facts in, a refusal of ill-formed ones out; typing, arithmetic.

Numbers compare exactly, as in Python (``1 == 1.0``, no rounding of large integers). Texts and booleans are equal or
not, and never meet a number. A result that overflows float64 to NaN satisfies no test, not even ``ne``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from hermes_advisor.engine.matching.interface import (
    Alpha,
    Arith,
    Beta,
    Conjunction,
    Const,
    Expr,
    MatcherFailure,
    MatchFact,
    Program,
    Ref,
    Scalar,
)


class BadProgram(MatcherFailure):
    """The program or the facts break the contract; no matcher can answer, so no other one is asked."""


def _differs(left: Any, right: Any) -> bool:
    # Not `!=`: that holds for NaN.
    return bool(left < right or left > right)


COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq,
    "ne": _differs,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}
NUMBERS: Final[frozenset[type]] = frozenset({int, float})
SYMBOLS: Final[frozenset[type]] = frozenset({str, bool})


def apply(op: str, left: int | float, right: int | float) -> int | float:
    """``left op right``; NaN where an integer is too large for the float it meets."""
    try:
        result: int | float = ARITHMETIC[op](left, right)
    except OverflowError:
        return math.nan
    return result


def refs(expr: Expr) -> Iterator[Ref]:
    """Every field of an earlier pattern that an expression reads."""
    if isinstance(expr, Ref):
        yield expr
    elif isinstance(expr, Arith):
        yield from refs(expr.left)
        yield from refs(expr.right)


def fold(expr: Expr) -> Expr:
    """The expression with every part that reads no fact replaced by its value."""
    if not isinstance(expr, Arith):
        return expr
    left, right = fold(expr.left), fold(expr.right)
    if isinstance(left, Const) and isinstance(right, Const):
        return Const(apply(expr.op, left.value, right.value))
    return Arith(expr.op, left, right)


def required_fields(conjunction: Conjunction) -> tuple[tuple[str, ...], ...]:
    """Per pattern, the fields without which a fact cannot fill it: those it tests and those later patterns read."""
    needed: list[set[str]] = [set() for _ in conjunction.patterns]
    for place, pattern in enumerate(conjunction.patterns):
        needed[place].update(test.field for test in pattern.alpha)
        needed[place].update(test.field for test in pattern.beta)
        for test in pattern.beta:
            for ref in refs(test.expr):
                needed[ref.pattern].add(ref.field)
    return tuple(tuple(sorted(fields)) for fields in needed)


def type_of(expr: Expr, conjunction: Conjunction, program: Program) -> type:
    """The type of a checked expression: that of the field, or float as soon as one operand is."""
    if isinstance(expr, Const):
        return type(expr.value)
    if isinstance(expr, Ref):
        return program.field_types[conjunction.patterns[expr.pattern].fact_type][expr.field]
    sides = (type_of(expr.left, conjunction, program), type_of(expr.right, conjunction, program))
    return float if float in sides else int


def fits(value: Scalar, declared: type) -> bool:
    """Whether a value may stand in a field: finite, and a whole number also where a fraction is declared."""
    if declared is float:
        if isinstance(value, float):
            return math.isfinite(value)
        return isinstance(value, int) and type(value) is not bool
    return isinstance(value, declared) and (declared is bool or type(value) is not bool)


def check(program: Program, facts: Sequence[MatchFact]) -> None:
    """Refuse whatever a matcher would have to guess about: durable_rules takes bad rules without a word."""
    read: dict[str, set[str]] = {}
    for conjunction in program.conjunctions:
        _check_conjunction(conjunction, program)
        for pattern, fields in zip(conjunction.patterns, required_fields(conjunction), strict=True):
            read.setdefault(pattern.fact_type, set()).update(fields)
    if len({fact.number for fact in facts}) != len(facts):
        raise BadProgram("two facts have the same number")
    declared = {kind: [(f, program.field_types[kind][f]) for f in sorted(fields)] for kind, fields in read.items()}
    for fact in facts:
        for field, wanted in declared.get(fact.fact_type, ()):
            if field in fact.values and not fits(fact.values[field], wanted):
                raise BadProgram(f"fact {fact.number}: {field} is not a finite {wanted.__name__}")


def _check_conjunction(conjunction: Conjunction, program: Program) -> None:
    try:
        if not conjunction.patterns:
            raise BadProgram("no patterns")
        for place, pattern in enumerate(conjunction.patterns):
            tests: tuple[Alpha | Beta, ...] = (*pattern.alpha, *pattern.beta)
            for test in tests:
                left = _declared(program, pattern.fact_type, test.field)
                right = _alpha_type(test) if isinstance(test, Alpha) else _beta_type(test, conjunction, place, program)
                if test.op not in COMPARE:
                    raise BadProgram(f"unknown operator '{test.op}'")
                name = f"{pattern.fact_type}.{test.field} ({left.__name__})"
                if left is not right and not {left, right} <= NUMBERS:
                    raise BadProgram(f"{name} is compared with {right.__name__}")
                if left in SYMBOLS and test.op not in ("eq", "ne"):
                    raise BadProgram(f"{name} knows only eq and ne")
    except BadProgram as fault:
        raise BadProgram(f"conjunction {conjunction.key}: {fault}") from None


def _declared(program: Program, fact_type: str, field: str) -> type:
    found = program.field_types.get(fact_type, {}).get(field)
    if found not in NUMBERS | SYMBOLS:
        raise BadProgram(f"{fact_type}.{field} has no declared type")
    return found


def _alpha_type(test: Alpha) -> type:
    if not fits(test.value, type(test.value)):
        raise BadProgram(f"the constant {test.value!r} is not finite")
    return type(test.value)


def _beta_type(test: Beta, conjunction: Conjunction, place: int, program: Program) -> type:
    def walk(expr: Expr) -> type:
        if isinstance(expr, Const):
            if type(expr.value) not in NUMBERS or not fits(expr.value, type(expr.value)):
                raise BadProgram(f"the constant {expr.value!r} is not a finite number")
            return type(expr.value)
        if isinstance(expr, Ref):
            if not 0 <= expr.pattern < place:
                raise BadProgram(f"pattern {place} refers to pattern {expr.pattern}, which is not earlier")
            return _declared(program, conjunction.patterns[expr.pattern].fact_type, expr.field)
        if expr.op not in ARITHMETIC:
            raise BadProgram(f"unknown arithmetic '{expr.op}'")
        sides = {walk(expr.left), walk(expr.right)}
        if not sides <= NUMBERS:
            raise BadProgram("arithmetic on a text or a boolean")
        return float if float in sides else int

    return walk(test.expr)
