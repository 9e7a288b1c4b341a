"""Arithmetic on time intervals: arrays of starts and ends (int64 ns) in, merged arrays and lengths out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hermes_advisor.extractors.evidence import Ints, total


@dataclass(frozen=True)
class Intervals:
    """Disjoint, sorted, non-empty intervals; build them with ``merged``."""

    starts: Ints
    ends: Ints

    @property
    def length(self) -> int:
        """Total covered time."""
        return total(self.ends - self.starts)

    def __len__(self) -> int:
        return len(self.starts)

    def clipped(self, low: int, high: int) -> Intervals:
        """What lies between two times."""
        return merged(np.clip(self.starts, low, high), np.clip(self.ends, low, high))

    def gaps(self) -> Intervals:
        """The uncovered time between the first start and the last end."""
        return Intervals(self.ends[:-1], self.starts[1:])

    def common(self, other: Intervals) -> Intervals:
        """What both cover."""
        low, high = np.searchsorted(other.ends, self.starts, "right"), np.searchsorted(other.starts, self.ends, "left")
        count = np.maximum(high - low, 0)
        mine = np.repeat(np.arange(len(self.starts)), count)
        others = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(low, count)
        return Intervals(
            np.maximum(self.starts[mine], other.starts[others]), np.minimum(self.ends[mine], other.ends[others])
        )

    def union(self, other: Intervals) -> Intervals:
        """What either covers."""
        return merged(np.concatenate([self.starts, other.starts]), np.concatenate([self.ends, other.ends]))


def merged(starts: Ints, ends: Ints) -> Intervals:
    """Overlapping and touching intervals joined, empty ones dropped."""
    keep = ends > starts
    starts, ends = starts[keep], ends[keep]
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    if len(starts) == 0:
        return Intervals(starts, reach)
    first = np.concatenate([[True], starts[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return Intervals(starts[first], reach[last])


NOTHING = merged(np.array([], dtype=np.int64), np.array([], dtype=np.int64))
"""No interval at all."""
