"""The working memory of one diagnosis: facts in canonical order, with the look-ups that rules need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hermes_advisor.engine.matching.interface import MatchFact
from hermes_advisor.engine.operands import Scalar
from hermes_advisor.facts.base import Fact
from hermes_advisor.facts.conclusions import Cause, Symptom


@dataclass(frozen=True)
class Entry:
    """A fact with its number in the canonical order and, for a conclusion, the firing that derived it."""

    number: int
    fact: Fact
    values: Mapping[str, Scalar]
    derived_by: str | None = None


class FactBase:
    """Facts by number and by kind. Equal facts are one; the order of arrival does not matter."""

    def __init__(self, facts: Iterable[Fact]):
        self.entries: list[Entry] = []
        self._ids: dict[str, int] = {}
        self._by_kind: dict[str, list[Entry]] = defaultdict(list)
        self._index: dict[tuple[str, str], dict[Scalar, list[Entry]]] = {}
        unique: dict[str, Fact] = {}
        for fact in facts:
            known = unique.get(fact.id)
            # Two sources of an equal fact: keep the one that sorts first, whatever came first.
            if known is None or _source_key(fact) < _source_key(known):
                unique[fact.id] = fact
        for fact in sorted(unique.values(), key=_order):
            self.add(fact)

    def add(self, fact: Fact, derived_by: str | None = None) -> str:
        """Add a fact unless an equal one is there; returns its id."""
        if fact.id not in self._ids:
            entry = Entry(len(self.entries), fact, fact.scalars(), derived_by)
            self.entries.append(entry)
            self._ids[fact.id] = entry.number
            self._by_kind[fact.kind].append(entry)
            self._index = {k: v for k, v in self._index.items() if k[0] != fact.kind}
        return fact.id

    def of(self, kind: str) -> list[Entry]:
        """All facts of a kind, in canonical order."""
        return self._by_kind.get(kind, [])

    def by_field(self, kind: str, field: str, value: Scalar) -> list[Entry]:
        """The facts of a kind whose field equals a value."""
        key = (kind, field)
        if key not in self._index:
            index: dict[Scalar, list[Entry]] = defaultdict(list)
            for entry in self.of(kind):
                if field in entry.values:
                    index[entry.values[field]].append(entry)
            self._index[key] = index
        return self._index[key].get(value, [])

    def concluded(self, kind: str, name: str | None, subjects: frozenset[str] | None = None) -> bool:
        """Whether a conclusion of that kind (and name, and one of the subjects) is among the facts."""
        found = self.of(kind) if name is None else self.by_field(kind, "name", name)
        return any(subjects is None or e.values["subject"] in subjects for e in found)

    def match_facts(self) -> list[MatchFact]:
        """The facts as matchers see them."""
        return [MatchFact(e.number, e.fact.kind, e.values) for e in self.entries]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)


def _order(fact: Fact) -> tuple[int, str, int, int, str]:
    derived = fact.kind in (Symptom.kind, Cause.kind)
    return (int(derived), fact.kind, getattr(fact, "rank", -1), getattr(fact, "step", -1), fact.id)


def _source_key(fact: Fact) -> tuple[str, str, str]:
    s = fact.source
    return (s.file, s.locator, s.reader) if s else ("", "", "")
