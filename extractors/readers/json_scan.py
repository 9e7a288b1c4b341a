"""Where the elements of a JSON array end, found without decoding it.

In: bytes that begin at an element. Out: the commas between elements, the end of the array, and how deep each element
nests. Strings and escapes are followed exactly, so any order of keys and any white space will do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_QUOTE, _BACKSLASH, _COMMA = 34, 92, 44
_STEP = np.zeros(256, np.int8)
_STEP[[ord("{"), ord("[")]] = 1
_STEP[[ord("}"), ord("]")]] = -1
_STRUCTURAL = _STEP != 0
_STRUCTURAL[_COMMA] = True

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Scan:
    """The outline of a piece of an array, from its first byte (the start of an element) on."""

    commas: Positions
    """Positions of the commas between elements."""
    end: int
    """Position of the bracket that closes the array; -1 when it is not in the piece."""
    quotes: Positions
    """Positions of the quotes that open or close strings."""
    structural: Positions
    depth: npt.NDArray[np.int64]
    """Depth after each structural byte; 0 between elements."""

    def in_string(self, positions: Positions) -> npt.NDArray[np.bool_]:
        """Whether each position lies within a string."""
        return np.asarray(np.searchsorted(self.quotes, positions) & 1, dtype=np.bool_)

    def depth_between(self, start: int, stop: int) -> int:
        """How deep the bytes from ``start`` to ``stop`` nest."""
        first, last = np.searchsorted(self.structural, (start, stop))
        return int(self.depth[first:last].max(initial=0))


def scan(data: npt.NDArray[np.uint8]) -> Scan:
    """Outline ``data``, which begins at an element of an array."""
    quotes = _quotes(data)
    structural = np.flatnonzero(_STRUCTURAL[data])
    outside = (np.searchsorted(quotes, structural) & 1) == 0
    structural = structural[outside]
    kinds = data[structural]
    depth = np.cumsum(_STEP[kinds], dtype=np.int64)
    closed = np.flatnonzero(depth < 0)
    end = int(structural[closed[0]]) if len(closed) else -1
    if end >= 0:
        structural, kinds, depth = structural[: closed[0]], kinds[: closed[0]], depth[: closed[0]]
    return Scan(structural[(kinds == _COMMA) & (depth == 0)], end, quotes, structural, depth)


def _quotes(data: npt.NDArray[np.uint8]) -> Positions:
    """Positions of the quotes that are not escaped, i.e. follow an even number of backslashes."""
    quotes = np.flatnonzero(data == _QUOTE)
    if not len(quotes):
        return quotes
    suspects = np.flatnonzero((data[quotes - 1] == _BACKSLASH) & (quotes > 0))
    if not len(suspects):
        return quotes
    slashes = np.flatnonzero(data == _BACKSLASH)
    starts_run = np.ones(len(slashes), np.bool_)
    starts_run[1:] = np.diff(slashes) != 1
    run_start = np.maximum.accumulate(np.where(starts_run, slashes, 0))
    before = quotes[suspects] - 1
    run_length = before - run_start[np.searchsorted(slashes, before)] + 1
    return np.delete(quotes, suspects[run_length % 2 == 1])
