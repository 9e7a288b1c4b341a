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
        if start in levels:
            continue
        # Depth first, without recursion: rule files may chain as deeply as they like before that is refused.
        path, todo = [start], [(start, iter(depends[start]))]
        while todo:
            current, rest = todo[-1]
            following = next((d for d in rest if d not in levels), None)
            if following is None:
                levels[current] = max((levels.get(d, 0) + 1 for d in depends[current]), default=0)
                todo.pop()
                path.pop()
            elif following in path:
                loop = path[path.index(following) :]
                least = loop.index(min(loop))
                loop = loop[least:] + loop[:least]
                if loop not in cycles:
                    cycles.append(loop)
            else:
                path.append(following)
                todo.append((following, iter(depends[following])))
    return levels, cycles
