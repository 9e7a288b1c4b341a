"""The slowest of several like links between cards.

Comes in: the links of all ranks. Goes out: ``slowest_link`` per step and transport, where at least three links carried
enough to be compared, and both ends can be named.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hermes_advisor.extractors.evidence import clean, ratio, us
from hermes_advisor.extractors.exchange import Exchange
from hermes_advisor.extractors.groups import Group
from hermes_advisor.facts.base import Source
from hermes_advisor.facts.communication import SlowestLink

MIN_LINKS = 3
MIN_BYTES = 1_000_000
"""Below this a link's time is mostly start-up, and its bandwidth says nothing."""


@dataclass
class _Link:
    """What went over one directed link in a step, as one rank reports it."""

    reporter: int
    size_bytes: int = 0
    transit_ns: int = 0

    @property
    def bandwidth(self) -> float:
        return ratio(self.size_bytes, self.transit_ns)


def slowest_link(exchanges: Sequence[Exchange], groups: Sequence[Group]) -> list[SlowestLink]:
    """Per step and transport the link that cost most beyond what the median link would have taken."""
    found = _links(exchanges, {group.name: group for group in groups})
    by_rank = {exchange.rank: exchange for exchange in exchanges}
    alike: dict[tuple[int, str], dict[tuple[int, int], _Link]] = {}
    for (step, transport, src, dst), link in found.items():
        if link.size_bytes >= MIN_BYTES and link.transit_ns > 0:
            alike.setdefault((step, transport), {})[src, dst] = link
    return [
        _slowest(step, transport, links, by_rank)
        for (step, transport), links in sorted(alike.items())
        if len(links) >= MIN_LINKS
    ]


def _links(exchanges: Sequence[Exchange], groups: dict[str, Group]) -> dict[tuple[int, str, int, int], _Link]:
    """(step, transport, source rank, destination rank) → what went over it, summed over groups.

    Both ends may report a link; the sender's word counts, else that of the lowest rank.
    """
    reports: dict[tuple[int, str, int, int], dict[int, _Link]] = {}
    for exchange in exchanges:
        if exchange.links is None:
            continue
        columns = ["step", "transport", "group", "src", "dst", "size_bytes", "transit_ns"]
        for step, transport, name, src, dst, size, transit in exchange.links[columns].itertuples(index=False):
            group = groups.get(str(name))
            ends = (None, None) if group is None else (group.rank_at(int(src)), group.rank_at(int(dst)))
            if ends[0] is None or ends[1] is None:
                continue
            by_reporter = reports.setdefault((int(step), str(transport), ends[0], ends[1]), {})
            link = by_reporter.setdefault(exchange.rank, _Link(exchange.rank))
            link.size_bytes += int(size)
            link.transit_ns += int(transit)
    return {key: heard.get(key[2]) or heard[min(heard)] for key, heard in reports.items()}


def _slowest(
    step: int, transport: str, links: dict[tuple[int, int], _Link], by_rank: dict[int, Exchange]
) -> SlowestLink:
    median = statistics.median(link.bandwidth for link in links.values())
    excess = {ends: link.transit_ns - link.size_bytes / median for ends, link in links.items()}
    worst = max(sorted(links), key=lambda ends: excess[ends])
    link, step_ns = links[worst], max(exchange.step_ns(step) for exchange in by_rank.values())
    reporter = by_rank[link.reporter]
    return SlowestLink(
        step=step,
        transport=clean(transport),
        src_rank=worst[0],
        dst_rank=worst[1],
        link_count=len(links),
        size_bytes=link.size_bytes,
        transit_us=us(link.transit_ns),
        bandwidth_gb_per_s=link.bandwidth,
        median_gb_per_s=median,
        deficit_ratio=1 - ratio(link.bandwidth, median),
        excess_us=us(excess[worst]),
        step_ratio=ratio(excess[worst], step_ns),
        source=Source(
            file=reporter.links_file,
            locator=f"step{step if step >= 0 else ''}/*/*-total@*, the link from rank {worst[0]} to rank {worst[1]}",
            reader=reporter.links_reader,
        ),
    )
