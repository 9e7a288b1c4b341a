"""Who belongs to which communication group, over all ranks.

Comes in: the exchanges of all ranks. Goes out: a ``Group`` per name, its role and members where they can be told for
sure, and the facts ``communication_group``. The names in communication.json (``…@5862276114690318097``) are often not
those of ``parallel_group_info`` (``group_name_5``): a declared group is matched by name, else by its members' places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hermes_advisor.extractors.evidence import clean
from hermes_advisor.extractors.exchange import Exchange
from hermes_advisor.extractors.readers.tables import GroupInfo
from hermes_advisor.extractors.stages import StageMap, pipeline_declared
from hermes_advisor.facts.base import Source
from hermes_advisor.facts.communication import CommunicationGroup


@dataclass(frozen=True)
class Group:
    """A communication group. ``members`` are global ranks in the group's order; None: not known for sure."""

    name: str
    role: str
    traffic: frozenset[str]
    places: dict[int, int | None]
    """Seen rank → its place in the group (None: not recorded)."""
    size: int | None
    members: Sequence[int] | None

    @property
    def seen(self) -> tuple[int, ...]:
        """The ranks whose profiles show the group."""
        return tuple(sorted(self.places))

    @property
    def missing(self) -> int | None:
        """Members without a profile; None: the size is unknown."""
        return None if self.size is None else max(0, self.size - len(self.places))

    def rank_at(self, place: int) -> int | None:
        """The global rank at a place of the group."""
        if self.members is not None:
            return self.members[place] if 0 <= place < len(self.members) else None
        return next((rank for rank, own in self.places.items() if own == place), None)


def place_counts(exchanges: Sequence[Exchange]) -> dict[str, int]:
    """Group → number of places that the links of its ranks show, where they show any."""
    counts: dict[str, int] = {}
    for exchange in exchanges:
        for view in exchange.groups:
            if view.place_count is not None:
                counts[view.group] = max(view.place_count, counts.get(view.group, 0))
    return counts


def build_groups(exchanges: Sequence[Exchange], world_size: int) -> list[Group]:
    """All groups that any rank communicated in, by name."""
    declared = sorted(
        {(info.comm_name, info.role, info.ranks) for exchange in exchanges for info in exchange.settings.groups}
    )
    infos = [GroupInfo(*item) for item in declared]
    counts = place_counts(exchanges)
    places: dict[str, dict[int, int | None]] = {}
    traffic: dict[str, frozenset[str]] = {}
    for exchange in exchanges:
        for view in exchange.groups:
            places.setdefault(view.group, {})[exchange.rank] = view.own_place
            traffic[view.group] = traffic.get(view.group, frozenset()) | view.traffic
    return [_group(name, traffic[name], places[name], counts.get(name), infos, world_size) for name in sorted(places)]


def _group(
    name: str,
    traffic: frozenset[str],
    places: dict[int, int | None],
    count: int | None,
    infos: Sequence[GroupInfo],
    world_size: int,
) -> Group:
    matches = [info for info in infos if name in (info.comm_name, info.hashed_name)] or [
        info for info in infos if _fits(info, places, count)
    ]
    roles, ranks = {info.role for info in matches}, {info.ranks for info in matches}
    role = next(iter(roles)) if len(roles) == 1 and len(ranks) == 1 else ""
    if len(ranks) == 1:
        members = next(iter(ranks))
        return Group(name, role, traffic, places, len(members), members)
    # A group as large as the job holds all ranks in order.
    if count == world_size and all(own in (None, rank) for rank, own in places.items()):
        return Group(name, role, traffic, places, count, range(count))
    return Group(name, role, traffic, places, count, None)


def _fits(info: GroupInfo, places: dict[int, int | None], count: int | None) -> bool:
    if not places.keys() <= set(info.ranks):
        return False
    if count is None and len(info.ranks) != len(places):
        return False
    if count is not None and len(info.ranks) != count:
        return False
    return all(own is None or (own < len(info.ranks) and info.ranks[own] == rank) for rank, own in places.items())


def communication_group(
    groups: Sequence[Group], stages: StageMap | None, by_rank: dict[int, Exchange]
) -> list[CommunicationGroup]:
    """One fact per group."""
    out = []
    for group in groups:
        first = by_rank[group.seen[0]]
        out.append(
            CommunicationGroup(
                group=clean(group.name),
                role=clean(group.role),
                seen_count=len(group.seen),
                expected_count=group.size,
                missing_count=group.missing,
                crosses_stages=crosses_stages(group, stages, by_rank.values()),
                ranks=group.seen,
                source=Source(
                    file=first.comm_file or first.links_file,
                    locator=f"*@{clean(group.name)} of ranks {listed(group.seen)}",
                    reader=first.comm_reader or first.links_reader,
                ),
            )
        )
    return out


def crosses_stages(group: Group, stages: StageMap | None, exchanges: Iterable[Exchange]) -> bool | None:
    """Whether members, or of unknown members the seen ranks, sit in different pipeline stages.

    None where there are stages that nobody can tell: a pipeline is declared, or ranks send and receive.
    """
    if stages is None:
        sends = any(time > 0 for exchange in exchanges for time in (exchange.p2p_ns or {}).values())
        return None if sends or pipeline_declared(tuple(exchanges)) else False
    ranks = group.members or group.seen
    if any(rank not in stages.stage_of for rank in ranks):
        return None
    return len({stages.stage_of[rank] for rank in ranks}) > 1


def listed(ranks: Sequence[int], limit: int = 8) -> str:
    """Ranks as text, the first few."""
    shown = ", ".join(str(rank) for rank in ranks[:limit])
    return shown + (f" and {len(ranks) - limit} more" if len(ranks) > limit else "")
