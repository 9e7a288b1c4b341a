"""durable_rules behind the matcher interface: a program and its facts in, all matches out, the C code in a child.

The child is started once, early if ``start`` is called, and serves every program. Whatever goes wrong in it becomes a
``MatcherFailure`` with a reason of one line that depends neither on the machine nor on the moment.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hermes_advisor.engine.matching.encode import Encoded, encode
from hermes_advisor.engine.matching.interface import Match, MatcherFailure, MatchFact, Program
from hermes_advisor.engine.matching.reference import DEFAULT_MAX_MATCHES

DEFAULT_TIME_LIMIT_S: Final = 30.0
DEFAULT_MEMORY_LIMIT_BYTES: Final = 2 * 1024**3
MODULE: Final = "durable_rules_engine"
CHILD: Final = Path(__file__).with_name("child") / "durable_child.py"

_MAX_ANSWER_BYTES: Final = 256 * 1024**2
_END_GRACE_S: Final = 5.0


class DurableMatcher:
    """Matches in a child process under a time and a memory limit (G9)."""

    name = "durable_rules"

    def __init__(
        self,
        *,
        time_limit_s: float = DEFAULT_TIME_LIMIT_S,
        memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
        max_matches: int = DEFAULT_MAX_MATCHES,
        command: Sequence[str] | None = None,
        module_folder: Path | None = None,
    ) -> None:
        """``command`` replaces the child and ``module_folder`` the place of the C module: seams for injected faults."""
        self.time_limit_s = time_limit_s
        self.memory_limit_bytes = memory_limit_bytes
        self.max_matches = max_matches
        self._command = command
        self._module_folder = module_folder
        self._child: _Child | None = None

    def start(self) -> None:
        """Start the child without waiting for it; a failure shows when it is asked."""
        with contextlib.suppress(MatcherFailure):
            self._started()

    def match(self, program: Program, facts: Sequence[MatchFact]) -> list[Match]:
        """All matches, sorted and without duplicates."""
        encoded = encode(program, facts)
        try:
            answer = self._started().ask(self._request(encoded), self.time_limit_s)
            return _decode(encoded, answer)
        except BaseException:
            # G8: after a failure nothing of this child is used again.
            self.close()
            raise

    def close(self) -> None:
        """End the child and collect it."""
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def _request(self, encoded: Encoded) -> bytes:
        shards = [{"ruleset": shard.ruleset, "facts": shard.facts} for shard in encoded.shards]
        return json.dumps({"max_matches": self.max_matches, "shards": shards}, separators=(",", ":")).encode() + b"\n"

    def _started(self) -> _Child:
        if self._child is None:
            self._child = _Child(self._command or self._own_command())
        return self._child

    def _own_command(self) -> list[str]:
        folder = self._module_folder or _module_folder()
        if folder is None:
            raise MatcherFailure("durable_rules is not installed")
        # -I -S: no PYTHON* variable, no user or site hook, no current folder reaches the child.
        limits = [str(self.memory_limit_bytes), str(math.ceil(self.time_limit_s))]
        return [sys.executable, "-I", "-S", str(CHILD), str(folder), *limits]


def durable_version() -> str | None:
    """The installed version of durable_rules."""
    try:
        return importlib.metadata.version("durable_rules")
    except importlib.metadata.PackageNotFoundError:
        return None


def _module_folder() -> Path | None:
    # Finds the file without running it: a broken C module must fail in the child.
    try:
        spec = importlib.util.find_spec(MODULE)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec and spec.origin else None


class _Child:
    """A running child and its pipes."""

    def __init__(self, command: Sequence[str]) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
            )
        except OSError as error:
            raise MatcherFailure(f"the matching process cannot start: {error.strerror}") from None
        self._ready = False

    def ask(self, request: bytes, time_limit_s: float) -> dict[str, Any]:
        """One request, one answer; raises MatcherFailure."""
        lines: list[bytes] = []

        # In a thread: a pipe blocks, and a child that hangs must not hang its parent.
        def converse() -> None:
            assert self._process.stdin and self._process.stdout
            if not self._ready:
                lines.append(self._process.stdout.readline(_MAX_ANSWER_BYTES))
                if not lines[0].startswith(b'{"ready"'):
                    return
            with contextlib.suppress(OSError):
                # A child that fails early may have said why before it stopped reading.
                self._process.stdin.write(request)
                self._process.stdin.flush()
            lines.append(self._process.stdout.readline(_MAX_ANSWER_BYTES))

        talk = threading.Thread(target=converse, daemon=True)
        talk.start()
        talk.join(time_limit_s)
        if talk.is_alive():
            self._process.kill()
            talk.join(_END_GRACE_S)
            raise MatcherFailure(f"no answer within {time_limit_s:g} s")
        self._ready = True
        return self._parse(lines[-1])

    def _parse(self, line: bytes) -> dict[str, Any]:
        if not line:
            raise MatcherFailure(self._how_it_ended())
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise MatcherFailure("malformed answer") from None
        if not isinstance(message, dict):
            raise MatcherFailure("malformed answer")
        if "error" in message:
            raise MatcherFailure(_one_line(message["error"]))
        return message

    def _how_it_ended(self) -> str:
        try:
            status = self._process.wait(_END_GRACE_S)
        except subprocess.TimeoutExpired:
            return "the matching process closed its output"
        if status >= 0:
            return f"the matching process ended with status {status}"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"the matching process was ended by {name}"

    def end(self) -> None:
        """Kill, collect, close."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            # Closing flushes what a dead child never read.
            with contextlib.suppress(OSError):
                if pipe:
                    pipe.close()


def _decode(encoded: Encoded, answer: dict[str, Any]) -> list[Match]:
    try:
        return encoded.decode([[(rule, serials) for rule, serials in shard] for shard in answer["shards"]])
    except (KeyError, IndexError, TypeError, ValueError):
        raise MatcherFailure("malformed answer") from None


def _one_line(text: object) -> str:
    # Words with a slash are paths: they differ between machines, and reports must not.
    words = [word for word in str(text).split() if "/" not in word]
    return re.sub(r"[^ -~]", "?", " ".join(words))[:200] or "no reason given"
