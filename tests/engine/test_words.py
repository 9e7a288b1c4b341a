"""Units to words, untrusted text, strict YAML and expressions."""

from __future__ import annotations

import pytest

from hermes_advisor.engine import operands, yamlio
from hermes_advisor.engine.operands import Kind, OperandError
from hermes_advisor.engine.wording import clean, fill, quantity, ranges


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("free_us", 12.34, "12.3 µs"), ("free_us", 1234.5, "1.23 ms"), ("free_us", 84846.5, "84.8 ms"),
        ("free_us", 2_500_000.0, "2.50 s"), ("free_ratio", 0.1049, "10.5 %"), ("size_bytes", 12_810_000, "12.81 MB"),
        ("size_bytes", 512, "512 B"), ("bandwidth_gb_per_s", 18.69, "18.7 GB/s"), ("max_mhz", 1800.0, "1800 MHz"),
        ("op_count", 3, "3"), ("is_set", True, "yes"), ("ranks", (3, 2, 7, 0, 1), "0-3, 7"), ("level", "Level1", "Level1"),
    ],
)  # fmt: skip
def test_quantities(name: str, value: object, words: str) -> None:
    assert quantity(name, value) == words


def test_ranges() -> None:
    assert ranges([]) == ""
    assert ranges([2, 3]) == "2, 3"
    assert ranges([5, 1, 2, 3, 9, 8]) == "1-3, 5, 8, 9"


@pytest.mark.parametrize("text", ["a\x1b[31mb", "a\x07b", "a\u202eb", "a\u2028b", "a\x00b", "a\ud800b", "a\nb\r"])
def test_control_characters_do_not_survive(text: str) -> None:
    assert not set(clean(text)) & {"\x1b", "\x07", "\u202e", "\u2028", "\x00", "\n", "\r"}
    clean(text).encode("utf-8")


def test_long_text_is_cut() -> None:
    assert len(clean("x" * 10_000)) == 200


def test_a_value_that_was_not_measured_reads_so() -> None:
    assert (
        fill("took {a.free_us} of {a.x}", lambda alias, name: 5000.0 if name == "free_us" else None)
        == "took 5.00 ms of n/a"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [("yes", "yes"), ("on", "on"), ("2026-12-01", "2026-12-01"), ("012", 12), ("1e-5", 1e-5), ("1_000", "1_000"),
     ("0x1F", "0x1F"), ("true", True), ("~", None), ('"5"', "5"), ("-3", -3), (".5", 0.5), ("1:30", "1:30")],
)  # fmt: skip
def test_yaml_scalars_are_those_of_1_2(text: str, value: object) -> None:
    data = yamlio.parse(f"k: {text}\n", "f").data
    assert data["k"] == value
    assert type(data["k"]) is type(value)


def test_positions_are_those_of_keys_and_items() -> None:
    doc = yamlio.parse("a:\n  b: [1,\n   2]\nc: {d: 3}\n", "f")
    assert (doc.at(("a", "b")), doc.at(("a", "b", 1)), doc.at(("c", "d")), doc.at(("c", "x"))) == (
        (2, 3),
        (3, 4),
        (4, 5),
        (4, 1),
    )


@pytest.mark.parametrize("text", ["- " * 5000, "? " * 5000, "[" * 9000, "{a: " * 9000, "&a [*a]", "a: b: c", "\t", "%YAML 9\n---\n",
                                  "a: !!python/object/apply:os.system [ls]", "<<: {a: 1}", "--- 1\n--- 2\n", "\x00"])  # fmt: skip
def test_hostile_yaml_is_a_problem_not_a_crash(text: str) -> None:
    doc = yamlio.parse(text, "f")
    assert doc.data is None or "<<" in doc.data
    assert doc.problems or "<<" in doc.data


def test_a_large_file_is_refused() -> None:
    assert [p.code for p in yamlio.parse("a: " + "x" * yamlio.MAX_BYTES, "f").problems] == ["yaml-size"]


FIELDS = {
    "a": operands.kinds_of({"free_us": float, "op_count": int, "free_ratio": float, "name": str, "size_bytes": int})
}
PARAMS = {"limit": Kind(float, "us"), "share": Kind(float, "ratio")}


@pytest.mark.parametrize(
    ("raw", "unit"),
    [
        ("$a.free_us", "us"), ({"mul": ["$share", "$a.free_us"]}, "us"), ({"add": ["$limit", "$a.free_us"]}, "us"),
        ({"div": ["$a.free_us", "$limit"]}, "ratio"), ({"div": ["$a.free_us", "$a.op_count"]}, "us"),
        ({"mul": [2, "$share"]}, "ratio"), ({"div": ["$a.op_count", "$a.op_count"]}, "ratio"),
        ({"div": ["$a.size_bytes", "$a.op_count"]}, "bytes"), ({"mul": ["$a.op_count", "$a.free_us"]}, "us"), ({"max": ["$limit", 0]}, "us"), (5, None),
    ],
)  # fmt: skip
def test_units_of_expressions(raw: object, unit: str | None) -> None:
    assert operands.kind_of(operands.parse(raw, operands.GAIN_OPS), PARAMS, FIELDS).unit == unit


@pytest.mark.parametrize(
    "raw",
    [{"add": ["$limit", "$share"]}, {"mul": ["$limit", "$a.free_us"]}, {"div": ["$a.size_bytes", "$limit"]},
     {"mul": ["$a.name", 2]}, "$nope", "$a.nope", "$b.x", {"pow": [1, 2]}, {"sub": [1, 2, 3]}, {"add": [1]}, [1], "$a.b.c", "$"],
)  # fmt: skip
def test_expressions_that_make_no_sense(raw: object) -> None:
    with pytest.raises(OperandError):
        operands.kind_of(operands.parse(raw, operands.GAIN_OPS), PARAMS, FIELDS)


def test_values_of_expressions() -> None:
    bound = {("a", "x"): 10.0, ("a", "y"): 4}

    def value(raw: object) -> object:
        return operands.evaluate(operands.parse(raw, operands.GAIN_OPS), {"k": 0.5}, lambda a, f: bound.get((a, f)))

    assert value({"sub": ["$a.x", {"mul": ["$k", "$a.y"]}]}) == 8.0
    assert value({"div": ["$a.x", 0]}) is None
    assert value({"add": ["$a.x", "$a.missing"]}) is None
    assert value({"min": ["$a.x", "$a.y", 7]}) == 4
