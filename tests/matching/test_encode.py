"""The guard-rails that are visible in what is sent to durable_rules. No durable_rules needed."""

from __future__ import annotations

import json
import math
import random
import re
from typing import Any

import numpy as np
import pytest

from hermes_advisor.engine.matching.encode import Encoded, encode, split
from hermes_advisor.engine.matching.interface import (
    Alpha,
    Arith,
    Beta,
    Conjunction,
    Const,
    Expr,
    MatchFact,
    Op,
    Pattern,
    Program,
    Ref,
    Scalar,
)
from hermes_advisor.engine.matching.limits import (
    MAX_FACTS,
    MAX_PATTERNS_PER_SHARD,
    MAX_PATTERNS_PER_TYPE,
    MAX_PROPERTIES,
    Symbols,
    Unsupported,
    fact_id,
    fnv1a_32,
    plain_decimal,
)
from hermes_advisor.engine.matching.translate import RESERVED
from hermes_advisor.tests.matching.programs import HOSTILE_TEXTS, ODD_FLOATS, random_case

TYPES: dict[str, type] = {"n": int, "m": int, "x": float, "y": float, "s": str, "b": bool}


def one(*patterns: Pattern, facts: list[MatchFact] | None = None) -> Encoded:
    return encode(Program((Conjunction(0, patterns),), {"a": TYPES}), facts or [])


def written_tests(encoded: Encoded, place: int) -> list[Any]:
    """The tests of a pattern without the one on the type."""
    rule = json.loads(encoded.shards[0].ruleset)["r0"]
    found = rule["all"][place][f"p{place}"]["$and"]
    assert found[0] == {"t": 2}
    return list(found[1:])


def alpha(field: str, op: Op, value: Scalar) -> list[Any]:
    return written_tests(one(Pattern("a", (Alpha(field, op, value),))), 0)


def beta(field: str, op: Op, expr: Expr, **values: Any) -> list[Any]:
    return written_tests(
        one(Pattern("a"), Pattern("a", (), (Beta(field, op, expr),)), facts=[MatchFact(0, "a", values)]), 1
    )


# G3


def test_ids_have_no_hash_collision() -> None:
    # All million ids at once, by an independent spelling of FNV-1a.
    serials = np.arange(MAX_FACTS, dtype=np.uint64)
    digits = [serials // np.uint64(10**place) % np.uint64(10) + np.uint64(ord("0")) for place in range(8, -1, -1)]
    hashes = np.full(MAX_FACTS, 2166136261, dtype=np.uint64)
    for byte in (np.full(MAX_FACTS, ord("f"), dtype=np.uint64), *digits):
        hashes = (hashes ^ byte) * np.uint64(16777619) & np.uint64(0xFFFFFFFF)
    assert fnv1a_32(fact_id(987_654)) == hashes[987_654]
    others = {fnv1a_32(text) for text in ("boot", "sid-0")}
    assert len(np.unique(hashes)) == MAX_FACTS
    assert not others & set(hashes.tolist())


def test_the_hash_is_fnv_1a() -> None:
    # Published test vectors of 32-bit FNV-1a.
    assert [fnv1a_32(text) for text in ("", "a", "foobar")] == [0x811C9DC5, 0xE40C292C, 0xBF9CF968]


def test_more_facts_than_checked_ids_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_advisor.engine.matching.encode.MAX_FACTS", 2)
    facts = [MatchFact(number, "a", {}) for number in range(3)]
    assert one(Pattern("a"), facts=facts[:2]).shards[0].facts == (
        '{"id":"f000000000","t":2,"one":1}',
        '{"id":"f000000001","t":2,"one":1}',
    )
    with pytest.raises(Unsupported, match="more than 2 facts"):
        one(Pattern("a"), facts=facts)


# G4


def test_floats_are_plain_decimals_that_give_the_same_float() -> None:
    draw = random.Random(4)
    values = [
        *(v for v in ODD_FLOATS if abs(v) <= 1e300),
        *(draw.random() * 10.0 ** draw.randrange(-300, 300) for _ in range(2000)),
    ]
    for value in values:
        for signed in (value, -value, math.nextafter(value, math.inf)):
            written = plain_decimal(signed)
            assert re.fullmatch(r"-?\d+\.\d+", written), written
            assert float(written) == signed
    assert plain_decimal(-0.0) == "0.0"
    assert plain_decimal(1e-05) == "0.00001"
    assert plain_decimal(1e22) == "10000000000000000000000.0"
    assert plain_decimal(3) == "3.0"


@pytest.mark.parametrize(
    ("field", "op", "value", "written"),
    [
        ("n", "eq", 2.0, {"v0": 2}),
        ("n", "lt", 2.5, {"$lte": {"v0": 2}}),
        ("n", "le", -2.5, {"$lte": {"v0": -3}}),
        ("n", "gt", 2.5, {"$gte": {"v0": 3}}),
        ("n", "ge", -2.5, {"$gte": {"v0": -2}}),
        ("n", "ge", 2, {"$gte": {"v0": 2}}),
        ("n", "ne", 2.5, {"$ex": {"v0": 1}}),
        ("n", "eq", 2.5, {"$gt": {"v0": 2**62}}),  # never: no fact is above
        ("x", "gt", 2, {"$gt": {"v0": 2.0}}),
        ("s", "eq", "text", {"v0": 2}),
        ("b", "ne", True, {"$neq": {"v0": 2}}),
    ],
)
def test_constants_take_the_type_of_the_field(field: str, op: Op, value: Scalar, written: Any) -> None:
    (found,) = alpha(field, op, value)
    # 2.0 and 2 are equal for Python, not for durable_rules: compare the text.
    assert json.dumps(found) == json.dumps(written)


@pytest.mark.parametrize("value", [2**62, -(2**62)])
def test_integers_within_the_limits_are_sent(value: int) -> None:
    encoded = one(Pattern("a", (Alpha("n", "eq", value),)), facts=[MatchFact(0, "a", {"n": value})])
    assert json.loads(encoded.shards[0].facts[0])["v0"] == value


@pytest.mark.parametrize(
    ("field", "value"), [("n", 2**62 + 1), ("n", -(2**62) - 1), ("x", 1.1e300), ("x", 10**400), ("x", 2**53 + 1)]
)
def test_numbers_beyond_the_limits_are_refused(field: str, value: int | float) -> None:
    with pytest.raises(Unsupported, match="too large"):
        one(Pattern("a", (Alpha(field, "gt", 0),)), facts=[MatchFact(0, "a", {field: value})])
    with pytest.raises(Unsupported, match=r"too large|no exact float"):
        one(Pattern("a", (Alpha(field, "gt", value),)))


def test_facts_take_the_declared_type() -> None:
    encoded = one(
        Pattern("a", (Alpha("x", "gt", 0), Alpha("y", "gt", 0), Alpha("n", "gt", 0))),
        facts=[MatchFact(0, "a", {"x": 1, "y": -0.0, "n": 1})],
    )
    assert encoded.shards[0].facts == ('{"id":"f000000000","t":2,"one":1,"v0":1.0,"v1":0.0,"v2":1}',)


def test_a_join_of_an_integer_with_a_float_reads_the_integer_as_a_float() -> None:
    facts = [MatchFact(0, "a", {"n": 3, "x": 3.0})]
    encoded = one(
        Pattern("a"), Pattern("a", (), (Beta("n", "eq", Ref(0, "x")), Beta("n", "eq", Ref(0, "n")))), facts=facts
    )
    assert written_tests(encoded, 1)[:2] == [{"v2": {"p0": "v1"}}, {"v0": {"p0": "v0"}}]
    assert encoded.shards[0].facts == ('{"id":"f000000000","t":2,"one":1,"v0":3,"v1":3.0,"v2":3.0}',)


@pytest.mark.parametrize(
    "expr", [Ref(0, "x"), Arith("mul", Ref(0, "x"), Const(2)), Arith("add", Ref(0, "n"), Const(0.5))], ids=str
)
def test_an_integer_that_would_lose_digits_against_a_float_is_refused(expr: Expr) -> None:
    assert beta("n", "lt", expr, n=2**53, x=1.0)
    with pytest.raises(Unsupported, match="beyond 2\\*\\*53 meets a float"):
        beta("n", "lt", expr, n=2**53 + 1, x=1.0)
    with pytest.raises(Unsupported, match="beyond 2\\*\\*53 meets a float"):
        beta("x", "lt", Arith("add", Ref(0, "n"), Const(1)), n=2**53, x=1.0)


def test_integer_results_that_could_overflow_are_refused() -> None:
    square = Arith("mul", Ref(0, "n"), Ref(0, "n"))
    assert beta("m", "lt", square, n=2**31, m=0)
    with pytest.raises(Unsupported, match="may exceed"):
        beta("m", "lt", square, n=2**31 + 1, m=0)
    # The inner part overflows although the whole does not.
    with pytest.raises(Unsupported, match="may exceed"):
        beta("m", "lt", Arith("sub", square, square), n=2**32, m=0)


def test_float_results_that_could_overflow_are_refused() -> None:
    square = Arith("mul", Ref(0, "x"), Ref(0, "x"))
    assert beta("y", "lt", square, x=1e150, y=0.0)
    with pytest.raises(Unsupported, match="may exceed"):
        beta("y", "lt", square, x=1.1e150, y=0.0)


def test_texts_and_booleans_become_numbers_that_never_equal_one() -> None:
    symbols = Symbols()
    numbers = [symbols.number(value) for value in (True, False, "true", "1", "", *HOSTILE_TEXTS, True)]
    assert min(numbers) >= 2
    assert numbers[0] == numbers[-1]
    assert len({*numbers}) == 2 + len({"true", "1", "", *HOSTILE_TEXTS})


def test_only_plain_ascii_without_escapes_is_sent() -> None:
    names: dict[str, type] = {**dict.fromkeys(RESERVED, str), "naïve \"'\\": str, "昇": bool}
    conjunction = Conjunction(
        0, (Pattern("kind '\"\\", tuple(Alpha(n, "eq", "id") for n in RESERVED)), Pattern("昇腾"))
    )
    facts = [MatchFact(0, "kind '\"\\", dict.fromkeys(RESERVED, 'a"}\\')), MatchFact(1, "昇腾", {"昇": True})]
    encoded = encode(Program((conjunction,), {"kind '\"\\": names, "昇腾": names}), facts)
    sent = "".join([encoded.shards[0].ruleset, *encoded.shards[0].facts])
    assert re.fullmatch(r'[a-z0-9$"{}\[\]:,.-]+', sent)
    # G7: fields called id, sid, t, one keep neither their name nor their place.
    assert json.loads(encoded.shards[0].facts[0]) == {
        "id": "f000000000",
        "t": 2,
        "one": 1,
        **{f"v{n}": 3 for n in range(5)},
    }


# G5, G6


def test_joins_end_with_one_that_is_true() -> None:
    seen = 0
    for seed in range(300):
        case = random_case(seed)
        try:
            encoded = encode(case.program, case.facts)
        except Unsupported:
            continue
        for shard in encoded.shards:
            assert all('"one":1' in line for line in shard.facts)
            for rule in json.loads(shard.ruleset).values():
                for place, pattern in enumerate(rule["all"]):
                    tests = pattern[f"p{place}"]["$and"]
                    if any('"p' in json.dumps(test) for test in tests):
                        seen += 1
                        assert tests[-1] == {"one": {"p0": "one"}}
    assert seen > 200


def test_only_measured_operators_are_written() -> None:
    operators: set[str] = set()
    for seed in range(300):
        case = random_case(seed)
        try:
            encoded = encode(case.program, case.facts)
        except Unsupported:
            continue
        for shard in encoded.shards:
            operators.update(re.findall(r'"(\$?[a-z]+)":', shard.ruleset))
    assert operators == {
        "boot", "all", "t", "one", "$and", "$neq", "$lt", "$lte", "$gt", "$gte", "$ex", "$add", "$sub", "$mul", "$l",
        "$r",
    }  # fmt: skip


def test_equality_with_a_computed_value_is_two_orderings() -> None:
    computed = {"$add": {"$l": {"p0": "v1"}, "$r": -1}}
    found = beta("n", "eq", Arith("add", Ref(0, "m"), Const(-1)))
    name = next(iter(found[0]["$gte"]))
    other = next(iter(found[0]["$gte"][name]["$add"]["$l"].values()))
    computed["$add"]["$l"] = {"p0": other}
    assert found == [{"$gte": {name: computed}}, {"$lte": {name: computed}}, {"one": {"p0": "one"}}]


def test_a_constant_expression_is_a_test_and_no_join() -> None:
    assert beta("n", "gt", Arith("mul", Const(2), Const(1.5))) == [{"$gt": {"v0": 3}}]


def test_fields_read_by_later_patterns_are_demanded() -> None:
    encoded = one(
        Pattern("a", (Alpha("n", "gt", 0),)),
        Pattern("a", (), (Beta("n", "gt", Arith("add", Ref(0, "n"), Ref(0, "m"))),)),
    )
    assert written_tests(encoded, 0) == [{"$gt": {"v0": 0}}, {"$ex": {"v1": 1}}]


# G7


def conjunctions(count: int, *kinds: str) -> list[Conjunction]:
    return [Conjunction(key, tuple(Pattern(kind) for kind in kinds)) for key in range(count)]


def test_split_keeps_patterns_per_type_below_the_limit() -> None:
    parts = split(conjunctions(100, "a", "b", "a"))
    assert [len(part) for part in parts] == [24, 24, 24, 24, 4]
    assert [c.key for part in parts for c in part] == list(range(100))
    assert max(2 * len(part) for part in parts) == MAX_PATTERNS_PER_TYPE


def test_split_keeps_patterns_per_shard_below_the_limit() -> None:
    parts = split([Conjunction(key, (Pattern(f"kind_{key}"), Pattern(f"kind_{key + 1}"))) for key in range(400)])
    assert [len(part) for part in parts] == [192, 192, 16]
    assert max(2 * len(part) for part in parts) == MAX_PATTERNS_PER_SHARD


def test_split_refuses_long_conjunctions() -> None:
    assert split(conjunctions(1, *"abcdefghijkl")) == [conjunctions(1, *"abcdefghijkl")]
    with pytest.raises(Unsupported, match="conjunction 0 has more than 12 patterns"):
        split(conjunctions(1, *"abcdefghijklm"))


def test_more_joins_than_a_pattern_holds_are_refused() -> None:
    join = Beta("n", "eq", Ref(0, "n"))
    assert len(written_tests(one(Pattern("a"), Pattern("a", (), (join,) * 28)), 1)) == 29
    with pytest.raises(Unsupported, match="more than 28 joins"):
        one(Pattern("a"), Pattern("a", (), (join,) * 29))


def test_more_fields_than_a_fact_holds_are_refused() -> None:
    declared: dict[str, type] = {f"field_{n}": int for n in range(MAX_PROPERTIES + 1)}
    for count in (MAX_PROPERTIES, MAX_PROPERTIES + 1):
        tests = tuple(Alpha(f"field_{n}", "gt", 0) for n in range(count))
        program = Program((Conjunction(0, (Pattern("a", tests),)),), {"a": declared})
        if count == MAX_PROPERTIES:
            assert encode(program, [])
        else:
            with pytest.raises(Unsupported, match="more than 240 fields"):
                encode(program, [])


def test_names_have_no_hash_collision() -> None:
    names = [*RESERVED, "boot", *(f"v{n}" for n in range(MAX_PROPERTIES + 1)), *(f"p{n}" for n in range(12))]
    hashes = [fnv1a_32(name) for name in names]
    assert len({*hashes, 0}) == len(names) + 1


def test_only_fields_and_types_that_are_read_are_sent() -> None:
    facts = [MatchFact(4, "a", {"n": 1, "x": 2.0, "s": "t"}), MatchFact(5, "other", {"n": 1})]
    assert one(Pattern("a", (Alpha("x", "gt", 1.0),)), facts=facts).shards[0].facts == (
        '{"id":"f000000000","t":2,"one":1,"v0":2.0}',
    )


# decoding


def test_decoding_sorts_and_removes_duplicates() -> None:
    facts = [MatchFact(number, "a", {}) for number in (30, 10, 20)]
    encoded = one(Pattern("a"), Pattern("a"), facts=facts)
    assert encoded.decode([[(0, [2, 1]), (0, [1, 0]), (0, [2, 1])]]) == [(0, (10, 30)), (0, (20, 10))]


@pytest.mark.parametrize(
    "answer",
    [
        [],
        [[], []],
        [[(1, [0, 1])]],
        [[(0, [0, 3])]],
        [[(0, [0, -1])]],
        [[(-1, [0, 1])]],
        [[(0, [0])]],
        [[("0", [0, 1])]],
    ],
)
def test_decoding_refuses_what_does_not_fit(answer: Any) -> None:
    encoded = one(Pattern("a"), Pattern("a"), facts=[MatchFact(number, "a", {}) for number in range(3)])
    with pytest.raises((ValueError, IndexError, TypeError)):
        encoded.decode(answer)
