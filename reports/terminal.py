"""The diagnosis on a terminal: a ``Diagnosis`` in, lines out; fits 80 columns, plain when not a terminal.

Settings to copy stand on lines of their own, never wrapped or cut.
"""

from __future__ import annotations

from collections import defaultdict

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from hermes_advisor.engine.explain import Node
from hermes_advisor.engine.result import Diagnosis, Finding, Lang, NotEvaluated
from hermes_advisor.engine.wording import clean, quantity, ranges

SHOWN = 6
"""Lines of a secondary list that are shown without ``--verbose``."""
_COLOURS = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "cyan", "info": "blue"}
_NODE_STYLES = {
    "finding": "bold", "rule": "cyan", "fact": "", "test": "green", "absent": "magenta", "aggregate": "green",
    "value": "yellow", "source": "dim", "evidence": "dim", "note": "", "remedy": "bold green",
}  # fmt: skip
_WORDS = {
    "en": {
        "none": "Nothing found: no case of the knowledge base holds on this profile.",
        "win": "could win {sign} {time} per step ({share})", "nowin": "no time of its own to win", "whole": "whole job",
        "rank": "rank {ranks}", "ranks": "ranks {ranks}", "confidence": "confidence {value}",
        "do": "do", "check": "check", "because": "follows from",
        "overlap": "Wins overlap: what one finding wins may be part of what another wins.",
        "most": "Most of the step is not explained by these findings: {symptom} takes {share} of it, see below.",
        "unexplained": "Seen, but no finding explains it:",
        "skipped": "Not evaluated; to know more:", "on": "on {where}",
        "more": "… and {count} more (-v shows all)",
        "health": "About the input:",
        "why": "Why, down to file and row:\n  hermes diagnose … -f json -o result.json; hermes explain result.json 1",
        "step": "step {steps}", "steps": "steps {steps}", "nosteps": "no step marks",
        "of": "of", "least": "of at least",
        "step_time": "step time {time}", "checked": "{count} cases were checked and do not hold.",
        "hides": "does not record",
    },
    "zh": {
        "none": "未发现问题：知识库中没有案例在该性能数据上成立。",
        "win": "每步可节省 {sign} {time}（{share}）", "nowin": "本身没有可节省的时间", "whole": "整个作业",
        "rank": "rank {ranks}", "ranks": "rank {ranks}", "confidence": "置信度 {value}",
        "do": "措施", "check": "验证", "because": "源于",
        "overlap": "收益可能重叠：一条诊断的收益可能已包含在另一条中。",
        "most": "以下诊断未能解释单步的大部分时间：{symptom} 占 {share}，见下文。",
        "unexplained": "已观察到，但尚无诊断能解释：",
        "skipped": "未评估；若要进一步了解：", "on": "{where}",
        "more": "……另有 {count} 项（-v 显示全部）",
        "health": "输入数据说明：",
        "why": "查看推理过程，直至文件与行：\n"
        "  hermes diagnose … -f json -o result.json; hermes explain result.json 1 --lang zh",
        "step": "step {steps}", "steps": "step {steps}", "nosteps": "无 step 标记", "of": "，共", "least": "，至少共",
        "step_time": "单步耗时 {time}", "checked": "另有 {count} 个案例已检查且不成立。",
        "hides": "未记录",
    },
}  # fmt: skip


def render(diagnosis: Diagnosis, console: Console, lang: Lang = "en", *, verbose: bool = False) -> None:
    """Print the whole report."""
    _Report(diagnosis, console, lang, verbose).print()


def render_tree(root: Node, console: Console) -> None:
    """Print an explanation."""
    tree = Tree(_text(root), guide_style="dim")
    _grow(tree, root)
    console.print(tree)


def _grow(tree: Tree, node: Node) -> None:
    for child in node.children:
        _grow(tree.add(_text(child)), child)


def _text(node: Node) -> Text:
    return Text(clean(node.text, 2000), style=_NODE_STYLES[node.kind], overflow="fold")


class _Report:
    def __init__(self, diagnosis: Diagnosis, console: Console, lang: Lang, verbose: bool):
        self.diagnosis, self.console, self.lang, self.verbose = diagnosis, console, lang, verbose
        self.words = _WORDS[lang]

    def line(self, text: Text | str, indent: int = 0, style: str = "", hang: int = 0) -> None:
        """Wrap by words, fold what has none (Chinese), and leave no blanks at the ends of lines."""
        found = Text(text, style=style) if isinstance(text, str) else text
        lines = found.wrap(self.console, max(20, self.console.width - indent - hang), overflow="fold")
        for number, part in enumerate(lines):
            part.rstrip()
            self.console.print(Text(" " * (indent + (hang if number else 0))) + part, soft_wrap=True)

    def where(self, ranks: list[int] | tuple[int, ...]) -> str:
        return self.words["rank" if len(ranks) == 1 else "ranks"].format(ranks=ranges(ranks))

    def print(self) -> None:
        diagnosis, words = self.diagnosis, self.words
        self.header()
        if not diagnosis.findings:
            self.line(words["none"], style="green")
        self.most_unexplained()
        for number, finding in enumerate(diagnosis.findings, 1):
            self.finding(number, finding)
        if len(diagnosis.findings) > 1:
            self.line(words["overlap"], style="dim")
        self.line(words["checked"].format(count=len(diagnosis.checked)), style="dim")
        self.listing(words["unexplained"], self.unexplained())
        self.listing(words["skipped"], self.not_evaluated(diagnosis.not_evaluated))
        self.listing(words["health"], self.health(), cut=False)
        if diagnosis.findings:
            self.line(f"\n{words['why']}", style="dim")

    def header(self) -> None:
        d, run, words = self.diagnosis, self.diagnosis.run, self.words
        steps = words["step" if len(run.steps) == 1 else "steps"].format(steps=ranges(run.steps))
        join = "" if self.lang == "zh" else " "
        of = words["least" if run.ranks_expected_is_lower_bound else "of"]
        known = not run.ranks_expected_is_lower_bound or run.ranks_expected > len(run.ranks)
        expected = f"{join}{of} {run.ranks_expected}" if known else ""
        self.line(clean(run.path, 300), style="bold")
        self.line(
            f"{run.format} · {self.where(run.ranks)}{expected} · "
            f"{steps if run.steps else words['nosteps']} · "
            + words["step_time"].format(time=quantity("x_us", run.duration_us))
        )
        matcher = d.matcher.used + (f" {d.matcher.durable_version}" if d.matcher.used == "durable_rules" else "")
        notes = ["cross-checked"] if d.matcher.cross_checked else []
        if d.matcher.fallback_reason:
            notes.append(f"fallback: {d.matcher.fallback_reason}")
        self.line(
            f"{d.tool.name} {d.tool.version} · knowledge {d.knowledge_base.version} ({d.knowledge_base.digest[7:19]})"
            f" · matcher {matcher}" + (f" ({'; '.join(notes)})" if notes else ""),
            style="dim",
        )
        for setting in self.settings():
            self.line(setting, style="dim")
        for overlay in d.knowledge_base.overlay:
            self.line(f"overlay: {clean(overlay)}", style="yellow")
        self.line("")

    def settings(self) -> list[str]:
        """Profiling level and what it hides, one line per way in which ranks were profiled."""
        groups: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
        for fact in self.diagnosis.facts:
            if fact.type == "profile_settings":
                groups[(fact.fields["level"], tuple(fact.fields["hides"]))].append(fact.fields["rank"])
        out = []
        for (level, hides), ranks in sorted(groups.items()):
            where = f" ({self.words['on'].format(where=self.where(ranks))})" if len(groups) > 1 else ""
            hidden = f": {self.words['hides']} {', '.join(clean(h) for h in hides)}" if hides else ""
            out.append(f"{clean(level)}{where}{hidden}")
        return out

    def most_unexplained(self) -> None:
        """The largest symptom that nobody explains is said first when it outweighs every finding."""
        seen = [u for u in self.diagnosis.unexplained if u.step_ratio > 0]
        best = max((f.recoverable_us for f in self.diagnosis.findings), default=0.0)
        if self.diagnosis.findings and seen and seen[0].step_ratio >= 0.5 and seen[0].cost_us > 2 * best:
            share = quantity("x_ratio", seen[0].step_ratio)
            self.line(self.words["most"].format(symptom=seen[0].symptom, share=share) + "\n", style="yellow")

    def finding(self, number: int, finding: Finding) -> None:
        words, i18n = self.words, finding.i18n[self.lang]
        head = Text(f"{number}. ", style="bold")
        head.append(f"[{finding.severity}] ", style=_COLOURS[finding.severity])
        head.append(clean(i18n.title), style="bold")
        self.line(head)
        if finding.recoverable_us > 0:
            win = words["win"].format(
                sign="≤" if finding.gain == "upper_bound" else "≈",
                time=quantity("x_us", finding.recoverable_us), share=quantity("x_ratio", finding.recoverable_share),
            )  # fmt: skip
        else:
            win = words["nowin"]
        where = self.where(finding.ranks) if finding.ranks else words["whole"]
        facts = Text(f"{win} · {where} · ", style="yellow")
        facts.append(f"{finding.cause} · {finding.case} · ", style="dim")
        facts.append(words["confidence"].format(value=f"{finding.confidence:.2f}"), style="dim")
        self.line(facts, 3)
        self.line(clean(i18n.summary, 600), 3)
        if finding.consequence_of:
            roots = ", ".join(i.removeprefix("finding:") for i in finding.consequence_of)
            self.line(f"{words['because']}: {roots}", 3, "magenta")
        for remedy in finding.remedies if self.verbose else finding.remedies[:2]:
            do = Text(f"{words['do']}: ", style="green")
            do.append(clean(remedy.i18n[self.lang].text, 400), style="")
            self.line(do, 3, hang=4)
            for setting in remedy.settings:
                self.console.print(Text(f"       {clean(setting, 300)}", style="green"), soft_wrap=True)
        self.line(f"{words['check']}: {clean(finding.remedies[0].verify, 400)}", 3, "dim")
        self.line("")

    def listing(self, title: str, items: list[Text], *, cut: bool = True) -> None:
        if not items:
            return
        self.line(f"\n{title}", style="bold")
        shown = items if self.verbose or not cut else items[:SHOWN]
        for item in shown:
            self.line(item, 2, hang=2)
        if len(shown) < len(items):
            self.line(self.words["more"].format(count=len(items) - len(shown)), 2, "dim")

    def unexplained(self) -> list[Text]:
        out = []
        for seen in self.diagnosis.unexplained:
            line = Text("• ")
            line.append(seen.symptom, style="bold")
            if seen.ranks:
                line.append(f" ({self.words['on'].format(where=self.where(seen.ranks))})")
            line.append(f": {clean(seen.i18n[self.lang], 600)}")
            out.append(line)
        return out

    def not_evaluated(self, items: list[NotEvaluated]) -> list[Text]:
        """One line per thing to collect: which causes it would let us judge, and where."""
        groups: dict[tuple[str, tuple[int, ...]], set[str]] = defaultdict(set)
        for item in items:
            for how in item.i18n[self.lang].collect:
                groups[(how, tuple(item.ranks))].add(item.cause)
        out = []
        for (how, ranks), causes in sorted(groups.items(), key=lambda g: (-len(g[1]), g[0])):
            where = f" ({self.words['on'].format(where=self.where(ranks))})" if ranks else ""
            line = Text("• ")
            line.append(clean(how, 300))
            line.append(f"{where}: {', '.join(sorted(causes))}", style="dim")
            out.append(line)
        return out

    def health(self) -> list[Text]:
        out = []
        for h in sorted(self.diagnosis.run.health, key=lambda h: (h.severity == "info", h.kind, h.rank)):
            times = f" ×{h.count}" if h.count > 1 else ""
            place = clean(h.file, 300) or (f"rank {h.rank}" if h.rank >= 0 else "")
            line = Text(f"{h.severity} {h.kind}{times}: {clean(h.detail, 300)}")
            line.append(f" [{place}]" if place else "", style="dim")
            out.append(line)
        return out
