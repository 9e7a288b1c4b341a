"""The guard-rails of engine/matching/README.md are all there: in the code by number, and each test it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes_advisor.engine import matching

PACKAGE = Path(str(matching.__file__)).parent
README = (PACKAGE / "README.md").read_text(encoding="utf-8")
ROWS = [line for line in README.splitlines() if re.match(r"\| G\d+ ", line)]


def test_all_fourteen_are_listed() -> None:
    assert [row.split()[1] for row in ROWS] == [f"G{n}" for n in range(1, 15)]


@pytest.mark.parametrize("number", range(1, 15))
def test_the_code_says_where(number: int) -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    assert re.search(rf"G{number}\b", sources)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split()[1])
def test_the_tests_it_names_exist(row: str) -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", row)
    assert named
    for file, name in named:
        assert f"def {name}(" in (Path(__file__).parent / file).read_text(encoding="utf-8")
