"""Differential fuzzing: random programs through every combination, the reference matcher and durable_rules.

``HERMES_FUZZ_PROGRAMS`` sets how many (default 2,000), ``HERMES_FUZZ_SEED`` the first seed (default 0). A failure
prints its seed: ``random_case(seed)`` gives the program again. Where durable_rules cannot be used its half is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hermes_advisor.engine.matching.durable import DurableMatcher
from hermes_advisor.engine.matching.interface import MatcherFailure
from hermes_advisor.engine.matching.limits import Unsupported
from hermes_advisor.engine.matching.reference import ReferenceMatcher, unsound
from hermes_advisor.tests.matching.programs import Case, brute_force, random_case, wide_case

PROGRAMS = int(os.environ.get("HERMES_FUZZ_PROGRAMS", "2000"))
FIRST_SEED = int(os.environ.get("HERMES_FUZZ_SEED", "0"))


def cases() -> Iterator[tuple[int, Case]]:
    for seed in range(FIRST_SEED, FIRST_SEED + PROGRAMS):
        yield seed, random_case(seed)


def test_the_reference_agrees_with_every_combination() -> None:
    matcher = ReferenceMatcher()
    with_matches = 0
    for seed, case in cases():
        expected = brute_force(case.program, case.facts)
        assert matcher.match(case.program, case.facts) == expected, f"seed {seed}: {case}"
        assert unsound(case.program, case.facts, expected) == [], f"seed {seed}: {case}"
        with_matches += bool(expected)
    # Programs that match nothing prove little: about half of them must.
    assert with_matches > PROGRAMS * 0.4 or PROGRAMS < 100


def test_durable_rules_agrees_with_every_combination(durable: DurableMatcher) -> None:
    answered = 0
    for seed, case in cases():
        try:
            found = durable.match(case.program, case.facts)
        except Unsupported:
            continue
        except MatcherFailure as failure:
            pytest.fail(f"seed {seed}: {failure}: {case}")
        assert found == brute_force(case.program, case.facts), f"seed {seed}: {case}"
        answered += 1
    assert answered > PROGRAMS * 0.85 or PROGRAMS < 100


def test_durable_rules_agrees_with_the_reference_on_many_rules(durable: DurableMatcher) -> None:
    compared = 0
    for seed in range(FIRST_SEED, FIRST_SEED + PROGRAMS // 100):
        case = wide_case(seed)
        try:
            expected = ReferenceMatcher().match(case.program, case.facts)
            found = durable.match(case.program, case.facts)
        except Unsupported:
            continue
        assert found == expected, f"seed {seed}"
        compared += bool(expected)
    assert compared > PROGRAMS // 100 * 0.6
