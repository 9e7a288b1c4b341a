"""Which matcher answers: durable_rules checked by the reference, the reference where that fails; a report of both.

Programs and facts in, matches and one ``MatcherReport`` out. Under ``auto`` no fault of durable_rules changes an answer
or ends a diagnosis: it only shows in the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from hermes_advisor.engine.matching.durable import DurableMatcher, durable_version
from hermes_advisor.engine.matching.interface import Match, Matcher, MatcherFailure, MatchFact, Program
from hermes_advisor.engine.matching.limits import Unsupported
from hermes_advisor.engine.matching.reference import ReferenceMatcher, unsound
from hermes_advisor.engine.matching.semantics import BadProgram

MatcherKind = Literal["auto", "durable", "reference"]
DEFAULT_CROSS_CHECK_FACTS: Final = 10_000


class MatcherReport(BaseModel):
    """Who matched; depends on the input and on what is installed, never on time, paths or process numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    requested: MatcherKind
    used: Literal["durable_rules", "reference"] = Field(
        description="durable_rules if it answered every program, reference if the reference had to answer one"
    )
    cross_checked: bool = Field(description="every answer of durable_rules was compared with the reference's")
    fallback_reason: str | None = Field(description="why the reference had to answer, the first time")
    durable_version: str | None = Field(description="version of durable_rules, null if it is not installed")


class MatcherStack:
    """A matcher made of one or two; ``report`` says what they did."""

    def __init__(
        self,
        kind: MatcherKind,
        *,
        durable: Matcher | None = None,
        reference: ReferenceMatcher | None = None,
        cross_check_facts: int = DEFAULT_CROSS_CHECK_FACTS,
    ) -> None:
        """Above ``cross_check_facts`` each match of durable_rules is still verified, but none is searched for."""
        self.name = kind
        self._durable = durable
        self._reference = reference
        self._cross_check_facts = cross_check_facts
        self._kind: MatcherKind = kind
        self._cross_checked = durable is not None and reference is not None
        self._reason: str | None = None

    def start(self) -> None:
        """Let the child process start while the caller does other work."""
        if isinstance(self._durable, DurableMatcher):
            self._durable.start()

    def match(self, program: Program, facts: Sequence[MatchFact]) -> list[Match]:
        """All matches, sorted and without duplicates."""
        if not program.conjunctions:
            return []
        if self._durable is None:
            assert self._reference is not None
            return self._reference.match(program, facts)
        if self._reference is None:
            return self._durable.match(program, facts)
        try:
            found = self._durable.match(program, facts)
            return self._verified(program, facts, found, self._reference)
        except BadProgram:
            raise
        except MatcherFailure as failure:
            self._reason = self._reason or str(failure)
            if not isinstance(failure, Unsupported):
                # Once it was wrong it is not trusted again; an unsupported program says nothing about the next one.
                self._durable.close()
                self._durable = None
        return self._reference.match(program, facts)

    def report(self) -> MatcherReport:
        """What happened so far."""
        by_reference = self._durable is None or self._reason is not None
        return MatcherReport(
            requested=self._kind,
            used="reference" if by_reference else "durable_rules",
            cross_checked=self._cross_checked and self._durable is not None,
            fallback_reason=self._reason,
            durable_version=durable_version(),
        )

    def close(self) -> None:
        """Release the child process."""
        for matcher in (self._durable, self._reference):
            if matcher is not None:
                matcher.close()

    def _verified(
        self, program: Program, facts: Sequence[MatchFact], found: list[Match], reference: ReferenceMatcher
    ) -> list[Match]:
        expected: list[Match] | None = None
        if len(facts) <= self._cross_check_facts:
            try:
                expected = reference.match(program, facts)
            except MatcherFailure:
                # Too much for the reference: what is left is to verify what was found.
                expected = None
        if expected is None:
            self._cross_checked = False
            invented, missing = len(unsound(program, facts, found)), 0
        else:
            invented, missing = len(set(found) - set(expected)), len(set(expected) - set(found))
        if invented or missing:
            raise MatcherFailure(f"durable_rules disagreed with the reference ({missing} missing, {invented} invented)")
        return found


def create_matcher(kind: MatcherKind, *, cross_check_facts: int = DEFAULT_CROSS_CHECK_FACTS) -> MatcherStack:
    """``auto``: durable_rules, checked, with the reference behind it; ``durable`` and ``reference``: that one alone."""
    return MatcherStack(
        kind,
        durable=None if kind == "reference" else DurableMatcher(),
        reference=None if kind == "durable" else ReferenceMatcher(),
        cross_check_facts=cross_check_facts,
    )
