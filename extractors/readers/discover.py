"""Finding the ranks below the given paths.

In: paths of rank folders, of parents of many, of ASCEND_PROFILER_OUTPUT, or of one trace_view.json. Out: one
``RankSource`` per rank, ordered by rank and independent of the order of directory listings, and what was left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hermes_advisor.extractors.readers.errors import InputError, UnreadableFileError
from hermes_advisor.extractors.readers.files import open_file, reason
from hermes_advisor.extractors.readers.jobs import refuse_several_jobs
from hermes_advisor.extractors.readers.other_formats import OtherFormat, by_content, by_name
from hermes_advisor.extractors.readers.rank_source import (
    RankSource,
    label_of,
    names_in,
    numbered,
    one_per_rank,
    preference,
    rank_source,
)
from hermes_advisor.extractors.readers.settings import INFO_NAME, METADATA_NAME
from hermes_advisor.extractors.readers.tables import Health

__all__ = ["Discovery", "RankSource", "discover"]

OUTPUT_FOLDER = "ASCEND_PROFILER_OUTPUT"
TEXT_FILES = frozenset(
    {
        "trace_view.json", "kernel_details.csv", "step_trace_time.csv", "communication.json",
        "communication_matrix.json", "api_statistic.csv", "op_statistic.csv", "operator_details.csv",
        "memory_record.csv",
    }
)  # fmt: skip
"""The text files of a rank that are read."""

MAX_FOLDERS = 200_000
MAX_DEPTH = 8
_SKIPPED = (".", "PROF_")
_DATABASE = re.compile(r"^(?:ascend_\w+_profiler\w*|analysis|communication_analyzer)\.db$")
_SNIFFED_BYTES = 64 << 10
_LOOKED_AT = 8
_WHAT_TO_GIVE = "give a *_ascend_pt folder, a folder of several, or one trace_view.json"


@dataclass(frozen=True)
class Discovery:
    """The ranks found, and what was assumed or left out on the way."""

    sources: tuple[RankSource, ...]
    health: tuple[Health, ...] = ()


@dataclass
class _Search:
    root: Path
    found: list[RankSource] = field(default_factory=list)
    health: list[Health] = field(default_factory=list)
    unparsed: list[str] = field(default_factory=list)
    databases: list[str] = field(default_factory=list)
    without_output: list[str] = field(default_factory=list)
    others: dict[OtherFormat, str] = field(default_factory=dict)
    """Formats that are not read → the first folder with one."""
    unknown: list[Path] = field(default_factory=list)
    """A few files whose content may tell what their names do not."""
    seen: set[tuple[int, int]] = field(default_factory=set)


def discover(paths: Sequence[Path]) -> Discovery:
    """Find the ranks below ``paths``; raise ``InputError`` when one of them holds none."""
    given = sorted({_rank_folder_of(Path(path).absolute()) for path in paths})
    if not given:
        raise InputError(f"no path given: {_WHAT_TO_GIVE}")
    search = _Search(_common_folder(given))
    for path in given:
        before = len(search.found), len(search.seen)
        _look_at(path, search)
        if len(search.found) == before[0] and len(search.seen) != before[1]:
            raise InputError(_nothing_found(path, search))
    return _settle(search)


def _common_folder(given: Sequence[Path]) -> Path:
    if len(given) == 1:
        return given[0].parent if given[0].is_file() else given[0]
    return Path(os.path.commonpath(given))


def _look_at(path: Path, search: _Search) -> None:
    try:
        is_folder = path.is_dir()
        exists = is_folder or path.exists()
    except OSError as error:
        raise InputError(f"{path}: cannot be looked at: {reason(error)}") from error
    if not exists:
        raise InputError(f"{path}: no such file or folder; {_WHAT_TO_GIVE}")
    if is_folder:
        _walk(path, search)
    else:
        _take_file(path, search)


def _rank_folder_of(path: Path) -> Path:
    """The rank's folder when its ASCEND_PROFILER_OUTPUT was given and the rank is described beside that."""
    if path.name != OUTPUT_FOLDER or not path.is_dir():
        return path
    beside = names_in(path.parent) or {}
    described = METADATA_NAME in beside or any(INFO_NAME.match(name) for name in beside)
    return path.parent if described else path


def _take_file(path: Path, search: _Search) -> None:
    """Accept one trace_view.json (by any name) that looks like an array of trace events."""
    try:
        with open_file(path) as handle:
            head = handle.read(_SNIFFED_BYTES)
    except UnreadableFileError as error:
        raise InputError(f"{path}: {error.detail}; {_WHAT_TO_GIVE}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {reason(error)}") from error
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if (other := by_name([path.name]) or by_content(head)) and not text.startswith(b"["):
        raise InputError(f"{path}: holds {other.words}, {other.advice}")
    if not text.startswith(b"[") or not (b'"ph"' in head or path.name == "trace_view.json"):
        raise InputError(f"{path}: is no trace_view.json of the Ascend PyTorch profiler; {_WHAT_TO_GIVE}")
    if _mark_seen(path, search):
        folder = path.parent.parent if path.parent.name == OUTPUT_FOLDER else path.parent
        search.found.append(rank_source(folder, path, search.root, timeline_only=True))


def _walk(top: Path, search: _Search) -> None:
    """Visit folders level by level, in order of name; rank folders are not entered."""
    level = [top]
    for depth in range(MAX_DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            below.extend(_visit(folder, search))
        level = below
        if not level or len(search.seen) > MAX_FOLDERS:
            break
        if depth == MAX_DEPTH:
            detail = f"folders more than {MAX_DEPTH} levels down were not searched"
            search.health.append(Health("search_too_deep", "info", len(level), detail))


def _visit(folder: Path, search: _Search) -> list[Path]:
    """Take what ``folder`` holds if it is a rank; else give the folders in it to search next."""
    if not _mark_seen(folder, search):
        return []
    names = names_in(folder)
    if names is None:
        label = label_of(folder, search.root)
        search.health.append(Health("unreadable_folder", "warning", 1, "cannot be listed", label))
        return []
    output = folder / OUTPUT_FOLDER
    inside = names_in(output) if names.get(OUTPUT_FOLDER) else None
    if inside is not None and not TEXT_FILES.isdisjoint(inside):
        _mark_seen(output, search)
        search.found.append(rank_source(folder, output, search.root))
        return []
    if not TEXT_FILES.isdisjoint(name for name, is_folder in names.items() if not is_folder):
        search.found.append(rank_source(folder, folder, search.root))
        return []
    is_rank = inside is not None or any(INFO_NAME.match(name) for name in names)
    has_raw = any(name.startswith("PROF_") for name in names)
    is_raw = "FRAMEWORK" in names or (has_raw and (is_rank or folder.name.endswith("_ascend_pt")))
    if any(_DATABASE.match(name) for name in (*names, *(inside or ()))):
        search.databases.append(label_of(folder, search.root))
    elif is_raw:
        search.unparsed.append(label_of(folder, search.root))
    elif is_rank:
        search.without_output.append(label_of(folder, search.root))
    if is_raw or is_rank:
        return []
    _note_other(folder, names, search)
    return [folder / name for name, is_folder in sorted(names.items()) if is_folder and not name.startswith(_SKIPPED)]


def _note_other(folder: Path, names: Mapping[str, bool], search: _Search) -> None:
    """Remember what else the folder holds, for the words that say why it is not read."""
    if (other := by_name((folder.name, *names))) is not None:
        search.others.setdefault(other, label_of(folder, search.root))
    elif len(search.unknown) < _LOOKED_AT:
        search.unknown += [folder / name for name, is_folder in sorted(names.items()) if not is_folder][:1]


def _mark_seen(path: Path, search: _Search) -> bool:
    """False when the same folder or file was reached before, through a link or a second given path."""
    try:
        info = path.stat()
    except OSError:
        return True
    key = (info.st_dev, info.st_ino)
    if key in search.seen:
        return False
    search.seen.add(key)
    return True


def _nothing_found(path: Path, search: _Search) -> str:
    if search.unparsed:
        return (
            f"{path}: raw data that was never parsed (first: {search.unparsed[0]}); run "
            "torch_npu.profiler.profiler.analyse(profiler_path) on it where torch_npu and CANN are installed"
        )
    if search.databases:
        return (
            f"{path}: only database output (first: {search.databases[0]}), which is not read yet; "
            "export text with export_type=[ExportType.Text]"
        )
    if search.without_output:
        return f"{path}: no file of {OUTPUT_FOLDER} that can be read (first: {search.without_output[0]}); copy it whole"
    for file in search.unknown:
        if (other := by_content(_head_of(file))) is not None:
            search.others.setdefault(other, label_of(file, search.root))
    if search.others:
        other, first = next(iter(search.others.items()))
        where = "" if first == path.name else f" (first: {first})"
        return f"{path}: holds {other.words}{where}, {other.advice}"
    names = names_in(path)
    if names is None:
        return f"{path}: the folder cannot be listed; check its permissions"
    if not names:
        return f"{path}: the folder is empty; {_WHAT_TO_GIVE}"
    return f"{path}: holds no profile of the Ascend PyTorch profiler; {_WHAT_TO_GIVE}"


def _head_of(path: Path) -> bytes:
    try:
        with open_file(path) as handle:
            return handle.read(_SNIFFED_BYTES)
    except (UnreadableFileError, OSError):
        return b""


def _settle(search: _Search) -> Discovery:
    """Give every rank one source and every source a rank; raise ``InputError`` when they cannot be of one job."""
    refuse_several_jobs(search.found, search.root)
    health = list(search.health)
    for labels, issue, detail in (
        (search.unparsed, "not_parsed", "raw data never parsed: run torch_npu.profiler.profiler.analyse on it"),
        (search.databases, "only_databases", "only database output, which is not read yet: export text as well"),
        (search.without_output, "no_output", "no text file that can be read"),
    ):
        if labels:
            health.append(Health(issue, "warning", len(labels), f"{_listing(labels)}: {detail}"))
    chosen, left_out = one_per_rank(sorted((s for s in search.found if s.rank_known), key=preference))
    if left_out:
        detail = f"several captures of one rank: the latest was taken, left out: {_listing(s.label for s in left_out)}"
        health.append(Health("several_captures", "warning", len(left_out), detail))
    unknown = sorted((s for s in search.found if not s.rank_known), key=lambda s: s.label)
    if chosen and unknown:
        # A number made up here would pass for a rank of the job, and be compared with its ranks.
        detail = f"nothing names their rank, beside ranks that are named: {_listing(s.label for s in unknown)}"
        health.append(Health("unnamed_rank_left_out", "warning", len(unknown), detail))
        unknown = []
    return Discovery(tuple(sorted([*chosen, *numbered(unknown)], key=lambda s: s.rank)), tuple(health))


def _listing(labels: Iterable[str]) -> str:
    names = sorted(labels)
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
