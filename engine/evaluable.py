"""What a rule needs that nobody measured: rules and facts in, missing requirements with how to collect them out.

A missing signal is never taken for a false one. A rule can be judged when each measured kind that it reads exists (with
the optional fields it tests), every conclusion it reads can be judged by one deriving rule, and its ``needs`` hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hermes_advisor.engine.factbase import FactBase
from hermes_advisor.engine.operands import Const, FieldRef, Operand, references
from hermes_advisor.engine.rules import Absence, Aggregate, FactPattern, Need, Rule, Test
from hermes_advisor.engine.strata import derivers
from hermes_advisor.engine.tests_on_facts import passes, words_of
from hermes_advisor.facts.base import scalar_types
from hermes_advisor.facts.vocabulary import DERIVED_KINDS, FACT_TYPES


@dataclass(frozen=True, order=True)
class Missing:
    """One requirement that is not met: a fact kind or ``kind.field``, and how to collect it in each language."""

    what: str
    collect_en: str
    collect_zh: str


class Coverage:
    """Answers, for one set of facts, which rules can be judged."""

    def __init__(self, facts: FactBase, rules: Sequence[Rule]):
        self.facts, self.rules = facts, rules
        self._missing: dict[str, frozenset[Missing]] = {}
        self.refuted: set[str] = set()
        self._kinds: dict[str, frozenset[str]] = {}
        self.ranks = frozenset(
            e.values["rank"] for e in facts if e.fact.kind not in DERIVED_KINDS and e.values.get("rank", -1) != -1
        )

    def missing(self, rule: Rule) -> frozenset[Missing]:
        """What keeps the rule from being judged; empty when it can be."""
        if rule.id not in self._missing:
            self._missing[rule.id] = frozenset()  # a cycle cannot occur in a loaded base; this only bounds recursion
            self._missing[rule.id] = self._compute(rule)
        return self._missing[rule.id]

    def refute(self, rule: Rule) -> None:
        """The rule is known not to hold, whatever the missing measurements would say."""
        self._missing[rule.id] = frozenset()
        self.refuted.add(rule.id)

    def measured_part(self, rule: Rule) -> Rule | None:
        """The rule without what cannot be judged: weaker, so that where it fails the rule fails. None: nothing is left.

        Patterns on a kind that an unmet need is about are left out, too: what was measured of it is not the whole.
        """
        lacking = {n.fact for n in rule.needs if not self._met(n, rule)}
        kept = [p for p in rule.patterns if p.fact not in lacking and not self.missing_for(p)]
        aliases = {p.alias for p in kept}

        def judged(kind: str, tests: tuple[Test, ...]) -> tuple[Test, ...]:
            fields = {name for e in self.facts.of(kind) for name in e.values}
            return tuple(t for t in tests if t.field in fields and _aliases(t) <= aliases)

        patterns = tuple(replace(p, tests=judged(p.fact, p.tests)) for p in kept)
        known = [
            a
            for a in rule.aggregates
            if a.fact not in lacking
            and not self.missing_for(a)
            and all(_aliases(t) <= aliases for t in (*a.where, *a.tests))
        ]
        absences = tuple(
            a for a in rule.absences if not self.missing_for(a) and all(_aliases(t) <= aliases for t in a.tests)
        )
        if not patterns and not known:
            return None
        return replace(rule, patterns=patterns, aggregates=tuple(known), absences=absences, needs=())

    def _met(self, need: Need, rule: Rule) -> bool:
        return any(all(passes(t, e.values, rule.params, None) for t in need.tests) for e in self.facts.of(need.fact))

    def missing_for(self, condition: FactPattern | Aggregate | Absence) -> frozenset[Missing]:
        """What keeps the kind or the conclusion that a condition looks at from being known."""
        kind, name = condition.predicate
        subjects = _subjects(condition)
        if kind not in DERIVED_KINDS:
            return frozenset() if self.facts.of(kind) else frozenset({_missing(kind)})
        if self.facts.concluded(kind, name, subjects):
            return frozenset()
        rules = self.about(condition)
        if not rules:
            text = f"no active rule concludes {kind} {name}", f"没有启用的规则可得出 {kind} {name}"
            return frozenset({Missing(f"{kind} {name}", *text)})
        options = [self.missing(r) for r in rules if r.id not in self.refuted]
        # Known not to be only when every rule that could conclude it was judged.
        unknown = [o for o in options if o]
        return min(unknown, key=lambda o: (len(o), sorted(o))) if unknown else frozenset()

    def about(self, condition: FactPattern | Aggregate | Absence) -> list[Rule]:
        """The rules that could conclude what the condition looks at; a constant subject rules out others."""
        subjects = _subjects(condition)
        out = []
        for rule in derivers(condition.predicate, self.rules):
            own = rule.derives.get("subject")
            if subjects is None or not isinstance(own, Const) or own.value in subjects:
                out.append(rule)
        return out

    def missing_at(self, condition: Absence, rank: int) -> frozenset[Missing]:
        """What keeps a conclusion from being known on one rank: no rule that derives it could be judged there."""
        rules = [r for r in self.about(condition) if r.id not in self.refuted and not self.missing(r)]
        if not rules or rank not in self.ranks:
            return frozenset()
        lacks = [frozenset(m for m, ranks in self.unmeasured_ranks(r).items() if rank in ranks) for r in rules]
        return min(lacks, key=lambda m: (len(m), sorted(m))) if all(lacks) else frozenset()

    def unmeasured_ranks(self, rule: Rule) -> dict[Missing, frozenset[int]]:
        """Per measured kind that the rule rests on: ranks without it, although other ranks have it."""
        out: dict[Missing, frozenset[int]] = {}
        for kind in sorted(self.measured_kinds(rule)):
            if "rank" in scalar_types(FACT_TYPES[kind]) and self.facts.of(kind):
                have = {e.values["rank"] for e in self.facts.of(kind)}
                lack = frozenset(int(r) for r in self.ranks - have)
                if lack and -1 not in have:
                    out[_missing(kind)] = lack
        return out

    def measured_kinds(self, rule: Rule) -> frozenset[str]:
        """Measured fact kinds that the rule's positive conditions rest on, through the conclusions they read."""
        if rule.id not in self._kinds:
            out: set[str] = set()
            for part in rule.positive:
                kind, name = part.predicate
                if kind not in DERIVED_KINDS:
                    out.add(kind)
                elif not any(e.derived_by is None for e in self.facts.of(kind) if e.values.get("name") == name):
                    sets = [self.measured_kinds(r) for r in derivers(part.predicate, self.rules) if not self.missing(r)]
                    out |= frozenset.intersection(*sets) if sets else frozenset()
            self._kinds[rule.id] = frozenset(out)
        return self._kinds[rule.id]

    def _compute(self, rule: Rule) -> frozenset[Missing]:
        out: set[Missing] = set()
        fields = _fields_read(rule)
        for part in rule.positive:
            out |= self.missing_for(part)
        for kind, names in fields.items():
            for name in sorted(names):
                if self.facts.of(kind) and not any(name in e.values for e in self.facts.of(kind)):
                    out.add(_missing(kind, name))
        for absence in rule.absences:
            if absence.hold:
                out |= self.missing_for(absence)
        for need in rule.needs:
            if not any(
                all(passes(t, e.values, rule.params, None) for t in need.tests) for e in self.facts.of(need.fact)
            ):
                found = _missing(need.fact)
                words = need.collect or {}
                out.add(Missing(_need_words(need.fact, need.tests), words.get("en", found.collect_en),
                                words.get("zh", found.collect_zh)))  # fmt: skip
        return frozenset(out)


def _subjects(condition: FactPattern | Aggregate | Absence) -> frozenset[str] | None:
    """The constant subjects that a condition on a conclusion asks for; None: any."""
    for test in condition.where if isinstance(condition, Aggregate) else condition.tests:
        if test.field == "subject" and test.op == "in":
            return frozenset(map(str, test.choices))
        if test.field == "subject" and test.op == "eq" and isinstance(test.operand, Const):
            return frozenset({str(test.operand.value)})
    return None


def _aliases(test: Test) -> set[str]:
    return {r.alias for r in references(test.operand) if isinstance(r, FieldRef)} if test.operand is not None else set()


def _fields_read(rule: Rule) -> dict[str, set[str]]:
    """Optional fields of measured kinds that positive conditions test or refer to."""
    kinds = {p.alias: p.fact for p in rule.patterns}
    out: dict[str, set[str]] = {}

    def add(kind: str, name: str) -> None:
        if kind not in DERIVED_KINDS and name in scalar_types(FACT_TYPES[kind]):
            out.setdefault(kind, set()).add(name)

    def add_refs(operand: Operand | None) -> None:
        for ref in references(operand) if operand is not None else []:
            if isinstance(ref, FieldRef) and ref.alias in kinds:
                add(kinds[ref.alias], ref.field)

    for pattern in rule.patterns:
        for test in pattern.tests:
            add(pattern.fact, test.field)
            add_refs(test.operand)
    for aggregate in rule.aggregates:
        if aggregate.field:
            add(aggregate.fact, aggregate.field)
    return out


def _missing(kind: str, field: str | None = None) -> Missing:
    model = FACT_TYPES[kind]
    return Missing(f"{kind}.{field}" if field else kind, model.collect, model.collect_zh or model.collect)


def _need_words(kind: str, tests: Sequence[Test]) -> str:
    return f"{kind}({words_of(tests)})" if tests else kind
