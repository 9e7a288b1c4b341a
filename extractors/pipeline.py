"""Load, balance and bubble of the pipeline stages, step by step.

Comes in: the exchanges of all ranks and the stage map. Goes out: ``stage_load``, ``pipeline_balance``,
``pipeline_bubble``. Without a stage map there is no pipeline to speak of, and no fact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hermes_advisor.extractors.evidence import ratio, us
from hermes_advisor.extractors.exchange import Exchange
from hermes_advisor.extractors.groups import listed
from hermes_advisor.extractors.stages import StageMap
from hermes_advisor.extractors.steps import StepParts
from hermes_advisor.facts.base import Fact, Source
from hermes_advisor.facts.pipeline import PipelineBalance, PipelineBubble, StageLoad


@dataclass(frozen=True)
class _Stage:
    """One stage in one step; times are means over its ranks, in ns."""

    number: int
    ranks: tuple[int, ...]
    compute_ns: float
    exposed_ns: float
    free_ns: float
    p2p_ns: float | None


def pipeline_facts(exchanges: Sequence[Exchange], stages: StageMap | None) -> list[Fact]:
    """All pipeline facts; balance and bubble only for steps in which every stage has a profile."""
    if stages is None:
        return []
    by_rank = {exchange.rank: exchange for exchange in exchanges}
    out: list[Fact] = []
    for step in sorted({part.step for exchange in exchanges for part in exchange.steps}):
        parts = {e.rank: part for e in exchanges for part in e.steps if part.step == step}
        loads = [
            _stage(number, stages.ranks_of(number, parts), step, parts, by_rank)
            for number in sorted({stages.stage_of[rank] for rank in parts})
        ]
        step_ns = max(part.duration_ns for part in parts.values())
        out += [_load(step, stage, stages, parts) for stage in loads]
        if len(loads) == stages.stage_count and step_ns > 0:
            out.append(_balance(step, loads, step_ns, stages, parts))
            out += _bubble(step, step_ns, stages, parts, by_rank)
    return out


def _stage(
    number: int, ranks: tuple[int, ...], step: int, parts: dict[int, StepParts], by_rank: dict[int, Exchange]
) -> _Stage:
    p2p = [known[step] for rank in ranks if (known := by_rank[rank].p2p_ns) is not None and step in known]
    return _Stage(
        number=number,
        ranks=ranks,
        compute_ns=_mean([parts[rank].compute_ns for rank in ranks]),
        exposed_ns=_mean([parts[rank].exposed_ns for rank in ranks]),
        free_ns=_mean([parts[rank].free_ns for rank in ranks]),
        p2p_ns=_mean(p2p) if p2p else None,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _load(step: int, stage: _Stage, stages: StageMap, parts: dict[int, StepParts]) -> StageLoad:
    return StageLoad(
        step=step,
        stage=stage.number,
        ranks_count=len(stage.ranks),
        compute_us=us(stage.compute_ns),
        exposed_communication_us=us(stage.exposed_ns),
        p2p_us=None if stage.p2p_ns is None else us(stage.p2p_ns),
        free_us=us(stage.free_ns),
        ranks=stage.ranks,
        source=_step_rows(stages, parts, stage.ranks),
    )


def _balance(
    step: int, loads: Sequence[_Stage], step_ns: int, stages: StageMap, parts: dict[int, StepParts]
) -> PipelineBalance:
    heaviest = max(loads, key=lambda stage: (stage.compute_ns, -stage.number))
    mean = _mean([stage.compute_ns for stage in loads])
    others = [rank for rank in sorted(parts) if rank not in heaviest.ranks]
    lighter = [stage for stage in loads if stage.compute_ns < mean]
    return PipelineBalance(
        step=step,
        stage_count=stages.stage_count,
        heaviest_stage=heaviest.number,
        compute_max_us=us(heaviest.compute_ns),
        compute_mean_us=us(mean),
        compute_min_us=us(min(stage.compute_ns for stage in loads)),
        excess_us=us(heaviest.compute_ns - mean),
        imbalance_ratio=ratio(heaviest.compute_ns - mean, mean),
        step_duration_us=us(step_ns),
        stage_source=stages.found_by,
        loaded_ranks=heaviest.ranks,
        waiting_ranks=tuple(sorted(rank for stage in lighter for rank in stage.ranks)),
        source=_step_rows(stages, parts, heaviest.ranks, others),
    )


def _bubble(
    step: int, step_ns: int, stages: StageMap, parts: dict[int, StepParts], by_rank: dict[int, Exchange]
) -> list[PipelineBubble]:
    if stages.stage_count == 1:
        ranks = tuple(sorted(parts))
        return [
            PipelineBubble(
                step=step, stage_count=1, mean_p2p_us=0.0, max_p2p_us=0.0, step_ratio=0.0,
                step_duration_us=us(step_ns), ranks=ranks, source=_step_rows(stages, parts, ranks),
            )
        ]  # fmt: skip
    spent = {rank: known[step] for rank in parts if (known := by_rank[rank].p2p_ns) is not None and step in known}
    if len({stages.stage_of[rank] for rank in spent}) != stages.stage_count or not any(spent.values()):
        return []
    ranks = tuple(sorted(spent))
    longest = max(ranks, key=lambda rank: (spent[rank], -rank))
    step_key = f"step{step}" if step >= 0 else "step"
    return [
        PipelineBubble(
            step=step,
            stage_count=stages.stage_count,
            mean_p2p_us=us(_mean(list(spent.values()))),
            max_p2p_us=us(spent[longest]),
            step_ratio=ratio(_mean(list(spent.values())), step_ns),
            step_duration_us=us(step_ns),
            ranks=ranks,
            source=Source(
                file=by_rank[longest].comm_file,
                locator=f"{step_key}/p2p/, the same of ranks {listed(ranks)}; {stages.evidence}",
                reader=by_rank[longest].comm_reader,
            ),
        )
    ]


def _step_rows(
    stages: StageMap, parts: dict[int, StepParts], ranks: Sequence[int], others: Sequence[int] = ()
) -> Source:
    """The step's row of the first rank, whose rows count too, and what says which stage a rank belongs to."""
    first, more = parts[ranks[0]].source, [*ranks[1:], *others]
    same = f", the same of ranks {listed(more)}" if more else ""
    return first.model_copy(update={"locator": f"{first.locator}{same}; {stages.evidence}"})
