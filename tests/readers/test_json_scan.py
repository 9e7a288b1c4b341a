"""The outline of a JSON array: commas between elements, its end, depth; strings and escapes followed exactly."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import numpy as np
import pytest

from hermes_advisor.extractors.readers.json_scan import Scan, scan


def outline(text: str) -> Scan:
    return scan(np.frombuffer(text.encode(), np.uint8))


@pytest.mark.parametrize(
    ("text", "commas", "end"),
    [
        ("", [], -1),
        ("]", [], 0),
        ("1,2]", [1], 3),
        ('{"a":1,"b":[1,2]},{}]', [17], 20),
        ('"a,]",2]', [5], 7),
        (r'"a\",]",2]', [7], 9),
        (r'"a\\",2]', [5], 7),
        (r'"a\\\",2]",3]', [10], 12),
        ('"open,]', [], -1),
        ('"xy",\\', [4], -1),
        ("1,2],3]", [1], 3),
        ("1}, 2]", [], 1),
    ],
)
def test_commas_and_end(text: str, commas: list[int], end: int) -> None:
    found = outline(text)
    assert (found.commas.tolist(), found.end) == (commas, end)


def test_depth_between_positions() -> None:
    text = "1,[[2]],{},3]"
    found = outline(text)
    assert [found.depth_between(a, b) for a, b in ((0, 2), (2, 7), (8, 10), (10, 12))] == [0, 2, 1, 0]


def test_positions_within_strings() -> None:
    text = r'{"a\"b": 1}'
    within = outline(text).in_string(np.arange(len(text)))
    assert "".join(c for c, inside in zip(text, within, strict=True) if inside) == r'a\"b"'


def test_random_documents_are_split_where_the_decoder_splits_them() -> None:
    rng = random.Random(5)
    pieces = ["\\", '"', "{", "}", "[", "]", ",", "a", "\n", "é"]
    for _ in range(300):
        elements = [
            rng.choice(
                [rng.randrange(9), "".join(rng.choices(pieces, k=6)), {"k": ["".join(rng.choices(pieces, k=4))]}]
            )
            for _ in range(rng.randrange(1, 6))
        ]
        text = json.dumps(elements, ensure_ascii=rng.random() < 0.5)[1:]
        data = text.encode()
        found = outline(text)
        assert found.end == len(data) - 1
        bounds = [-1, *found.commas.tolist(), found.end]
        assert [json.loads(data[a + 1 : b]) for a, b in pairwise(bounds)] == elements
