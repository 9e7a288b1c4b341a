"""What one rank hands over for the comparisons between ranks: small, picklable, never whole tables.

Comes in: the tables of one rank with its step parts. Goes out: an ``Exchange`` that holds its steps, the elapse of each
collective, the links between cards, what its files show of each communication group, and its settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from hermes_advisor.extractors.evidence import frame_of, grouped, ints, total
from hermes_advisor.extractors.readers.tables import RankSettings, RankTables
from hermes_advisor.extractors.steps import Capture, StepParts

COLLECTIVE, P2P = "collective", "p2p"

MOST_RANKS = 1 << 20
"""No job is larger: a larger number of ranks in a file is damage."""


@dataclass(frozen=True)
class GroupView:
    """What one rank's files show of a group: its traffic, the rank's place in it, how many places there are."""

    group: str
    traffic: frozenset[str]
    own_place: int | None = None
    place_count: int | None = None


@dataclass(frozen=True)
class Exchange:
    """One rank's share in the comparisons. ``None`` means that it was not measured.

    ``collectives`` has one row per operator: step, group, name, occurrence, start_ns, elapse_ns, transit_ns (0: not
    recorded), link_ns (time summed over its links, 0: not recorded). ``links`` has step, transport, group, src, dst
    (places in the group), size_bytes, transit_ns.
    """

    rank: int
    label: str
    origin_ns: int = 0
    """What the rank's times count from, as Unix time; 0: unknown."""
    settings: RankSettings = field(default_factory=RankSettings)
    steps: tuple[StepParts, ...] = ()
    capture: Capture | None = None
    collectives: pd.DataFrame | None = None
    p2p_ns: dict[int, int] | None = None
    groups: tuple[GroupView, ...] = ()
    links: pd.DataFrame | None = None
    comm_file: str = ""
    comm_reader: str = ""
    links_file: str = ""
    links_reader: str = ""

    def step_ns(self, step: int) -> int:
        """The duration of a step on this rank; 0: unknown."""
        return 0 if self.capture is None else self.capture.step_ns(step)


def exchange_of(tables: RankTables, parts: list[StepParts], capture: Capture | None) -> Exchange:
    """Gather what the comparisons need."""
    ops = frame_of(tables.comm_ops)
    return Exchange(
        rank=tables.rank,
        label=tables.label,
        origin_ns=tables.origin_ns,
        settings=tables.settings,
        steps=tuple(parts),
        capture=capture,
        collectives=None if ops is None else _collectives(ops, frame_of(tables.comm_bandwidth)),
        p2p_ns=None if ops is None else _p2p(ops),
        groups=_groups(ops, frame_of(tables.comm_links)),
        links=_links(frame_of(tables.comm_links)),
        comm_file=tables.comm_ops.file if tables.comm_ops else "",
        comm_reader=tables.comm_ops.reader if tables.comm_ops else "",
        links_file=tables.comm_links.file if tables.comm_links else "",
        links_reader=tables.comm_links.reader if tables.comm_links else "",
    )


def _collectives(ops: pd.DataFrame, bandwidth: pd.DataFrame | None) -> pd.DataFrame:
    keys = ["step", "group", "name"]
    chosen = ops[ops["traffic"] == COLLECTIVE].sort_values([*keys, "start_ns"], kind="stable")
    out = chosen[[*keys, "start_ns", "elapse_ns", "transit_ns"]].reset_index(drop=True)
    out["occurrence"] = out.groupby(keys, sort=False).cumcount()
    out["link_ns"] = np.int64(0)
    if bandwidth is not None and len(out):
        # SDMA repeats the sum of the transports below it: the largest single transport serves every export.
        moved = bandwidth[bandwidth["traffic"] == COLLECTIVE].groupby(keys, sort=True)["transit_ns"].max()
        found = moved.reindex(pd.MultiIndex.from_frame(out[keys])).fillna(0)
        out["link_ns"] = found.to_numpy(dtype=np.int64)
    return out


def _p2p(ops: pd.DataFrame) -> dict[int, int]:
    out = dict.fromkeys(sorted(int(step) for step in ops["step"].unique()), 0)
    for (step,), group in grouped(ops[ops["traffic"] == P2P], "step"):
        out[int(step)] = total(group["elapse_ns"])
    return out


def _groups(ops: pd.DataFrame | None, links: pd.DataFrame | None) -> tuple[GroupView, ...]:
    traffic: dict[str, set[str]] = {}
    for frame in (ops, links):
        if frame is not None:
            for name, kind in frame[["group", "traffic"]].drop_duplicates().itertuples(index=False):
                traffic.setdefault(str(name), set()).add(str(kind))
    own: dict[str, int] = {}
    count: dict[str, int] = {}
    if links is not None:
        for (name,), rows in grouped(links, "group"):
            sources, src, dst = rows["src"].unique(), ints(rows, "src"), ints(rows, "dst")
            if len(sources) == 1:
                own[str(name)] = int(sources[0])
            # A rank that only waits shows a link to itself: that says nothing about the size of the group.
            if (src != dst).any() and (places := int(max(src.max(), dst.max())) + 1) <= MOST_RANKS:
                count[str(name)] = places
    return tuple(
        GroupView(name, frozenset(kinds), own.get(name), count.get(name)) for name, kinds in sorted(traffic.items())
    )


def _links(links: pd.DataFrame | None) -> pd.DataFrame | None:
    if links is None:
        return None
    keys = ["step", "transport", "group", "src", "dst"]
    between = links[(links["src"] != links["dst"]) & (links["transport"] != "LOCAL")]
    return between.groupby(keys, sort=True)[["size_bytes", "transit_ns"]].sum().reset_index()
