"""Telling jobs apart: profiles that lie below one path need not be of one job.

In: the ranks found. Out: nothing when they may be one job; else ``InputError`` with the jobs' folders. Ranks of one job
declare the same sizes and are captured together; several captures of the same ranks are a choice for the caller.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from hermes_advisor.extractors.readers.errors import InputError
from hermes_advisor.extractors.readers.rank_source import RankSource, label_of
from hermes_advisor.extractors.readers.settings import WORLD_SIZE

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
    def declared(self) -> dict[str, int]:
        return {name: value for source in self.sources for name, value in source.declared}

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
    parts: list[tuple[dict[str, int], list[RankSource]]] = []
    for source in sorted(group, key=lambda source: -len(source.declared)):
        mine = dict(source.declared)
        part = next((part for part in parts if not _contradict(mine, part[0])), None)
        if part is None:
            parts.append(part := ({}, []))
        part[0].update(mine)
        part[1].append(source)
    return [part for _, part in parts]


def _contradict(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    return any(one[name] != other[name] for name in one.keys() & other.keys())


def _jobs(sessions: Sequence[_Session]) -> list[list[_Session]]:
    """The sessions that may be one job's, together."""
    jobs: list[list[_Session]] = []
    for session in sessions:
        like = [job for job in jobs if any(_same_job(session, other) for other in job)]
        joined = [session, *(other for job in like for other in job)]
        jobs = [*(job for job in jobs if job not in like), joined]
    return jobs


def _same_job(one: _Session, other: _Session) -> bool:
    """Whether two sessions may be of one job: at one time, or as several captures of the same ranks."""
    if _contradict(one.declared, other.declared):
        return False
    apart = one.apart_ns(other)
    if apart == 0:
        return True
    if one.ranks.isdisjoint(other.ranks):
        return False
    return apart <= ONE_JOB_NS or not one.parents.isdisjoint(other.parents)


def _refusal(jobs: Sequence[list[_Session]], root: Path) -> str:
    members = [sorted((s for session in job for s in session.sources), key=lambda s: s.label) for job in jobs]
    named = "; ".join(sorted(_named(job, [s for other in members if other is not job for s in other], root)
                             for job in members)[:_NAMED])  # fmt: skip
    more = f" and {len(jobs) - _NAMED} more" if len(jobs) > _NAMED else ""
    return f"{root}: holds profiles of {len(jobs)} different jobs or captures: {named}{more}; give the folder of one"


def _named(job: Sequence[RankSource], others: Sequence[RankSource], root: Path) -> str:
    """The folder that holds this job alone, else its ranks' folders; and what tells it from the others."""
    folder = Path(os.path.commonpath([source.path for source in job]))
    alone = not any(source.path.is_relative_to(folder) for source in others)
    name = label_of(folder, root) if alone else _listing([source.label for source in job])
    ranks = sorted({source.rank for source in job if source.rank_known})
    about = [f"rank{'s' if len(ranks) > 1 else ''} {_listing([str(r) for r in ranks])}" if ranks else "rank not named"]
    about += [f"world size {world}" for world in sorted({n for s in job for key, n in s.declared if key == WORLD_SIZE})]
    if captured := max(source.captured_ns for source in job):
        about.append(f"captured {datetime.fromtimestamp(captured // 10**9, timezone.utc):%Y-%m-%d %H:%M} UTC")
    return f"{name} ({', '.join(about)})"


def _listing(texts: Sequence[str]) -> str:
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
