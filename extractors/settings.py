"""How one rank was profiled, and what that hides from the other questions.

Comes in: the settings of one rank. Goes out: ``profile_settings``.
"""

from __future__ import annotations

from hermes_advisor.extractors.evidence import clean
from hermes_advisor.extractors.readers.tables import RankSettings, RankTables
from hermes_advisor.facts.base import Source
from hermes_advisor.facts.run import ProfileSettings

_LEVELS = {"level_none": -1, "level0": 0, "level1": 1, "level2": 2}

_METRICS = {
    "ACL_AICORE_PIPE_UTILIZATION": "PipeUtilization",
    "ACL_AICORE_ARITHMETIC_UTILIZATION": "ArithmeticUtilization",
    "ACL_AICORE_MEMORY_BANDWIDTH": "Memory",
    "ACL_AICORE_L0B_AND_WIDTH": "MemoryL0",
    "ACL_AICORE_RESOURCE_CONFLICT_RATIO": "ResourceConflictRatio",
    "ACL_AICORE_MEMORY_UB": "MemoryUB",
    "ACL_AICORE_L2_CACHE": "L2Cache",
    "ACL_AICORE_NONE": "AiCoreNone",
}
"""What profiler_info writes → the name that the user sets (torch_npu.profiler.AiCMetrics)."""

_PIPE_METRIC = "PipeUtilization"


def profile_settings(rank: int, tables: RankTables) -> list[ProfileSettings]:
    """Absent where profiler_info is missing or names no level."""
    settings = tables.settings
    level = settings.level.rsplit(".", 1)[-1].strip()
    if not level:
        return []
    number = _LEVELS.get(level.casefold())
    metrics = settings.aic_metrics.rsplit(".", 1)[-1].strip()
    metrics = _METRICS.get(metrics, metrics)
    file = settings.info_file
    return [
        ProfileSettings(
            rank=rank,
            level=clean(level),
            level_number=number,
            aic_metrics=clean(metrics),
            record_shapes=settings.record_shapes,
            with_stack=settings.with_stack,
            profile_memory=settings.profile_memory,
            hides=_hidden(number, metrics, settings),
            source=Source(file=file, locator="config.experimental_config", reader="profiler_info") if file else None,
        )
    ]


def _hidden(level: int | None, metrics: str, settings: RankSettings) -> tuple[str, ...]:
    hidden = []
    if level is not None and level < 1:
        hidden.append("AscendCL calls, launch links and synchronisation on the host")
        hidden.append("communication times, links and packet sizes")
    if level is not None and level < 2:
        hidden.append("runtime calls below AscendCL")
    if metrics != _PIPE_METRIC:
        hidden.append("pipe utilisation of kernels")
    for recorded, what in (
        (settings.record_shapes, "tensor shapes"),
        (settings.with_stack, "call stacks"),
        (settings.profile_memory, "memory use of the allocator"),
    ):
        if recorded is False:
            hidden.append(what)
    return tuple(hidden)
