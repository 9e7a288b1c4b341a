"""profiler_info and profiler_metadata → ``RankSettings`` and the rank; in: decoded JSON, out: typed values.

Nothing here is guessed: a value of another type than expected counts as not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hermes_advisor.extractors.readers.cells import scaled
from hermes_advisor.extractors.readers.tables import GroupInfo, RankSettings

INFO_NAME = re.compile(r"^profiler_info(?:_(\d{1,9}))?\.json$")
METADATA_NAME = "profiler_metadata.json"
WORLD_SIZE = "world_size"
_WHOLE = "default_group"
"""Role of the group of all ranks."""

_LEVEL = re.compile(r"level_?(none|\d)$", re.IGNORECASE)
_VERSIONS = {"torch_npu": "torch_npu_version", "cann": "cann_version"}


def rank_of(info: Mapping[str, Any], info_name: str, metadata: Mapping[str, Any]) -> int | None:
    """The rank as profiler_info says it (number or text, in the file or its name), else as the metadata does."""
    named = INFO_NAME.match(info_name)
    candidates = (info.get("rank_id"), named[1] if named else None, _dict(metadata, "distributed_args").get("rank"))
    # torch_npu writes -1 outside of a distributed job.
    return next((rank for rank in map(_whole, candidates) if rank is not None and rank >= 0), None)


def collection_end_ns(info: Mapping[str, Any]) -> int:
    """When the capture ended, as Unix nanoseconds; 0 where it is not recorded."""
    return scaled(_dict(info, "end_info").get("collectionTimeEnd"), 0)


def declared_sizes(metadata: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """The sizes that every rank of a job declares alike, by name: the world's, and those of its parallel layout."""
    arguments = _dict(metadata, "distributed_args")
    sizes = {
        name: n for name, v in arguments.items() if name.endswith("_size") and (n := _whole(v)) is not None and n > 0
    }
    if WORLD_SIZE not in sizes:
        whole = [len(group.ranks) for group in _groups(_dict(metadata, "parallel_group_info")) if group.role == _WHOLE]
        sizes |= {WORLD_SIZE: max(whole)} if whole else {}
    return tuple(sorted(sizes.items()))


def rank_settings(
    info: Mapping[str, Any], metadata: Mapping[str, Any], info_file: str, metadata_file: str
) -> RankSettings:
    """What was profiled, by which software, in which environment and parallel layout."""
    config = _dict(info, "config")
    common, experimental = _dict(config, "common_config"), _dict(config, "experimental_config")
    environment = metadata.get("ENV_VARIABLES")
    return RankSettings(
        level=_level(experimental.get("_profiler_level", experimental.get("profiler_level"))),
        aic_metrics=_metrics(experimental.get("_aic_metrics", experimental.get("aic_metrics"))),
        record_shapes=_flag(common.get("record_shapes")),
        with_stack=_flag(common.get("with_stack")),
        profile_memory=_flag(common.get("profile_memory")),
        versions={name: info[key] for name, key in _VERSIONS.items() if info.get(key) and isinstance(info[key], str)},
        environment={k: str(v) for k, v in environment.items()} if isinstance(environment, dict) else None,
        parallel={k: n for k, v in _dict(metadata, "distributed_args").items() if (n := _whole(v)) is not None},
        groups=_groups(_dict(metadata, "parallel_group_info")),
        info_file=info_file,
        metadata_file=metadata_file,
    )


def _groups(declared: Mapping[str, Any]) -> tuple[GroupInfo, ...]:
    groups = []
    for key, group in declared.items():
        ranks = group.get("global_ranks") if isinstance(group, dict) else None
        members = [_whole(rank) for rank in ranks] if isinstance(ranks, list) else []
        known = tuple(rank for rank in members if rank is not None)
        if known and len(known) == len(members):
            role = group.get("group_name")
            groups.append(GroupInfo(key, role if isinstance(role, str) else "", known))
    return tuple(groups)


def _level(value: Any) -> str:
    """``Level1`` in whatever spelling; a level not known is kept as written."""
    text = value if isinstance(value, str) else ""
    found = _LEVEL.search(text)
    if found is None:
        return text
    which = found[1].lower()
    return "Level_none" if which == "none" else f"Level{which}"


def _metrics(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"-?\d{1,18}", value.strip()) else None
    return value if isinstance(value, int) and abs(value) < 2**63 else None


def _dict(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}
