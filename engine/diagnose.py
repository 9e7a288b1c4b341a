"""Facts and knowledge in, the ``Diagnosis`` out: ranked findings, what was not evaluated, every proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from hermes_advisor import __version__
from hermes_advisor.engine import chain
from hermes_advisor.engine.causality import unexplained
from hermes_advisor.engine.chain import Outcome
from hermes_advisor.engine.findings import build_findings
from hermes_advisor.engine.loader import KnowledgeBase
from hermes_advisor.engine.matching.select import MatcherStack
from hermes_advisor.engine.result import (
    LANGS,
    Diagnosis,
    FactRecord,
    FactSource,
    KnowledgeBaseInfo,
    Lang,
    ParamRecord,
    RuleRecord,
    Run,
    Tool,
)
from hermes_advisor.engine.rules import Rule
from hermes_advisor.engine.unjudged import not_evaluated
from hermes_advisor.facts.base import Fact
from hermes_advisor.facts.run import SoftwareVersion


def diagnose(
    facts: Iterable[Fact], run: Run, knowledge: KnowledgeBase, matcher: MatcherStack,
    *, device: str = "any", framework: str = "any", lang: Lang = "en",
) -> Diagnosis:  # fmt: skip
    """Chain the rules over the facts and assemble the result. Raises MatcherFailure and ChainError."""
    facts = list(facts)
    rules = [r for r in knowledge.active() if applies(r, device, framework, facts)]
    outcome = chain.run(knowledge, facts, matcher, rules)
    findings = build_findings(outcome, lang, len(run.steps))
    fired = {f.case for f in findings}
    open_cases = not_evaluated(outcome, rules)
    unjudged = {n.case for n in open_cases if not n.ranks}
    cases = [r for r in rules if r.kind == "case"]
    return Diagnosis(
        tool=Tool(name="hermes-advisor", version=__version__),
        knowledge_base=KnowledgeBaseInfo(
            name=knowledge.name, version=knowledge.version, digest=knowledge.digest, overlay=list(knowledge.overlay)
        ),
        matcher=matcher.report(),
        run=run,
        findings=findings,
        unexplained=unexplained(outcome, findings, {r.id: r for r in rules}),
        not_evaluated=open_cases,
        checked=[r.id for r in cases if r.id not in fired and r.id not in unjudged],
        facts=[_record(e.fact, e.derived_by) for e in outcome.facts],
        firings=sorted(outcome.firings, key=lambda f: (f.stratum, f.rule, f.id)),
        rules=_rule_records(outcome, rules),
    )


def applies(rule: Rule, device: str, framework: str, facts: Sequence[Fact]) -> bool:
    """Whether a case is about this device, framework and software; a version that cannot be read does not exclude."""
    if rule.case is None:
        return True
    spec = rule.case.applies
    if device != "any" and not {device, "any"} & set(spec.devices):
        return False
    if framework != "any" and not {framework, "any"} & set(spec.frameworks):
        return False
    for component, wanted in spec.software.items():
        for fact in facts:
            if (
                isinstance(fact, SoftwareVersion)
                and fact.component == component
                and not _in_range(fact.version, wanted)
            ):
                return False
    return True


def _in_range(version: str, wanted: str) -> bool:
    try:
        return SpecifierSet(wanted, prereleases=True).contains(Version(version))
    except (InvalidVersion, InvalidSpecifier):
        return True


def _record(fact: Fact, derived_by: str | None) -> FactRecord:
    data = fact.model_dump(mode="json", exclude={"source"})
    source = fact.source
    return FactRecord(
        id=fact.id, type=fact.kind, derived_by=derived_by,
        source=FactSource(file=source.file, locator=source.locator, reader=source.reader) if source else None, **data,
    )  # fmt: skip


def _rule_records(outcome: Outcome, rules: Sequence[Rule]) -> dict[str, RuleRecord]:
    fired = {f.rule for f in outcome.firings}
    out: dict[str, RuleRecord] = {}
    for rule in rules:
        if rule.id not in fired:
            continue
        text: dict[str, str] = (
            {x: getattr(rule.case.text, x).why for x in LANGS} if rule.case
            else {x: getattr(rule.chain.text, x) for x in LANGS} if rule.chain else {}
        )  # fmt: skip
        params = {
            n: ParamRecord(value=rule.params[n], unit=p.unit, reason=p.reason, source=p.source,
                           overlaid=n in rule.overlaid)
            for n, p in rule.param_specs.items()
        }  # fmt: skip
        out[rule.id] = RuleRecord(kind=rule.kind, slug=rule.slug, version=rule.version, status=rule.status,
                                  file=rule.file, text=text, params=params)  # fmt: skip
    return out
