"""Layers of rules: which rules must have run before which; in: compiled rules; out: level per rule id, or the cycles.

A rule that reads a conclusion lies above every rule that derives it, so that absence and aggregates only ever look at
what is complete, and one round of matching per layer is enough. Every cycle is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hermes_advisor.engine.rules import Predicate, Rule


def reads(rule: Rule) -> set[Predicate]:
    """Every predicate that the rule looks at, positively, in an aggregate, or for its absence."""
    return {c.predicate for c in rule.conditions}


def derivers(predicate: Predicate, rules: Iterable[Rule]) -> list[Rule]:
    """The rules whose conclusion may satisfy the predicate."""
    kind, name = predicate
    return [r for r in rules if r.head is not None and r.head[0] == kind and name in (None, r.head[1])]


def stratify(rules: Mapping[str, Rule]) -> tuple[dict[str, int], list[list[str]]]:
    """Level of each rule (0 reads measured facts only), and the cycles as lists of rule ids."""
    by_head: dict[Predicate, set[str]] = {}
    for rule in rules.values():
        if rule.head is not None:
            by_head.setdefault(rule.head, set()).add(rule.id)
            by_head.setdefault((rule.head[0], None), set()).add(rule.id)
    depends = {r.id: sorted({d for p in reads(r) for d in by_head.get(p, ())}) for r in rules.values()}
    levels: dict[str, int] = {}
    cycles: list[list[str]] = []
    for start in sorted(depends):
        _visit(start, depends, levels, [], cycles)
    return levels, cycles


def _visit(
    rule: str, depends: Mapping[str, list[str]], levels: dict[str, int], path: list[str], cycles: list[list[str]]
) -> int:
    if rule in levels:
        return levels[rule]
    if rule in path:
        loop = path[path.index(rule) :]
        least = loop.index(min(loop))
        loop = loop[least:] + loop[:least]
        if loop not in cycles:
            cycles.append(loop)
        return 0
    path.append(rule)
    level = max((_visit(d, depends, levels, path, cycles) + 1 for d in depends[rule]), default=0)
    path.pop()
    levels[rule] = level
    return level
