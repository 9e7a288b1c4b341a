"""Measured facts as a table per kind, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hermes_advisor.engine.wording import clean, quantity
from hermes_advisor.facts.base import Fact


def facts_json(facts: Sequence[Fact]) -> str:
    """The facts with id, type, fields and source."""
    rows = [{"id": f.id, "type": f.kind, **f.model_dump(mode="json")} for f in facts]
    return json.dumps(rows, ensure_ascii=False, indent=2) + "\n"


def render_facts(facts: Sequence[Fact], console: Console) -> None:
    """One block per kind, one line per fact: its fields with units, then where it was read."""
    for kind, group in groupby(facts, key=lambda f: f.kind):
        members = list(group)
        console.print(Text(f"{kind} ({len(members)})", style="bold"))
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 2), pad_edge=False)
        table.add_column(ratio=1)
        for fact in members:
            line = Text()
            for name, value in fact.scalars().items():
                line.append(f"{name} ", style="dim")
                line.append(f"{quantity(name, value)}  ")
            if fact.source:
                line.append(f"← {clean(fact.source.file, 300)} {clean(fact.source.locator)}", style="dim")
            if console.is_terminal:
                table.add_row(line)
            else:
                console.print(Text("  ") + line, soft_wrap=True)  # one line a fact, for grep
        if console.is_terminal:
            console.print(table)
