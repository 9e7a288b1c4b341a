"""Injected faults: whatever happens to durable_rules, the matches are right and the report says who answered and why.

Stand-ins for the child process or for the C module make every fault happen on every Python version.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_advisor.engine.matching.durable import DurableMatcher
from hermes_advisor.engine.matching.interface import (
    Alpha,
    Beta,
    Conjunction,
    Match,
    MatcherFailure,
    MatchFact,
    Pattern,
    Program,
    Ref,
)
from hermes_advisor.engine.matching.reference import ReferenceMatcher
from hermes_advisor.engine.matching.select import MatcherReport, MatcherStack, create_matcher
from hermes_advisor.engine.matching.semantics import BadProgram

WriteCommand = Callable[[str], list[str]]
WriteModule = Callable[[str], Path]

PROGRAM = Program(
    (Conjunction(4, (Pattern("a"), Pattern("c", (), (Beta("n", "eq", Ref(0, "n")),)))),),
    {"a": {"n": int}, "c": {"n": int}},
)
FACTS = [
    MatchFact(10, "a", {"n": 1}),
    MatchFact(11, "a", {"n": 2}),
    MatchFact(12, "c", {"n": 1}),
    MatchFact(13, "c", {"n": 2}),
]
RIGHT: list[Match] = [(4, (10, 12)), (4, (11, 13))]
# What a child must answer for it, by position among the facts.
ANSWER = "{'shards': [[[0, [0, 2]], [0, [1, 3]]]]}"
# A child that greets and reads the request; then the fault.
READ = "answer({'ready': True})\nrequest()\n"
HONEST = f"{READ}answer({ANSWER})\n"


def stack(durable: DurableMatcher, cross_check_facts: int = 10_000) -> MatcherStack:
    return MatcherStack("auto", durable=durable, reference=ReferenceMatcher(), cross_check_facts=cross_check_facts)


def expect_fallback(durable: DurableMatcher, reason: str) -> None:
    """The right matches, the reason, nothing left behind; and the reference for later programs too."""
    matcher = stack(durable)
    matcher.start()
    assert matcher.match(PROGRAM, FACTS) == RIGHT
    report = matcher.report()
    assert (report.requested, report.used, report.cross_checked) == ("auto", "reference", False)
    assert report.fallback_reason == reason
    assert durable._child is None
    assert matcher.match(PROGRAM, FACTS[:3]) == RIGHT[:1]
    assert durable._child is None
    assert matcher.report() == report
    matcher.close()


def test_an_honest_stand_in_is_believed(child_command: WriteCommand) -> None:
    # The control: the faults below differ from this one in the fault alone.
    matcher = stack(DurableMatcher(command=child_command(HONEST)))
    assert matcher.match(PROGRAM, FACTS) == RIGHT
    report = matcher.report()
    assert (report.used, report.cross_checked, report.fallback_reason) == ("durable_rules", True, None)
    matcher.close()


ENDS = {
    "killed in a request": (READ + "os.kill(os.getpid(), signal.SIGKILL)\n", "was ended by SIGKILL"),
    "crash in a request": (READ + "os.kill(os.getpid(), signal.SIGSEGV)\n", "was ended by SIGSEGV"),
    "ends at once": ("sys.exit(0)\n", "ended with status 0"),
    "fails at once": ("sys.exit(3)\n", "ended with status 3"),
    "ends without an answer": (READ, "ended with status 0"),
}
MALFORMED = {
    "garbage instead of the greeting": "print('hello', flush=True)\nrequest()\n",
    "another greeting": "answer(['ready'])\nrequest()\n",
    "garbage": READ + "print('Segmentation fault?')\n",
    "bytes that are no text": READ + "os.write(1, bytes(range(128, 256)) + b'\\n')\n",
    "half an answer": READ + "sys.stdout.write('{\"shards\": [[[0, [0')\n",
    "deeply nested": READ + "print('[' * 200000)\n",
    "a list": READ + "answer([1])\n",
    "no shards": READ + "answer({'matches': []})\n",
    "too many shards": READ + "answer({'shards': [[], []]})\n",
    "no such fact": READ + "answer({'shards': [[[0, [0, 9]]]]})\n",
    "a negative fact": READ + "answer({'shards': [[[0, [0, -1]]]]})\n",
    "no such rule": READ + "answer({'shards': [[[1, [0, 2]]]]})\n",
    "facts of the wrong type": READ + "answer({'shards': [[[0, [2, 0]]]]})\n",
    "too few facts": READ + "answer({'shards': [[[0, [0]]]]})\n",
    "fractions": READ + "answer({'shards': [[[0, [0.0, 2.0]]]]})\n",
    "numbers as text": READ + "answer({'shards': ['00']})\n",
}
WRONG = {
    "drops a match": ("[[0, [1, 3]]]", "1 missing, 0 invented"),
    "drops all matches": ("[]", "2 missing, 0 invented"),
    "invents a match": ("[[0, [0, 2]], [0, [1, 3]], [0, [0, 3]]]", "0 missing, 1 invented"),
    "swaps two": ("[[0, [0, 3]], [0, [1, 2]]]", "2 missing, 2 invented"),
}
SAYS = "assert_fact returned 2\\nin /tmp/x.so: twice"
FAULTS = {
    **{name: (child, f"the matching process {end}") for name, (child, end) in ENDS.items()},
    **{name: (child, "malformed answer") for name, child in MALFORMED.items()},
    **{
        name: (f"{READ}answer({{'shards': [{found}]}})\n", f"durable_rules disagreed with the reference ({how})")
        for name, (found, how) in WRONG.items()
    },
    "says what went wrong": (f"{READ}answer({{'error': '{SAYS}'}})\n", "assert_fact returned 2 in twice"),
}


@pytest.mark.parametrize(("child", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_child_is_replaced_by_the_reference(child: str, reason: str, child_command: WriteCommand) -> None:
    expect_fallback(DurableMatcher(command=child_command(child)), reason)


@pytest.mark.parametrize(
    "child",
    ["time.sleep(60)\n", READ + "time.sleep(60)\n", "answer({'ready': True})\ntime.sleep(60)\n"],
    ids=["before its greeting", "in the request", "without reading"],
)
def test_a_hung_child_is_replaced_by_the_reference(child: str, child_command: WriteCommand) -> None:
    started = time.monotonic()
    expect_fallback(DurableMatcher(command=child_command(child), time_limit_s=0.7), "no answer within 0.7 s")
    assert time.monotonic() - started < 10


def test_a_child_that_never_reads_does_not_block_a_large_request(child_command: WriteCommand) -> None:
    # 20,000 facts exceed every pipe buffer.
    many = [MatchFact(n, "a" if n % 2 else "c", {"n": n}) for n in range(20_000)]
    durable = DurableMatcher(command=child_command("answer({'ready': True})\ntime.sleep(60)\n"), time_limit_s=0.7)
    started = time.monotonic()
    with pytest.raises(MatcherFailure, match="no answer within"):
        durable.match(PROGRAM, many)
    assert time.monotonic() - started < 10
    assert durable._child is None


def test_a_child_killed_from_outside_between_two_programs(durable: DurableMatcher) -> None:
    own = DurableMatcher()
    matcher = stack(own)
    assert matcher.match(PROGRAM, FACTS) == RIGHT
    assert matcher.report().used == "durable_rules"
    assert own._child
    os.kill(own._child._process.pid, signal.SIGKILL)
    assert matcher.match(PROGRAM, FACTS) == RIGHT
    assert matcher.report().fallback_reason == "the matching process was ended by SIGKILL"
    matcher.close()


def test_a_child_killed_from_outside_in_a_request(durable: DurableMatcher) -> None:
    # 16 million comparisons inside, a bisection for the reference: the signal arrives in the middle.
    facts = [MatchFact(n, "a" if n % 2 else "c", {"n": n % 2}) for n in range(8000)]
    above = Program(
        (Conjunction(0, (Pattern("a"), Pattern("c", (), (Beta("n", "gt", Ref(0, "n")),)))),), PROGRAM.field_types
    )
    own = DurableMatcher()
    matcher = stack(own)
    assert matcher.match(PROGRAM, FACTS) == RIGHT
    assert own._child
    killer = threading.Timer(0.3, os.kill, (own._child._process.pid, signal.SIGKILL))
    killer.start()
    assert matcher.match(above, facts) == []
    assert matcher.report().fallback_reason == "the matching process was ended by SIGKILL"
    killer.join()
    matcher.close()


MODULES = {
    "import error": (
        "raise ImportError('/usr/lib/x.so: undefined symbol: PyEval_CallObject')\n",
        "cannot import durable_rules_engine: undefined symbol: PyEval_CallObject",
    ),
    "import crash": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
        "the matching process was ended by SIGSEGV",
    ),
    "abort": (
        "import os\ndef create_ruleset(name, rules):\n    os.abort()\n",
        "the matching process was ended by SIGABRT",
    ),
    "out of memory": (
        "def create_ruleset(name, rules):\n    return bytearray(10**12)\n",
        "out of memory",
    ),
    "error code": (
        "def create_ruleset(name, rules):\n    raise Exception('Could not create ruleset, error code: 108')\n",
        "Could not create ruleset, error code: 108",
    ),
    "another interface": ("x = 1\n", "module 'durable_rules_engine' has no attribute 'create_ruleset'"),
}


@pytest.mark.parametrize(("module", "reason"), MODULES.values(), ids=MODULES)
def test_a_faulty_c_module_is_replaced_by_the_reference(module: str, reason: str, module_folder: WriteModule) -> None:
    expect_fallback(DurableMatcher(module_folder=module_folder(module)), reason)


def test_a_c_module_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_advisor.engine.matching.durable.MODULE", "no_such_module_anywhere")
    expect_fallback(DurableMatcher(), "durable_rules is not installed")


def test_an_interpreter_that_cannot_start(tmp_path: Path) -> None:
    expect_fallback(
        DurableMatcher(command=[str(tmp_path / "python")]),
        "the matching process cannot start: No such file or directory",
    )


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")
def test_the_memory_limit_holds(durable: DurableMatcher) -> None:
    # A three-way cross product without results: 600² pairs of 250 bytes each are remembered inside.
    facts = [MatchFact(n, "a", {"n": n}) for n in range(600)]
    never = Pattern("c", (Alpha("n", "eq", -1),))
    program = Program((Conjunction(0, (Pattern("a"), Pattern("a"), never)),), PROGRAM.field_types)
    limited = DurableMatcher(memory_limit_bytes=100 * 1024**2)
    matcher = stack(limited)
    assert matcher.match(program, facts) == []
    report = matcher.report()
    assert report.used == "reference"
    assert report.fallback_reason == "out of memory"
    assert durable.match(program, facts) == []
    matcher.close()


def test_a_program_outside_the_guard_rails_is_answered_by_the_reference_alone(child_command: WriteCommand) -> None:
    child = f"answer({{'ready': True}})\nwhile request():\n    answer({ANSWER})\n"
    durable = DurableMatcher(command=child_command(child))
    matcher = stack(durable)
    huge = [MatchFact(0, "a", {"n": 2**70}), MatchFact(1, "c", {"n": 2**70})]
    assert matcher.match(PROGRAM, huge) == [(4, (0, 1))]
    assert matcher.match(PROGRAM, FACTS) == RIGHT
    # durable_rules answered the second: it was not given up.
    assert durable._child is not None
    report = matcher.report()
    assert (report.used, report.fallback_reason) == ("reference", "a.n holds a number that is too large")
    matcher.close()


def test_beyond_the_cross_check_limit_inventions_are_still_found(child_command: WriteCommand) -> None:
    invents = READ + "answer({'shards': [[[0, [0, 2]], [0, [0, 3]]]]})\n"
    matcher = stack(DurableMatcher(command=child_command(invents)), cross_check_facts=3)
    assert matcher.match(PROGRAM, FACTS) == RIGHT
    assert matcher.report().fallback_reason == "durable_rules disagreed with the reference (0 missing, 1 invented)"
    matcher.close()


def test_beyond_the_cross_check_limit_the_report_says_so(child_command: WriteCommand) -> None:
    matcher = stack(DurableMatcher(command=child_command(HONEST)), cross_check_facts=3)
    assert matcher.match(PROGRAM, FACTS) == RIGHT
    report = matcher.report()
    assert (report.used, report.cross_checked) == ("durable_rules", False)
    matcher.close()


def test_a_program_too_large_for_the_reference_is_verified_only(child_command: WriteCommand) -> None:
    durable = DurableMatcher(command=child_command(HONEST))
    matcher = MatcherStack("auto", durable=durable, reference=ReferenceMatcher(max_steps=1))
    assert matcher.match(PROGRAM, FACTS) == RIGHT
    assert (matcher.report().used, matcher.report().cross_checked) == ("durable_rules", False)
    matcher.close()


def test_a_bad_program_is_no_fault_of_durable_rules(child_command: WriteCommand) -> None:
    matcher = stack(DurableMatcher(command=child_command(HONEST)))
    with pytest.raises(BadProgram):
        matcher.match(Program((Conjunction(0, (Pattern("a", (Alpha("q", "eq", 1),)),)),), {}), FACTS)
    assert matcher.match(PROGRAM, FACTS) == RIGHT
    assert matcher.report().used == "durable_rules"
    matcher.close()


def test_when_both_fail_the_failure_is_told(child_command: WriteCommand) -> None:
    durable = DurableMatcher(command=child_command("sys.exit(3)\n"))
    matcher = MatcherStack("auto", durable=durable, reference=ReferenceMatcher(max_matches=1))
    with pytest.raises(MatcherFailure, match="more than 1 matches"):
        matcher.match(PROGRAM, FACTS)


def test_reasons_carry_no_path_and_no_line_break(module_folder: WriteModule) -> None:
    folder = module_folder("raise ImportError(__file__ + ': no\\nsuch\tsymbol \\u6607')\n")
    matcher = stack(DurableMatcher(module_folder=folder))
    matcher.match(PROGRAM, FACTS)
    assert matcher.report().fallback_reason == "cannot import durable_rules_engine: no such symbol ?"


@pytest.mark.parametrize("kind", ["durable", "reference", "auto"])
def test_create_matcher(kind: str, durable: DurableMatcher) -> None:
    matcher = create_matcher(kind)  # type: ignore[arg-type]
    matcher.start()
    assert matcher.match(PROGRAM, FACTS) == RIGHT
    assert matcher.match(Program((), {}), FACTS) == []
    expected = MatcherReport(
        requested=kind,  # type: ignore[arg-type]
        used="reference" if kind == "reference" else "durable_rules",
        cross_checked=kind == "auto",
        fallback_reason=None,
        durable_version="2.0.28",
    )
    assert matcher.report() == expected
    matcher.close()


def test_durable_alone_does_not_fall_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_advisor.engine.matching.durable.MODULE", "no_such_module_anywhere")
    with pytest.raises(MatcherFailure, match="durable_rules is not installed"):
        create_matcher("durable").match(PROGRAM, FACTS)
