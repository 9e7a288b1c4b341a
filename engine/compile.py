"""One parsed rule file in, a checked ``Rule`` out, or every fault with its position.

Checks here are about meaning: fact kinds, fields, types, units, aliases, parameters, placeholders. Faults that need the
whole base (ids, cycles, conclusions nobody derives) are found in ``loader``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic import BaseModel, ValidationError

from hermes_advisor.engine import operands as ops
from hermes_advisor.engine.operands import Kind, Operand, OperandError
from hermes_advisor.engine.problems import did_you_mean
from hermes_advisor.engine.rules import Absence, Aggregate, FactPattern, Need, Rule, Test, TestOp
from hermes_advisor.engine.schema import CaseFile, ChainRuleFile
from hermes_advisor.engine.yamlio import Document, Path
from hermes_advisor.facts.base import list_fields, scalar_types, unit_of
from hermes_advisor.facts.conclusions import Cause, Symptom
from hermes_advisor.facts.vocabulary import CAUSES, FACT_TYPES

MAX_EXPANSION = 256
"""How many conjunctions the ``in`` lists of one rule may make."""
ORDER_OPS = ("lt", "le", "gt", "ge")
ALL_OPS = ("eq", "ne", *ORDER_OPS, "in")
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_LOOKS: Mapping[int | str, str] = {
    "id": "SYM-001 or CAU-001 for a rule, HMS-CPU-001 for a case (901 to 999 are free for your own)",
    "version": "1.0.0",
    "checked": "2026-01-31",
    "released": "2026-01-31",
    "slug": "lower-case-words-with-dashes",
    "alias": "lower_case_words",
    "url": "https://…",
}
"""Key → what its value looks like, for those that a pattern checks."""
_DERIVED_FIELDS = tuple(scalar_types(Symptom))


def compile_document(doc: Document, kind: Literal["symptom", "cause", "case"]) -> Rule | None:
    """Compile a rule file; None when faults were recorded in ``doc.problems``."""
    model = CaseFile if kind == "case" else ChainRuleFile
    spec = validate(doc, model)
    if spec is None:
        return None
    return _Compiler(doc, kind, cast("CaseFile | ChainRuleFile", spec)).run()


def validate(doc: Document, model: type[BaseModel]) -> BaseModel | None:
    """Check the shape; record each fault at its position with what was expected."""
    if doc.data is None:
        return None
    try:
        return model.model_validate(doc.data)
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            raw_path = fault["loc"]
            path = _document_path(doc, raw_path)
            if fault["type"] == "extra_forbidden":
                known = _fields_at(model, raw_path[:-1])
                doc.problem(
                    path, "unknown-key", f"unknown key '{raw_path[-1]}'{did_you_mean(str(raw_path[-1]), known)}"
                )
            elif fault["type"] == "missing":
                doc.problem(path[:-1] if path and path not in doc.positions else path, "missing-key",
                            f"'{raw_path[-1]}' is missing")  # fmt: skip
            elif fault["type"] == "string_pattern_mismatch" and raw_path[-1] in _LOOKS:
                doc.problem(
                    path, "wrong-value", f"{raw_path[-1]}: {fault['input']!r} does not look like {_LOOKS[raw_path[-1]]}"
                )
            else:
                name = ".".join(str(p) for p in path) or "the file"
                doc.problem(path, "wrong-value", f"{name}: {fault['msg'][0].lower()}{fault['msg'][1:]}")
        return None


def _document_path(doc: Document, loc: tuple[int | str, ...]) -> Path:
    # Union members add their own names to pydantic's location; keep only what exists in the document.
    path: list[int | str] = []
    for i, part in enumerate(loc):
        if (*path, part) in doc.positions or i == len(loc) - 1:
            path.append(part)
    return tuple(path)


def _fields_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    current: Any = model
    for part in loc:
        if isinstance(part, int):
            continue
        info = current.model_fields.get(part) if isinstance(current, type) and issubclass(current, BaseModel) else None
        current = _inner_model(info.annotation) if info else current
        if current is None:
            return []
    return list(current.model_fields)


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for arg in getattr(annotation, "__args__", ()):
        found = _inner_model(arg)
        if found:
            return found
    return None


class _Compiler:
    """State of compiling one file: what is bound so far and which parameters were used."""

    def __init__(self, doc: Document, kind: Literal["symptom", "cause", "case"], spec: CaseFile | ChainRuleFile):
        self.doc, self.kind, self.spec = doc, kind, spec
        self.fields: dict[str, dict[str, Kind]] = {}
        self.lists: dict[str, frozenset[str]] = {}
        self.used: set[str] = set()
        self.aggregates: set[str] = set()
        self.params: dict[str, Kind] = {}
        for name, param in spec.params.items():
            unit = None if param.unit == "none" else param.unit
            self.params[name] = Kind(type(param.value), unit)
            if isinstance(param.value, str) and unit:
                self.fault(("params", name, "unit"), "unit-mismatch", f"a text parameter has unit none, not '{unit}'")

    def fault(self, path: Path, code: str, message: str) -> None:
        self.doc.problem(path, code, message)

    def run(self) -> Rule | None:
        spec = self.spec
        patterns: list[FactPattern] = []
        aggregates: list[Aggregate] = []
        for i, item in enumerate(spec.when):
            path: Path = ("when", i)
            if item.alias in self.fields or item.alias == "param":
                self.fault((*path, "alias"), "duplicate-alias", f"alias '{item.alias}' is already taken")
            chosen = [f for f in ("fact", "count", "sum", "max", "min") if getattr(item, f) is not None]
            if len(chosen) != 1:
                self.fault(path, "condition-kind", "give exactly one of fact, count, sum, max, min")
                continue
            if chosen[0] == "fact":
                if item.test is not None:
                    self.fault(
                        (*path, "test"), "unknown-key", "'test' belongs to aggregates; put tests on fields in 'where'"
                    )
                found = self.pattern(item.alias, cast(str, item.fact), item.where, path)
                if found:
                    patterns.append(found)
            else:
                aggregate = self.aggregate(item, chosen[0], path)
                if aggregate:
                    aggregates.append(aggregate)
        absences = [
            Absence(a.fact, self.where(a.fact, a.where, ("unless", i)), a.if_unmeasured == "hold")
            for i, a in enumerate(spec.unless)
            if self.known_fact(a.fact, ("unless", i, "fact"))
        ]
        needs = [
            Need(n.fact, self.constants(n.fact, n.where, ("needs", i)), n.collect.model_dump() if n.collect else None)
            for i, n in enumerate(spec.needs)
            if self.known_fact(n.fact, ("needs", i, "fact"))
        ]
        size = math.prod(len(t.choices) for p in patterns for t in p.tests if t.op == "in")
        if size > MAX_EXPANSION:
            self.fault(("when",), "wide-in", f"the 'in' lists make {size} combinations; at most {MAX_EXPANSION}")
        derives_name, derives = self.derives()
        case_parts = self.case_parts()
        for name in spec.params:
            if name not in self.used:
                self.fault(
                    ("params", name), "unused-parameter", f"parameter '{name}' is never used in a condition or gain"
                )
        if any(p.severity == "error" for p in self.doc.problems):
            return None
        return Rule(
            id=spec.id, slug=spec.slug, version=spec.version, status=spec.status, file=self.doc.file, kind=self.kind,
            params={n: p.value for n, p in spec.params.items()}, param_specs=spec.params,
            patterns=tuple(patterns), aggregates=tuple(aggregates), absences=tuple(absences), needs=tuple(needs),
            tests=tuple(spec.tests), derives_name=derives_name, derives=derives,
            chain=spec if isinstance(spec, ChainRuleFile) else None,
            case=spec if isinstance(spec, CaseFile) else None,
            **case_parts,
        )  # fmt: skip

    def known_fact(self, kind: str, path: Path) -> bool:
        if kind in FACT_TYPES:
            return True
        self.fault(path, "unknown-fact", f"unknown fact '{kind}'{did_you_mean(kind, FACT_TYPES)}")
        return False

    def pattern(self, alias: str, fact: str, where: Mapping[str, Any], path: Path) -> FactPattern | None:
        if not self.known_fact(fact, (*path, "fact")):
            self.fields[alias] = {}
            return None
        tests = self.where(fact, where, path)
        for ref in [r for t in tests if t.operand for r in ops.references(t.operand)]:
            if isinstance(ref, ops.FieldRef) and ref.alias in self.aggregates:
                self.fault((*path, "where"), "aggregate-in-pattern",
                           f"'${ref.alias}.value' is an aggregate; test it in its own 'test'")  # fmt: skip
        self.fields[alias] = ops.kinds_of(scalar_types(FACT_TYPES[fact]))
        self.lists[alias] = list_fields(FACT_TYPES[fact])
        return FactPattern(alias, fact, tests)

    def aggregate(self, item: Any, function: str, path: Path) -> Aggregate | None:
        fact, dot, field = getattr(item, function).partition(".")
        self.fields[item.alias] = {}
        self.aggregates.add(item.alias)
        if not self.known_fact(fact, (*path, function)):
            return None
        types = scalar_types(FACT_TYPES[fact])
        if function == "count":
            if dot:
                self.fault((*path, function), "aggregate-field", "count takes a fact kind only")
            kind = Kind(int, "count")
        else:
            if types.get(field) not in (int, float):
                numeric = [n for n, t in types.items() if t in (int, float)]
                self.fault((*path, function), "aggregate-field",
                           f"{function} needs a numeric kind.field{did_you_mean(field, numeric)}")  # fmt: skip
                return None
            kind = Kind(types[field], unit_of(field))
        where = self.where(fact, item.where, path)
        if item.test is None:
            self.fault(path, "missing-key", "an aggregate needs 'test', for example {ge: $minimum}")
        tests = self.tests_on("value", kind, item.test or {}, (*path, "test"))
        self.fields[item.alias] = {"value": kind}
        return Aggregate(item.alias, cast(Any, function), fact, field or None, where, tests)

    def where(self, fact: str, where: Mapping[str, Any], path: Path) -> tuple[Test, ...]:
        types = scalar_types(FACT_TYPES[fact])
        tests: list[Test] = []
        for field, raw in where.items():
            here: Path = (*path, "where", field)
            if field not in types:
                evidence = field in FACT_TYPES[fact].model_fields
                hint = "; it is evidence and cannot be matched" if evidence else did_you_mean(field, types)
                self.fault(here, "unknown-field", f"'{fact}' has no field '{field}'{hint}")
                continue
            kind = Kind(types[field], unit_of(field))
            tests += self.tests_on(field, kind, raw if isinstance(raw, dict) else {"eq": raw}, here)
        if fact == Cause.kind:
            for test in tests:
                names = [test.operand.value] if isinstance(test.operand, ops.Const) else list(test.choices)
                for name in names if test.field == "name" else []:
                    if name not in CAUSES:
                        self.fault((*path, "where", "name"), "unknown-cause",
                                   f"unknown cause '{name}'{did_you_mean(str(name), CAUSES)}")  # fmt: skip
        return tuple(tests)

    def constants(self, fact: str, where: Mapping[str, Any], path: Path) -> tuple[Test, ...]:
        saved, self.fields = self.fields, {}
        try:
            return self.where(fact, where, path)
        finally:
            self.fields = saved

    def tests_on(self, field: str, left: Kind, raw: Mapping[str, Any], path: Path) -> tuple[Test, ...]:
        tests: list[Test] = []
        if not raw:
            self.fault(path, "missing-test", f"'{field}' has no test; write for example {{ge: $minimum}}")
        for op, value in raw.items():
            if op not in ALL_OPS:
                self.fault((*path, op), "unknown-operator", f"unknown operator '{op}'{did_you_mean(op, ALL_OPS)}")
                continue
            if op == "in":
                tests += self.membership(field, left, value, (*path, op))
                continue
            try:
                operand = ops.parse(value)
                right = self.operand_kind(operand)
                self.comparable(field, left, right, op)
            except OperandError as error:
                self.fault((*path, op) if (*path, op) in self.doc.positions else path, "bad-comparison", str(error))
                continue
            if isinstance(operand, ops.Const) and left.type is float and isinstance(operand.value, int):
                operand = ops.Const(float(operand.value))
            tests.append(Test(field, cast(TestOp, op), operand))
        return tuple(tests)

    def membership(self, field: str, left: Kind, value: Any, path: Path) -> list[Test]:
        if not isinstance(value, list) or not value:
            self.fault(path, "bad-comparison", "'in' takes a list of constants")
            return []
        for choice in value:
            if type(choice) is not left.type:
                self.fault(path, "bad-comparison",
                           f"'{field}' is {left.type.__name__}, but {choice!r} is {type(choice).__name__}")  # fmt: skip
        return [Test(field, "in", None, tuple(value))]

    def operand_kind(self, operand: Operand) -> Kind:
        found = ops.kind_of(operand, self.params, self.fields)
        self.used.update(r.name for r in ops.references(operand) if isinstance(r, ops.ParamRef))
        return found

    def comparable(self, field: str, left: Kind, right: Kind, op: str) -> None:
        if left.numeric != right.numeric or (not left.numeric and left.type is not right.type):
            raise OperandError(f"'{field}' is {left.type.__name__}, but it is compared with {right.type.__name__}")
        if not left.numeric and op in ORDER_OPS:
            raise OperandError(f"'{field}' is {left.type.__name__}; only eq, ne and in make sense for it")
        if left.numeric and right.unit is not None and (left.unit or "none") != (right.unit or "none"):
            raise OperandError(
                f"unit mismatch: '{field}' is in {left.unit or 'no unit'}, the other side in {right.unit or 'no unit'}"
            )
        if left.type is int and right.type is float and op in ("eq", "ne"):
            raise OperandError(f"'{field}' is a whole number; comparing it for equality with a fraction never holds")

    def derives(self) -> tuple[str, dict[str, Operand]]:
        if not isinstance(self.spec, ChainRuleFile):
            return "", {}
        raw = dict(self.spec.derives)
        name = raw.pop(self.kind, None)
        if not isinstance(name, str):
            self.fault(
                ("derives",), "missing-key", f"'derives' must say which {self.kind} it derives: {{{self.kind}: name}}"
            )
            name = ""
        elif self.kind == "cause" and name not in CAUSES:
            self.fault(("derives", "cause"), "unknown-cause", f"unknown cause '{name}'{did_you_mean(name, CAUSES)}")
        elif not re.fullmatch(r"[a-z][a-z0-9_.]*", name):
            self.fault(("derives", self.kind), "wrong-value", "a symptom is a lower-case word such as host_bound")
        types = scalar_types(Symptom)
        out: dict[str, Operand] = {}
        for field, value in raw.items():
            path: Path = ("derives", field)
            if field not in types or field == "name":
                self.fault(
                    path,
                    "unknown-field",
                    f"a conclusion has no field '{field}'{did_you_mean(field, _DERIVED_FIELDS[1:])}",
                )
                continue
            operand = self.expression(value, path, types[field], unit_of(field))
            if operand is not None:
                out[field] = operand
        return name, out

    def expression(self, raw: Any, path: Path, wanted: type, unit: str | None) -> Operand | None:
        try:
            operand = ops.parse(raw, ops.GAIN_OPS)
            kind = self.operand_kind(operand)
            numeric = wanted in (int, float)
            if numeric != kind.numeric or (wanted is int and kind.type is not int):
                raise OperandError(f"expected {wanted.__name__}, got {kind.type.__name__}")
            if numeric and unit is not None and kind.unit is not None and unit != kind.unit:
                raise OperandError(f"unit mismatch: expected {unit or 'no unit'}, got {kind.unit or 'no unit'}")
        except OperandError as error:
            self.fault(path, "bad-expression", str(error))
            return None
        return operand

    def scope(self, raw: Any, path: Path) -> Operand | None:
        if isinstance(raw, str) and raw.startswith("$"):
            alias, _, field = raw[1:].partition(".")
            if field in self.lists.get(alias, frozenset()):
                return ops.FieldRef(alias, field)
        return self.expression(raw, path, int, None)

    def case_parts(self) -> dict[str, Any]:
        case = self.spec
        if not isinstance(case, CaseFile):
            self.placeholders(case.text.en, ("text", "en"), "chain")
            self.placeholders(case.text.zh, ("text", "zh"), "chain")
            return {}
        if case.cause not in CAUSES:
            self.fault(("cause",), "unknown-cause", f"unknown cause '{case.cause}'{did_you_mean(case.cause, CAUSES)}")
        for lang in ("en", "zh"):
            text = getattr(case.text, lang)
            for part in ("title", "summary", "why"):
                self.placeholders(getattr(text, part), ("text", lang, part), "case")
        for i, remedy in enumerate(case.remedies):
            path: Path = ("remedies", i, "verify")
            if self.known_fact(remedy.verify.fact, (*path, "fact")):
                self.constants(remedy.verify.fact, remedy.verify.where, path)
        return {
            "gain_us": self.expression(case.gain.recoverable_us, ("gain", "recoverable_us"), float, "us"),
            "gain_share": self.expression(case.gain.recoverable_share, ("gain", "recoverable_share"), float, "ratio"),
            "scope_ranks": self.scope(case.scope.ranks, ("scope", "ranks")),
            "scope_steps": self.scope(case.scope.steps, ("scope", "steps")),
        }

    def placeholders(self, text: str, path: Path, where: str) -> None:
        for name in PLACEHOLDER.findall(text):
            alias, dot, field = name.partition(".")
            known: list[str] = (
                list(self.spec.params) if alias == "param"
                else [*self.fields.get(alias, {}), *self.lists.get(alias, ())]
            )  # fmt: skip
            if not dot or field not in known:
                self.fault(path, "unknown-placeholder",
                           f"'{{{name}}}' names nothing bound; write {{alias.field}} or {{param.name}}")  # fmt: skip
