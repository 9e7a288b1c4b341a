"""durable_rules itself, in its process, at the edges of the guard-rails; the expected answers are worked out by hand.

Skipped where its C module cannot be used; the guard-rails that show without it are in test_encode and test_child.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from hermes_advisor.engine.matching.durable import DurableMatcher, durable_version
from hermes_advisor.engine.matching.interface import (
    Alpha,
    Arith,
    Beta,
    Conjunction,
    Const,
    MatcherFailure,
    MatchFact,
    Pattern,
    Program,
    Ref,
)
from hermes_advisor.engine.matching.limits import Unsupported
from hermes_advisor.tests.matching.programs import HOSTILE_TEXTS, ODD_FLOATS

TYPES: dict[str, type] = {"n": int, "m": int, "x": float, "s": str, "b": bool}
BOTH = {"a": TYPES, "c": TYPES}


def facts(kind: str, field: str, values: list[Any], first: int = 0) -> list[MatchFact]:
    return [MatchFact(first + place, kind, {field: value}) for place, value in enumerate(values)]


def join(field: str, op: Any, expr: Any) -> Program:
    return Program((Conjunction(0, (Pattern("a"), Pattern("c", (), (Beta(field, op, expr),)))),), BOTH)


def test_numbers_are_read_as_python_reads_them(durable: DurableMatcher) -> None:
    draw = random.Random(11)
    values = [v for v in ODD_FLOATS if abs(v) <= 1e300 and v]
    values += [draw.random() * 10.0 ** draw.randrange(-40, 40) for _ in range(100)]
    values += [draw.uniform(-1e9, 1e9) for _ in range(60)]
    values += [math.nextafter(value, math.inf) for value in values]
    values = sorted(set(values))
    # Join: each value meets itself and neither neighbour. The other side arrives by another way: 2 * (v / 2).
    halves = [v for v in values if abs(v) > 1e-300]
    found = durable.match(
        join("x", "eq", Arith("mul", Ref(0, "x"), Const(2))),
        facts("a", "x", [v / 2 for v in halves]) + facts("c", "x", halves, first=len(halves)),
    )
    assert found == [(0, (n, n + len(halves))) for n in range(len(halves))]
    found = durable.match(
        join("x", "eq", Ref(0, "x")), facts("a", "x", values) + facts("c", "x", values, first=len(values))
    )
    assert found == [(0, (n, n + len(values))) for n in range(len(values))]
    # Constants: of the sorted values, as many are below the limit as stand before it.
    for place in range(0, len(values), 40):
        below = Program((Conjunction(0, (Pattern("a", (Alpha("x", "lt", values[place]),)),)),), BOTH)
        assert durable.match(below, facts("a", "x", values)) == [(0, (n,)) for n in range(place)]


def test_numbers_at_the_integer_limits(durable: DurableMatcher) -> None:
    values = [-(2**62), -(2**62) + 1, -1, 0, 1, 2**53, 2**53 + 1, 2**62 - 1, 2**62]
    found = durable.match(join("n", "gt", Ref(0, "n")), facts("a", "n", values) + facts("c", "n", values, first=9))
    assert found == [(0, (n, m + 9)) for n in range(9) for m in range(n + 1, 9)]
    for place, value in enumerate(values):
        equal = Program((Conjunction(0, (Pattern("a", (Alpha("n", "eq", value),)),)),), BOTH)
        assert durable.match(equal, facts("a", "n", values)) == [(0, (place,))]


def test_an_integer_joins_with_the_float_of_the_same_value(durable: DurableMatcher) -> None:
    sides = [MatchFact(0, "a", {"n": 3}), MatchFact(1, "a", {"n": 2**53}), MatchFact(2, "c", {"x": 3.0}),
             MatchFact(3, "c", {"x": float(2**53)}), MatchFact(4, "c", {"x": 3})]  # fmt: skip
    assert durable.match(join("x", "eq", Ref(0, "n")), sides) == [(0, (0, 2)), (0, (0, 4)), (0, (1, 3))]


def test_minus_zero_is_zero(durable: DurableMatcher) -> None:
    sides = [MatchFact(0, "a", {"x": -0.0}), MatchFact(1, "c", {"x": 0.0})]
    assert durable.match(join("x", "eq", Ref(0, "x")), sides) == [(0, (0, 1))]


def test_texts_are_equal_when_python_says_so(durable: DurableMatcher) -> None:
    texts = [*HOSTILE_TEXTS, "x" * 100_000, "x" * 99_999 + "y"]
    assert len(set(texts)) == len(texts)
    found = durable.match(
        join("s", "eq", Ref(0, "s")), facts("a", "s", texts) + facts("c", "s", texts, first=len(texts))
    )
    assert found == [(0, (n, n + len(texts))) for n in range(len(texts))]
    for place, text in enumerate(texts):
        others = Program((Conjunction(0, (Pattern("a", (Alpha("s", "ne", text),)),)),), BOTH)
        assert durable.match(others, facts("a", "s", texts)) == [(0, (n,)) for n in range(len(texts)) if n != place]


def test_texts_and_types_with_reserved_names(durable: DurableMatcher) -> None:
    names = ("id", "sid", "t", "one", "$s", "p0", "count", "$not")
    program = Program(
        (Conjunction(0, (Pattern("boot", tuple(Alpha(n, "eq", "boot") for n in names)), Pattern("sid-0"))),),
        {"boot": dict.fromkeys(names, str), "sid-0": {}},
    )
    found = durable.match(program, [MatchFact(1, "sid-0", {}), MatchFact(2, "boot", dict.fromkeys(names, "boot"))])
    assert found == [(0, (2, 1))]


def test_a_false_last_join_does_no_harm(durable: DurableMatcher) -> None:
    # Without the closing join this crashes in four of five processes.
    for _ in range(50):
        assert durable.match(join("n", "gt", Ref(0, "n")), facts("a", "n", [3]) + facts("c", "n", [1], first=1)) == []


def test_a_missing_field_makes_a_join_false(durable: DurableMatcher) -> None:
    sides = [MatchFact(0, "a", {}), MatchFact(1, "a", {"n": 1}), MatchFact(2, "c", {}), MatchFact(3, "c", {"n": 2})]
    for op in ("ne", "gt", "ge"):
        assert durable.match(join("n", op, Ref(0, "n")), sides) == [(0, (1, 3))]


def test_the_order_of_facts_and_the_gaps_in_their_numbers_do_not_matter(durable: DurableMatcher) -> None:
    sides = [MatchFact(n * 7, "a" if n % 2 else "c", {"n": n % 3}) for n in range(30)]
    expected = sorted((0, (a * 7, c * 7)) for a in range(1, 30, 2) for c in range(0, 30, 2) if a % 3 == c % 3)
    for seed in range(5):
        random.Random(seed).shuffle(sides)
        assert durable.match(join("n", "eq", Ref(0, "n")), sides) == expected


# G7: each of these ends in an error or an endless loop without the limits


def test_limits_300_rules_with_one_pattern(durable: DurableMatcher) -> None:
    same = tuple(Conjunction(key, (Pattern("a", (Alpha("n", "ge", 0),)),)) for key in range(300))
    assert durable.match(Program(same, BOTH), facts("a", "n", [0])) == [(key, (0,)) for key in range(300)]


def test_limits_100_tests_passed_by_one_fact(durable: DurableMatcher) -> None:
    rules = tuple(Conjunction(key, (Pattern("a", (Alpha("n", "gt", key),)),)) for key in range(100))
    assert durable.match(Program(rules, BOTH), facts("a", "n", [99])) == [(key, (0,)) for key in range(99)]


def test_limits_600_fact_types(durable: DurableMatcher) -> None:
    kinds = [f"kind_{n}" for n in range(600)]
    rules = tuple(Conjunction(key, (Pattern(kind),)) for key, kind in enumerate(kinds))
    sides = [MatchFact(key, kind, {}) for key, kind in enumerate(kinds)]
    assert durable.match(Program(rules, {}), sides) == [(key, (key,)) for key in range(600)]


def test_limits_600_values_of_one_field(durable: DurableMatcher) -> None:
    rules = tuple(Conjunction(key, (Pattern("a", (Alpha("s", "eq", f"v{key}"),)),)) for key in range(600))
    sides = facts("a", "s", [f"v{key}" for key in range(600)])
    assert durable.match(Program(rules, BOTH), sides) == [(key, (key,)) for key in range(600)]


def test_limits_twelve_patterns(durable: DurableMatcher) -> None:
    def chain(length: int) -> Program:
        rest = (Pattern("a", (), (Beta("n", "eq", Arith("add", Ref(p - 1, "n"), Const(1))),)) for p in range(1, length))
        return Program((Conjunction(0, (Pattern("a"), *rest)),), BOTH)

    assert durable.match(chain(12), facts("a", "n", list(range(13)))) == [
        (0, tuple(range(12))),
        (0, tuple(range(1, 13))),
    ]
    with pytest.raises(Unsupported, match="more than 12 patterns"):
        durable.match(chain(13), [])


def test_limits_240_fields(durable: DurableMatcher) -> None:
    names = [f"field_{n}" for n in range(240)]
    rule = Conjunction(0, (Pattern("a", tuple(Alpha(name, "eq", n) for n, name in enumerate(names))),))
    program = Program((rule,), {"a": dict.fromkeys(names, int)})
    good = {name: n for n, name in enumerate(names)}
    sides = [MatchFact(0, "a", good), *(MatchFact(n + 1, "a", {**good, name: -1}) for n, name in enumerate(names))]
    assert durable.match(program, sides) == [(0, (0,))]


def test_limits_28_joins_in_a_pattern(durable: DurableMatcher) -> None:
    joins = (*(Beta("n", "ge", Ref(0, "n")),) * 27, Beta("m", "ne", Ref(0, "m")))
    program = Program((Conjunction(0, (Pattern("a"), Pattern("c", (), joins))),), BOTH)
    sides = [
        MatchFact(0, "a", {"n": 1, "m": 1}),
        MatchFact(1, "c", {"n": 1, "m": 1}),
        MatchFact(2, "c", {"n": 2, "m": 2}),
    ]
    assert durable.match(program, sides) == [(0, (0, 2))]


# the process


def test_a_request_larger_than_every_buffer(durable: DurableMatcher) -> None:
    sides = facts("a", "n", list(range(60_000)))
    program = Program((Conjunction(0, (Pattern("a", (Alpha("n", "ge", 10),)),)),), BOTH)
    assert len(durable.match(program, sides)) == 59_990


def test_too_many_matches_are_refused_early() -> None:
    with_limit = DurableMatcher(max_matches=1000, memory_limit_bytes=512 * 1024**2)
    cross = Program((Conjunction(0, (Pattern("a"), Pattern("c"))),), BOTH)
    try:
        with pytest.raises(MatcherFailure, match=r"^(more than 1000 matches|durable_rules is not installed)"):
            with_limit.match(cross, facts("a", "n", [1] * 5000) + facts("c", "n", [1] * 5000, first=5000))
    finally:
        with_limit.close()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_memory_stays_flat_over_2000_rulesets(durable: DurableMatcher) -> None:
    def resident_bytes() -> int:
        assert durable._child
        status = Path(f"/proc/{durable._child._process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) * 1024

    program = join("n", "eq", Ref(0, "n"))
    sides = facts("a", "n", list(range(20))) + facts("c", "n", list(range(20)), first=20)
    for _ in range(100):
        durable.match(program, sides)
    before = resident_bytes()
    for _ in range(2000):
        assert len(durable.match(program, sides)) == 20
    # Measured 0; without delete_state before delete_ruleset several hundred MB.
    assert resident_bytes() - before < 50 * 1024**2


def test_the_child_starts_early_and_is_collected(durable: DurableMatcher) -> None:
    matcher = DurableMatcher()
    matcher.start()
    assert matcher._child
    process = matcher._child._process
    assert process.poll() is None
    matcher.close()
    assert process.returncode is not None
    matcher.close()  # twice does no harm


def test_it_starts_again_after_close(durable: DurableMatcher) -> None:
    matcher = DurableMatcher()
    for _ in range(2):
        assert matcher.match(join("n", "eq", Ref(0, "n")), []) == []
        matcher.close()


def test_the_environment_does_not_reach_the_child(
    durable: DurableMatcher, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(9)", encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit(9)", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "json.py"))
    monkeypatch.chdir(tmp_path)
    matcher = DurableMatcher()
    assert matcher.match(join("n", "eq", Ref(0, "n")), []) == []
    matcher.close()


def test_the_version_is_known(durable: DurableMatcher) -> None:
    assert durable_version() == "2.0.28"


@pytest.mark.skipif(sys.version_info < (3, 13), reason="durable_rules works here")
def test_python_3_13_says_that_it_is_missing() -> None:
    with pytest.raises(
        MatcherFailure, match=r"^(durable_rules is not installed|cannot import durable_rules_engine: .*)$"
    ):
        DurableMatcher().match(join("n", "eq", Ref(0, "n")), [])
