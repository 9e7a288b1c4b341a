"""What only shows when ranks are put side by side.

Comes in: the exchanges of all ranks (one each) and all health entries. Goes out: the facts over ranks: coverage,
environment, software, groups, waits, links, pipeline, compute against peers, health.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from hermes_advisor.extractors.evidence import clean, ratio, us
from hermes_advisor.extractors.exchange import MOST_RANKS, Exchange
from hermes_advisor.extractors.groups import build_groups, communication_group, listed, place_counts
from hermes_advisor.extractors.links import slowest_link
from hermes_advisor.extractors.pipeline import pipeline_facts
from hermes_advisor.extractors.readers.tables import Health
from hermes_advisor.extractors.stages import StageMap, find_stages, pipeline_declared
from hermes_advisor.extractors.waits import communication_wait
from hermes_advisor.facts.base import WHOLE_CAPTURE, Fact, Source
from hermes_advisor.facts.run import EnvironmentVariable, RankCoverage, SoftwareVersion, TraceHealth
from hermes_advisor.facts.steps import RankCompute

WHOLE_FOLDER = -1
"""``rank`` of a health entry that concerns no single rank."""

_MISSING_NAMED = 16
_WORLD, _GROUPS = "distributed_args.world_size", "parallel_group_info"
_PEERS, _ONLY_SEEN = "peers in communication_matrix.json", "the profiles given"
_METADATA, _INFO = "profiler_metadata", "profiler_info"
_SEVERITIES = ("info", "warning", "error")


def facts_over_ranks(exchanges: Sequence[Exchange]) -> list[Fact]:
    """All facts over ranks but health. Each rank appears once, in any order."""
    if not exchanges:
        return []
    ordered = sorted(exchanges, key=lambda exchange: exchange.rank)
    coverage = rank_coverage(ordered)
    groups, stages = build_groups(ordered, coverage.expected_count), find_stages(ordered)
    out: list[Fact] = [coverage]
    out += environment_variable(ordered)
    out += software_version(ordered)
    out += rank_compute(ordered, stages)
    out += communication_group(groups, stages, {exchange.rank: exchange for exchange in ordered})
    out += communication_wait(ordered, groups, stages)
    out += slowest_link(ordered, groups)
    out += pipeline_facts(ordered, stages)
    return out


def rank_coverage(exchanges: Sequence[Exchange]) -> RankCoverage:
    """How many ranks the job has, by the best evidence: what it declares, else what its groups and links show."""
    seen = {exchange.rank for exchange in exchanges}
    worlds = [world for e in exchanges if 0 < (world := e.settings.parallel.get("world_size", 0)) <= MOST_RANKS]
    declared = [rank + 1 for e in exchanges for info in e.settings.groups for rank in info.ranks if rank < MOST_RANKS]
    places = list(place_counts(exchanges).values())
    expected, evidence = len(seen), _ONLY_SEEN
    for evidences, words in ((worlds, _WORLD), (declared, _GROUPS), (places, _PEERS)):
        if evidences and max(evidences) >= expected:
            expected, evidence = max(evidences), words
            break
    # Of the declared groups only one that holds every rank tells that there are no more.
    whole = any(len(info.ranks) == expected for e in exchanges for info in e.settings.groups)
    is_declared = (evidence == _WORLD or (evidence == _GROUPS and whole)) and expected > max(seen)
    expected = max(expected, max(seen) + 1)
    first = exchanges[0]
    file, reader = first.settings.metadata_file, _METADATA
    if evidence == _PEERS:
        file, reader = first.links_file, first.links_reader
    elif evidence == _ONLY_SEEN:
        file, reader = first.label, ""
    missing = (rank for rank in range(expected) if rank not in seen)
    return RankCoverage(
        seen_count=len(seen),
        expected_count=expected,
        missing_count=expected - len(seen),
        is_lower_bound=not is_declared,
        missing_ranks=tuple(rank for rank, _ in zip(missing, range(_MISSING_NAMED), strict=False)),
        evidence=evidence,
        source=Source(file=file or first.label, locator=evidence, reader=reader),
    )


def environment_variable(exchanges: Sequence[Exchange]) -> list[EnvironmentVariable]:
    """One fact per variable and value; absent where no rank recorded its environment."""
    ranks: dict[tuple[str, str], list[Exchange]] = {}
    for exchange in exchanges:
        for name, value in (exchange.settings.environment or {}).items():
            ranks.setdefault((name, value), []).append(exchange)
    return [
        EnvironmentVariable(
            name=clean(name),
            value=clean(value),
            is_set=value != "",
            ranks_count=len(having),
            ranks=tuple(exchange.rank for exchange in having),
            source=Source(
                file=having[0].settings.metadata_file, locator=f"ENV_VARIABLES/{clean(name)}", reader=_METADATA
            ),
        )
        for (name, value), having in sorted(ranks.items())
    ]


def software_version(exchanges: Sequence[Exchange]) -> list[SoftwareVersion]:
    """One fact per component and version."""
    ranks: dict[tuple[str, str], list[Exchange]] = {}
    for exchange in exchanges:
        for component, version in exchange.settings.versions.items():
            if version:
                ranks.setdefault((component, version), []).append(exchange)
    return [
        SoftwareVersion(
            component=clean(component),
            version=clean(version),
            versions_seen_count=sum(1 for other, _ in ranks if other == component),
            ranks=tuple(exchange.rank for exchange in having),
            source=Source(file=having[0].settings.info_file, locator=f"{clean(component)}_version", reader=_INFO),
        )
        for (component, version), having in sorted(ranks.items())
    ]


def rank_compute(exchanges: Sequence[Exchange], stages: StageMap | None) -> list[RankCompute]:
    """Each rank's compute against the other ranks of its stage, in the same step.

    Captures without step marks cover spans of their own and are not compared; nor are the ranks of a pipeline whose
    stages cannot be told, since they may do different work.
    """
    if stages is None and pipeline_declared(exchanges):
        return []
    peers: dict[tuple[int, int], list[Exchange]] = {}
    for exchange in exchanges:
        stage = 0 if stages is None else stages.stage_of[exchange.rank]
        for part in exchange.steps:
            if part.step != WHOLE_CAPTURE and part.duration_ns > 0:
                peers.setdefault((part.step, stage), []).append(exchange)
    out = []
    for (step, _), ranks in sorted(peers.items()):
        parts = {e.rank: part for e in ranks for part in e.steps if part.step == step}
        if len(parts) < 2:
            continue
        computes, everyone = sorted(part.compute_ns for part in parts.values()), listed(sorted(parts))
        for rank, part in sorted(parts.items()):
            median = _median_of_others(computes, part.compute_ns)
            out.append(
                RankCompute(
                    rank=rank,
                    step=step,
                    peers_count=len(parts) - 1,
                    compute_us=us(part.compute_ns),
                    peer_median_us=us(median),
                    excess_us=us(part.compute_ns - median),
                    excess_ratio=ratio(part.compute_ns - median, median),
                    step_duration_us=us(part.duration_ns),
                    source=part.source.model_copy(
                        update={"locator": f"{part.source.locator}, compared over ranks {everyone}"}
                    ),
                )
            )
    return out


def _median_of_others(ordered: Sequence[int], own: int) -> float:
    """The median of sorted values without one of them; not sorted anew for each of ten thousand ranks."""
    place, count = bisect_left(ordered, own), len(ordered) - 1

    def other(index: int) -> int:
        return ordered[index if index < place else index + 1]

    return (other((count - 1) // 2) + other(count // 2)) / 2


def trace_health(entries: Iterable[tuple[int, Health]]) -> list[TraceHealth]:
    """One fact per rank and issue: counts summed, the worst severity, the first detail in order of file."""
    merged: dict[tuple[int, str], list[Health]] = {}
    for rank, health in entries:
        merged.setdefault((rank, health.issue), []).append(health)
    out = []
    for (rank, issue), found in sorted(merged.items()):
        found.sort(key=lambda health: (health.file, health.detail))
        files = sorted({health.file for health in found})
        more = f" (and in {len(files) - 1} more files)" if len(files) > 1 else ""
        out.append(
            TraceHealth(
                rank=rank,
                issue=issue,
                severity=max((health.severity for health in found), key=_severity),
                occurrence_count=sum(health.count for health in found),
                detail=clean(found[0].detail) + more,
                source=Source(file=files[0]) if files[0] else None,
            )
        )
    return out


def _severity(name: str) -> int:
    return _SEVERITIES.index(name) if name in _SEVERITIES else len(_SEVERITIES)
