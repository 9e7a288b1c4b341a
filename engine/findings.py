"""Firings of cases in, ranked ``Finding``s out: one per case, by what it wins, roots before their consequences."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Literal

from hermes_advisor.engine.chain import CaseInstance, Outcome
from hermes_advisor.engine.factbase import Entry
from hermes_advisor.engine.operands import Const, evaluate, parse
from hermes_advisor.engine.result import Finding, Lang, Remedy, RemedyText, Unexplained, Words
from hermes_advisor.engine.rules import OP_SIGNS, Rule
from hermes_advisor.engine.schema import RemedySpec
from hermes_advisor.engine.wording import fill, quantity
from hermes_advisor.facts.vocabulary import BOTTLENECKS, DERIVED_KINDS

LANGS: tuple[Lang, ...] = ("en", "zh")
_COMPONENTS: dict[str, Literal["host", "device", "network"]] = {
    "parallel": "device", "io": "host", "cpu": "host", "compute": "device", "comm": "network", "memory": "device",
    "hardware": "device", "fluctuation": "device",
}  # fmt: skip


def build_findings(outcome: Outcome, lang: Lang) -> list[Finding]:
    """All findings of a run of the chain, ranked."""
    groups: dict[str, list[CaseInstance]] = defaultdict(list)
    for instance in outcome.cases:
        groups[instance.rule.id].append(instance)
    drafts = [_finding(instances, outcome, lang) for _, instances in sorted(groups.items())]
    effects = _effects(drafts, outcome, {i: g[0].rule for i, g in groups.items()})
    causes: dict[str, list[str]] = defaultdict(list)
    for root, results in effects.items():
        for result in results:
            causes[result].append(root)
    symptoms = _explained_symptoms(outcome, {f.id: groups[f.case][0].rule for f in drafts})
    linked = [
        f.model_copy(update={
            "consequences": sorted(effects.get(f.id, set())) + symptoms.get(f.id, []),
            "consequence_of": sorted(causes.get(f.id, [])),
        })
        for f in drafts
    ]  # fmt: skip
    return _ranked(linked, effects)


def _finding(instances: Sequence[CaseInstance], outcome: Outcome, lang: Lang) -> Finding:
    rule = instances[0].rule
    case = rule.case
    assert case is not None
    ordered = sorted(instances, key=lambda i: (-i.recoverable_us, i.firing.id))
    worst = ordered[0]
    bound = outcome.lookups[worst.firing.id]
    area = case.cause.partition(".")[0]
    words: dict[str, Words] = {language: _words(worst, bound, language) for language in LANGS}
    remedies = [_remedy(r, rule, lang) for r in case.remedies]
    return Finding(
        id=f"finding:{case.id}", case=case.id, case_version=case.version, cause=case.cause,
        bottleneck=BOTTLENECKS[area], component=_COMPONENTS[area], severity=case.severity, confidence=case.confidence,
        ranks=sorted({r for i in instances for r in i.ranks}), steps=sorted({s for i in instances for s in i.steps}),
        title=words[lang].title, summary=words[lang].summary,
        recoverable_us=round(_combined(instances, [i.recoverable_us for i in instances]), 3),
        recoverable_share=round(min(1.0, _combined(instances, [i.recoverable_share for i in instances])), 6),
        gain=case.gain.kind, evidence=_evidence(ordered), proof=worst.firing.id,
        instances=[i.firing.id for i in ordered], remedies=remedies, contradicts=list(case.contradicts),
        references=[r.url for r in case.references], consequences=[], consequence_of=[],
        i18n=words,
    )  # fmt: skip


def _combined(instances: Sequence[CaseInstance], values: Sequence[float]) -> float:
    """Per step: same ranks summed or the largest taken, then the worst ranks decide; mean over steps."""
    case = instances[0].rule.case
    merge = fsum if case is not None and case.gain.combine == "sum" else max
    steps: dict[tuple[int, ...], dict[tuple[int, ...], list[float]]] = defaultdict(lambda: defaultdict(list))
    for instance, value in zip(instances, values, strict=True):
        steps[instance.steps][instance.ranks].append(value)
    return fsum(max(merge(v) for v in ranks.values()) for _, ranks in sorted(steps.items())) / len(steps)


def _evidence(instances: Sequence[CaseInstance]) -> list[str]:
    seen: dict[str, None] = {}
    for instance in instances:
        for fact_id in instance.firing.bound.values():
            seen.setdefault(fact_id)
        for aggregate in instance.firing.aggregates:
            for fact_id in aggregate.members:
                seen.setdefault(fact_id)
    return list(seen)


def _words(instance: CaseInstance, bound: Callable[[str, str], object], lang: Lang) -> Words:
    case = instance.rule.case
    assert case is not None
    text = getattr(case.text, lang)
    return Words(
        title=fill(text.title, bound),
        summary=fill(text.summary, bound),
        why=fill(text.why, bound),
        gain=getattr(case.gain.how, lang),
        contraindications=[getattr(c, lang) for c in case.contraindications],
        false_positives=[getattr(c, lang) for c in case.false_positives],
    )


def _remedy(spec: RemedySpec, rule: Rule, lang: Lang) -> Remedy:
    return Remedy(
        id=spec.id, text=getattr(spec.text, lang), settings=list(spec.settings), effort=spec.effort,
        risk=getattr(spec.risk, lang), verify=verify_words(spec, rule),
        i18n={x: RemedyText(text=getattr(spec.text, x), risk=getattr(spec.risk, x)) for x in LANGS},
    )  # fmt: skip


def verify_words(spec: RemedySpec, rule: Rule) -> str:
    """The check of a remedy as text: ``launch_profile: starved_step_ratio < 5.0 %``."""
    parts = []
    for name, raw in spec.verify.where.items():
        for op, value in (raw if isinstance(raw, dict) else {"eq": raw}).items():
            if op == "in":
                shown = ", ".join(map(str, value))
            else:
                operand = parse(value)
                limit = evaluate(operand, rule.params, lambda alias, field: None)
                shown = str(limit) if isinstance(operand, Const) and isinstance(limit, str) else quantity(name, limit)
            parts.append(f"{name} {OP_SIGNS[op]} {shown}")
    return f"{spec.verify.fact}: {', '.join(parts)}"


def _proof_names(finding: Finding, outcome: Outcome) -> set[str]:
    """Names of all conclusions in the finding's proofs."""
    firings = {f.id: f for f in outcome.firings}
    entries = {e.fact.id: e for e in outcome.facts}
    names: set[str] = set()
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
                names.add(str(entry.values["name"]))
                if entry.derived_by:
                    todo.append(entry.derived_by)
    return names


def _effects(findings: Sequence[Finding], outcome: Outcome, rules: Mapping[str, Rule]) -> dict[str, set[str]]:
    """Finding id → ids of the findings that are its consequences."""
    out: dict[str, set[str]] = defaultdict(set)
    names = {f.id: _proof_names(f, outcome) | {f.cause} for f in findings}
    for root in findings:
        case = rules[root.case].case
        explains = set(case.explains) if case else set()
        for other in findings:
            if other.id != root.id and explains & names[other.id] and other.cause != root.cause:
                out[root.id].add(other.id)
    for root in findings:
        for other in findings:
            if other.id in out[root.id] and root.id in out[other.id]:
                # Each explains the other: the one that wins more is taken for the root.
                less = min((root, other), key=lambda f: (f.recoverable_us, f.id))
                more = other if less is root else root
                out[less.id].discard(more.id)
    return {k: v for k, v in out.items() if v}


def unexplained(outcome: Outcome, findings: Sequence[Finding], rules: Mapping[str, Rule]) -> list[Unexplained]:
    """Symptoms that no finding rests on or explains, the costliest first: seen, but not understood."""
    covered = {n for f in findings for n in _proof_names(f, outcome)} | {c for f in findings for c in f.consequences}
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in outcome.facts.of("symptom"):
        if entry.values["name"] not in covered and entry.fact.id not in covered:
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


def _explained_symptoms(outcome: Outcome, rules: Mapping[str, Rule]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for finding_id, rule in rules.items():
        explains = set(rule.case.explains) if rule.case else set()
        found = [e.fact.id for e in outcome.facts if e.fact.kind == "symptom" and e.values["name"] in explains]
        if found:
            out[finding_id] = sorted(found)
    return out


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
