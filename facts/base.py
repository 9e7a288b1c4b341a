"""The fact base class: typed, frozen, flat; in: measured numbers; out: values that rules match and reports show.

A field name ends in its unit (``_us``, ``_bytes``, ``_ratio``, ``_count``, ``_gb_per_s``, ``_mhz``). Rules match
scalar fields only; tuple fields (ranks, steps, worst instances) are evidence. An optional field that is None was not
measured: no test on it ever holds. Every field carries a healthy ``examples`` value, which fills the gaps of the
facts that rule authors write into their tests.
"""

from __future__ import annotations

import hashlib
import json
import math
import types
import typing
from functools import cached_property
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

WHOLE_CAPTURE = -1
"""Value of ``step`` for a fact that covers the capture as a whole, because the trace carries no step marks."""

_DECIMALS = {"_us": 3, "_ratio": 6, "_gb_per_s": 4, "_mhz": 3}
_UNITS = ("_gb_per_s", "_us", "_bytes", "_ratio", "_count", "_mhz")


def unit_of(field: str) -> str:
    """The unit that a field name ends in (``us``, ``bytes``, …), or ``""`` for an identifier or a text."""
    for suffix in _UNITS:
        if field.endswith(suffix):
            return suffix[1:]
    return ""


def encodable(text: str) -> str:
    """Text without lone surrogates (file names that are not UTF-8), so that it can be written out."""
    return text.encode("utf-8", "replace").decode("utf-8")


Encodable = Annotated[str, AfterValidator(encodable)]


class Source(BaseModel):
    """Where a number was read: a path relative to the diagnosed folder, a table, row or time range, and the reader."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    file: Encodable
    locator: Encodable = ""
    reader: str = ""


class Instance(BaseModel):
    """One concrete occurrence kept as evidence: what, when (µs from the trace's own origin), how long, and where."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    start_us: float | None = None
    duration_us: float | None = None
    detail: str = ""


class Fact(BaseModel):
    """Base of every fact; subclasses set ``kind`` and ``collect`` (how to obtain the fact when it is missing)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: ClassVar[str] = ""
    collect: ClassVar[str] = ""
    collect_zh: ClassVar[str] = ""
    source: Source | None = Field(default=None, examples=[None])

    @model_validator(mode="before")
    @classmethod
    def _round_by_unit(cls, data: Any) -> Any:
        # Fixed decimals by unit: the same facts on every platform, whatever the order of summation.
        if not isinstance(data, dict):
            return data
        out = {}
        for name, value in data.items():
            if isinstance(value, float):
                if not math.isfinite(value):
                    raise ValueError(f"{name} must be finite")
                decimals = next((d for s, d in _DECIMALS.items() if name.endswith(s)), None)
                value = round(value, decimals) + 0.0 if decimals is not None else value + 0.0
            elif isinstance(value, str):
                value = encodable(value)
            out[name] = value
        return out

    @cached_property
    def id(self) -> str:
        """Content-derived: ``<kind>:<12 hex digits>`` over every field but ``source``."""
        content = self.model_dump(mode="json", exclude={"source"})
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return f"{self.kind}:{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def scalars(self) -> dict[str, int | float | str | bool]:
        """The fields that rules can match, without those that were not measured."""
        return {name: value for name in scalar_types(type(self)) if (value := getattr(self, name)) is not None}


def scalar_types(model: type[Fact]) -> dict[str, type]:
    """Matchable fields of a fact class: name → int, float, str or bool (the optional part removed)."""
    cached = model.__dict__.get("_scalar_types_cache")
    if cached is not None:
        return typing.cast("dict[str, type]", cached)
    out: dict[str, type] = {}
    for name, info in model.model_fields.items():
        found = _scalar(info.annotation)
        if found is not None:
            out[name] = found
    type.__setattr__(model, "_scalar_types_cache", out)
    return out


def list_fields(model: type[Fact]) -> frozenset[str]:
    """Fields that hold ranks or steps (tuples of int): usable as a finding's scope, not in conditions."""
    return frozenset(n for n, i in model.model_fields.items() if i.annotation == tuple[int, ...])


def _scalar(annotation: Any) -> type | None:
    if annotation in (int, float, str, bool):
        return typing.cast(type, annotation)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        inner = [a for a in typing.get_args(annotation) if a is not type(None)]
        if len(inner) == 1:
            return _scalar(inner[0])
    return None
