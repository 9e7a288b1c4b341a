"""Who is waited for in the collectives of each group (Hermes §4.2.2).

Comes in: the collectives of all ranks. Goes out: ``communication_wait`` per group and step. All ranks leave a
collective together, so the rank that spent least in it arrived last; what the others spent longer it imposed on them.
Point-to-point operators are the pipeline's business.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from hermes_advisor.extractors.evidence import Ints, clean, floats, grouped, ints, largest, ratio, total, us, with_t0
from hermes_advisor.extractors.exchange import Exchange
from hermes_advisor.extractors.groups import Group, crosses_stages, listed
from hermes_advisor.extractors.stages import StageMap
from hermes_advisor.facts.base import Instance, Source
from hermes_advisor.facts.communication import CommunicationWait

TRIVIAL_NS = 10_000
"""A collective shorter than this on every rank is launch cost: nobody waits for anybody."""

_OPERATOR = ["step", "group", "name", "occurrence"]


def communication_wait(
    exchanges: Sequence[Exchange], groups: Sequence[Group], stages: StageMap | None
) -> list[CommunicationWait]:
    """Groups with fewer than two ranks that show the same operator give no fact."""
    compared = _compared(exchanges)
    if compared is None:
        return []
    by_rank, by_name = {e.rank: e for e in exchanges}, {group.name: group for group in groups}
    out = []
    for (step, name), rows in grouped(compared, "step", "group"):
        group = by_name.get(str(name))
        if group is not None:
            out.append(_wait(int(step), group, rows, stages, by_rank))
    return out


def _compared(exchanges: Sequence[Exchange]) -> pd.DataFrame | None:
    """One row per rank and operator that at least two ranks show, with the operator's latest rank and its wait."""
    frames = [e.collectives.assign(rank=e.rank) for e in exchanges if e.collectives is not None and len(e.collectives)]
    if not frames:
        return None
    rows = pd.concat(frames, ignore_index=True)
    rows["ranks"] = rows.groupby(_OPERATOR, sort=False)["rank"].transform("size")
    rows = rows[rows["ranks"] >= 2].sort_values([*_OPERATOR, "elapse_ns", "rank"], kind="stable")
    if rows.empty:
        return None
    operator = rows.groupby(_OPERATOR, sort=False)
    shortest = _ints_of(operator["elapse_ns"].transform("min"))
    longest = _ints_of(operator["elapse_ns"].transform("max"))
    waited = _ints_of(operator["elapse_ns"].transform("sum")) - shortest * ints(rows, "ranks")
    rows["imposed_ns"] = np.where(longest < TRIVIAL_NS, 0.0, waited / (ints(rows, "ranks") - 1))
    # Sorted by elapse, so the first row of an operator is the rank that arrived last.
    rows["latest"] = operator.cumcount() == 0
    rows["longest_ns"] = longest
    rows["longest_rank"] = operator["rank"].transform("last")
    for column in ("transit_ns", "link_ns"):
        rows[f"{column}_known"] = _ints_of(operator[column].transform("min")) > 0
    return rows


def _ints_of(series: pd.Series) -> Ints:
    """A series as int64."""
    return series.to_numpy(dtype=np.int64)


def _wait(
    step: int, group: Group, rows: pd.DataFrame, stages: StageMap | None, by_rank: dict[int, Exchange]
) -> CommunicationWait:
    ranks = sorted(int(rank) for rank in rows["rank"].unique())
    latest = rows[rows["latest"]]
    imposed = dict.fromkeys(ranks, 0.0)
    for (rank,), ops in grouped(latest, "rank"):
        imposed[int(rank)] = math.fsum(floats(ops, "imposed_ns").tolist())
    late_rank = max(ranks, key=lambda rank: (imposed[rank], -rank))
    step_ns = max(by_rank[rank].step_ns(step) for rank in ranks)
    transit = _transit(rows, len(ranks))
    slowest = max(ranks, key=lambda rank: (transit[rank], -rank)) if transit else None
    mean = sum(transit.values()) / len(ranks) if transit else None
    exchange = by_rank[late_rank]
    step_key = f"step{step}" if step >= 0 else "step"
    fact = CommunicationWait(
        group=clean(group.name),
        role=clean(group.role),
        step=step,
        op_count=len(latest),
        seen_count=len(ranks),
        missing_count=None if group.size is None else max(0, group.size - len(ranks)),
        crosses_stages=crosses_stages(group, stages, by_rank.values()),
        late_rank=late_rank,
        imposed_wait_us=us(imposed[late_rank]),
        imposed_step_ratio=ratio(imposed[late_rank], step_ns),
        late_share_ratio=ratio(imposed[late_rank], math.fsum(imposed.values())),
        r_wait_ratio=None if slowest is None or mean is None else max(0.0, 1 - ratio(mean, transit[slowest])),
        slowest_transit_rank=slowest,
        transit_max_us=None if slowest is None else us(transit[slowest]),
        transit_mean_us=None if mean is None else us(mean),
        worst=_worst(latest[latest["rank"] == late_rank]),
        source=Source(
            file=exchange.comm_file,
            locator=f"{step_key}/collective/*@{clean(group.name)}, the same operators of ranks {listed(ranks)}",
            reader=exchange.comm_reader,
        ),
    )
    # The instances are of the late rank.
    return with_t0(fact, exchange.origin_ns)


def _transit(rows: pd.DataFrame, rank_count: int) -> dict[int, int]:
    """Transfer time per rank over the operators that every rank shows; empty: not recorded.

    Some exports leave the transit time of an operator at zero and have it only per link; what is taken is the same for
    all ranks of an operator, so that the ranks stay comparable.
    """
    shared = rows[rows["ranks"] == rank_count]
    known = shared["transit_ns_known"].to_numpy(dtype=bool)
    linked = shared["link_ns_known"].to_numpy(dtype=bool)
    taken = shared.assign(taken_ns=np.where(known, ints(shared, "transit_ns"), ints(shared, "link_ns")))[known | linked]
    return {int(rank): total(ops["taken_ns"]) for (rank,), ops in grouped(taken, "rank")}


def _worst(latest: pd.DataFrame) -> tuple[Instance, ...]:
    whole = latest.assign(whole_ns=latest["imposed_ns"].round().astype(np.int64))
    worst = largest(whole[whole["whole_ns"] > 0], "whole_ns")
    columns = ["name", "group", "start_ns", "elapse_ns", "rank", "longest_ns", "longest_rank"]
    return tuple(
        Instance(
            name=clean(f"{name}@{group}"),
            start_us=us(start) if start >= 0 else None,
            duration_us=us(elapse),
            detail=f"rank {rank}: {us(elapse):.3f} µs, rank {waiting}: {us(longest):.3f} µs",
        )
        for name, group, start, elapse, rank, longest, waiting in worst[columns].itertuples(index=False)
    )
