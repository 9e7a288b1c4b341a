"""What every matcher does: a program of positive conjunctions and numbered facts in, all matches out.

Strata, absence, aggregates, or-expansion, order and provenance are the caller's (``engine.chain``). Both matchers share
these rules: a pattern matches facts of one type; alpha tests compare a field with a constant; beta tests compare a
field with an expression over facts bound by *earlier* patterns of the same conjunction; a test on a field that the
fact does not carry is false; one fact never fills two patterns of one conjunction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Op = Literal["eq", "ne", "lt", "le", "gt", "ge"]
Scalar = int | float | str | bool


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of ``field`` of the fact that fills pattern number ``pattern`` (0-based, earlier than the user)."""

    pattern: int
    field: str


@dataclass(frozen=True, slots=True)
class Const:
    """A constant inside an arithmetic expression."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Arith:
    """``left op right`` on numbers."""

    op: Literal["add", "sub", "mul"]
    left: Expr
    right: Expr


Expr = Ref | Const | Arith


@dataclass(frozen=True, slots=True)
class Alpha:
    """A field against a constant."""

    field: str
    op: Op
    value: Scalar


@dataclass(frozen=True, slots=True)
class Beta:
    """A field against an expression over earlier patterns."""

    field: str
    op: Op
    expr: Expr


@dataclass(frozen=True, slots=True)
class Pattern:
    """One fact of ``fact_type`` that passes every test."""

    fact_type: str
    alpha: tuple[Alpha, ...] = ()
    beta: tuple[Beta, ...] = ()


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Patterns that must all be filled, by different facts. ``key`` names it in the matches."""

    key: int
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Conjunctions to match at once, and the declared type of each field of each fact type (int, float, str, bool)."""

    conjunctions: tuple[Conjunction, ...]
    field_types: Mapping[str, Mapping[str, type]]


@dataclass(frozen=True, slots=True)
class MatchFact:
    """A fact as the matchers see it: ``number`` is its place in the canonical order, ``values`` its present fields."""

    number: int
    fact_type: str
    values: Mapping[str, Scalar]


Match = tuple[int, tuple[int, ...]]
"""(conjunction key, fact numbers in the order of its patterns)."""


class MatcherFailure(Exception):
    """The matcher could not do its work (crash, time-out, limit, cannot import); says why in one line."""


class Matcher(Protocol):
    """A matcher; ``name`` appears in the report."""

    @property
    def name(self) -> str:
        """The matcher's name."""
        ...

    def match(self, program: Program, facts: Sequence[MatchFact]) -> list[Match]:
        """All matches, sorted and without duplicates. Raises MatcherFailure."""
        ...

    def close(self) -> None:
        """Release what the matcher holds (a child process)."""
        ...
