"""Forward chaining: measured facts and a knowledge base in; every conclusion with its proof out.

Layer by layer: the matcher finds the positive conjunctions, then aggregates and absences are judged here over facts of
lower layers, then conclusions are added. What could not be judged is withheld and remembered, never taken for false.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hermes_advisor.engine.evaluable import Coverage, Missing
from hermes_advisor.engine.factbase import Entry, FactBase
from hermes_advisor.engine.loader import KnowledgeBase
from hermes_advisor.engine.matching.interface import Matcher
from hermes_advisor.engine.operands import FieldRef, Operand, Scalar, evaluate, references, words
from hermes_advisor.engine.operands import ParamRef as _ParamRef
from hermes_advisor.engine.programs import build
from hermes_advisor.engine.result import AbsenceResult, AggregateResult, Computed, Firing, TestResult
from hermes_advisor.engine.rules import Absence, Aggregate, Rule, Test
from hermes_advisor.engine.tests_on_facts import limit_of, passes, words_of
from hermes_advisor.engine.wording import with_unit
from hermes_advisor.facts.base import Fact, scalar_types
from hermes_advisor.facts.conclusions import Cause, Symptom
from hermes_advisor.facts.vocabulary import DERIVED_KINDS, FACT_TYPES

MAX_MEMBERS = 20
MAX_FIRINGS = 100_000


class ChainError(Exception):
    """The rules run away on these facts; the message names the rule."""


@dataclass(frozen=True)
class CaseInstance:
    """One firing of a case: what it would win, and the ranks and steps it concerns."""

    rule: Rule
    firing: Firing
    recoverable_us: float
    recoverable_share: float
    ranks: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass
class Outcome:
    """Everything that a run of the chain found."""

    facts: FactBase
    coverage: Coverage
    firings: list[Firing] = field(default_factory=list)
    cases: list[CaseInstance] = field(default_factory=list)
    lookups: dict[str, Callable[[str, str], object]] = field(default_factory=dict)
    """Per firing: the value of a field of a bound fact, of an aggregate or of a parameter."""
    withheld: dict[str, dict[Missing, set[int]]] = field(default_factory=dict)
    """Per rule: requirements missing for some matches only, with the ranks concerned."""


@dataclass(frozen=True)
class _Match:
    rule: Rule
    entries: tuple[Entry, ...]


def run(
    knowledge: KnowledgeBase, facts: Iterable[Fact], matcher: Matcher, rules: Sequence[Rule] | None = None
) -> Outcome:
    """Run all layers of the rules (default: the active ones). Raises MatcherFailure, or ChainError on runaway rules."""
    rules = knowledge.active() if rules is None else rules
    base = FactBase(facts)
    outcome = Outcome(base, Coverage(base, rules))
    for level in sorted({knowledge.levels[r.id] for r in rules}):
        layer = [r for r in rules if knowledge.levels[r.id] == level]
        ready = [r for r in layer if not outcome.coverage.missing(r)]
        _refute([r for r in layer if outcome.coverage.missing(r)], outcome, matcher)
        for match in _matches(ready, base, matcher):
            _Step(outcome, match, level).fire()
            if len(outcome.firings) > MAX_FIRINGS:
                raise ChainError(f"rule {match.rule.id}: more than {MAX_FIRINGS} firings; tighten its conditions")
    return outcome


def _matches(layer: Sequence[Rule], base: FactBase, matcher: Matcher) -> list[_Match]:
    program, owners = build(layer)
    found: dict[tuple[str, tuple[int, ...]], _Match] = {}
    for rule in layer:
        if not rule.patterns:
            found[(rule.id, ())] = _Match(rule, ())
    if program.conjunctions:
        for key, numbers in matcher.match(program, base.match_facts()):
            rule = owners[key]
            found[(rule.id, numbers)] = _Match(rule, tuple(base.entries[n] for n in numbers))
    return [found[k] for k in sorted(found)]


def _refute(blocked: Sequence[Rule], outcome: Outcome, matcher: Matcher) -> None:
    """A rule that lacks a measurement is still known not to hold when its measured part already fails."""
    parts = [p for r in blocked if (p := outcome.coverage.measured_part(r)) is not None]
    standing = {m.rule.id for m in _matches(parts, outcome.facts, matcher) if not _Step(outcome, m, 0).judge()[0]}
    for part in parts:
        if part.id not in standing:
            outcome.coverage.refute(part)


class _Step:
    """One match on its way to a firing."""

    def __init__(self, outcome: Outcome, match: _Match, level: int):
        self.outcome, self.rule, self.level = outcome, match.rule, level
        self.entries = dict(zip((p.alias for p in match.rule.patterns), match.entries, strict=True))
        self.values: dict[str, Mapping[str, Scalar]] = {a: e.values for a, e in self.entries.items()}
        self.unmeasured: set[Missing] = set()
        self.refuted = False

    def bound(self, alias: str, name: str) -> Scalar | None:
        return self.values.get(alias, {}).get(name)

    def lookup(self, alias: str, name: str) -> object:
        if alias == "param":
            return with_unit(self.rule.param_specs[name].unit, self.rule.params[name])
        entry = self.entries.get(alias)
        return getattr(entry.fact, name, None) if entry else self.bound(alias, name)

    def judge(self) -> tuple[bool, list[AggregateResult], list[AbsenceResult]]:
        """Whether an aggregate or a fact that should be absent refutes the match, and how each came out."""
        aggregates = [r for a in self.rule.aggregates if (r := self.aggregate(a)) is not None]
        absent = [found for a in self.rule.absences if (found := self.absence(a)) is not None]
        return self.refuted, aggregates, absent

    def fire(self) -> None:
        rule = self.rule
        refuted, aggregates, absent = self.judge()
        if refuted:
            return
        if self.unmeasured:
            self.withhold()
            return
        tests = [self.result(p.alias, t, self.entries[p.alias].values) for p in rule.patterns for t in p.tests]
        derived, values = self.derive()
        firing = self.firing(tests, absent, aggregates, values, derived)
        self.outcome.firings.append(firing)
        self.outcome.lookups[firing.id] = self.lookup
        if derived is not None:
            self.outcome.facts.add(derived, firing.id)
        if rule.case is not None:
            self.case(firing)

    def withhold(self) -> None:
        ranks = {int(e.values["rank"]) for e in self.entries.values() if e.values.get("rank", -1) != -1}
        for missing in self.unmeasured:
            self.outcome.withheld.setdefault(self.rule.id, {}).setdefault(missing, set()).update(ranks)

    def result(self, alias: str, test: Test, values: Mapping[str, Scalar]) -> TestResult:
        limit: Scalar | list[Scalar]
        if test.op == "in":
            limit, expression, parameter = list(test.choices), ", ".join(map(str, test.choices)), None
        else:
            assert test.operand is not None
            found = limit_of(test, self.rule.params, self.bound)
            assert found is not None
            limit, expression = found, words(test.operand)
            names = [r.name for r in references(test.operand) if isinstance(r, _ParamRef)]
            parameter = names[0] if names else None
        return TestResult(alias=alias, field=test.field, op=test.op, limit=limit, value=values[test.field],
                          expression=expression, parameter=parameter)  # fmt: skip

    def members(self, kind: str, tests: Sequence[Test]) -> list[Entry]:
        facts, candidates = self.outcome.facts, None
        for test in tests:
            if test.op == "eq" and test.operand is not None:
                limit = limit_of(test, self.rule.params, self.bound)
                if limit is None:
                    return []
                found = facts.by_field(kind, test.field, limit)
                if candidates is None or len(found) < len(candidates):
                    candidates = found
        pool = facts.of(kind) if candidates is None else candidates
        return [e for e in pool if all(passes(t, e.values, self.rule.params, self.bound) for t in tests)]

    def untold(self, item: Absence) -> set[Missing]:
        """Fields that were not measured on a fact which passes all other tests: it may be what must not exist."""
        out: set[Missing] = set()
        for entry in self.outcome.facts.of(item.fact):
            lacking = [t.field for t in item.tests if t.field not in entry.values]
            known = (t for t in item.tests if t.field in entry.values)
            if lacking and all(passes(t, entry.values, self.rule.params, self.bound) for t in known):
                model = FACT_TYPES[item.fact]
                out.add(Missing(f"{item.fact}.{lacking[0]}", model.collect, model.collect_zh or model.collect))
        return out

    def asked_rank(self, tests: Sequence[Test]) -> int | None:
        """The one rank that tests ask about, if they do."""
        for test in tests:
            if test.field == "rank" and test.op == "eq":
                rank = limit_of(test, self.rule.params, self.bound)
                return int(rank) if isinstance(rank, int) and rank != -1 else None
        return None

    def unmeasured_rank(self, kind: str, tests: Sequence[Test]) -> Missing | None:
        """The requirement that fails where the tests ask about one rank for which the kind was not measured."""
        if kind in DERIVED_KINDS or "rank" not in scalar_types(FACT_TYPES[kind]):
            return None
        rank = self.asked_rank(tests)
        if rank is not None and not self.outcome.facts.by_field(kind, "rank", rank):
            model = FACT_TYPES[kind]
            return Missing(kind, model.collect, model.collect_zh or model.collect)
        return None

    def aggregate(self, item: Aggregate) -> AggregateResult | None:
        asked = self.unmeasured_rank(item.fact, item.where)
        if asked is not None:
            self.unmeasured.add(asked)
            return None
        members = self.members(item.fact, item.where)
        value: int | float
        if item.function == "count":
            value = len(members)
        else:
            assert item.field is not None
            members = [m for m in members if item.field in m.values]
            numbers = [_number(m.values[item.field]) for m in members]
            if item.function == "sum":
                value = sum(numbers)
            elif not numbers:
                self.refuted = True
                return None
            else:
                value = max(numbers) if item.function == "max" else min(numbers)
            members = sorted(members, key=lambda m: (-_number(m.values[item.field or ""]), m.number))
        self.values[item.alias] = {"value": value}
        if not all(passes(t, {"value": value}, self.rule.params, self.bound) for t in item.tests):
            self.refuted = True
            return None
        return AggregateResult(
            alias=item.alias, function=item.function, fact=item.fact, field=item.field, where=words_of(item.where),
            value=value, members_count=len(members), members=[m.fact.id for m in members[:MAX_MEMBERS]],
            tests=[self.result(item.alias, t, {"value": value}) for t in item.tests],
        )  # fmt: skip

    def absence(self, item: Absence) -> AbsenceResult | None:
        if self.members(item.fact, item.tests):
            self.refuted = True
            return None
        missing = self.outcome.coverage.missing_for(item)
        asked = self.unmeasured_rank(item.fact, item.tests)
        if asked is not None:
            missing |= {asked}
        missing |= self.untold(item)
        rank = self.asked_rank(item.tests)
        if item.fact in DERIVED_KINDS and rank is not None:
            missing |= self.outcome.coverage.missing_at(item, rank)
        measured = not missing
        if not measured and item.hold:
            self.unmeasured |= missing
            return None
        return AbsenceResult(fact=item.fact, where=words_of(item.tests), measured=measured,
                             looked_at=len(self.outcome.facts.of(item.fact)))  # fmt: skip

    def derive(self) -> tuple[Fact | None, list[Computed]]:
        rule, values, data = self.rule, [], {}
        model = {"symptom": Symptom, "cause": Cause}.get(rule.kind)
        if model is None:
            return None, []
        for name, operand in rule.derives.items():
            value = evaluate(operand, rule.params, self.bound)
            if value is not None:
                data[name] = value
                values.append(Computed(field=name, expression=words(operand), value=value))
        return model(name=rule.derives_name, **data), values  # type: ignore[arg-type]

    def firing(
        self, tests: list[TestResult], absent: list[AbsenceResult], aggregates: list[AggregateResult],
        values: list[Computed], derived: Fact | None,
    ) -> Firing:  # fmt: skip
        rule = self.rule
        if rule.case is not None:
            for name, operand in (("recoverable_us", rule.gain_us), ("recoverable_share", rule.gain_share)):
                value = evaluate(operand, rule.params, self.bound) if operand is not None else None
                if operand is not None and value is not None:
                    values.append(Computed(field=name, expression=words(operand), value=value))
        bound = {alias: e.fact.id for alias, e in self.entries.items()}
        key = json.dumps([rule.id, rule.version, sorted(bound.items())])
        return Firing(
            id="firing:" + hashlib.sha256(key.encode()).hexdigest()[:12], rule=rule.id, version=rule.version,
            stratum=self.level, bound=bound, tests=tests, absent=absent, aggregates=aggregates, values=values,
            derived=derived.id if derived is not None else None,
        )  # fmt: skip

    def case(self, firing: Firing) -> None:
        rule = self.rule
        values = {v.field: v.value for v in firing.values}
        self.outcome.cases.append(
            CaseInstance(
                rule=rule, firing=firing, recoverable_us=max(0.0, float(values.get("recoverable_us", 0.0))),
                recoverable_share=min(1.0, max(0.0, float(values.get("recoverable_share", 0.0)))),
                ranks=self.numbers(rule.scope_ranks), steps=self.numbers(rule.scope_steps),
            )
        )  # fmt: skip

    def numbers(self, operand: Operand | None) -> tuple[int, ...]:
        """Ranks or steps of the scope; -1 (the whole job, all steps) gives none."""
        if isinstance(operand, FieldRef) and operand.alias in self.entries:
            value = getattr(self.entries[operand.alias].fact, operand.field, None)
        else:
            value = evaluate(operand, self.rule.params, self.bound) if operand is not None else None
        items = value if isinstance(value, tuple) else (value,) if isinstance(value, int) else ()
        return tuple(sorted({int(v) for v in items} - {-1}))


def _number(value: Scalar) -> int | float:
    assert not isinstance(value, str)
    return value
