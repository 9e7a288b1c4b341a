"""A whole folder, from its discovered ranks to its facts in canonical order.

Comes in: what was discovered, and how many worker processes may be used. Goes out: a ``RunExtract``. The result does
not depend on the order of files, the number of workers or PYTHONHASHSEED. A rank whose extraction fails, whose worker
dies, or of which no file can be read is left out and named in a health fact, and the rest goes on; with no rank left
``InputError`` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hermes_advisor.extractors.across_ranks import WHOLE_FOLDER, facts_over_ranks, trace_health
from hermes_advisor.extractors.evidence import us
from hermes_advisor.extractors.executors import Executor, Failure, executor_for
from hermes_advisor.extractors.rank import RankExtract, extract_rank
from hermes_advisor.extractors.readers.discover import Discovery
from hermes_advisor.extractors.readers.errors import InputError
from hermes_advisor.extractors.readers.tables import NO_TABLES, Health
from hermes_advisor.facts.base import Fact
from hermes_advisor.facts.run import RankCoverage, TraceHealth
from hermes_advisor.facts.vocabulary import FACT_TYPES

_CAUSES_NAMED = 3

Progress = Callable[[int, int], None]
"""Called with the number of ranks that are done, and of all."""


@dataclass(frozen=True)
class RunExtract:
    """The facts of a run, and what a report says about it."""

    facts: tuple[Fact, ...]
    format: str
    ranks: tuple[int, ...]
    ranks_expected: int
    ranks_expected_is_lower_bound: bool
    """Whether the job may have more ranks than expected: their number was inferred, not declared."""
    steps: tuple[int, ...]
    """Step numbers, of all ranks; empty where the capture has no step marks."""
    duration_us: float
    """The longest step of a rank."""
    health: tuple[TraceHealth, ...]


def extract_run(
    discovery: Discovery, jobs: int = 1, *, executor: Executor | None = None, progress: Progress | None = None
) -> RunExtract:
    """Extract all ranks, compare them, and put the facts in order; ``InputError`` when none of them can be read."""
    sources = discovery.sources
    health: list[tuple[int, Health]] = [(WHOLE_FOLDER, entry) for entry in discovery.health]
    found: dict[int, RankExtract] = {}
    outcomes = (executor or executor_for(jobs, len(sources))).run(extract_rank, sources)
    for done, (position, outcome) in enumerate(outcomes, start=1):
        source = sources[position]
        if isinstance(outcome, Failure):
            detail = f"the rank is left out: {outcome.reason}"
            health.append((source.rank, Health("rank_failed", "error", 1, detail, source.label)))
        elif outcome.is_empty:
            health += [(source.rank, entry) for entry in outcome.health]
        else:
            found[position] = outcome
        if progress is not None:
            progress(done, len(sources))
    if sources and not found:
        raise InputError(_nothing_read([entry for _, entry in health]))
    return combine([found[position] for position in sorted(found)], health)


def _nothing_read(health: Sequence[Health]) -> str:
    """Why no rank could be read: what is said of single files, else of the ranks."""
    bad = [entry for entry in health if entry.severity != "info"]
    causes = [entry for entry in bad if entry.issue not in ("rank_failed", NO_TABLES, "no_profiler_info")] or bad
    named = list(dict.fromkeys(f"{entry.file}: {entry.detail}" for entry in causes))
    more = f" and {len(named) - _CAUSES_NAMED} more" if len(named) > _CAUSES_NAMED else ""
    return f"no rank could be read: {'; '.join(named[:_CAUSES_NAMED])}{more}"


def combine(extracts: Iterable[RankExtract], health: Iterable[tuple[int, Health]] = ()) -> RunExtract:
    """Compare extracted ranks and put all facts in order; each rank appears once."""
    ordered = sorted(extracts, key=lambda extract: extract.rank)
    entries = [*health, *((extract.rank, entry) for extract in ordered for entry in extract.health)]
    unhealthy = trace_health(entries)
    over_ranks = facts_over_ranks([extract.exchange for extract in ordered])
    durations = [part.duration_ns for e in ordered for part in e.exchange.steps]
    coverage = next((fact for fact in over_ranks if isinstance(fact, RankCoverage)), None)
    return RunExtract(
        facts=canonical([*(fact for extract in ordered for fact in extract.facts), *over_ranks, *unhealthy]),
        format=", ".join(sorted({extract.format for extract in ordered})),
        ranks=tuple(extract.rank for extract in ordered),
        ranks_expected=0 if coverage is None else coverage.expected_count,
        ranks_expected_is_lower_bound=coverage is not None and coverage.is_lower_bound,
        steps=tuple(sorted({part.step for e in ordered for part in e.exchange.steps if part.step >= 0})),
        duration_us=us(max(durations, default=0)),
        health=tuple(unhealthy),
    )


def canonical(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """By kind in the order of the vocabulary, then rank and step, then as extracted; equal facts once."""
    place = {kind: number for number, kind in enumerate(FACT_TYPES)}
    once: dict[str, Fact] = {}
    for fact in facts:
        once.setdefault(fact.id, fact)
    return tuple(sorted(once.values(), key=lambda f: (place[f.kind], getattr(f, "rank", -1), getattr(f, "step", -1))))
