"""communication_matrix.json → ``comm_links``: bytes and time of each link between cards, by kind of operator and group.

Two layouts are met. Newer files hold, per kind and group, single operators (``-top1``, ``-middle``, ``-bottom1`` …) and
the ``-total`` over *all* operators: the total is taken, the samples repeat parts of it. Where the total is missing, the
samples are taken once per operator and link. Older files hold one entry per operator and ``Total Op Info`` over all of
them: the operators are summed per kind, the total is left out. Either way each byte is counted once.
``src`` and ``dst`` are the indices within the group, as written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hermes_advisor.extractors.readers.communication import operator_kind, operators, size_and_time
from hermes_advisor.extractors.readers.csv_frames import frame
from hermes_advisor.extractors.readers.files import Note, read_json

_SAMPLE = re.compile(r"^(?P<kind>.+)-(?P<which>total|middle|top\d+|bottom\d+)$")
_INT64_MAX = 2**63 - 1
_PAIR = re.compile(r"^(\d{1,9})-(\d{1,9})$")

_Key = tuple[int, str, str, str]  # step, traffic, kind, group
_Link = tuple[int, int, str]  # src, dst, transport


def read_communication_matrix(path: Path, note: Note) -> pd.DataFrame | None:
    """Read the links of one rank; None when the file holds none."""
    totals: dict[_Key, dict[_Link, list[int]]] = {}
    others: dict[_Key, dict[_Link, list[int]]] = {}
    seen: set[tuple[_Key, _Link, str]] = set()
    sampled: set[_Key] = set()
    bad = unreadable = 0
    for step, traffic, entry, links in operators(read_json(path)):
        label, _, group = entry.rpartition("@") if "@" in entry else (entry, "", "")
        sample = _SAMPLE.match(label)
        key = (step, traffic, sample["kind"] if sample else operator_kind(label), group)
        is_total = bool(sample and sample["which"] == "total")
        for pair, record in links.items() if isinstance(links, dict) else ():
            link = _link(pair, record)
            if link is None:
                bad += 1
                continue
            size, transit = size_and_time(record)
            if size < 0 or transit < 0:
                unreadable += 1
                continue
            if sample and not is_total:
                sampled.add(key)
                instance = (key, link, str(record.get("Op Name")))
                if instance in seen:
                    continue
                seen.add(instance)
            sums = (totals if is_total else others).setdefault(key, {}).setdefault(link, [0, 0])
            sums[0] = min(sums[0] + size, _INT64_MAX)
            sums[1] = min(sums[1] + transit, _INT64_MAX)
    if bad:
        note("unreadable_links", "warning", "left out: no pair of cards or no transport is written", count=bad)
    if unreadable:
        detail = "links left out: their size or time is missing or negative"
        note("unreadable_numbers", "warning", detail, count=unreadable)
    incomplete = sampled - totals.keys()
    if incomplete:
        detail = "no total is written for a kind of operator, so only its sampled operators count"
        note("sampled_links", "warning", detail, count=len(incomplete))
    table = _frame(others | totals)
    if table is None:
        note("no_links", "info", "holds no links between cards")
    return table


def _link(pair: str, record: Any) -> _Link | None:
    cards = _PAIR.match(pair)
    transport = record.get("Transport Type") if isinstance(record, dict) else None
    if cards is None or not isinstance(transport, str):
        return None
    return int(cards[1]), int(cards[2]), transport


def _frame(links: dict[_Key, dict[_Link, list[int]]]) -> pd.DataFrame | None:
    rows = [(*key, *link, *sums) for key, found in links.items() for link, sums in found.items()]
    if not rows:
        return None
    step, traffic, kind, group, src, dst, transport, size, transit = zip(*rows, strict=True)
    texts = {"traffic": traffic, "kind": kind, "group": group, "transport": transport}
    numbers = {"step": step, "src": src, "dst": dst, "size_bytes": size, "transit_ns": transit}
    columns = {name: np.array(column, dtype=object) for name, column in texts.items()}
    columns |= {name: np.array(column, dtype=np.int64) for name, column in numbers.items()}
    order = ("step", "traffic", "kind", "group", "src", "dst", "transport", "size_bytes", "transit_ns")
    return frame({name: columns[name] for name in order})
