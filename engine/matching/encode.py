"""A program and its facts in, requests for ``durable_rules_engine`` out; its answer in, matches out.

durable_rules matches positive conjunctions rightly only on a narrow subset of what it accepts; outside it, it
miscounts, hangs or reads past its buffers. The encoding stays inside. What does not fit raises ``Unsupported``, and
the reference matcher answers that program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hermes_advisor.engine.matching.interface import Conjunction, Match, MatchFact, Program
from hermes_advisor.engine.matching.limits import (
    MAX_EXACT_INT,
    MAX_FACTS,
    MAX_FLOAT,
    MAX_INT,
    MAX_PATTERNS,
    MAX_PATTERNS_PER_SHARD,
    MAX_PATTERNS_PER_TYPE,
    Symbols,
    Unsupported,
    fact_id,
    plain_decimal,
)
from hermes_advisor.engine.matching.semantics import NUMBERS, SYMBOLS, check, required_fields
from hermes_advisor.engine.matching.translate import BOOT_RULE, Translator


@dataclass(frozen=True, slots=True)
class Shard:
    """One ruleset and the facts it reads, as JSON text; its rule ``r<n>`` is ``conjunctions[n]``."""

    ruleset: str
    facts: tuple[str, ...]
    conjunctions: tuple[Conjunction, ...]


@dataclass(frozen=True, slots=True)
class Encoded:
    """All shards of a program; the fact with the id of ``n`` is ``facts[n]``."""

    shards: tuple[Shard, ...]
    facts: Sequence[MatchFact]

    def decode(self, answer: Sequence[Sequence[tuple[int, Sequence[int]]]]) -> list[Match]:
        """(rule number, fact serials) of each shard → matches; an exception where they do not fit."""
        found: set[Match] = set()
        for shard, pairs in zip(self.shards, answer, strict=True):
            for rule, serials in pairs:
                if min(rule, *serials) < 0:
                    raise IndexError("a negative number")
                conjunction = shard.conjunctions[rule]
                filled = [self.facts[serial] for serial in serials]
                if [fact.fact_type for fact in filled] != [pattern.fact_type for pattern in conjunction.patterns]:
                    raise ValueError("a match does not fit its rule")
                found.add((conjunction.key, tuple(fact.number for fact in filled)))
        # G12: the order in which rules fire means nothing.
        return sorted(found)


def encode(program: Program, facts: Sequence[MatchFact]) -> Encoded:
    """Check and encode; raises BadProgram or Unsupported."""
    # G10: durable_rules takes unknown operators and aliases without a word.
    check(program, facts)
    if len(facts) > MAX_FACTS:
        raise Unsupported(f"more than {MAX_FACTS} facts")
    magnitudes = _magnitudes(program, facts)
    symbols = Symbols()
    shards = []
    for conjunctions in split(program.conjunctions):
        translator = Translator(program, magnitudes, symbols)
        rules = [f'"r{n}":{translator.rule(conjunction)}' for n, conjunction in enumerate(conjunctions)]
        ruleset = "{" + ",".join([BOOT_RULE, *rules]) + "}"
        lines = tuple(_fact_lines(program, translator, symbols, facts))
        shards.append(Shard(ruleset, lines, tuple(conjunctions)))
    return Encoded(tuple(shards), facts)


def split(conjunctions: Sequence[Conjunction]) -> list[list[Conjunction]]:
    """G7: cut the conjunctions, in their order, into shards that stay below the limits."""
    shards: list[list[Conjunction]] = []
    per_type: dict[str, int] = {}
    for conjunction in conjunctions:
        kinds = [pattern.fact_type for pattern in conjunction.patterns]
        if len(kinds) > MAX_PATTERNS:
            raise Unsupported(f"conjunction {conjunction.key} has more than {MAX_PATTERNS} patterns")
        full = sum(per_type.values()) + len(kinds) > MAX_PATTERNS_PER_SHARD or any(
            per_type.get(kind, 0) + kinds.count(kind) > MAX_PATTERNS_PER_TYPE for kind in kinds
        )
        if full or not shards:
            shards.append([])
            per_type = {}
        shards[-1].append(conjunction)
        for kind in kinds:
            per_type[kind] = per_type.get(kind, 0) + 1
    return shards


def _magnitudes(program: Program, facts: Sequence[MatchFact]) -> dict[tuple[str, str], int | float]:
    """Largest absolute values of the numeric fields that the program reads; raises Unsupported beyond the limits."""
    fields: dict[str, set[str]] = {}
    for conjunction in program.conjunctions:
        for pattern, required in zip(conjunction.patterns, required_fields(conjunction), strict=True):
            declared = program.field_types.get(pattern.fact_type, {})
            fields.setdefault(pattern.fact_type, set()).update(f for f in required if declared[f] in NUMBERS)
    found: dict[tuple[str, str], int | float] = {(kind, field): 0 for kind in fields for field in fields[kind]}
    for fact in facts:
        for field in fields.get(fact.fact_type, ()):
            value: Any = fact.values.get(field, 0)
            limit = MAX_INT if program.field_types[fact.fact_type][field] is int else MAX_FLOAT
            if abs(value) > limit or (limit is MAX_FLOAT and abs(value) > MAX_EXACT_INT and float(value) != value):
                raise Unsupported(f"{fact.fact_type}.{field} holds a number that is too large")
            if abs(value) > found[fact.fact_type, field]:
                found[fact.fact_type, field] = abs(value)
    return found


def _fact_lines(
    program: Program, translator: Translator, symbols: Symbols, facts: Sequence[MatchFact]
) -> Iterator[str]:
    """G7: one flat object per fact with every field that the shard reads; G4: each in its declared type."""
    columns: dict[str, list[tuple[str, str, Callable[[Any], object]]]] = {}
    for kind, properties in translator.properties.items():
        columns[kind] = []
        for (field, as_float), name in properties.items():
            declared = float if as_float else program.field_types[kind][field]
            write: Callable[[Any], object] = (
                symbols.number if declared in SYMBOLS else plain_decimal if declared is float else int
            )
            columns[kind].append((field, f',"{name}":', write))
    # G14: the serial is internal; matches carry the canonical number of the fact.
    for serial, fact in enumerate(facts):
        if fact.fact_type not in translator.types:
            continue
        # `one` is what the closing join of G5 compares.
        parts = [f'{{"id":"{fact_id(serial)}","t":{translator.types[fact.fact_type]},"one":1']
        for field, name, write in columns.get(fact.fact_type, ()):
            if field in fact.values:
                parts.append(f"{name}{write(fact.values[field])}")
        yield "".join(parts) + "}"
