"""Fixtures for the matchers: durable_rules where it can be imported, and stand-ins for its C module and its process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_advisor.engine.matching.durable import MODULE, DurableMatcher
from hermes_advisor.engine.matching.interface import Conjunction, MatcherFailure, MatchFact, Pattern, Program


@pytest.fixture(scope="session")
def durable() -> Iterator[DurableMatcher]:
    """The real matcher; skips where its C module cannot be used (Python 3.13 and later)."""
    matcher = DurableMatcher()
    try:
        assert matcher.match(Program((Conjunction(0, (Pattern("a"),)),), {}), [MatchFact(5, "a", {})]) == [(0, (5,))]
    except MatcherFailure as reason:
        pytest.skip(f"durable_rules cannot be used here: {reason}")
    yield matcher
    matcher.close()


@pytest.fixture
def module_folder(tmp_path: Path) -> Callable[[str], Path]:
    """A folder with a stand-in for the C module, whose source is given."""

    def write(source: str) -> Path:
        folder = tmp_path / "module"
        folder.mkdir(exist_ok=True)
        (folder / f"{MODULE}.py").write_text(source, encoding="utf-8")
        return folder

    return write


@pytest.fixture
def child_command(tmp_path: Path) -> Callable[[str], list[str]]:
    """The command of a stand-in for the child process, whose source is given; it may call ``answer``, ``request``."""
    helpers = (
        "import json, os, signal, sys, time\n"
        "def answer(value):\n"
        "    sys.stdout.write(json.dumps(value) + '\\n'); sys.stdout.flush()\n"
        "def request():\n"
        "    line = sys.stdin.readline()\n"
        "    if not line: sys.exit(0)\n"
        "    return json.loads(line)\n"
    )

    def write(source: str) -> list[str]:
        script = tmp_path / "stand_in.py"
        script.write_text(helpers + source, encoding="utf-8")
        return [sys.executable, "-I", str(script)]

    return write
