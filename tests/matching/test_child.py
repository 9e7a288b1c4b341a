"""How the child process uses the C module: the order of its calls, against a stand-in that writes them down."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_advisor.engine.matching.durable import CHILD

# Fires the boot rule, and rule r0 for every fact whose text holds "v0":1.
RECORDER = """
import os, sys
calls = open(os.path.join(os.path.dirname(__file__), "calls.txt"), "a", buffering=1)
handles = 0
waiting = []
def create_ruleset(name, rules):
    global handles
    handles += 1
    calls.write(f"create {handles}\\n")
    print("noise on stdout")
    os.write(1, b"noise below stdout")
    return handles
def assert_fact(handle, fact):
    calls.write(f"assert {handle} {fact}\\n")
    if '"code"' in fact:
        return (2, 0)
    if '"boot"' in fact:
        waiting.append('{"boot":{"p0":' + fact + '}}')
    elif '"v0":1' in fact:
        waiting.append('{"r0":{"p0":' + fact + '}}')
    return (0 if waiting else 1, 0)
def start_action_for_state(handle, state):
    calls.write(f"start {handle}\\n")
    return ("{}", waiting.pop()) if waiting else None
def complete_and_start_action(handle, state):
    calls.write(f"complete {handle}\\n")
    return None
def delete_state(handle, sid):
    calls.write(f"delete_state {handle} {sid}\\n")
def delete_ruleset(handle):
    calls.write(f"delete_ruleset {handle}\\n")
def __getattr__(name):
    calls.write(f"forbidden {name}\\n")
    raise AttributeError(name)
"""
YES, NO = '{"id":"f000000007","v0":1}', '{"id":"f000000008","v0":0}'


def shard(*facts: str) -> dict[str, Any]:
    return {"ruleset": "{}", "facts": list(facts)}


def converse(folder: Path, *requests: Any, limits: tuple[int, int] = (0, 0)) -> tuple[list[Any], int, list[str]]:
    """Answers without the greeting, exit status, calls of the stand-in."""
    lines = "".join((r if isinstance(r, str) else json.dumps({"max_matches": 2, "shards": r})) + "\n" for r in requests)
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(CHILD), str(folder), *map(str, limits)],
        input=lines, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    greeting, *answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert greeting == {"ready": True}
    calls = (folder / "calls.txt").read_text().splitlines() if (folder / "calls.txt").exists() else []
    return answers, done.returncode, calls


def test_facts_go_one_at_a_time_after_the_boot_rule(module_folder: Callable[[str], Path]) -> None:
    answers, status, calls = converse(module_folder(RECORDER), [shard(YES, NO)])
    assert answers == [{"shards": [[[0, [7]]]]}]
    assert status == 0
    assert calls == [
        "create 1",
        'assert 1 {"id":"boot","t":1,"one":1}',
        "start 1",
        "complete 1",
        f"assert 1 {YES}",
        "start 1",
        "complete 1",
        f"assert 1 {NO}",
        "start 1",
        "delete_state 1 None",
        "delete_ruleset 1",
    ]


def test_a_handle_lives_for_one_shard_of_one_request(module_folder: Callable[[str], Path]) -> None:
    answers, status, calls = converse(module_folder(RECORDER), [shard(YES), shard(NO)], [shard(YES)])
    assert answers == [{"shards": [[[0, [7]]], []]}, {"shards": [[[0, [7]]]]}]
    assert status == 0
    lives = [call.split() for call in calls if call.startswith(("create", "delete"))]
    assert lives == [
        [call, str(handle), *(["None"] if call == "delete_state" else [])]
        for handle in (1, 2, 3)
        for call in ("create", "delete_state", "delete_ruleset")
    ]


def test_return_code_2_is_fatal_and_nothing_is_reused(module_folder: Callable[[str], Path]) -> None:
    answers, _, calls = converse(module_folder(RECORDER), [shard(YES, '{"id":"f1","code":2}', NO)], [shard(YES)])
    assert answers == [{"error": "assert_fact returned 2"}]
    # Neither the handle is freed, nor the next fact sent, nor the next request answered.
    assert calls[-1] == 'assert 1 {"id":"f1","code":2}'


def test_an_exception_is_fatal_and_nothing_is_reused(module_folder: Callable[[str], Path]) -> None:
    broken = RECORDER + "\ndef start_action_for_state(handle, state):\n    raise RuntimeError('error code: 303')\n"
    answers, _, calls = converse(module_folder(broken), [shard(YES)], [shard(YES)])
    assert answers == [{"error": "error code: 303"}]
    assert not any(call.startswith("delete") for call in calls)


def test_a_boot_rule_that_does_not_fire_is_fatal(module_folder: Callable[[str], Path]) -> None:
    deaf = RECORDER + "\ndef start_action_for_state(handle, state):\n    return None\n"
    assert converse(module_folder(deaf), [shard(YES)])[0] == [{"error": "the boot rule did not fire"}]


def test_runaway_matches_end_the_request(module_folder: Callable[[str], Path]) -> None:
    answers, _, calls = converse(module_folder(RECORDER), [shard(YES, YES, YES, YES)])
    assert answers == [{"error": "more than 2 matches"}]
    assert sum(call.startswith("assert") for call in calls) == 4  # boot and three facts: the fourth is not sent


@pytest.mark.parametrize("line", ["{", "[]", '{"shards": 3, "max_matches": 1}', '{"max_matches": 1}', "\x00"])
def test_a_broken_request_is_an_error(module_folder: Callable[[str], Path], line: str) -> None:
    ((answer,), status, _) = converse(module_folder(RECORDER), line)
    assert set(answer) == {"error"}
    assert status == 0


def test_only_these_calls_are_made() -> None:
    # G13 and G1 as a property of the source: nothing is retracted, no batch call, no timer.
    calls = {
        node.func.attr
        for node in ast.walk(ast.parse(CHILD.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "engine"
    }
    assert calls == {
        "create_ruleset", "assert_fact", "start_action_for_state", "complete_and_start_action", "delete_state",
        "delete_ruleset",
    }  # fmt: skip


def test_only_the_c_module_is_imported() -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(CHILD.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module))
    assert {name for name in imported if name not in sys.stdlib_module_names} == {"durable_rules_engine"}


def test_nothing_beside_the_child_shadows_the_standard_library() -> None:
    beside = {path.stem for path in CHILD.parent.glob("*.py")}
    assert not beside & sys.stdlib_module_names


def test_a_module_beside_the_c_module_does_not_shadow_the_standard_library(
    module_folder: Callable[[str], Path],
) -> None:
    folder = module_folder(RECORDER)
    (folder / "json.py").write_text("raise SystemExit(9)", encoding="utf-8")
    assert converse(folder, [shard(YES)])[1] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX limits")
def test_an_endless_loop_ends_even_without_a_parent_that_watches(module_folder: Callable[[str], Path]) -> None:
    spin = RECORDER + "\ndef create_ruleset(name, rules):\n    while True:\n        pass\n"
    started = time.monotonic()
    answers, status, _ = converse(module_folder(spin), [shard(YES)], limits=(0, 1))
    assert answers == []
    assert status < 0  # SIGXCPU
    assert time.monotonic() - started < 30
