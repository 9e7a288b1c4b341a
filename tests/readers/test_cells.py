"""Exact numbers out of text: no cell goes through a double on its way to nanoseconds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hermes_advisor.extractors.readers.cells import floats, integers, ns_from_us, scaled, scaled_int

BAD = None

# cell → nanoseconds from microseconds
CELLS: list[tuple[str, int | None]] = [
    ("1764246877073569.640", 1764246877073569640),
    ("1764246877073569.640\t", 1764246877073569640),
    ("1764246877073569.640\t\t", 1764246877073569640),
    (' "1764246877073569.640" ', 1764246877073569640),
    ("1695115378713661", 1695115378713661000),
    ("1695115378715400.2", 1695115378715400200),
    ("1.69512E+15", 1695120000000000000),
    ("231290.09999999995", 231290100),
    ("0.0004", 0),
    ("0.0005", 1),
    ("1e-05", 0),
    ("4e-3", 4),
    ("0", 0),
    (".5", 500),
    ("5.", 5000),
    ("-0.5", -500),
    ("9223372036854775.807", 9223372036854775807),
    ("9223372036854775.808", BAD),
    ("99999999999999999999999", BAD),
    ("18446744073709551.617", BAD),  # one more than two to the 64th: it must not wrap around to one
    ("1e999999999", BAD),
    ("1e-999999999", 0),
    ("inf", BAD),
    ("-Infinity", BAD),
    ("nan", BAD),
    ("N/A", BAD),
    ("", BAD),
    (" ", BAD),
    ("1.2.3", BAD),
    ("1 2", BAD),
    ("12a", BAD),
    ("0x10", BAD),
    ("１２μs", BAD),
    ("7" * 50, BAD),
]


@pytest.mark.parametrize(("cell", "expected"), CELLS)
def test_one_cell(cell: str, expected: int | None) -> None:
    numbers, valid = ns_from_us([cell])
    assert (numbers[0] if valid[0] else None) == expected


def test_a_mixed_column_gives_what_its_cells_give_alone() -> None:
    numbers, valid = ns_from_us([cell for cell, _ in CELLS])
    assert [int(n) if v else None for n, v in zip(numbers, valid, strict=True)] == [n for _, n in CELLS]


@pytest.mark.parametrize("suffix", ["", "\t", "\r"])
def test_a_column_of_one_shape_keeps_every_nanosecond(suffix: str) -> None:
    expected = [1736412474713010000 + 7 * i for i in range(1000)]
    numbers, valid = ns_from_us([f"{n // 1000}.{n % 1000:03d}{suffix}" for n in expected])
    assert valid.all()
    assert numbers.tolist() == expected


def test_random_decimals_agree_with_integer_arithmetic() -> None:
    rng = random.Random(1)
    expected = [rng.randrange(10 ** rng.randrange(1, 18)) for _ in range(2000)]
    numbers, valid = ns_from_us([f"{n // 1000}.{n % 1000:03d}" for n in expected])
    assert valid.all()
    assert numbers.tolist() == expected


def test_one_cell_out_of_shape_does_not_shift_the_others() -> None:
    numbers, valid = ns_from_us(["1234.567", "12345.67", "123.4567", "N/A45678"])
    assert valid.tolist() == [True, True, True, False]
    assert numbers[:3].tolist() == [1234567, 12345670, 123457]


def test_an_empty_column() -> None:
    numbers, valid = scaled_int([], 3)
    assert (len(numbers), len(valid)) == (0, 0)


def test_integers_have_a_value_for_missing_cells() -> None:
    assert integers(["48", "0", "N/A", "", "4294967295"]).tolist() == [48, 0, -1, -1, 4294967295]


def test_floats_are_nan_where_no_finite_number_stands() -> None:
    column = floats(["0.052", "1e-05", "N/A", "", "inf", "-1.5", "1e999"])
    assert column[[0, 1, 5]].tolist() == [0.052, 1e-05, -1.5]
    assert np.isnan(column[[2, 3, 4, 6]]).all()


def test_numbers_of_json_with_floats_kept_as_text() -> None:
    assert scaled("8.388608", 6) == 8388608
    assert scaled("28.647232000000002", 6) == 28647232
    assert scaled("4e-05", 6) == 40
    assert scaled(20, 6) == 20_000_000
    assert [scaled(value, 6, missing=-1) for value in (None, True, [], {}, "x", 10**40)] == [-1] * 6
