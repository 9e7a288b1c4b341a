"""The shape of rule files: parsed YAML in, typed models out. Meaning (facts, units, cycles) is checked in ``compile``.

These models also give the JSON Schema that editors use (``hermes kb schema``).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
SemVer = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$", max_length=20)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=48)]
Day = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
Status = Literal["draft", "test", "stable", "deprecated"]
Unit = Literal["us", "bytes", "ratio", "count", "gb_per_s", "mhz", "none"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Bilingual(_Strict):
    """The same words in English and Chinese."""

    en: Words
    zh: Words


class ParamSpec(_Strict):
    """A named threshold: its value, unit, why this value, and where it comes from."""

    value: int | float | str
    unit: Unit
    reason: Words
    source: Words


class ConditionSpec(_Strict):
    """One entry of ``when``: a fact pattern, or an aggregate (exactly one of fact, count, sum, max, min)."""

    alias: Name
    fact: str | None = None
    count: str | None = None
    sum: str | None = None
    max: str | None = None
    min: str | None = None
    where: dict[str, Any] = Field(default_factory=dict)
    test: dict[str, Any] | None = None


class AbsenceSpec(_Strict):
    """One entry of ``unless``: a fact that must not exist."""

    fact: str
    where: dict[str, Any] = Field(default_factory=dict)
    if_unmeasured: Literal["hold", "proceed"] = "hold"


class NeedSpec(_Strict):
    """A requirement beyond what ``when`` implies; without it the rule is not evaluated."""

    fact: str
    where: dict[str, Any] = Field(default_factory=dict)
    collect: Bilingual | None = None


class Reference(_Strict):
    """Where the knowledge comes from, and the day somebody last looked."""

    url: Annotated[str, StringConstraints(pattern=r"^https?://\S+$", max_length=400)]
    checked: Day
    note: Words | None = None


class RuleTest(_Strict):
    """An in-file test: facts in, whether the rule fires out."""

    name: Words
    facts: Annotated[list[dict[str, Any]], Field(max_length=64)]
    expect: Literal["fires", "silent", "not_evaluated"]
    ranks: list[int] | None = None
    recoverable_us: float | int | None = None
    recoverable_share: float | int | None = None


class _RuleFile(_Strict):
    slug: Slug
    version: SemVer
    status: Status
    replaced_by: str | None = None
    params: dict[Name, ParamSpec] = Field(default_factory=dict)
    needs: list[NeedSpec] = Field(default_factory=list)
    when: Annotated[list[ConditionSpec], Field(min_length=1, max_length=12)]
    unless: list[AbsenceSpec] = Field(default_factory=list)
    references: Annotated[list[Reference], Field(min_length=1)]
    tests: Annotated[list[RuleTest], Field(min_length=1)]


class ChainRuleFile(_RuleFile):
    """A symptom or cause rule: what it derives and why that follows."""

    id: Annotated[str, StringConstraints(pattern=r"^(SYM|CAU)-\d{3}$")]
    derives: dict[str, Any]
    text: Bilingual


class Applies(_Strict):
    """What a case is about: devices, frameworks and, where it matters, software version ranges (PEP 440)."""

    devices: Annotated[list[Literal["ascend", "gpu", "cpu", "any"]], Field(min_length=1)]
    frameworks: Annotated[list[Literal["pytorch", "mindspore", "any"]], Field(min_length=1)] = ["any"]
    software: dict[str, str] = Field(default_factory=dict)


class GainSpec(_Strict):
    """What the remedy wins per step: a formula over bound facts, and how it was derived, in words."""

    kind: Literal["upper_bound", "estimate"]
    recoverable_us: Any
    recoverable_share: Any
    combine: Literal["max", "sum"] = "max"
    how: Bilingual


class ScopeSpec(_Strict):
    """Which ranks and steps the finding is about: a number or a list field of a bound fact."""

    ranks: Any
    steps: Any = -1


class VerifySpec(_Strict):
    """What a profile taken after the change must show."""

    fact: str
    where: Annotated[dict[str, Any], Field(min_length=1)]


class RemedySpec(_Strict):
    """One thing to do."""

    id: Slug
    text: Bilingual
    settings: list[Words] = Field(default_factory=list)
    effort: Literal["low", "medium", "high"]
    risk: Bilingual
    verify: VerifySpec


class CaseWords(_Strict):
    """Title, one-sentence summary (with placeholders) and the mechanism, in one language."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    summary: Words
    why: Words


class CaseText(_Strict):
    """The case in English and Chinese."""

    en: CaseWords
    zh: CaseWords


class ExplainSpec(_Strict):
    """A conclusion that follows from the case, and on which ranks, seen from those that the finding names."""

    name: str
    ranks: Literal["any", "same", "others"] = "any"


class CaseFile(_RuleFile):
    """A case: cause and context → a finding with remedies."""

    id: Annotated[str, StringConstraints(pattern=r"^HMS-[A-Z]{2,4}-\d{3}$")]
    aliases: list[str] = Field(default_factory=list)
    applies: Applies
    cause: str
    severity: Literal["info", "low", "medium", "high", "critical"]
    confidence: Annotated[float, Field(gt=0, le=1)]
    gain: GainSpec
    scope: ScopeSpec
    explains: list[ExplainSpec] = Field(default_factory=list)
    contradicts: list[str] = Field(default_factory=list)
    remedies: Annotated[list[RemedySpec], Field(min_length=1)]
    contraindications: list[Bilingual] = Field(default_factory=list)
    false_positives: list[Bilingual] = Field(default_factory=list)
    text: CaseText


class Manifest(_Strict):
    """``manifest.yaml``: the name, version and day of a knowledge base."""

    name: Slug
    version: SemVer
    schema_version: Literal[1]
    released: Day


class OverlayParam(_Strict):
    """A changed threshold with the user's own reason and source."""

    value: int | float | str
    reason: Words | None = None
    source: Words | None = None


def _bare(value: Any) -> Any:
    return {"value": value} if isinstance(value, int | float | str) else value


OverlayValue = Annotated[
    OverlayParam,
    BeforeValidator(_bare),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": ["number", "string"]},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["value"],
                    "properties": {
                        "value": {"type": ["number", "string"]},
                        "reason": {"type": "string"},
                        "source": {"type": "string"},
                    },
                },
            ]
        }
    ),
]
"""A bare value, or a value with a reason and a source."""


class Overlay(_Strict):
    """``overlay.yaml`` of a user's ``--kb`` folder: changed parameters, rules switched off, drafts switched on."""

    params: dict[str, dict[Name, OverlayValue]] = Field(default_factory=dict)
    disable: list[str] = Field(default_factory=list)
    enable: list[str] = Field(default_factory=list)
