"""CSV blocks → one frame: converts block by block (bounded memory), leaves unreadable rows out and counts them.

In: a path, the wanted columns, and a function from a block of texts to numpy columns and a mask of good rows.
Out: a frame, or None when no row is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hermes_advisor.extractors.readers.cells import Mask
from hermes_advisor.extractors.readers.csv_rows import Block, Column, read_blocks
from hermes_advisor.extractors.readers.files import Note

Array = npt.NDArray[Any]
Convert = Callable[[Block], tuple[dict[str, Array], Mask]]


def read_frame(path: Path, columns: Sequence[Column], note: Note, convert: Convert) -> pd.DataFrame | None:
    """Read ``path`` into a frame whose ``row`` column is the 1-based data row."""
    parts: list[dict[str, Array]] = []
    rows = bad = first_bad = 0
    for block in read_blocks(path, columns, note):
        made, good = convert(block)
        made["row"] = np.arange(block.first_row, block.first_row + block.count, dtype=np.int64)
        rows += block.count
        if not good.all():
            first_bad = first_bad or block.first_row + int(np.argmin(good))
            bad += int((~good).sum())
            made = {name: column[good] for name, column in made.items()}
        parts.append(made)
    if bad:
        detail = f"left out: a needed cell holds no number (first: data row {first_bad})"
        note("unreadable_rows", "warning", detail, count=bad)
    if not rows:
        note("no_rows", "warning", "holds a header and no rows")
    if bad == rows:
        return None
    return frame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def frame(columns: Mapping[str, Array]) -> pd.DataFrame:
    """A frame over the given columns; texts stay objects on every pandas version."""
    return pd.DataFrame({k: pd.Series(v, dtype=v.dtype, copy=False) for k, v in columns.items()}, copy=False)


def texts(values: Sequence[str], *, empty: Sequence[str] = ("N/A",)) -> Array:
    """Stripped texts; those in ``empty`` become ``""``."""
    known: dict[str, str] = {}
    for value in set(values):
        stripped = value.strip()
        known[value] = "" if stripped in empty else stripped
    return np.array([known[v] for v in values], dtype=object)
