"""Tests on the fields of one fact, evaluated in Python (absence, aggregates, needs) and put into words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hermes_advisor.engine.operands import Scalar, evaluate, words
from hermes_advisor.engine.rules import OP_SIGNS, Test

Bound = Callable[[str, str], Scalar | None]


def compare(op: str, left: Scalar, right: Scalar) -> bool:
    """``left op right``; values of different kinds are never equal and have no order."""
    if isinstance(left, str) != isinstance(right, str) or isinstance(left, bool) != isinstance(right, bool):
        return op == "ne"
    if op == "eq":
        return left == right
    if op == "ne":
        return left != right
    if isinstance(left, str) or isinstance(right, str):
        return False
    if op == "lt":
        return left < right
    if op == "le":
        return left <= right
    return left > right if op == "gt" else left >= right


def passes(test: Test, values: Mapping[str, Scalar], params: Mapping[str, Scalar], bound: Bound | None) -> bool:
    """Whether a fact with these field values passes; a field that was not measured never does."""
    value = values.get(test.field)
    if value is None:
        return False
    if test.op == "in":
        return value in test.choices
    limit = limit_of(test, params, bound)
    return limit is not None and compare(test.op, value, limit)


def limit_of(test: Test, params: Mapping[str, Scalar], bound: Bound | None) -> Scalar | None:
    """The right-hand side's value."""
    assert test.operand is not None
    return evaluate(test.operand, params, bound or (lambda alias, field: None))


def words_of(tests: Sequence[Test]) -> str:
    """The tests as one line of text."""
    out = []
    for test in tests:
        right = ", ".join(str(c) for c in test.choices) if test.op == "in" else words(test.operand)  # type: ignore[arg-type]
        out.append(f"{test.field} {OP_SIGNS[test.op]} {right}")
    return ", ".join(out)
