"""One rank's place on disk: its folder, its number, and which of several captures of a rank is taken.

In: folders that hold a rank. Out: ``RankSource``. A rank's number comes from profiler_info or the metadata, never from
a device id: devices are numbered per host.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hermes_advisor.extractors.readers.capture_time import first_time_ns, plausible
from hermes_advisor.extractors.readers.errors import UnreadableFileError
from hermes_advisor.extractors.readers.files import read_json
from hermes_advisor.extractors.readers.settings import (
    INFO_NAME,
    METADATA_NAME,
    collection_end_ns,
    declared_sizes,
    rank_of,
)
from hermes_advisor.extractors.readers.tables import Health

_SMALL_JSON_BYTES = 16 << 20


@dataclass(frozen=True)
class RankSource:
    """Where one rank is to be read from; picklable."""

    rank: int
    rank_known: bool
    path: Path
    """The rank's folder, or its trace_view.json."""
    label: str
    """``path`` relative to the diagnosed folder, with forward slashes."""
    output: Path
    """The folder of the text files, or the one trace_view.json."""
    prefix: str
    """``path`` relative to the diagnosed folder, with a slash behind unless empty: reports name files from there."""
    timeline_only: bool = False
    info: Path | None = None
    info_file: str = ""
    metadata: Path | None = None
    metadata_file: str = ""
    collection_end_ns: int = 0
    captured_ns: int = 0
    """When the capture ended or, where that is not recorded, began; Unix time, 0: not known."""
    declared: tuple[tuple[str, int], ...] = ()
    """Sizes of the job as this rank declares them, by name."""
    health: tuple[Health, ...] = ()

    @property
    def ended_ns(self) -> int:
        """When the capture ended, on whatever clock, else when it began."""
        return self.collection_end_ns or self.captured_ns


def rank_source(folder: Path, output: Path, root: Path, *, timeline_only: bool = False) -> RankSource:
    """Describe the rank in ``folder`` whose files are in ``output``; ``root`` is the diagnosed folder."""
    relative = relative_name(folder, root)
    prefix = "" if relative == "." else f"{relative}/"
    health: list[Health] = []
    info, info_data, metadata, metadata_data = _describe(folder, prefix, health)
    rank = rank_of(info_data, info.name if info else "", metadata_data)
    ended = collection_end_ns(info_data)
    return RankSource(
        rank=-1 if rank is None else rank,
        rank_known=rank is not None,
        path=output if timeline_only else folder,
        label=label_of(output if timeline_only else folder, root),
        output=output,
        prefix=prefix,
        timeline_only=timeline_only,
        info=info,
        info_file=f"{prefix}{info.name}" if info else "",
        metadata=metadata,
        metadata_file=f"{prefix}{metadata.name}" if metadata else "",
        collection_end_ns=ended,
        captured_ns=plausible(ended) or first_time_ns(output),
        declared=declared_sizes(metadata_data),
        health=tuple(health),
    )


def _describe(
    folder: Path, prefix: str, health: list[Health]
) -> tuple[Path | None, Mapping[str, Any], Path | None, Mapping[str, Any]]:
    """profiler_info and profiler_metadata of a rank folder: paths and contents."""
    names = sorted(name for name, is_folder in (names_in(folder) or {}).items() if not is_folder)
    infos = [(folder / name, _object(folder / name, prefix, health)) for name in names if INFO_NAME.match(name)]
    infos.sort(key=lambda item: (-collection_end_ns(item[1]), item[0].name))
    if len(infos) > 1:
        detail = f"several are there: {infos[0][0].name}, of the latest capture, was used"
        health.append(Health("several_profiler_infos", "warning", len(infos), detail, f"{prefix}{infos[0][0].name}"))
    info, info_data = infos[0] if infos else (None, {})
    metadata = folder / METADATA_NAME if METADATA_NAME in names else None
    return info, info_data, metadata, _object(metadata, prefix, health) if metadata else {}


def _object(path: Path, prefix: str, health: list[Health]) -> Mapping[str, Any]:
    file = f"{prefix}{path.name}"
    try:
        value = read_json(path, limit=_SMALL_JSON_BYTES)
    except UnreadableFileError as error:
        health.append(Health(error.issue, error.severity, 1, error.detail, file))
        return {}
    if isinstance(value, dict):
        return value
    health.append(Health("unexpected_json", "error", 1, "holds no JSON object", file))
    return {}


def preference(source: RankSource) -> tuple[int, str]:
    """Sort key of captures of one rank: the latest first, then by label."""
    return -source.ended_ns, source.label


def one_per_rank(sources: Iterable[RankSource]) -> tuple[list[RankSource], list[RankSource]]:
    """The preferred source of each rank, and the others.

    With several runs in one folder a rank that only the earlier run holds does not belong to the later one: it is left
    out when its capture ended nearer to those left out than to those taken.
    """
    chosen: dict[int, RankSource] = {}
    left_out: list[RankSource] = []
    twice: set[int] = set()
    for source in sources:
        if source.rank in chosen:
            left_out.append(source)
            twice.add(source.rank)
        else:
            chosen[source.rank] = source
    if left_out:
        taken_from = min(chosen[rank].ended_ns for rank in twice)
        left_until = max(source.ended_ns for source in left_out)
        for rank in [rank for rank in chosen if rank not in twice and left_until < taken_from]:
            end = chosen[rank].ended_ns
            if end and abs(end - left_until) < abs(end - taken_from):
                left_out.append(chosen.pop(rank))
    return list(chosen.values()), sorted(left_out, key=lambda s: s.label)


def numbered(unknown: Sequence[RankSource]) -> Iterator[RankSource]:
    """Number sources of which none has a rank."""
    for rank, source in enumerate(unknown):
        detail = f"neither profiler_info nor profiler_metadata names the rank: called {rank} here"
        health = Health("unknown_rank", "warning" if len(unknown) > 1 else "info", 1, detail, source.label)
        yield replace(source, rank=rank, health=(*source.health, health))


def relative_name(path: Path, root: Path) -> str:
    """``path`` relative to ``root``, with forward slashes."""
    return Path(os.path.relpath(path, root)).as_posix()


def label_of(path: Path, root: Path) -> str:
    """``path`` relative to the diagnosed folder; its own name when it is that folder."""
    relative = relative_name(path, root)
    return path.name if relative == "." else relative


def names_in(folder: Path) -> dict[str, bool] | None:
    """Names in a folder → whether each is a folder; None when it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name: _is_folder(entry) for entry in entries}
    except OSError:
        return None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
