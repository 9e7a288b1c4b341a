"""One rank, from its files to its facts: a pure, picklable function, run in a worker process or in place.

Comes in: where a rank lies. Goes out: a ``RankExtract``, its facts, what the comparisons between ranks need, and what
had to be skipped, repaired or assumed. A question that fails costs its own facts only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hermes_advisor.extractors.communication import (
    communication_time,
    link_bandwidth,
    packet_size,
    transfer_alignment,
)
from hermes_advisor.extractors.evidence import with_t0
from hermes_advisor.extractors.exchange import Exchange, exchange_of
from hermes_advisor.extractors.executors import reason_of
from hermes_advisor.extractors.free_time import free_time
from hermes_advisor.extractors.frequency import core_frequency
from hermes_advisor.extractors.host_calls import host_api, host_synchronization, operator_compile
from hermes_advisor.extractors.input_pipeline import dataloader_wait, host_to_device_copy
from hermes_advisor.extractors.kernels import (
    aicpu_kernels,
    dynamic_shape_kernels,
    format_conversion,
    kernel_summary,
    kernel_type,
)
from hermes_advisor.extractors.launches import launch_profile
from hermes_advisor.extractors.memory import memory_peak
from hermes_advisor.extractors.pipes import block_dim_usage, pipe_utilization
from hermes_advisor.extractors.readers.ascend_text import read_rank
from hermes_advisor.extractors.readers.rank_source import RankSource
from hermes_advisor.extractors.readers.tables import NO_TABLES, Health, RankTables
from hermes_advisor.extractors.settings import profile_settings
from hermes_advisor.extractors.steps import (
    Capture,
    StepParts,
    capture_of,
    host_capture_of,
    incomplete_kernels,
    step_breakdown,
    step_parts,
)
from hermes_advisor.facts.base import Fact


@dataclass(frozen=True)
class RankExtract:
    """All that leaves the worker for one rank."""

    rank: int
    label: str
    format: str
    facts: tuple[Fact, ...]
    exchange: Exchange
    health: tuple[Health, ...]

    @property
    def is_empty(self) -> bool:
        """Whether none of the rank's files could be read."""
        return any(entry.issue == NO_TABLES for entry in self.health)


def extract_rank(source: RankSource) -> RankExtract:
    """The facts of one rank from its files."""
    return extract_tables(read_rank(source))


def extract_tables(tables: RankTables) -> RankExtract:
    """The facts of one rank from its tables."""
    health = list(tables.health)

    def ask(question: Callable[[], Sequence[Fact]], name: str) -> list[Fact]:
        try:
            return [with_t0(fact, tables.origin_ns) for fact in question()]
        except Exception as error:  # untrusted input: one question must not cost the others
            health.append(_gave_up(name, error, tables))
            return []

    parts: list[StepParts] = []
    capture: Capture | None = None
    try:
        parts, assumed = step_parts(tables)
        health += assumed
        capture = capture_of(tables, parts)
        health += incomplete_kernels(tables, capture)
    except Exception as error:
        health.append(_gave_up("steps", error, tables))
    rank = tables.rank
    facts = ask(lambda: profile_settings(rank, tables), "profile_settings")
    facts += ask(lambda: step_breakdown(rank, parts), "step_breakdown")
    facts += ask(lambda: dynamic_shape_kernels(rank, tables), "dynamic_shape_kernels")
    facts += ask(lambda: core_frequency(rank, tables), "core_frequency")
    facts += ask(lambda: memory_peak(rank, tables), "memory_peak")
    if capture is not None:
        facts += _over_capture(tables, capture, host_capture_of(tables, parts, capture), ask)
    try:
        exchange = exchange_of(tables, parts, capture)
    except Exception as error:
        health.append(_gave_up("comparison with other ranks", error, tables))
        exchange = Exchange(rank, tables.label, tables.origin_ns, tables.settings, tuple(parts), capture)
    return RankExtract(rank, tables.label, tables.format, tuple(facts), exchange, tuple(health))


def _gave_up(question: str, error: Exception, tables: RankTables) -> Health:
    return Health("question_failed", "error", 1, f"{question} gave up: {reason_of(error)}", tables.label)


_Ask = Callable[[Callable[[], Sequence[Fact]], str], list[Fact]]

_PER_STEP: tuple[Callable[[int, RankTables, Capture], Sequence[Fact]], ...] = (
    free_time, launch_profile,
    kernel_summary, kernel_type, aicpu_kernels, format_conversion, pipe_utilization, block_dim_usage,
    communication_time, link_bandwidth, packet_size, transfer_alignment,
)  # fmt: skip


_PER_HOST_STEP: tuple[Callable[[int, RankTables, Capture], Sequence[Fact]], ...] = (
    dataloader_wait, host_to_device_copy, host_api, operator_compile, host_synchronization,
)  # fmt: skip


def _over_capture(tables: RankTables, capture: Capture, host: Capture, ask: _Ask) -> list[Fact]:
    """The questions whose answers are per step or a share of the step time, of the device or of the host."""
    facts = list[Fact]()
    for questions, steps in ((_PER_STEP, capture), (_PER_HOST_STEP, host)):
        for question in questions:
            facts += ask(partial(question, tables.rank, tables, steps), question.__name__)
    return facts
