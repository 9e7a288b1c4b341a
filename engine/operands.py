"""Expressions of rules: YAML in, typed expressions with units out; evaluation over bound facts; wording for proofs.

Grammar: a constant; ``$param``; ``$alias.field``; ``{add|sub|mul: [a, b, …]}``; and in gains ``div``, ``min``, ``max``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hermes_advisor.facts.base import unit_of

Scalar = int | float | str | bool

CONDITION_OPS = frozenset({"add", "sub", "mul"})
GAIN_OPS = CONDITION_OPS | {"div", "min", "max"}


@dataclass(frozen=True)
class Const:
    """A literal."""

    value: Scalar


@dataclass(frozen=True)
class ParamRef:
    """``$name``: a parameter of the rule."""

    name: str


@dataclass(frozen=True)
class FieldRef:
    """``$alias.field``: a field of a fact bound earlier (``value`` of an aggregate)."""

    alias: str
    field: str


@dataclass(frozen=True)
class Calc:
    """Arithmetic on numbers."""

    op: str
    args: tuple[Operand, ...]


Operand = Const | ParamRef | FieldRef | Calc


def kinds_of(types: Mapping[str, type]) -> dict[str, Kind]:
    """Field name → kind, the unit taken from the name."""
    return {name: Kind(found, unit_of(name)) for name, found in types.items()}


@dataclass(frozen=True)
class Kind:
    """Type and unit of an expression; ``unit`` None fits any unit (a bare number)."""

    type: type
    unit: str | None

    @property
    def numeric(self) -> bool:
        """Whether arithmetic and order make sense."""
        return self.type in (int, float)


class OperandError(Exception):
    """An expression is malformed or mixes units; the message says what was expected."""


def parse(raw: Any, ops: frozenset[str] = CONDITION_OPS) -> Operand:
    """Parse an expression. Raises OperandError."""
    if isinstance(raw, str):
        if not raw.startswith("$"):
            return Const(raw)
        body = raw[1:]
        alias, dot, field = body.partition(".")
        if not alias.isidentifier() or (dot and not field.isidentifier()):
            raise OperandError(f"'{raw}' is no reference; write $parameter or $alias.field")
        return FieldRef(alias, field) if dot else ParamRef(alias)
    if isinstance(raw, bool | int | float):
        return Const(raw)
    if isinstance(raw, dict):
        if len(raw) != 1 or next(iter(raw)) not in ops:
            raise OperandError(f"expected one of {{{', '.join(sorted(ops))}}} with a list of operands")
        op, args = next(iter(raw.items()))
        least = 2
        if not isinstance(args, list) or len(args) < least or (op in ("sub", "div") and len(args) != least):
            wanted = "a list of two operands" if op in ("sub", "div") else "a list of at least two operands"
            raise OperandError(f"'{op}' takes {wanted}")
        return Calc(op, tuple(parse(a, ops) for a in args))
    raise OperandError(f"expected a value, a reference or arithmetic, got {type(raw).__name__}")


def kind_of(operand: Operand, params: Mapping[str, Kind], fields: Mapping[str, Mapping[str, Kind]]) -> Kind:
    """Type and unit, given the kinds of the parameters and the fields of each alias. Raises OperandError."""
    if isinstance(operand, Const):
        return Kind(type(operand.value), None)
    if isinstance(operand, ParamRef):
        if operand.name not in params:
            raise OperandError(f"unknown parameter '${operand.name}'")
        return params[operand.name]
    if isinstance(operand, FieldRef):
        if operand.alias not in fields:
            raise OperandError(f"unknown alias '{operand.alias}' (an alias must be bound before it is used)")
        if operand.field not in fields[operand.alias]:
            raise OperandError(f"'{operand.alias}' has no field '{operand.field}'")
        return fields[operand.alias][operand.field]
    kinds = [kind_of(a, params, fields) for a in operand.args]
    if not all(k.numeric for k in kinds):
        raise OperandError(f"'{operand.op}' works on numbers only")
    kind = int if all(k.type is int for k in kinds) and operand.op != "div" else float
    return Kind(kind, _unit(operand.op, [k.unit for k in kinds]))


def _unit(op: str, units: list[str | None]) -> str | None:
    known = [u for u in units if u is not None]
    if op == "mul":
        real = [u for u in known if u not in ("ratio", "", "count")]
        if len(real) > 1:
            raise OperandError(f"cannot multiply {' by '.join(real)}; multiply by a ratio, a count or a plain number")
        return real[0] if real else next((u for u in ("count", "ratio") if u in known), None)
    if op == "div":
        top, bottom = units
        if top is not None and top == bottom:
            return "ratio"
        if bottom in (None, "", "ratio", "count"):
            return top
        raise OperandError(f"cannot divide {top or 'a plain number'} by {bottom}")
    if len(set(known)) > 1:
        raise OperandError(f"'{op}' mixes units: {', '.join(u or 'none' for u in known)}")
    return known[0] if known else None


def evaluate(
    operand: Operand, params: Mapping[str, Scalar], bound: Callable[[str, str], Scalar | None]
) -> Scalar | None:
    """The value, or None where a field was not measured or a division is by zero."""
    if isinstance(operand, Const):
        return operand.value
    if isinstance(operand, ParamRef):
        return params[operand.name]
    if isinstance(operand, FieldRef):
        return bound(operand.alias, operand.field)
    values: list[int | float] = []
    for arg in operand.args:
        value = evaluate(arg, params, bound)
        if value is None or isinstance(value, str):
            return None
        values.append(value)
    return _calculate(operand.op, values)


def _calculate(op: str, values: list[int | float]) -> int | float | None:
    first, rest = values[0], values[1:]
    if op in ("min", "max"):
        return min(values) if op == "min" else max(values)
    for value in rest:
        if op == "add":
            first = first + value
        elif op == "sub":
            first = first - value
        elif op == "mul":
            first = first * value
        else:
            if value == 0:
                return None
            first = first / value
    return first


_SIGNS = {"add": " + ", "sub": " − ", "mul": " × ", "div": " ÷ "}


def words(operand: Operand) -> str:
    """The expression as it is written in a proof."""
    if isinstance(operand, Const):
        return str(operand.value)
    if isinstance(operand, ParamRef):
        return operand.name
    if isinstance(operand, FieldRef):
        return f"{operand.alias}.{operand.field}"
    if operand.op in _SIGNS:
        return "(" + _SIGNS[operand.op].join(words(a) for a in operand.args) + ")"
    return f"{operand.op}({', '.join(words(a) for a in operand.args)})"


def references(operand: Operand) -> list[ParamRef | FieldRef]:
    """Every parameter and field that the expression reads."""
    if isinstance(operand, Calc):
        return [r for a in operand.args for r in references(a)]
    return [operand] if isinstance(operand, ParamRef | FieldRef) else []
