"""The diagnosis as it is stored and rendered: pydantic models, published as JSON Schema, ``schema_version`` 1."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hermes_advisor.engine.matching.select import MatcherReport

SCHEMA_VERSION: Literal[1] = 1
MAX_STRATUM = 64
"""Layers of rules; a deeper chain of conclusions is no explanation any more."""
Scalar = int | float | str | bool
Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = ("en", "zh")
Severity = Literal["info", "low", "medium", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "low", "medium", "high", "critical")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Tool(_Model):
    """Which program made the result."""

    name: str
    version: str


class KnowledgeBaseInfo(_Model):
    """Which knowledge: version, digest of every file in use, and all that overlays changed."""

    name: str
    version: str
    digest: str
    overlay: list[str] = Field(default_factory=list)


class HealthEntry(_Model):
    """A fault or assumption of the input, counted."""

    kind: str
    severity: str
    count: int
    detail: str
    rank: int = -1
    file: str = ""


class Run(_Model):
    """What was diagnosed."""

    path: str
    format: str
    ranks: list[int]
    ranks_expected: int
    ranks_expected_is_lower_bound: bool = False
    steps: list[int]
    duration_us: float = Field(description="the longest step of a rank")
    health: list[HealthEntry] = Field(default_factory=list)


class TestResult(_Model):
    """One test of a condition as it came out: measured ``value`` against ``limit``."""

    alias: str
    field: str
    op: str
    limit: Scalar | list[Scalar]
    value: Scalar
    expression: str = Field(description="the right-hand side as the rule writes it")
    parameter: str | None = None


class AbsenceResult(_Model):
    """What was looked for and not found. ``measured`` False: nobody measured it, and the rule says to go on."""

    fact: str
    where: str
    measured: bool
    looked_at: int = Field(description="facts of the kind that were examined")


class AggregateResult(_Model):
    """An aggregate: its value, what it ran over, and the first members."""

    alias: str
    function: str
    fact: str
    field: str | None
    where: str
    value: int | float
    members_count: int
    members: list[str]
    tests: list[TestResult]


class Computed(_Model):
    """A value that a rule computed from bound facts."""

    field: str
    expression: str
    value: Scalar


class Firing(_Model):
    """One application of one rule: a step of the proof."""

    id: str
    rule: str
    version: str
    stratum: int = Field(ge=0, le=MAX_STRATUM)
    bound: dict[str, str]
    tests: list[TestResult]
    absent: list[AbsenceResult]
    aggregates: list[AggregateResult]
    values: list[Computed]
    derived: str | None


class FactSource(_Model):
    """File (relative to the diagnosed path), place in it, reader."""

    file: str
    locator: str = ""
    reader: str = ""


class FactRecord(BaseModel):
    """A fact: its own fields stand beside these; ``derived_by`` names the firing for a conclusion."""

    model_config = ConfigDict(frozen=True, extra="allow")
    id: str
    type: str
    source: FactSource | None
    derived_by: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The fact's own fields."""
        return dict(self.model_extra or {})


class RemedyText(_Model):
    """Words of a remedy in one language."""

    text: str
    risk: str


class Remedy(_Model):
    """What to do, exactly, and how to check that it worked."""

    id: str
    text: str
    settings: list[str]
    effort: str
    risk: str
    verify: str
    i18n: dict[str, RemedyText]


class Words(_Model):
    """Title, summary and mechanism in one language, numbers filled in."""

    title: str
    summary: str
    why: str
    gain: str
    contraindications: list[str]
    false_positives: list[str]


class Finding(_Model):
    """One diagnosis."""

    id: str
    case: str
    case_version: str
    cause: str
    bottleneck: str
    component: Literal["host", "device", "network"]
    severity: Severity
    confidence: float
    ranks: list[int] = Field(description="the ranks to act on; empty: the job as a whole")
    steps: list[int]
    title: str
    summary: str
    recoverable_us: float = Field(description="per step")
    recoverable_share: float = Field(description="of the step")
    gain: Literal["upper_bound", "estimate"]
    evidence: list[str]
    proof: str = Field(description="firing of the worst instance")
    instances: list[str] = Field(description="all firings of the case, the worst first")
    remedies: list[Remedy]
    contradicts: list[str]
    references: list[str]
    consequences: list[str]
    consequence_of: list[str]
    i18n: dict[str, Words]


class Collect(_Model):
    """Title of a case and what to collect for it, in one language."""

    title: str
    collect: list[str]


class NotEvaluated(_Model):
    """A case that could not be judged: what is missing, on which ranks (empty: everywhere), and how to collect it."""

    case: str
    title: str
    cause: str
    missing: list[str]
    ranks: list[int]
    collect: list[str]
    i18n: dict[str, Collect]


class Unexplained(_Model):
    """A symptom that is seen, but that no finding rests on or explains."""

    symptom: str
    ranks: list[int] = Field(description="empty: the job as a whole")
    cost_us: float = Field(description="time per step that it is about, on the worst rank")
    step_ratio: float
    facts: list[str]
    i18n: dict[str, str]


class ParamRecord(_Model):
    """A threshold as it was used."""

    value: Scalar
    unit: str
    reason: str
    source: str
    overlaid: bool = False


class RuleRecord(_Model):
    """What a reader of the proof needs to know of a rule that fired."""

    kind: str
    slug: str
    version: str
    status: str
    file: str
    text: dict[str, str]
    params: dict[str, ParamRecord]


class Diagnosis(_Model):
    """The whole result of one diagnosis."""

    schema_version: Literal[1] = SCHEMA_VERSION
    tool: Tool
    knowledge_base: KnowledgeBaseInfo
    matcher: MatcherReport
    run: Run
    findings: list[Finding]
    unexplained: list[Unexplained]
    not_evaluated: list[NotEvaluated]
    checked: list[str] = Field(description="cases that were evaluated and did not fire")
    facts: list[FactRecord]
    firings: list[Firing]
    rules: dict[str, RuleRecord]

    @model_validator(mode="after")
    def _whole(self) -> Diagnosis:
        """Every reference leads somewhere and every proof ends: a result that was altered or cut is refused."""
        facts = {f.id: f for f in self.facts}
        firings = {f.id: f for f in self.firings}
        for firing in self.firings:
            if firing.rule not in self.rules:
                raise ValueError(f"firing {firing.id} names a rule that is not in the result: {firing.rule}")
            for fact_id in [*firing.bound.values(), *(m for a in firing.aggregates for m in a.members)]:
                fact = facts.get(fact_id)
                if fact is None:
                    raise ValueError(f"firing {firing.id} rests on a fact that is not in the result: {fact_id}")
                if fact.derived_by is None:
                    continue
                source = firings.get(fact.derived_by)
                if source is None or source.stratum >= firing.stratum:
                    raise ValueError(f"the proof of {fact_id} is missing or runs in a circle")
        for finding in self.findings:
            missing = {finding.proof, *finding.instances} - firings.keys()
            if missing:
                raise ValueError(f"{finding.id} names proofs that are not in the result")
        if any(fact_id not in facts for seen in self.unexplained for fact_id in seen.facts):
            raise ValueError("an unexplained symptom names facts that are not in the result")
        return self

    def to_json(self) -> str:
        """Canonical JSON text: same facts and same knowledge give the same bytes."""
        return self.model_dump_json(indent=2) + "\n"
