"""The diagnosis on a terminal: a ``Diagnosis`` in, rich renderables out; fits 80 columns, plain when not a terminal."""

from __future__ import annotations

from collections import defaultdict

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from hermes_advisor.engine.explain import Node
from hermes_advisor.engine.result import Diagnosis, Finding, Lang, NotEvaluated
from hermes_advisor.engine.wording import clean, quantity, ranges

_COLOURS = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "cyan", "info": "blue"}
_NODE_STYLES = {
    "finding": "bold", "rule": "cyan", "fact": "", "test": "green", "absent": "magenta", "aggregate": "green",
    "value": "yellow", "source": "dim", "evidence": "dim", "note": "", "remedy": "bold green",
}  # fmt: skip
_WORDS = {
    "en": {
        "none": "Nothing found: no case of the knowledge base holds on this profile.",
        "win": "win/step", "ranks": "ranks", "finding": "finding", "conf": "conf.",
        "do": "do", "check": "check", "because": "follows from", "all": "all",
        "unexplained": "Seen, but no finding explains it:",
        "skipped": "Not evaluated – collect this to know more:", "on": "on ranks {ranks}",
        "health": "About the input:", "more": "hermes explain RESULT.json 1 shows why, down to file and row.",
        "ranks_of": "ranks {seen} of {expected}", "steps": "steps {steps}", "nosteps": "no step marks",
        "step_time": "step time {time}", "checked": "{count} cases were checked and do not hold.",
        "up_to": "≤", "about": "≈", "hides": "does not record",
    },
    "zh": {
        "none": "未发现问题：知识库中没有案例在该性能数据上成立。",
        "win": "每步收益", "ranks": "rank", "finding": "诊断", "conf": "置信度",
        "do": "措施", "check": "验证", "because": "源于", "all": "全部",
        "unexplained": "已观察到，但尚无诊断能解释：",
        "skipped": "未评估，采集以下数据可得出结论：", "on": "rank {ranks}",
        "health": "输入数据说明：", "more": "运行 hermes explain RESULT.json 1 查看推理过程，直至文件与行。",
        "ranks_of": "rank {seen}，共 {expected}", "steps": "step {steps}", "nosteps": "无 step 标记",
        "step_time": "单步耗时 {time}", "checked": "另有 {count} 个案例已检查且不成立。",
        "up_to": "≤", "about": "≈", "hides": "未记录",
    },
}  # fmt: skip


def render(diagnosis: Diagnosis, console: Console, lang: Lang = "en", result_file: str | None = None) -> None:
    """Print the whole report."""
    words = _WORDS[lang]
    console.print(_header(diagnosis, lang))
    if diagnosis.findings:
        console.print(_findings(diagnosis, lang))
    else:
        console.print(Text(words["none"], style="green"))
    console.print(Text(words["checked"].format(count=len(diagnosis.checked)), style="dim"))
    if diagnosis.unexplained:
        console.print(Text(f"\n{words['unexplained']}", style="bold"))
        for seen in diagnosis.unexplained:
            cost = f"{quantity('x_us', seen.cost_us)}, {quantity('x_ratio', seen.step_ratio)}"
            where = f" ({words['on'].format(ranks=ranges(seen.ranks))})" if seen.ranks else ""
            line = Text(f"• {seen.symptom}{where} {cost}: ")
            line.append(clean(seen.i18n[lang], 600), style="dim")
            console.print(Padding(line, (0, 2)))
    if diagnosis.not_evaluated:
        console.print(Text(f"\n{words['skipped']}", style="bold"))
        for item in _not_evaluated(diagnosis.not_evaluated, lang):
            console.print(item)
    if diagnosis.run.health:
        console.print(Text(f"\n{words['health']}", style="bold"))
        for h in sorted(diagnosis.run.health, key=lambda h: (h.severity == "info", h.kind, h.rank)):
            times = f" ×{h.count}" if h.count > 1 else ""
            place = clean(h.file, 300) or (f"rank {h.rank}" if h.rank >= 0 else "")
            line = Text(f"{h.severity} {h.kind}{times}: {clean(h.detail, 300)}")
            line.append(f" [{place}]" if place else "", style="dim")
            console.print(Padding(line, (0, 2)))
    if diagnosis.findings:
        hint = words["more"] if result_file is None else words["more"].replace("RESULT.json", result_file)
        console.print(Text(f"\n{hint}", style="dim"))


def render_tree(root: Node, console: Console) -> None:
    """Print an explanation."""
    tree = Tree(_text(root), guide_style="dim")
    _grow(tree, root)
    console.print(tree)


def _grow(tree: Tree, node: Node) -> None:
    for child in node.children:
        _grow(tree.add(_text(child)), child)


def _text(node: Node) -> Text:
    return Text(clean(node.text, 2000), style=_NODE_STYLES[node.kind])


def _header(d: Diagnosis, lang: Lang) -> RenderableType:
    words, run = _WORDS[lang], d.run
    steps = words["steps"].format(steps=ranges(run.steps)) if run.steps else words["nosteps"]
    matcher = d.matcher.used + (f" {d.matcher.durable_version}" if d.matcher.used == "durable_rules" else "")
    notes = ["cross-checked"] if d.matcher.cross_checked else []
    if d.matcher.fallback_reason:
        notes.append(f"fallback: {d.matcher.fallback_reason}")
    seen = words["ranks_of"].format(seen=ranges(run.ranks), expected=run.ranks_expected)
    time = words["step_time"].format(time=quantity("x_us", run.duration_us))
    lines = [
        Text(clean(run.path, 300), style="bold"),
        Text(f"{run.format} · {seen} · {steps} · {time}"),
        Text(
            f"{d.tool.name} {d.tool.version} · knowledge {d.knowledge_base.version} ({d.knowledge_base.digest[7:19]})"
            f" · matcher {matcher}" + (f" ({'; '.join(notes)})" if notes else ""),
            style="dim",
        ),
        *_settings(d, lang),
        *(Text(f"overlay: {clean(o)}", style="yellow") for o in d.knowledge_base.overlay),
        Text(""),
    ]
    return Group(*lines)


def _settings(d: Diagnosis, lang: Lang) -> list[Text]:
    """Profiling level and what it hides, one line per way in which ranks were profiled."""
    groups: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for fact in d.facts:
        if fact.type == "profile_settings":
            groups[(fact.fields["level"], tuple(fact.fields["hides"]))].append(fact.fields["rank"])
    out = []
    for (level, hides), ranks in sorted(groups.items()):
        where = f" ({_WORDS[lang]['on'].format(ranks=ranges(ranks))})" if len(groups) > 1 else ""
        hidden = f": {_WORDS[lang]['hides']} {', '.join(clean(h) for h in hides)}" if hides else ""
        out.append(Text(f"{clean(level)}{where}{hidden}", style="dim"))
    return out


def _findings(d: Diagnosis, lang: Lang) -> RenderableType:
    words = _WORDS[lang]
    table = Table(box=None, pad_edge=False, show_edge=False, padding=(0, 1), expand=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column(words["finding"], ratio=1)
    table.add_column(words["win"], justify="right", no_wrap=True)
    table.add_column(words["ranks"], max_width=12)
    table.add_column(words["conf"], justify="right", no_wrap=True)
    for number, finding in enumerate(d.findings, 1):
        table.add_row(str(number), _finding(finding, lang), _win(finding, words), ranges(finding.ranks) or words["all"],
                      f"{finding.confidence:.2f}")  # fmt: skip
    return table


def _win(finding: Finding, words: dict[str, str]) -> Text:
    sign = words["up_to"] if finding.gain == "upper_bound" else words["about"]
    return Text(f"{sign} {quantity('x_us', finding.recoverable_us)}\n{quantity('x_ratio', finding.recoverable_share)}")


def _finding(finding: Finding, lang: Lang) -> Text:
    words, i18n = _WORDS[lang], finding.i18n[lang]
    out = Text()
    out.append(f"{finding.severity} ", style=_COLOURS[finding.severity])
    out.append(clean(i18n.title), style="bold")
    out.append(f"  {finding.cause} [{finding.case}]\n", style="dim")
    out.append(clean(i18n.summary, 600) + "\n")
    if finding.consequence_of:
        roots = ", ".join(i.removeprefix("finding:") for i in finding.consequence_of)
        out.append(f"{words['because']}: {roots}\n", style="magenta")
    for remedy in finding.remedies[:2]:
        out.append(f"{words['do']}: ", style="green")
        out.append(clean(remedy.i18n[lang].text, 400) + "\n")
        for setting in remedy.settings:
            out.append(f"    {clean(setting, 300)}\n", style="green")
    out.append(f"{words['check']}: {finding.remedies[0].verify}\n", style="dim")
    return out


def _not_evaluated(items: list[NotEvaluated], lang: Lang) -> list[RenderableType]:
    """One line per thing to collect: which causes it would let us judge, and where."""
    words = _WORDS[lang]
    groups: dict[tuple[str, tuple[int, ...]], set[str]] = defaultdict(set)
    for item in items:
        for how in item.i18n[lang].collect:
            groups[(how, tuple(item.ranks))].add(item.cause)
    out: list[RenderableType] = []
    for (how, ranks), causes in sorted(groups.items(), key=lambda g: (-len(g[1]), g[0])):
        where = f" ({words['on'].format(ranks=ranges(ranks))})" if ranks else ""
        line = Text("• ")
        line.append(clean(how, 300))
        line.append(f"{where}: {', '.join(sorted(causes))}", style="dim")
        out.append(Padding(line, (0, 2)))
    return out
