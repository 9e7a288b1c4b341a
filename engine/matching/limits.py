"""Limits of durable_rules 2.0.28 and how single values are written for it: values in, JSON text out.

``G<n>`` in comments of this package is guard-rail n of ``engine/matching/README.md``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from hermes_advisor.engine.matching.interface import MatcherFailure, Scalar

MAX_INT: Final = 2**62
"""G4: an integer beyond, or a sum or product that could get there, is near the int64 overflow of the C code."""
MAX_EXACT_INT: Final = 2**53
"""G4: an integer compared with a float becomes a float inside; up to here that loses nothing."""
MAX_FLOAT: Final = 1e300
"""Larger results could become infinite and then NaN, for which ``!=`` holds inside."""
MAX_FACTS: Final = 1_000_000
"""G3: identity inside is a 32-bit FNV-1a hash; f000000000 … f000999999, boot and sid-0 are free of collisions."""
MAX_PATTERNS: Final = 12
"""G7: per conjunction; 17 patterns end in error 304."""
MAX_PATTERNS_PER_TYPE: Final = 48
"""G7: per shard and fact type; over 64 alpha tests passed by one fact end in error 303, 257 equal patterns in 108."""
MAX_PATTERNS_PER_SHARD: Final = 384
"""G7: bounds the tests under the root; 512 distinct tests under one node loop for ever."""
MAX_PROPERTIES: Final = 240
"""G7: per fact; 253 end in error 302."""
MAX_JOINS: Final = 28
"""Per pattern: a sequence of join tests holds fewer than 32 entries, the frame and the closing test take three."""
FIRST_SYMBOL: Final = 2
"""G4: a boolean equals 1 inside; here no text and no boolean ever does."""


class Unsupported(MatcherFailure):
    """This program is outside what durable_rules does right; other programs may still be inside."""


def plain_decimal(value: float) -> str:
    """G4: the shortest digits that give the same float, never with an exponent, never a negative zero."""
    digits = repr(float(value) + 0.0)
    if "e" not in digits:
        return digits
    digits = format(Decimal(digits), "f")
    # Without a point it would be read as an integer, which does not join with a float.
    return digits if "." in digits else digits + ".0"


def fnv1a_32(text: str) -> int:
    """G3: the hash by which durable_rules tells ids and property names apart."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def fact_id(serial: int) -> str:
    """G3: ids whose hashes were checked; hashes of contents lost 3 of 100,000 facts."""
    return f"f{serial:09d}"


class Symbols:
    """G4: texts and booleans become dense numbers, so that no text ever meets the JSON parser of durable_rules.

    That parser keeps escapes as they stand and measures texts in bytes, and a text compares with numbers inside.
    """

    def __init__(self) -> None:
        """No symbol is known yet; numbers follow the order of first use."""
        self._numbers: dict[Scalar, int] = {}

    def number(self, value: Scalar) -> int:
        """The number of a text or boolean."""
        return self._numbers.setdefault(value, FIRST_SYMBOL + len(self._numbers))
