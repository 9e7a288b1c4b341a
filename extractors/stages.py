"""Which pipeline stage each rank belongs to.

Comes in: the exchanges of all ranks. Goes out: a ``StageMap``, or None where the job has no pipeline or the stages
cannot be told. Declared layouts come first (``parallel_group_info``, then ``distributed_args``); with neither, ranks
that share a collective form a stage, provided that point-to-point groups join the stages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hermes_advisor.extractors.exchange import COLLECTIVE, P2P, Exchange

_GROUPS, _ARGUMENTS, _INFERRED = "parallel_group_info", "distributed_args", "inferred from communication groups"
_PIPELINE_SIZE = "pipeline_model_parallel_size"
_OTHER_SIZES = ("tensor_model_parallel_size", "data_parallel_size")


@dataclass(frozen=True)
class StageMap:
    """Rank → stage (0-based), how many stages there are, and how they were found."""

    stage_of: dict[int, int]
    stage_count: int
    found_by: str
    file: str = ""
    """The file that declares them; empty: they were inferred."""

    @property
    def evidence(self) -> str:
        """Where the stages come from, for a locator."""
        return f"stages from {self.file} {self.found_by}" if self.file else f"stages {self.found_by}"

    def ranks_of(self, stage: int, among: Iterable[int]) -> tuple[int, ...]:
        """The ranks of one stage among some ranks."""
        return tuple(sorted(rank for rank in among if self.stage_of.get(rank) == stage))


def find_stages(exchanges: Sequence[Exchange]) -> StageMap | None:
    """The stages of the job, by the best evidence there is."""
    found = _find(exchanges)
    if found is None or found.found_by == _INFERRED:
        return found
    declaring = [e for e in exchanges if (e.settings.groups if found.found_by == _GROUPS else e.settings.parallel)]
    return replace(found, file=next((e.settings.metadata_file for e in declaring), ""))


def _find(exchanges: Sequence[Exchange]) -> StageMap | None:
    sizes = {e.settings.parallel[_PIPELINE_SIZE] for e in exchanges if _PIPELINE_SIZE in e.settings.parallel}
    if len(sizes) > 1:
        return None
    size = next(iter(sizes), None)
    if size is not None and size <= 1:
        # Known to be no pipeline: one stage, whose balance and bubble are measured zeros.
        return StageMap({exchange.rank: 0 for exchange in exchanges}, 1, _ARGUMENTS)
    found = _from_declared_groups(exchanges, size)
    if found is None and size is not None:
        found = _from_arguments(exchanges, size)
    if found is None and size is None:
        found = _inferred(exchanges)
    if found is None or any(exchange.rank not in found.stage_of for exchange in exchanges):
        return None
    return found


def pipeline_declared(exchanges: Sequence[Exchange]) -> bool:
    """Whether the job says that it is a pipeline, even if its stages cannot be told."""
    return any(exchange.settings.parallel.get(_PIPELINE_SIZE, 1) > 1 for exchange in exchanges)


def _from_declared_groups(exchanges: Sequence[Exchange], size: int | None) -> StageMap | None:
    chains = {
        info.ranks for exchange in exchanges for info in exchange.settings.groups
        if info.role.casefold() == "pp" and len(info.ranks) > 1
    }  # fmt: skip
    lengths = {len(chain) for chain in chains}
    if len(lengths) != 1 or (size is not None and lengths != {size}):
        return None
    stage_of: dict[int, int] = {}
    for chain in sorted(chains):
        for stage, rank in enumerate(chain):
            if stage_of.setdefault(rank, stage) != stage:
                return None
    return StageMap(stage_of, next(iter(lengths)), _GROUPS)


def _from_arguments(exchanges: Sequence[Exchange], size: int) -> StageMap | None:
    """Megatron numbers ranks with the pipeline outermost."""
    worlds = {world for exchange in exchanges if (world := _world_size(exchange)) is not None}
    world = next(iter(worlds)) if len(worlds) == 1 else 0
    if world < size or world % size:
        return None
    per_stage = world // size
    stage_of = {exchange.rank: exchange.rank // per_stage for exchange in exchanges if 0 <= exchange.rank < world}
    return StageMap(stage_of, size, _ARGUMENTS)


def _world_size(exchange: Exchange) -> int | None:
    parallel = exchange.settings.parallel
    if parallel.get("world_size", 0) > 0:
        return parallel["world_size"]
    if not all(name in parallel for name in (_PIPELINE_SIZE, *_OTHER_SIZES)):
        return None
    sizes = [parallel[name] for name in (_PIPELINE_SIZE, *_OTHER_SIZES)]
    return math.prod(sizes) * parallel.get("context_parallel_size", 1)


def _inferred(exchanges: Sequence[Exchange]) -> StageMap | None:
    """Sets of ranks that collectives join; stages if there are several, each joined to another by p2p groups."""
    collective, p2p = _members(exchanges, COLLECTIVE), _members(exchanges, P2P)
    root = {exchange.rank: exchange.rank for exchange in exchanges}

    def find(rank: int) -> int:
        while root[rank] != rank:
            root[rank] = root[root[rank]]
            rank = root[rank]
        return rank

    for ranks in collective.values():
        for rank in ranks[1:]:
            low, high = sorted((find(ranks[0]), find(rank)))
            root[high] = low
    heads = sorted({find(rank) for rank in root})
    joined = {find(rank) for ranks in p2p.values() if len({find(r) for r in ranks}) > 1 for rank in ranks}
    if len(heads) < 2 or joined != set(heads):
        return None
    stage = {head: number for number, head in enumerate(heads)}
    return StageMap({rank: stage[find(rank)] for rank in root}, len(heads), _INFERRED)


def _members(exchanges: Sequence[Exchange], traffic: str) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {}
    for exchange in exchanges:
        for view in exchange.groups:
            if traffic in view.traffic:
                out.setdefault(view.group, []).append(exchange.rank)
    return out
