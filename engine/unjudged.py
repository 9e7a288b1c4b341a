"""Cases that could not be judged: what is missing, on which ranks, and how to collect it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes_advisor.engine.chain import Outcome
from hermes_advisor.engine.compile import PLACEHOLDER
from hermes_advisor.engine.evaluable import Missing
from hermes_advisor.engine.result import Collect, NotEvaluated
from hermes_advisor.engine.rules import Rule
from hermes_advisor.engine.strata import derivers
from hermes_advisor.facts.vocabulary import DERIVED_KINDS


def not_evaluated(outcome: Outcome, rules: Sequence[Rule]) -> list[NotEvaluated]:
    """One entry per case and set of ranks; no ranks: it could not be judged anywhere."""
    out: list[NotEvaluated] = []
    for rule in rules:
        if rule.case is None:
            continue
        missing = outcome.coverage.missing(rule)
        if missing:
            out.append(_entry(rule, missing, frozenset()))
            continue
        partial = _withheld(rule, rules, outcome)
        for ranks in sorted({frozenset(r) for r in partial.values()}, key=sorted):
            out.append(_entry(rule, {m for m, r in partial.items() if frozenset(r) == ranks}, ranks))
    return out


def _withheld(rule: Rule, rules: Sequence[Rule], outcome: Outcome) -> dict[Missing, set[int]]:
    """What was not measured on some ranks only, for the rule or for a rule that it rests on."""
    out: dict[Missing, set[int]] = {}
    todo, done = [rule], set()
    while todo:
        current = todo.pop()
        if current.id in done:
            continue
        done.add(current.id)
        for missing, ranks in outcome.withheld.get(current.id, {}).items():
            if ranks:
                out.setdefault(missing, set()).update(ranks)
        for part in current.positive:
            if part.fact in DERIVED_KINDS:
                todo += derivers(part.predicate, rules)
    for missing, lacking in outcome.coverage.unmeasured_ranks(rule).items():
        out.setdefault(missing, set()).update(lacking)
    return out


def _entry(rule: Rule, missing: Iterable[Missing], ranks: Iterable[int]) -> NotEvaluated:
    items = sorted(missing)
    case = rule.case
    assert case is not None
    words = {
        "en": Collect(title=_bare(case.text.en.title), collect=sorted({m.collect_en for m in items})),
        "zh": Collect(title=_bare(case.text.zh.title), collect=sorted({m.collect_zh for m in items})),
    }
    return NotEvaluated(
        case=rule.id,
        title=words["en"].title,
        cause=case.cause,
        missing=[m.what for m in items],
        ranks=sorted(ranks),
        collect=words["en"].collect,
        i18n=words,
    )


def _bare(title: str) -> str:
    return PLACEHOLDER.sub("…", title)
