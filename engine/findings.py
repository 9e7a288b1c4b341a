"""Firings of cases in, ranked ``Finding``s out: one per case, by what it wins, roots before their consequences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import fsum
from typing import Literal

from hermes_advisor.engine.causality import linked
from hermes_advisor.engine.chain import CaseInstance, Outcome
from hermes_advisor.engine.operands import Const, evaluate, parse
from hermes_advisor.engine.result import LANGS, Finding, Lang, Remedy, RemedyText, Words
from hermes_advisor.engine.rules import OP_SIGNS, Rule
from hermes_advisor.engine.schema import RemedySpec
from hermes_advisor.engine.wording import fill, quantity
from hermes_advisor.facts.vocabulary import BOTTLENECKS

_COMPONENTS: dict[str, Literal["host", "device", "network"]] = {
    "parallel": "device", "io": "host", "cpu": "host", "compute": "device", "comm": "network", "memory": "device",
    "hardware": "device", "fluctuation": "device",
}  # fmt: skip


def build_findings(outcome: Outcome, lang: Lang, captured_steps: int = 0) -> list[Finding]:
    """All findings of a run of the chain, ranked; what happens in some of the captured steps is averaged over all."""
    captured = captured_steps
    groups: dict[str, list[CaseInstance]] = defaultdict(list)
    for instance in outcome.cases:
        groups[instance.rule.id].append(instance)
    drafts = [_finding(instances, outcome, lang, captured) for _, instances in sorted(groups.items())]
    return linked(drafts, outcome, {i: g[0].rule for i, g in groups.items()})


def _finding(instances: Sequence[CaseInstance], outcome: Outcome, lang: Lang, captured: int) -> Finding:
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
        recoverable_us=round(_combined(instances, [i.recoverable_us for i in instances], captured), 3),
        recoverable_share=round(min(1.0, _combined(instances, [i.recoverable_share for i in instances], captured)), 6),
        gain=case.gain.kind, evidence=_evidence(ordered), proof=worst.firing.id,
        instances=[i.firing.id for i in ordered], remedies=remedies, contradicts=list(case.contradicts),
        references=[r.url for r in case.references], consequences=[], consequence_of=[],
        i18n=words,
    )  # fmt: skip


def _combined(instances: Sequence[CaseInstance], values: Sequence[float], captured: int) -> float:
    """Per step: same ranks summed or the largest taken, then the worst ranks decide; mean over the captured steps.

    A value that is about all captured steps at once is a mean already.
    """
    case = instances[0].rule.case
    merge = fsum if case is not None and case.gain.combine == "sum" else max
    steps: dict[tuple[int, ...], dict[tuple[int, ...], list[float]]] = defaultdict(lambda: defaultdict(list))
    for instance, value in zip(instances, values, strict=True):
        steps[instance.steps][instance.ranks].append(value)
    worst = {at: max(merge(v) for v in ranks.values()) for at, ranks in sorted(steps.items())}
    single = [value for at, value in worst.items() if at]
    return worst.get((), 0.0) + (fsum(single) / max(captured, len(single)) if single else 0.0)


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
