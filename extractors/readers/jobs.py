"""Telling jobs apart: profiles that lie below one path need not be of one job.

In: the ranks found. Out: nothing when they may be one job; else ``InputError`` with the jobs' folders. Ranks of one job
declare the same sizes and are captured together; several captures of the same ranks are a choice for the caller.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from hermes_advisor.extractors.readers.errors import InputError
from hermes_advisor.extractors.readers.rank_source import RankSource, label_of

TOGETHER_NS = 600 * 10**9
"""Ranks of one job end a capture at the same step; clocks of nodes differ by seconds, and stopping can take minutes."""

ONE_JOB_NS = 86_400 * 10**9
"""The same ranks in other folders, captured further apart than this, are another job's."""

_NAMED = 6


@dataclass(frozen=True)
class _Session:
    """Ranks that were captured together and declare nothing that contradicts."""

    sources: tuple[RankSource, ...]

    @property
    def ranks(self) -> set[int]:
        return {source.rank for source in self.sources if source.rank_known}

    @property
    def parents(self) -> set[Path]:
        return {source.path.parent for source in self.sources}

    @property
    def times(self) -> list[int]:
        return [source.captured_ns for source in self.sources if source.captured_ns]

    def apart_ns(self, other: _Session) -> int:
        """Time between two sessions; 0 where they overlap or one has no time."""
        mine, others = self.times, other.times
        return max(min(others) - max(mine), min(mine) - max(others), 0) if mine and others else 0


def refuse_several_jobs(sources: Sequence[RankSource], root: Path) -> None:
    """Raise ``InputError`` when the ranks cannot all be of one job."""
    jobs = _jobs(_sessions(sources))
    if len(jobs) > 1:
        raise InputError(_refusal(jobs, root))


def _sessions(sources: Sequence[RankSource]) -> list[_Session]:
    """Split by time, then by what the ranks declare; ranks without a time or a declaration go with any other."""
    ordered = sorted(sources, key=lambda source: (source.captured_ns, source.label))
    together: list[list[RankSource]] = []
    for source in (source for source in ordered if source.captured_ns):
        if together and source.captured_ns - together[-1][-1].captured_ns <= TOGETHER_NS:
            together[-1].append(source)
        else:
            together.append([source])
    timeless = [source for source in ordered if not source.captured_ns]
    if not together:
        together.append([])
    together[-1] += timeless
    return [_Session(tuple(part)) for group in together for part in _by_declaration(group)]


def _by_declaration(group: Sequence[RankSource]) -> list[list[RankSource]]:
    parts: list[list[RankSource]] = []
    for source in sorted(group, key=lambda source: -len(source.declared)):
        part = next((part for part in parts if not any(_contradict(source, other) for other in part)), None)
        if part is None:
            parts.append([source])
        else:
            part.append(source)
    return parts


def _contradict(one: RankSource, other: RankSource) -> bool:
    mine, others = dict(one.declared), dict(other.declared)
    return any(mine[name] != others[name] for name in mine.keys() & others.keys())


def _jobs(sessions: Sequence[_Session]) -> list[list[_Session]]:
    """Sessions of one job together; the rest of the sources belongs to it only through one that is like it."""
    jobs: list[list[_Session]] = []
    for session in sessions:
        like = [job for job in jobs if any(_same_job(session, other) for other in job)]
        joined = [session, *(other for job in like for other in job)]
        jobs = [*(job for job in jobs if job not in like), joined]
    return jobs


def _same_job(one: _Session, other: _Session) -> bool:
    """Whether the second session may be another capture of the first one's ranks."""
    if any(_contradict(mine, others) for mine in one.sources[:1] for others in other.sources):
        return False
    apart = one.apart_ns(other)
    if apart == 0:
        return True
    if one.ranks.isdisjoint(other.ranks):
        return False
    return apart <= ONE_JOB_NS or not one.parents.isdisjoint(other.parents)


def _refusal(jobs: Sequence[list[_Session]], root: Path) -> str:
    sources = [sorted((s for session in job for s in session.sources), key=lambda s: s.label) for job in jobs]
    folders = [Path(os.path.commonpath([s.path for s in job])) for job in sources]
    words = []
    for i, (folder, job) in enumerate(zip(folders, sources, strict=True)):
        is_its_own = not any(s.path.is_relative_to(folder) for j, others in enumerate(sources) if j != i for s in others)
        name = label_of(folder, root) if is_its_own else _listing(source.label for source in job)
        words.append(f"{name} ({_about(job)})")
    return f"{root}: holds profiles of {len(jobs)} different jobs: {_listing(words, '; ')}; give the folders of one of them"


def _about(job: Sequence[RankSource]) -> str:
    ranks = sorted({source.rank for source in job if source.rank_known})
    said = [f"rank{'s' if len(ranks) > 1 else ''} {_listing(map(str, ranks), of_texts=False)}" if ranks else "no rank named"]
    worlds = sorted({value for source in job for name, value in source.declared if name == "world_size"})
    said += [f"world size {world}" for world in worlds]
    if times := [source.captured_ns for source in job if source.captured_ns]:
        said.append(f"captured {datetime.fromtimestamp(max(times) // 10**9, timezone.utc):%Y-%m-%d %H:%M} UTC")
    return ", ".join(said)


def _listing(texts: Iterable[str], between: str = ", ", *, of_texts: bool = True) -> str:
    named = sorted(texts) if of_texts else list(texts)
    more = len(named) - _NAMED
    return between.join(named[:_NAMED]) + (f" and {more} more" if more > 0 else "")
