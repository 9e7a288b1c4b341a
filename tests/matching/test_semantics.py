"""G10: ill-formed programs and facts are refused before any matcher sees them, by every matcher alike."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hermes_advisor.engine.matching.encode import encode
from hermes_advisor.engine.matching.interface import (
    Alpha,
    Arith,
    Beta,
    Conjunction,
    Const,
    MatchFact,
    Pattern,
    Program,
    Ref,
)
from hermes_advisor.engine.matching.reference import ReferenceMatcher
from hermes_advisor.engine.matching.semantics import BadProgram, apply, fold, required_fields

TYPES: dict[str, type] = {"n": int, "x": float, "s": str, "b": bool}


def program(*patterns: Pattern) -> Program:
    return Program((Conjunction(7, patterns),), {"a": TYPES})


ILL_FORMED = {
    "no patterns": program(),
    "unknown type": program(Pattern("z", (Alpha("n", "eq", 1),))),
    "unknown field": program(Pattern("a", (Alpha("q", "eq", 1),))),
    "unknown operator": program(Pattern("a", (Alpha("n", "matches", 1),))),  # type: ignore[arg-type]
    "text ordered": program(Pattern("a", (Alpha("s", "lt", "x"),))),
    "boolean ordered": program(Pattern("a", (Alpha("b", "ge", True),))),
    "boolean against number": program(Pattern("a", (Alpha("b", "eq", 1),))),
    "number against boolean": program(Pattern("a", (Alpha("n", "eq", True),))),
    "number against text": program(Pattern("a", (Alpha("n", "eq", "1"),))),
    "constant NaN": program(Pattern("a", (Alpha("x", "gt", math.nan),))),
    "constant infinity": program(Pattern("a", (Alpha("x", "lt", math.inf),))),
    "join on itself": program(Pattern("a", (), (Beta("n", "eq", Ref(0, "n")),))),
    "join on a later pattern": program(Pattern("a", (), (Beta("n", "eq", Ref(1, "n")),)), Pattern("a")),
    "join on pattern -1": program(Pattern("a"), Pattern("a", (), (Beta("n", "eq", Ref(-1, "n")),))),
    "join on an unknown field": program(Pattern("a"), Pattern("a", (), (Beta("n", "eq", Ref(0, "q")),))),
    "text joined to a number": program(Pattern("a"), Pattern("a", (), (Beta("n", "eq", Ref(0, "s")),))),
    "boolean joined to a number": program(Pattern("a"), Pattern("a", (), (Beta("n", "eq", Ref(0, "b")),))),
    "texts joined by order": program(Pattern("a"), Pattern("a", (), (Beta("s", "le", Ref(0, "s")),))),
    "arithmetic on a text": program(
        Pattern("a"), Pattern("a", (), (Beta("n", "eq", Arith("add", Ref(0, "s"), Const(1))),))
    ),
    "division": program(
        Pattern("a"),
        Pattern("a", (), (Beta("n", "eq", Arith("div", Ref(0, "n"), Const(2))),)),  # type: ignore[arg-type]
    ),
    "expression with NaN": program(Pattern("a", (), (Beta("x", "eq", Const(math.nan)),))),
    "expression with a boolean": program(Pattern("a", (), (Beta("n", "eq", Const(True)),))),
}


@pytest.mark.parametrize("case", ILL_FORMED.values(), ids=ILL_FORMED)
@pytest.mark.parametrize("matcher", [ReferenceMatcher().match, encode], ids=["reference", "encode"])
def test_ill_formed_programs_are_refused(case: Program, matcher: Any) -> None:
    with pytest.raises(BadProgram, match="conjunction 7: "):
        matcher(case, [MatchFact(0, "a", {"n": 1, "x": 1.0, "s": "t", "b": True})])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 1.0),
        ("n", True),
        ("n", "1"),
        ("x", math.nan),
        ("x", math.inf),
        ("x", True),
        ("s", 1),
        ("b", 1),
        ("b", "true"),
    ],
)
def test_a_fact_of_the_wrong_type_is_refused(field: str, value: Any) -> None:
    case = program(Pattern("a"), Pattern("a", (), (Beta(field, "eq", Ref(0, field)),)))
    with pytest.raises(BadProgram, match=f"fact 3: {field} is not a finite "):
        ReferenceMatcher().match(case, [MatchFact(3, "a", {field: value})])


def test_a_whole_number_may_stand_in_a_float_field() -> None:
    case = program(Pattern("a", (Alpha("x", "eq", 2.0),)))
    assert ReferenceMatcher().match(case, [MatchFact(3, "a", {"x": 2})]) == [(7, (3,))]


def test_a_field_that_no_test_reads_may_hold_anything() -> None:
    case = program(Pattern("a", (Alpha("n", "eq", 1),)))
    assert ReferenceMatcher().match(case, [MatchFact(0, "a", {"n": 1, "x": math.nan})]) == [(7, (0,))]


def test_facts_must_have_different_numbers() -> None:
    with pytest.raises(BadProgram, match="same number"):
        ReferenceMatcher().match(program(Pattern("a")), [MatchFact(0, "a", {}), MatchFact(0, "a", {})])


def test_required_fields_are_those_tested_and_those_read_later() -> None:
    second = Pattern("a", (Alpha("b", "eq", True),), (Beta("n", "gt", Arith("mul", Ref(0, "x"), Const(2))),))
    assert required_fields(Conjunction(0, (Pattern("a"), second))) == (("x",), ("b", "n"))


def test_constant_parts_of_expressions_are_computed() -> None:
    assert fold(Arith("mul", Const(2), Arith("sub", Const(5), Const(1.5)))) == Const(7.0)
    kept = Arith("add", Ref(0, "n"), Arith("mul", Const(2), Const(3)))
    assert fold(kept) == Arith("add", Ref(0, "n"), Const(6))


def test_an_integer_too_large_for_the_float_it_meets_gives_nan() -> None:
    assert math.isnan(apply("add", 10**400, 1.5))
    assert apply("mul", 10**300, 10**300) == 10**600
