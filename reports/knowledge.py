"""The knowledge base and its vocabulary as lists for the terminal."""

from __future__ import annotations

from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hermes_advisor.engine.compile import PLACEHOLDER
from hermes_advisor.engine.loader import KnowledgeBase
from hermes_advisor.engine.wording import clean
from hermes_advisor.facts.base import scalar_types
from hermes_advisor.facts.vocabulary import CAUSES, FACT_TYPES


def render_rules(knowledge: KnowledgeBase, console: Console, lang: Literal["en", "zh"] = "en") -> None:
    """Every rule: id, status, what it concludes, and its title."""
    digest = knowledge.digest[7:19]
    console.print(Text(f"{knowledge.name} {knowledge.version} ({digest}): {len(knowledge.rules)} rules", style="bold"))
    for line in knowledge.overlay:
        console.print(Text(f"overlay: {line}", style="yellow"))
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for name in ("id", "version", "status", "concludes", "title"):
        table.add_column(name, no_wrap=name in ("id", "version", "status"))
    for _, rule in sorted(knowledge.rules.items(), key=lambda i: (i[1].kind != "symptom", i[1].kind != "cause", i[0])):
        concludes = rule.case.cause if rule.case else f"{rule.kind} {rule.derives_name}"
        title = PLACEHOLDER.sub("…", getattr(rule.case.text, lang).title) if rule.case else rule.slug
        table.add_row(rule.id, rule.version, rule.status, clean(concludes), clean(title))
    console.print(table)


def render_fact_kinds(console: Console) -> None:
    """Every fact kind with what it means, its matchable fields and their types."""
    for kind, model in FACT_TYPES.items():
        console.print(Text(kind, style="bold"))
        console.print(Text(f"  {' '.join((model.__doc__ or '').split())}", style="dim"))
        for name, found in scalar_types(model).items():
            info = model.model_fields[name]
            healthy = f" (healthy: {info.examples[0]})" if info.examples and info.examples[0] not in (None, "") else ""
            console.print(
                Text(f"  {name}: {found.__name__}{healthy}" + (f" – {info.description}" if info.description else ""))
            )
        if model.collect:
            console.print(Text(f"  collect: {model.collect}", style="dim"))


def render_causes(console: Console) -> None:
    """The causes that cases may name."""
    for cause in sorted(CAUSES):
        console.print(Text(cause))
