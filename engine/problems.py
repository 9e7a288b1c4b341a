"""Faults in a knowledge base, each with its position; in: what a check saw; out: one line a person can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """One fault: where (1-based line and column), a stable code, and what was expected instead."""

    file: str
    line: int
    column: int
    code: str
    message: str
    severity: str = "error"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.severity} [{self.code}] {self.message}"


class KnowledgeBaseError(Exception):
    """The knowledge base cannot be used; carries every problem found, not only the first."""

    def __init__(self, problems: Iterable[Problem]):
        self.problems = sorted(set(problems))
        super().__init__("\n".join(str(p) for p in self.problems))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the closest known word, or what exists when nothing is close."""
    words = sorted(known)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    shown = ", ".join(words[:12]) + (", …" if len(words) > 12 else "")
    return f"; expected one of: {shown}" if words else ""
