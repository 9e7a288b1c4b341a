"""The tests of conjunctions in, rules of durable_rules as JSON text out, and the properties facts must carry for them.

Only what was measured to be right is written: ``$and`` of a type, comparisons with constants, ``$ex``, and joins with a
field or with a sum, difference or product. G6: no other operator has a spelling here. Every name is a short code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from hermes_advisor.engine.matching.interface import Alpha, Beta, Conjunction, Const, Expr, Program, Ref
from hermes_advisor.engine.matching.limits import (
    MAX_EXACT_INT,
    MAX_FLOAT,
    MAX_INT,
    MAX_JOINS,
    MAX_PROPERTIES,
    Symbols,
    Unsupported,
    plain_decimal,
)
from hermes_advisor.engine.matching.semantics import SYMBOLS, apply, fold, required_fields, type_of

Magnitudes = Mapping[tuple[str, str], int | float]
"""(fact type, numeric field) → the largest absolute value among the facts."""

BOOT_RULE: Final = '"boot":{"all":[{"p0":{"$and":[{"t":1}]}}]}'
"""G8: fires before any fact is there, so that ``delete_state`` frees initialised memory. Fact types start at 2."""
RESERVED: Final = ("id", "sid", "$s", "t", "one")
"""G7: properties with a meaning of their own; a field never keeps its name, so it cannot take one of these."""

_FIRST_TYPE: Final = 2
_OPERATORS: Final = {"ne": "$neq", "lt": "$lt", "le": "$lte", "gt": "$gt", "ge": "$gte"}
_ARITHMETIC: Final = {"add": "$add", "sub": "$sub", "mul": "$mul"}


class Translator:
    """Writes the rules of one shard."""

    def __init__(self, program: Program, magnitudes: Magnitudes, symbols: Symbols) -> None:
        """``symbols`` is shared by all shards of a request."""
        self._program = program
        self._magnitudes = magnitudes
        self._symbols = symbols
        self.types: dict[str, int] = {}
        """Fact type → value of ``t``."""
        self.properties: dict[str, dict[tuple[str, bool], str]] = {}
        """Fact type → (field, carried as a float although declared int) → property name."""

    def rule(self, conjunction: Conjunction) -> str:
        """The value of one rule; its patterns are p0, p1, …"""
        parts = []
        for place, required in enumerate(required_fields(conjunction)):
            pattern = conjunction.patterns[place]
            kind = pattern.fact_type
            number = self.types.setdefault(kind, _FIRST_TYPE + len(self.types))
            tests = [f'{{"t":{number}}}']
            joins: list[str] = []
            for test in pattern.alpha:
                tests += self._constant(kind, test)
            for join in pattern.beta:
                expr = fold(join.expr)
                # A constant expression has no type inside; it is an alpha test.
                if isinstance(expr, Const):
                    tests += self._constant(kind, Alpha(join.field, join.op, expr.value))
                else:
                    joins += self._join(conjunction, place, join, expr)
            tested = {test.field for test in pattern.alpha} | {test.field for test in pattern.beta}
            # A join that reads a missing field is an error inside; here it is false.
            tests += [f'{{"$ex":{{"{self._property(kind, field)}":1}}}}' for field in required if field not in tested]
            if len(joins) > MAX_JOINS:
                raise Unsupported(f"conjunction {conjunction.key} has more than {MAX_JOINS} joins in one pattern")
            if joins:
                # G5: after a false last join the C code reads past its buffer, so the last one is always true.
                joins.append('{"one":{"p0":"one"}}')
            parts.append(f'{{"p{place}":{{"$and":[{",".join(tests + joins)}]}}}}')
        return f'{{"all":[{",".join(parts)}]}}'

    def _property(self, kind: str, field: str, as_float: bool = False) -> str:
        known = self.properties.setdefault(kind, {})
        name = known.setdefault((field, as_float), f"v{len(known)}")
        if len(known) > MAX_PROPERTIES:
            raise Unsupported(f"more than {MAX_PROPERTIES} fields of {kind} are read")
        return name

    def _constant(self, kind: str, test: Alpha) -> list[str]:
        declared, op, value = self._program.field_types[kind][test.field], test.op, test.value
        name = self._property(kind, test.field)
        if declared in SYMBOLS:
            return [_compare(op, name, str(self._symbols.number(value)))]
        assert not isinstance(value, str)
        # Also true for NaN, a constant that overflowed.
        if not abs(value) <= (MAX_INT if declared is int else MAX_FLOAT):
            raise Unsupported(f"the constant {value!r} is too large")
        if declared is float:
            if float(value) != value:
                raise Unsupported(f"the constant {value!r} has no exact float")
            return [_compare(op, name, plain_decimal(value))]
        # G4: an integer field meets an integer constant; between two integers nothing is equal.
        if value == math.floor(value):
            return [_compare(op, name, str(int(value)))]
        if op == "eq":
            return [_compare("gt", name, str(MAX_INT))]
        if op == "ne":
            return [f'{{"$ex":{{"{name}":1}}}}']
        whole = math.floor(value) if op in ("lt", "le") else math.ceil(value)
        return [_compare("le" if op in ("lt", "le") else "ge", name, str(whole))]

    def _join(self, conjunction: Conjunction, place: int, test: Beta, expr: Expr) -> list[str]:
        kind = conjunction.patterns[place].fact_type
        left = self._program.field_types[kind][test.field]
        right = type_of(expr, conjunction, self._program)
        mixed = left is not right
        if mixed:
            # G4: the integer side becomes a float inside.
            whole = self._magnitudes[kind, test.field] if left is int else self._bound(conjunction, expr)
            if whole > MAX_EXACT_INT:
                raise Unsupported(f"{kind}.{test.field}: an integer beyond 2**53 meets a float")
        if isinstance(expr, Ref):
            # G4: 1 and 1.0 fall into different hash buckets; the integer is carried as a float too.
            other = conjunction.patterns[expr.pattern].fact_type
            name = self._property(kind, test.field, as_float=mixed and left is int)
            operand = f'{{"p{expr.pattern}":"{self._property(other, expr.field, as_float=mixed and right is int)}"}}'
            return [_compare(test.op, name, operand)]
        self._bound(conjunction, expr)
        name, operand = self._property(kind, test.field), self._operand(conjunction, expr)
        # G6: equality with a computed value is two orderings, for it would look its hash bucket up wrongly.
        return [_compare(op, name, operand) for op in (("ge", "le") if test.op == "eq" else (test.op,))]

    def _operand(self, conjunction: Conjunction, expr: Expr) -> str:
        if isinstance(expr, Ref):
            kind = conjunction.patterns[expr.pattern].fact_type
            return f'{{"p{expr.pattern}":"{self._property(kind, expr.field)}"}}'
        if isinstance(expr, Const):
            return str(expr.value) if isinstance(expr.value, int) else plain_decimal(expr.value)
        left, right = self._operand(conjunction, expr.left), self._operand(conjunction, expr.right)
        return f'{{"{_ARITHMETIC[expr.op]}":{{"$l":{left},"$r":{right}}}}}'

    def _bound(self, conjunction: Conjunction, expr: Expr) -> int | float:
        """The largest absolute value that an expression can take over these facts, every part within the limits."""
        if isinstance(expr, Ref):
            return self._magnitudes.get((conjunction.patterns[expr.pattern].fact_type, expr.field), 0)
        if isinstance(expr, Const):
            found = abs(expr.value)
        else:
            left, right = self._bound(conjunction, expr.left), self._bound(conjunction, expr.right)
            found = apply("mul" if expr.op == "mul" else "add", left, right)
        limit = MAX_INT if type_of(expr, conjunction, self._program) is int else MAX_FLOAT
        # Also true for NaN, the bound of an overflow.
        if not found <= limit:
            raise Unsupported(f"conjunction {conjunction.key}: a computed value may exceed {limit:.3g}")
        return found


def _compare(op: str, name: str, operand: str) -> str:
    if op == "eq":
        return f'{{"{name}":{operand}}}'
    return f'{{"{_OPERATORS[op]}":{{"{name}":{operand}}}}}'
