"""What follows from what: findings that explain other findings, symptoms that nobody explains, and the order of all."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence

from hermes_advisor.engine.chain import Outcome
from hermes_advisor.engine.factbase import Entry
from hermes_advisor.engine.result import LANGS, Finding, Unexplained
from hermes_advisor.engine.rules import Rule
from hermes_advisor.engine.wording import fill
from hermes_advisor.facts.vocabulary import DERIVED_KINDS


def linked(findings: Sequence[Finding], outcome: Outcome, rules: Mapping[str, Rule]) -> list[Finding]:
    """The findings with their consequences and roots filled in, ranked. ``rules`` by id."""
    proofs = {f.id: proof_conclusions(f, outcome) for f in findings}
    effects = _effects(findings, proofs, rules)
    out = []
    for finding in findings:
        symptoms = [e.fact.id for e in outcome.facts.of("symptom") if _explains(rules[finding.case], finding.ranks, e)]
        roots = sorted(root for root, results in effects.items() if finding.id in results)
        consequences = sorted(effects.get(finding.id, set())) + sorted(symptoms)
        out.append(finding.model_copy(update={"consequences": consequences, "consequence_of": roots}))
    return _ranked(out, effects)


def proof_conclusions(finding: Finding, outcome: Outcome) -> list[Entry]:
    """Every conclusion in the proofs of the finding's instances."""
    firings = {f.id: f for f in outcome.firings}
    entries = {e.fact.id: e for e in outcome.facts}
    found: dict[str, Entry] = {}
    todo = list(finding.instances)
    done: set[str] = set()
    while todo:
        current = todo.pop()
        if current in done:
            continue
        done.add(current)
        firing = firings[current]
        for fact_id in [*firing.bound.values(), *(m for a in firing.aggregates for m in a.members)]:
            entry = entries[fact_id]
            if entry.fact.kind in DERIVED_KINDS:
                found[fact_id] = entry
                if entry.derived_by:
                    todo.append(entry.derived_by)
    return list(found.values())


def _explains(rule: Rule, ranks: Sequence[int], conclusion: Entry) -> bool:
    """Whether the case says that this conclusion, on its rank, follows from it."""
    rank = conclusion.values["rank"]
    for spec in rule.case.explains if rule.case else ():
        if spec.name == conclusion.values["name"]:
            inside = rank in ranks
            if spec.ranks == "any" or rank == -1 or not ranks or inside == (spec.ranks == "same"):
                return True
    return False


def _effects(
    findings: Sequence[Finding], proofs: Mapping[str, Sequence[Entry]], rules: Mapping[str, Rule]
) -> dict[str, set[str]]:
    """Finding id → ids of the findings that are its consequences."""
    out: dict[str, set[str]] = {f.id: set() for f in findings}
    for root in findings:
        for other in findings:
            distinct = other.id != root.id and other.cause != root.cause
            if distinct and any(_explains(rules[root.case], root.ranks, entry) for entry in proofs[other.id]):
                out[root.id].add(other.id)
    for root in findings:
        for other in findings:
            if other.id in out[root.id] and root.id in out[other.id]:
                # Each explains the other: the one that wins more is taken for the root.
                less = min((root, other), key=lambda f: (f.recoverable_us, f.id))
                more = other if less is root else root
                out[less.id].discard(more.id)
    return {root: results for root, results in out.items() if results}


def unexplained(outcome: Outcome, findings: Sequence[Finding], rules: Mapping[str, Rule]) -> list[Unexplained]:
    """Symptoms that no finding rests on or explains, the costliest first: seen, but not understood."""
    covered = {e.fact.id for f in findings for e in proof_conclusions(f, outcome)}
    covered |= {c for f in findings for c in f.consequences}
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in outcome.facts.of("symptom"):
        if entry.fact.id not in covered:
            groups[str(entry.values["name"])].append(entry)
    out = []
    for name, entries in groups.items():
        worst = max(entries, key=lambda e: (e.values["cost_us"], -e.number))
        chain_rule = next((rules[f.rule].chain for f in outcome.firings if f.id == worst.derived_by), None)
        lookup = outcome.lookups.get(worst.derived_by or "", lambda alias, field: None)
        words: dict[str, str] = {x: fill(getattr(chain_rule.text, x), lookup) if chain_rule else name for x in LANGS}
        out.append(
            Unexplained(
                symptom=name,
                ranks=sorted({int(e.values["rank"]) for e in entries} - {-1}),
                cost_us=float(worst.values["cost_us"]),
                step_ratio=float(worst.values["step_ratio"]),
                facts=[e.fact.id for e in entries],
                i18n=words,
            )
        )
    return sorted(out, key=lambda u: (-u.cost_us, u.symptom))


def _ranked(findings: Sequence[Finding], effects: Mapping[str, set[str]]) -> list[Finding]:
    """By recoverable time, but never a consequence before its root."""
    by_id = {f.id: f for f in findings}
    waiting = {f.id: sum(f.id in results for results in effects.values()) for f in findings}
    heap = [(-by_id[i].recoverable_us, i) for i, n in waiting.items() if n == 0]
    heapq.heapify(heap)
    out: list[Finding] = []
    placed: set[str] = set()
    while len(out) < len(findings):
        if not heap:
            # A cycle of explanations: continue with what wins most.
            heap = [min((-f.recoverable_us, f.id) for f in findings if f.id not in placed)]
        _, current = heapq.heappop(heap)
        if current in placed:
            continue
        placed.add(current)
        out.append(by_id[current])
        for result in sorted(effects.get(current, ())):
            waiting[result] -= 1
            if waiting[result] == 0:
                heapq.heappush(heap, (-by_id[result].recoverable_us, result))
    return out
