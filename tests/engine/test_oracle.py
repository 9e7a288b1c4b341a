"""The chain against a naive evaluator that tries every combination of facts, on the bundled rules and random facts.

Everything is measured here, so that no rule is withheld; what was not measured has tests of its own.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from hermes_advisor.engine import chain
from hermes_advisor.engine.kbtest import build_fact, example
from hermes_advisor.engine.loader import load
from hermes_advisor.engine.matching.select import create_matcher
from hermes_advisor.engine.operands import Calc, Const, FieldRef, ParamRef
from hermes_advisor.engine.rules import Rule
from hermes_advisor.facts.base import Fact, scalar_types
from hermes_advisor.facts.conclusions import Cause, Symptom
from hermes_advisor.facts.vocabulary import DERIVED_KINDS, FACT_TYPES

COMPARE = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
Bound = dict[str, Any]


def value(operand: Any, rule: Rule, bound: Bound) -> Any:
    if isinstance(operand, Const):
        return operand.value
    if isinstance(operand, ParamRef):
        return rule.params[operand.name]
    if isinstance(operand, FieldRef):
        holder = bound[operand.alias]
        return holder if operand.field == "value" and not isinstance(holder, Fact) else getattr(holder, operand.field)
    assert isinstance(operand, Calc)
    args = [value(a, rule, bound) for a in operand.args]
    if any(a is None for a in args):
        return None
    out = args[0]
    if operand.op in ("min", "max"):
        return (min if operand.op == "min" else max)(args)
    for arg in args[1:]:
        if operand.op == "div" and arg == 0:
            return None
        out = {"add": out + arg, "sub": out - arg, "mul": out * arg, "div": out / arg if arg else None}[operand.op]
    return out


def holds(test: Any, measured: Any, rule: Rule, bound: Bound) -> bool:
    if measured is None:
        return False
    if test.op == "in":
        return measured in test.choices
    limit = value(test.operand, rule, bound)
    return limit is not None and bool(COMPARE[test.op](measured, limit))


def passing(kind: str, tests: Any, facts: list[Fact], rule: Rule, bound: Bound) -> list[Fact]:
    found = [f for f in facts if f.kind == kind]
    return [f for f in found if all(holds(t, getattr(f, t.field), rule, bound) for t in tests)]


def naive_rule(rule: Rule, facts: list[Fact]) -> Iterator[Bound]:
    pools = [[f for f in facts if f.kind == p.fact] for p in rule.patterns]
    for combination in itertools.product(*pools):
        bound: Bound = dict(zip((p.alias for p in rule.patterns), combination, strict=True))
        if len({f.id for f in combination}) < len(combination):
            continue
        if not all(holds(t, getattr(bound[p.alias], t.field), rule, bound) for p in rule.patterns for t in p.tests):
            continue
        good = True
        for a in rule.aggregates:
            members = passing(a.fact, a.where, facts, rule, bound)
            numbers = [n for f in members if (n := getattr(f, a.field) if a.field else 1) is not None]
            if not numbers and a.function in ("min", "max"):
                good = False
                break
            total = {"count": len, "sum": sum, "min": lambda n: min(n, default=0), "max": lambda n: max(n, default=0)}
            bound[a.alias] = len(members) if a.function == "count" else total[a.function](numbers)
            good = good and all(holds(t, bound[a.alias], rule, bound) for t in a.tests)
        if good and not any(passing(x.fact, x.tests, facts, rule, bound) for x in rule.absences):
            yield bound


def naive(rules: list[Rule], facts: list[Fact], levels: dict[str, int]) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    facts = list({f.id: f for f in facts}.values())
    fired = set()
    for level in sorted(set(levels.values())):
        derived: list[Fact] = []
        for rule in [r for r in rules if levels[r.id] == level]:
            if any(not passing(n.fact, n.tests, facts, rule, {}) for n in rule.needs):
                continue
            for bound in naive_rule(rule, facts):
                key = tuple(sorted((p.alias, bound[p.alias].id) for p in rule.patterns))
                fired.add((rule.id, key))
                if rule.kind != "case":
                    data = {k: v for k, o in rule.derives.items() if (v := value(o, rule, bound)) is not None}
                    derived.append((Symptom if rule.kind == "symptom" else Cause)(name=rule.derives_name, **data))
        known = {f.id for f in facts}
        facts += list({f.id: f for f in derived if f.id not in known}.values())
    return fired


def everything(seed: int) -> list[Fact]:
    """One fact of every kind, two for what is per rank, all fields present, some numbers far from healthy."""
    rng = random.Random(seed)
    out = []
    for kind, model in FACT_TYPES.items():
        if kind in DERIVED_KINDS:
            continue
        types = scalar_types(model)
        for rank in (0, 1) if "rank" in types else (0,):
            data: dict[str, Any] = {"fact": kind, **example(model)}
            for name, found in types.items():
                if name == "rank":
                    data[name] = rank
                elif data[name] is None:
                    data[name] = found(1)
                elif name.endswith("_ratio"):
                    data[name] = rng.choice([0.0, 0.02, 0.07, 0.3, 0.95])
                elif found in (int, float) and not name.startswith("step") and name not in ("late_rank", "stage"):
                    data[name] = found(data[name] * rng.choice([0, 0.2, 1, 1, 4, 40]))
                elif found is str and name in (
                    "transport",
                    "op_type",
                    "conversion",
                    "traffic",
                    "name",
                    "value",
                    "role",
                    "core",
                ):
                    pools = {"transport": ["HCCS", "RDMA"], "op_type": ["MatMulV3", "NonZero", "Cast"], "core": ["cube", "vector"],
                             "conversion": ["cast", "transdata"], "traffic": ["collective", "p2p"], "role": ["dp", "ep"],
                             "name": ["TASK_QUEUE_ENABLE", "HCCL_ALGO"], "value": ["0", "1", ""]}  # fmt: skip
                    data[name] = rng.choice(pools[name])
            if "step" in types:
                data["step"] = 10
            out.append(build_fact(data))
    return out


def test_the_chain_agrees_with_every_combination() -> None:
    base = load()
    rules = base.active()
    fired_rules: set[str] = set()
    for seed in range(100):
        facts = everything(seed)
        outcome = chain.run(base, facts, create_matcher("reference"))
        blocked = {r.id for r in rules if outcome.coverage.missing(r)} | set(outcome.withheld)
        found = {(f.rule, tuple(sorted(f.bound.items()))) for f in outcome.firings}
        expected = naive(rules, facts, dict(base.levels))
        assert found == {e for e in expected if e[0] not in blocked}, seed
        fired_rules |= {rule for rule, _ in found}
    assert len(fired_rules) > len(rules) / 2, sorted(fired_rules)
