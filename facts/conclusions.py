"""Derived facts: what the chain of rules concludes from measured facts, before a case turns it into advice."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from hermes_advisor.facts.base import Fact


class _Conclusion(Fact):
    name: str = Field(examples=[""])
    rank: int = Field(default=-1, examples=[-1], description="-1: the job as a whole")
    step: int = Field(default=-1, examples=[-1], description="-1: all captured steps")
    subject: str = Field(default="", examples=[""], description="operator type, group, link, … it concerns")
    cost_us: float = Field(default=0.0, examples=[10000.0], description="time per step that it is about")
    step_ratio: float = Field(default=0.0, examples=[0.1], description="cost over step time")


class Symptom(_Conclusion):
    """Something abnormal that is seen; ``name`` is the word that rules use for it (``host_bound``, …)."""

    kind: ClassVar[str] = "symptom"


class Cause(_Conclusion):
    """Why it happens; ``name`` is one of the causes in ``facts.vocabulary.CAUSES``."""

    kind: ClassVar[str] = "cause"
