"""Exact numbers out of text cells: decimal strings → scaled int64 without going through a float.

In: lists of cell texts as the profilers write them (trailing tab, ``N/A``, ``1e-05``, empty). Out: numpy columns and a
mask of the cells that held a number. Unix times in microseconds have 16 digits before the point; a double would round
them to a quarter of a microsecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

IntColumn = npt.NDArray[np.int64]
FloatColumn = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_LONGEST = 40  # no number is written longer; a longer cell is junk and would widen the whole matrix
_DIGITS = 19  # as many as uint64 holds whatever they are
_INT64_MAX = 2**63 - 1
_PADDING = np.frombuffer(b"\0\t\r ", dtype=np.uint8)


def scaled_int(values: Sequence[str], decimals: int) -> tuple[IntColumn, Mask]:
    """``value × 10**decimals`` of each cell, rounded to nearest (halves away from 0), and which cells are numbers."""
    count = len(values)
    if not count:
        return np.zeros(0, np.int64), np.zeros(0, np.bool_)
    widths = set(map(len, values))
    width = max(widths)
    if width > _LONGEST:
        values = [v if len(v) <= _LONGEST else "" for v in values]
        width, widths = _LONGEST, {0, _LONGEST}
    joined = "".join(values) if len(widths) == 1 else ""
    if width == 0:
        return np.zeros(count, np.int64), np.zeros(count, np.bool_)
    if joined.isascii() and joined:
        matrix = np.frombuffer(joined.encode("ascii"), np.uint8).reshape(count, width)
        exact = _same_shape(matrix, decimals)
        if exact is not None:
            return exact
    elif all(map(str.isascii, values)):
        matrix = np.array(values, dtype=f"S{width}").view(np.uint8).reshape(count, width)
    else:
        return _one_by_one(values, np.zeros(count, np.int64), np.zeros(count, np.bool_), decimals)
    numbers, valid = _any_shape(matrix, decimals)
    return _one_by_one(values, numbers, valid, decimals)


def ns_from_us(values: Sequence[str]) -> tuple[IntColumn, Mask]:
    """Microseconds as decimal text → nanoseconds."""
    return scaled_int(values, 3)


def integers(values: Sequence[str], *, missing: int = -1) -> IntColumn:
    """Whole numbers; ``missing`` where the cell holds none."""
    numbers, valid = scaled_int(values, 0)
    numbers[~valid] = missing
    return numbers


def floats(values: Sequence[str]) -> FloatColumn:
    """Float64 with NaN for a cell that holds no finite number."""
    # Ratios have three decimals: a column holds few different texts, and each is read once.
    known = {value: _float(value) for value in set(values)}
    column = np.array([known[value] for value in values], dtype=np.float64)
    column[~np.isfinite(column)] = np.nan
    return column


def decimal_text(value: Any) -> str:
    """The text of a JSON number read with floats kept as text; ``""`` for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def scaled(value: Any, decimals: int, *, missing: int = 0) -> int:
    """One JSON number (or its text) as a scaled integer."""
    number = _decimal(decimal_text(value), decimals)
    return missing if number is None else number


def _same_shape(matrix: npt.NDArray[np.uint8], decimals: int) -> tuple[IntColumn, Mask] | None:
    # The common case: every cell is `dddd.ddd` (or with a tab behind) with the point in the same place.
    first = matrix[0]
    padding = np.isin(first, _PADDING)
    end = int(np.argmax(padding)) if padding.any() else len(first)
    dots = np.flatnonzero(first[:end] == 46)
    point = int(dots[0]) if len(dots) else end
    fraction = max(end - point - 1, 0)
    if point == 0 or fraction > decimals or point + decimals > _DIGITS or len(dots) > 1:
        return None
    if end < len(first) and not np.isin(matrix[:, end:], _PADDING).all():
        return None
    # Column by column: one pass over short rows of bytes each, instead of a matrix eight times the size.
    columns = np.ascontiguousarray(matrix[:, :end].T)
    if point < end and (columns[point] != 46).any():
        return None
    value = np.zeros(len(matrix), np.uint64)
    for place in range(end):
        if place != point:
            digits = columns[place] - np.uint8(48)
            if (digits > 9).any():
                return None
            value *= np.uint64(10)
            value += digits
    value *= np.uint64(10 ** (decimals - fraction))
    return _fitting(value, np.ones(len(matrix), np.bool_))


def _any_shape(matrix: npt.NDArray[np.uint8], decimals: int) -> tuple[IntColumn, Mask]:
    count, width = matrix.shape
    padding = np.isin(matrix, _PADDING)
    end = np.where(padding.any(axis=1), padding.argmax(axis=1), width)
    dots = matrix == 46
    point = np.where(dots.any(axis=1), dots.argmax(axis=1), end)
    digits = matrix - np.uint8(48)
    is_digit = digits <= 9
    valid = (
        (is_digit.sum(axis=1) + dots.sum(axis=1) == end)
        & (padding.sum(axis=1) == width - end)
        & (dots.sum(axis=1) <= 1)
        & (point > 0)
        & (point + decimals <= _DIGITS)
    )
    value = np.zeros(count, np.uint64)
    last = point + decimals
    for c in range(width):
        taken = is_digit[:, c] & (c <= last) & valid
        value[taken] = value[taken] * np.uint64(10) + digits[taken, c]
    written = np.clip(end - point - 1, 0, decimals)
    value *= np.array([10**k for k in range(decimals + 1)], np.uint64)[decimals - written]
    next_digit = digits[np.arange(count), np.minimum(last + 1, width - 1)]
    value[valid & (last + 1 < end) & (next_digit >= 5)] += np.uint64(1)
    return _fitting(value, valid)


def _fitting(value: npt.NDArray[np.uint64], valid: Mask) -> tuple[IntColumn, Mask]:
    valid = valid & (value <= np.uint64(_INT64_MAX))
    return np.where(valid, value, np.uint64(0)).astype(np.int64), valid


def _one_by_one(values: Sequence[str], numbers: IntColumn, valid: Mask, decimals: int) -> tuple[IntColumn, Mask]:
    known: dict[str, int | None] = {}
    for i in np.flatnonzero(~valid).tolist():
        cell = values[i]
        if cell not in known:
            known[cell] = _decimal(cell, decimals)
        number = known[cell]
        if number is not None:
            numbers[i], valid[i] = number, True
    return numbers, valid


def _decimal(cell: str, decimals: int) -> int | None:
    text = cell.strip().strip('"').strip()
    if not text or len(text) > _LONGEST:
        return None
    try:
        value = Decimal(text)
        # The exponent is looked at first: scaling 1e999999 would make a million digits.
        if not value.is_finite() or value.adjusted() > _DIGITS:
            return None
        number = int(value.scaleb(decimals).to_integral_value(ROUND_HALF_UP))
    except ArithmeticError:
        return None
    return number if -_INT64_MAX <= number <= _INT64_MAX else None


def _float(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
