"""The reference matcher against results worked out by hand, against every combination, and at its limits."""

from __future__ import annotations

import time

import pytest

from hermes_advisor.engine.matching.interface import (
    Alpha,
    Arith,
    Beta,
    Conjunction,
    Const,
    Match,
    MatcherFailure,
    MatchFact,
    Op,
    Pattern,
    Program,
    Ref,
)
from hermes_advisor.engine.matching.reference import ReferenceMatcher, unsound

TYPES: dict[str, dict[str, type]] = {
    "step": {"rank": int, "free_ratio": float, "name": str, "traced": bool},
    "wait": {"rank": int, "wait_us": float, "busy_us": int},
}
STEPS = [
    MatchFact(0, "step", {"rank": 0, "free_ratio": 0.30, "name": "a", "traced": True}),
    MatchFact(1, "step", {"rank": 1, "free_ratio": 0.20, "name": "b", "traced": False}),
    MatchFact(2, "step", {"rank": 2, "name": "a"}),
    MatchFact(5, "wait", {"rank": 1, "wait_us": 10.5, "busy_us": 10}),
    MatchFact(6, "wait", {"rank": 0, "wait_us": 10.0, "busy_us": 12}),
    MatchFact(7, "wait", {"rank": 0, "wait_us": 4.0, "busy_us": 10}),
]


def matches(*patterns: Pattern, facts: list[MatchFact] = STEPS) -> list[tuple[int, ...]]:
    found = ReferenceMatcher().match(Program((Conjunction(3, patterns),), TYPES), facts)
    assert {key for key, _ in found} <= {3}
    return [numbers for _, numbers in found]


@pytest.mark.parametrize(
    ("op", "expected"),
    [("eq", [(1,)]), ("ne", [(0,)]), ("lt", []), ("le", [(1,)]), ("gt", [(0,)]), ("ge", [(0,), (1,)])],
)
def test_comparison_with_a_constant(op: Op, expected: list[tuple[int, ...]]) -> None:
    # Fact 2 was not measured: no test holds, not even `ne`.
    assert matches(Pattern("step", (Alpha("free_ratio", op, 0.20),))) == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("eq", [(6, 5), (6, 7)]),
        ("ne", [(5, 6), (5, 7), (7, 5), (7, 6)]),
        ("lt", [(5, 7)]),
        ("le", [(5, 7), (6, 5), (6, 7)]),
        ("gt", [(5, 6), (7, 5), (7, 6)]),
        ("ge", [(5, 6), (6, 5), (6, 7), (7, 5), (7, 6)]),
    ],
)
def test_join_of_an_integer_with_a_float(op: Op, expected: list[tuple[int, ...]]) -> None:
    # busy_us of the second fact against wait_us of the first: 10 equals 10.0, 12 > 10.5, …
    assert matches(Pattern("wait"), Pattern("wait", (), (Beta("busy_us", op, Ref(0, "wait_us")),))) == expected


def test_equality_join_on_two_fields_and_a_computed_bound() -> None:
    second = Pattern("wait", (), (Beta("rank", "eq", Ref(0, "rank")), Beta("wait_us", "ge", Const(5))))
    assert matches(Pattern("step"), second) == [(0, 6), (1, 5)]
    computed = Beta("wait_us", "ge", Arith("mul", Ref(0, "free_ratio"), Const(33)))  # 9.9 and 6.6
    assert matches(Pattern("step"), Pattern("wait", (), (computed,))) == [(0, 5), (0, 6), (1, 5), (1, 6)]


def test_joins_of_texts_and_booleans() -> None:
    assert matches(Pattern("step"), Pattern("step", (), (Beta("name", "eq", Ref(0, "name")),))) == [(0, 2), (2, 0)]
    assert matches(Pattern("step"), Pattern("step", (), (Beta("traced", "ne", Ref(0, "traced")),))) == [(0, 1), (1, 0)]


def test_one_fact_never_fills_two_patterns() -> None:
    # G11: three patterns, two facts of the type.
    assert matches(Pattern("step"), Pattern("step"), Pattern("step"), facts=STEPS[:2]) == []
    assert matches(Pattern("step"), Pattern("step"), facts=STEPS[:2]) == [(0, 1), (1, 0)]


def test_equal_facts_with_different_numbers_are_two_facts() -> None:
    twins = [MatchFact(number, "step", {"rank": 0}) for number in (8, 4)]
    assert matches(Pattern("step", (Alpha("rank", "eq", 0),)), Pattern("step"), facts=twins) == [(4, 8), (8, 4)]


def test_large_integers_are_compared_exactly() -> None:
    facts = [MatchFact(0, "wait", {"busy_us": 2**53 + 1, "wait_us": float(2**53)})]
    assert matches(Pattern("wait", (Alpha("busy_us", "gt", float(2**53)),)), facts=facts) == [(0,)]
    assert matches(Pattern("wait", (Alpha("busy_us", "eq", float(2**53)),)), facts=facts) == []


def test_a_result_that_no_float_holds_satisfies_no_test() -> None:
    facts = [MatchFact(0, "wait", {"busy_us": 10**400, "wait_us": 1.5}), MatchFact(1, "wait", {"wait_us": 1.5})]
    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        overflow = Beta("wait_us", op, Arith("add", Ref(0, "busy_us"), Ref(0, "wait_us")))
        assert matches(Pattern("wait"), Pattern("wait", (), (overflow,)), facts=facts) == []


def test_conjunctions_with_one_key_add_up() -> None:
    program = Program(
        (Conjunction(1, (Pattern("step"),)), Conjunction(1, (Pattern("wait"),)), Conjunction(0, (Pattern("step"),))),
        TYPES,
    )
    expected: list[Match] = [(0, (0,)), (1, (0,)), (1, (5,))]
    assert ReferenceMatcher().match(program, [STEPS[3], STEPS[0]]) == expected


def test_runaway_results_are_refused() -> None:
    facts = [MatchFact(number, "step", {"rank": number}) for number in range(40)]
    cross = Program((Conjunction(0, (Pattern("step"), Pattern("step"))),), TYPES)
    assert len(ReferenceMatcher(max_matches=40 * 39).match(cross, facts)) == 40 * 39
    with pytest.raises(MatcherFailure, match="more than 1559 matches"):
        ReferenceMatcher(max_matches=40 * 39 - 1).match(cross, facts)


def test_runaway_joins_without_a_result_are_refused() -> None:
    facts = [MatchFact(number, "step", {"rank": number}) for number in range(1000)]
    never = Pattern("step", (), (Beta("rank", "gt", Arith("mul", Ref(1, "rank"), Const(1000))),))
    hopeless = Program((Conjunction(0, (Pattern("step", (Alpha("rank", "gt", 0),)), Pattern("step"), never)),), TYPES)
    with pytest.raises(MatcherFailure, match="more than 100000 join steps"):
        ReferenceMatcher(max_steps=100_000).match(hopeless, facts)


def test_indexed_joins_look_at_few_facts() -> None:
    # 10,000 × 10,000 pairs; with the index each fact meets one partner, and the bisected order cuts to the last one.
    facts = [MatchFact(n, "step" if n % 2 else "wait", {"rank": n // 2, "busy_us": n}) for n in range(20_000)]
    equal = Conjunction(0, (Pattern("step"), Pattern("wait", (), (Beta("rank", "eq", Ref(0, "rank")),))))
    highest = Beta("busy_us", "gt", Arith("add", Ref(0, "rank"), Const(19_997)))
    ordered = Conjunction(1, (Pattern("step"), Pattern("wait", (), (highest,))))
    found = ReferenceMatcher(max_steps=50_000).match(Program((equal, ordered), TYPES), facts)
    assert sum(key == 0 for key, _ in found) == 10_000
    assert [numbers for key, numbers in found if key == 1] == [(1, 19_998)]


def test_many_rules_on_many_facts_take_about_a_second() -> None:
    facts = [
        MatchFact(n, "step" if n % 2 else "wait", {"rank": n // 2, "free_ratio": n % 97 / 97, "wait_us": n % 89 / 2.0})
        for n in range(10_000)
    ]
    conjunctions = []
    for key in range(150):
        first = Pattern("step", (Alpha("free_ratio", "gt", 0.5 + key / 400),))
        join = (
            Beta("rank", "eq", Ref(0, "rank")),
            Beta("wait_us", "gt", Arith("mul", Ref(0, "free_ratio"), Const(key))),
        )
        conjunctions.append(Conjunction(key, (first, Pattern("wait", (), join))))
    started = time.perf_counter()
    assert ReferenceMatcher().match(Program(tuple(conjunctions), TYPES), facts)
    # About 0.5 s on one slow core; a quadratic join would take minutes.
    assert time.perf_counter() - started < 10


def test_unsound_matches_are_found_without_searching() -> None:
    join = Pattern("wait", (Alpha("wait_us", "gt", 5),), (Beta("rank", "eq", Ref(0, "rank")),))
    program = Program((Conjunction(3, (Pattern("step"), join)),), TYPES)
    good: list[Match] = [(3, (0, 6)), (3, (1, 5))]
    assert ReferenceMatcher().match(program, STEPS) == good
    assert unsound(program, STEPS, good) == []
    bad: list[Match] = [
        (3, (0, 7)),  # 4.0 µs is not above 5
        (3, (0, 5)),  # other rank
        (3, (6, 5)),  # wrong type
        (3, (0,)),  # a pattern unfilled
        (3, (0, 99)),  # no such fact
        (4, (0, 6)),  # no such conjunction
    ]
    assert unsound(program, STEPS, good + bad) == bad
    same = Program((Conjunction(3, (Pattern("step"), Pattern("step"))),), TYPES)
    assert unsound(same, STEPS, [(3, (0, 0))]) == [(3, (0, 0))]
