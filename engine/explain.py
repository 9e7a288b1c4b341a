"""The reasoning behind a finding as a tree: a stored ``Diagnosis`` in, nodes with words out.

Only the result is read, never the knowledge base of today, so that a reviewer sees months later what was concluded
then. From the remedy down to file and row: rule and version, what was tested, the threshold with its reason and source,
the measured value and its margin, what aggregates ran over, what was looked for and not found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hermes_advisor.engine.result import (
    AbsenceResult,
    AggregateResult,
    Diagnosis,
    FactRecord,
    Finding,
    Firing,
    Lang,
    TestResult,
    Unexplained,
)
from hermes_advisor.engine.rules import OP_SIGNS
from hermes_advisor.engine.wording import clean, fill, quantity, ranges, with_unit

NodeKind = Literal[
    "finding", "rule", "fact", "test", "absent", "aggregate", "value", "source", "evidence", "note", "remedy"
]
MAX_INSTANCES = 12
MAX_MEMBERS = 5

_LABELS: Mapping[Lang, Mapping[str, str]] = {
    "en": {
        "wins": "could win {time} per step ({share} of it), {kind}: {how}",
        "upper_bound": "at most", "estimate": "estimate",
        "rule": "concluded by rule {rule} v{version} ({file}): {text}",
        "threshold": "limit {parameter} = {limit}: {reason} [{source}]",
        "overlaid": " (changed by an overlay)",
        "absent": "looked for and not found: {fact}{where} ({count} such facts examined)",
        "unmeasured": "not measured, the rule goes on without it: {fact}{where}",
        "aggregate": "{function} of {what}{where} = {value} over {count} fact(s)",
        "more": "and {count} more",
        "source": "read from {file}{locator} ({reader})",
        "value": "{field} = {expression} = {value}",
        "margin": "margin {margin}",
        "instances": "the worst instance is shown; the others: {ids}",
        "remedy": "do: {text}", "setting": "set: {text}", "verify": "check afterwards: {text}",
        "effort": "effort {effort}; risk: {risk}",
        "careful": "do not do this when: {text}", "false": "may be wrong when: {text}",
        "effects": "explains also: {ids}", "roots": "is a consequence of: {ids}",
        "where": " where {where}", "whole": "whole job", "rank": "rank {rank}", "step": "step {step}",
        "given": "given with the input", "worst": "worst",
        "low": "low", "medium": "medium", "high": "high", "above": "shown above", "joined": "the same {on}",
    },
    "zh": {
        "wins": "每步可节省 {time}（占单步 {share}），{kind}：{how}",
        "upper_bound": "上限", "estimate": "估计",
        "rule": "由规则 {rule} v{version}（{file}）得出：{text}",
        "threshold": "阈值 {parameter} = {limit}：{reason} [{source}]",
        "overlaid": "（已被覆盖配置修改）",
        "absent": "已查找且不存在：{fact}{where}（检查了 {count} 条此类事实）",
        "unmeasured": "未测量，规则在缺少它时仍成立：{fact}{where}",
        "aggregate": "{what}{where} 的 {function} = {value}，共 {count} 条事实",
        "more": "另有 {count} 项",
        "source": "读自 {file}{locator}（{reader}）",
        "value": "{field} = {expression} = {value}",
        "margin": "裕量 {margin}",
        "instances": "以上为最严重的实例；其他实例：{ids}",
        "remedy": "措施：{text}", "setting": "设置：{text}", "verify": "之后检查：{text}",
        "effort": "工作量 {effort}；风险：{risk}",
        "careful": "以下情况不要采用：{text}", "false": "以下情况可能误判：{text}",
        "effects": "同时解释：{ids}", "roots": "是以下问题的结果：{ids}",
        "where": "（{where}）", "whole": "整个作业", "rank": "rank {rank}", "step": "第 {step} 步",
        "given": "随输入给出", "worst": "最严重",
        "low": "低", "medium": "中", "high": "高", "above": "见上文", "joined": "相同的 {on}",
    },
}  # fmt: skip


@dataclass
class Node:
    """One line of the explanation and what it rests on."""

    kind: NodeKind
    text: str
    children: list[Node] = field(default_factory=list)
    ref: str = ""
    """Id of the fact, firing or finding that the line is about."""

    def as_dict(self) -> dict[str, Any]:
        """The tree as plain data."""
        return {"kind": self.kind, "text": self.text, "ref": self.ref, "children": [c.as_dict() for c in self.children]}


def explain(diagnosis: Diagnosis, finding: Finding, lang: Lang = "en") -> Node:
    """The tree of one finding, its worst instance in full."""
    return _Explainer(diagnosis, lang).finding(finding)


def find(diagnosis: Diagnosis, name: str) -> Finding | None:
    """A finding by its number in the report (1-based), its id, its case id, or its cause (the first)."""
    if name.isascii() and name.isdigit() and len(name) < 6 and 1 <= int(name) <= len(diagnosis.findings):
        return diagnosis.findings[int(name) - 1]
    for finding in diagnosis.findings:
        if name in (finding.id, finding.case, finding.cause):
            return finding
    return None


def explain_symptom(diagnosis: Diagnosis, name: str, lang: Lang = "en") -> Node | None:
    """The tree of a symptom that no finding explains, its worst instance; None if the result has none of that name."""
    for seen in diagnosis.unexplained:
        if seen.symptom == name:
            return _Explainer(diagnosis, lang).symptom(seen)
    return None


class _Explainer:
    def __init__(self, diagnosis: Diagnosis, lang: Lang):
        self.diagnosis, self.lang = diagnosis, lang
        self.facts = {f.id: f for f in diagnosis.facts}
        self.firings = {f.id: f for f in diagnosis.firings}
        self.shown: set[str] = set()

    def say(self, label: str, **values: object) -> str:
        return _LABELS[self.lang][label].format(**values)

    def finding(self, finding: Finding) -> Node:
        words = finding.i18n[self.lang]
        root = Node(
            "finding", f"{words.title} [{finding.case} v{finding.case_version}, {finding.cause}]", ref=finding.id
        )
        root.children.append(Node("note", words.summary))
        wins = self.say("wins", time=quantity("x_us", finding.recoverable_us),
                        share=quantity("x_ratio", finding.recoverable_share),
                        kind=self.say(finding.gain), how=words.gain)  # fmt: skip
        root.children.append(Node("value", wins))
        root.children.append(self.firing(finding.proof))
        others = finding.instances[1:]
        if others:
            shown = "; ".join(dict.fromkeys(self.instance_scope(i) for i in others[:MAX_INSTANCES]))
            shown += "; …" if len(others) > MAX_INSTANCES else ""
            root.children.append(Node("note", self.say("instances", ids=shown)))
        for label, ids in (("effects", finding.consequences), ("roots", finding.consequence_of)):
            if ids:
                root.children.append(Node("note", self.say(label, ids=", ".join(self.named(ids)))))
        for remedy in finding.remedies:
            text = remedy.i18n[self.lang]
            node = Node("remedy", self.say("remedy", text=text.text))
            node.children += [Node("remedy", self.say("setting", text=s)) for s in remedy.settings]
            node.children.append(Node("note", self.say("effort", effort=self.say(remedy.effort), risk=text.risk)))
            node.children.append(Node("note", self.say("verify", text=remedy.verify)))
            root.children.append(node)
        for label, lines in (("careful", words.contraindications), ("false", words.false_positives)):
            root.children += [Node("note", self.say(label, text=line)) for line in lines]
        return root

    def symptom(self, seen: Unexplained) -> Node:
        worst = max((self.facts[i] for i in seen.facts), key=lambda f: (f.fields["cost_us"], f.id))
        root = Node("finding", f"{seen.symptom}: {seen.i18n[self.lang]}", ref=worst.id)
        root.children.append(self.fact(worst.id, self.say("worst")))
        return root

    def instance_scope(self, firing_id: str) -> str:
        """The ranks and steps of another instance, by the facts that it binds."""
        facts = [self.facts[i].fields for i in self.firings[firing_id].bound.values()]
        ranks = {f["rank"] for f in facts if f.get("rank", -1) != -1}
        steps = {f["step"] for f in facts if f.get("step", -1) != -1}
        parts = [self.say("rank", rank=ranges(ranks))] if ranks else []
        parts += [self.say("step", step=ranges(steps))] if steps else []
        return " ".join(parts) or self.say("whole")

    def named(self, refs: Sequence[str]) -> list[str]:
        """Findings by their case id; symptoms by their name and the ranks on which they are seen."""
        out = [r.removeprefix("finding:") for r in refs if r not in self.facts]
        symptoms: dict[str, list[int]] = {}
        for fact in (self.facts[r] for r in refs if r in self.facts):
            symptoms.setdefault(str(fact.fields["name"]), []).append(fact.fields["rank"])
        for name, ranks in sorted(symptoms.items()):
            known = [r for r in ranks if r != -1]
            out.append(f"{name} ({self.say('rank', rank=ranges(known)) if known else self.say('whole')})")
        return out

    def firing(self, firing_id: str) -> Node:
        firing = self.firings[firing_id]
        rule = self.diagnosis.rules[firing.rule]
        text = fill(rule.text.get(self.lang, ""), lambda alias, name: self.value(firing, alias, name))
        node = Node(
            "rule", self.say("rule", rule=firing.rule, version=firing.version, file=rule.file, text=text), ref=firing.id
        )
        for alias, fact_id in firing.bound.items():
            child = self.fact(fact_id, alias)
            tests = [t for t in firing.tests if t.alias == alias]
            joins = [t for t in tests if self.is_join(t)]
            own = [self.test(t, firing) for t in tests if t not in joins and not self.is_name(t, fact_id)]
            if joins:
                on = ", ".join(f"{t.field} = {t.expression}" for t in joins)
                own.append(Node("test", self.say("joined", on=on)))
            child.children[:0] = own
            node.children.append(child)
        node.children += [self.aggregate(a, firing) for a in firing.aggregates]
        node.children += [self.absent(a) for a in firing.absent]
        for computed in firing.values:
            if computed.expression != str(computed.value) and computed.field not in ("rank", "step", "subject"):
                shown = quantity(computed.field, computed.value)
                if computed.field == "recoverable_share":
                    shown = quantity("x_ratio", computed.value)
                text = self.say("value", field=computed.field, expression=computed.expression, value=shown)
                node.children.append(Node("value", text))
        return node

    @staticmethod
    def is_join(test: TestResult) -> bool:
        """Equality with a field of another fact: it ties facts together and tests nothing by itself."""
        return test.op == "eq" and "." in test.expression and test.expression != str(test.limit)

    def is_name(self, test: TestResult, fact_id: str) -> bool:
        """A test on the conclusion's own name only repeats the headline."""
        return test.field == "name" and self.facts[fact_id].derived_by is not None

    def value(self, firing: Firing, alias: str, name: str) -> Any:
        if alias == "param":
            spec = self.diagnosis.rules[firing.rule].params.get(name)
            return with_unit(spec.unit, spec.value) if spec else None
        for aggregate in firing.aggregates:
            if aggregate.alias == alias:
                return aggregate.value
        fact = self.facts.get(firing.bound.get(alias, ""))
        return fact.fields.get(name) if fact else None

    def fact(self, fact_id: str, alias: str) -> Node:
        fact = self.facts[fact_id]
        node = Node("fact", f"{alias}: {self.headline(fact)}", ref=fact_id)
        if fact_id in self.shown:
            node.text += f" – {self.say('above')}"
            return node
        self.shown.add(fact_id)
        if fact.derived_by:
            node.children.append(self.firing(fact.derived_by))
        elif fact.source:
            locator = f", {clean(fact.source.locator)}" if fact.source.locator else ""
            text = self.say("source", file=clean(fact.source.file, 300), locator=locator, reader=fact.source.reader)
            node.children.append(Node("source", text))
            node.children += [Node("evidence", self.instance(i)) for i in fact.fields.get("worst", ())]
        else:
            node.children.append(Node("source", self.say("given")))
        return node

    def headline(self, fact: FactRecord) -> str:
        fields = fact.fields
        parts = [fact.type]
        if fact.type in ("symptom", "cause"):
            parts.append(str(fields.get("name")))
        for name in (
            "group",
            "op_type",
            "transport",
            "api",
            "conversion",
            "component",
            "subject",
            "late_rank",
            "stage",
        ):
            value = fields.get(name)
            if value not in (None, ""):
                parts.append(f"{name} {clean(str(value))}" if name != "subject" else clean(str(value)))
        if fact.type == "environment_variable":
            parts.append(f"{clean(str(fields.get('name')))}={clean(str(fields.get('value')))}")
        scope = []
        if fields.get("rank", -1) != -1:
            scope.append(self.say("rank", rank=fields["rank"]))
        elif isinstance(fields.get("ranks"), list):
            scope.append(self.say("rank", rank=ranges(fields["ranks"])))
        if fields.get("step", -1) != -1:
            scope.append(self.say("step", step=fields["step"]))
        return " ".join(parts) + f" ({', '.join(scope) or self.say('whole')})"

    def instance(self, raw: Mapping[str, Any]) -> str:
        when = f" @ {quantity('start_us', raw['start_us'])}" if raw.get("start_us") is not None else ""
        long = f", {quantity('duration_us', raw['duration_us'])}" if raw.get("duration_us") is not None else ""
        detail = f" – {clean(str(raw['detail']))}" if raw.get("detail") else ""
        return f"{clean(str(raw.get('name', '')))}{when}{long}{detail}"

    def test(self, test: TestResult, firing: Firing) -> Node:
        unit_name = test.field
        if test.field == "value":
            unit_name = next((a.field or "x_count" for a in firing.aggregates if a.alias == test.alias), "value")
        limit = (
            ", ".join(str(v) for v in test.limit) if isinstance(test.limit, list) else quantity(unit_name, test.limit)
        )
        shown = "" if test.parameter == test.expression else f" [{test.expression}]"
        if not isinstance(test.limit, list) and test.expression == str(test.limit):
            shown = ""
        text = f"{test.field} {quantity(unit_name, test.value)} {OP_SIGNS[test.op]} {limit}{shown}"
        margin = _margin(test)
        if margin:
            text += f", {self.say('margin', margin=margin)}"
        node = Node("test", text)
        spec = self.diagnosis.rules[firing.rule].params.get(test.parameter or "")
        if spec is not None:
            node.children.append(Node("note", self.say(
                "threshold", parameter=test.parameter, limit=with_unit(spec.unit, spec.value), reason=spec.reason,
                source=spec.source) + (self.say("overlaid") if spec.overlaid else "")))  # fmt: skip
        return node

    def aggregate(self, item: AggregateResult, firing: Firing) -> Node:
        what = f"{item.fact}.{item.field}" if item.field else item.fact
        where = self.say("where", where=item.where) if item.where else ""
        node = Node("aggregate", f"{item.alias}: " + self.say(
            "aggregate", function=item.function, what=what, where=where,
            value=quantity(item.field or "", item.value), count=item.members_count))  # fmt: skip
        node.children += [self.test(t, firing) for t in item.tests]
        node.children += [self.fact(m, "·") for m in item.members[:MAX_MEMBERS]]
        rest = item.members_count - min(MAX_MEMBERS, len(item.members))
        if rest > 0:
            node.children.append(Node("note", self.say("more", count=rest)))
        return node

    def absent(self, item: AbsenceResult) -> Node:
        where = self.say("where", where=item.where) if item.where else ""
        label = "absent" if item.measured else "unmeasured"
        return Node("absent", self.say(label, fact=item.fact, where=where, count=item.looked_at))


def _margin(test: TestResult) -> str:
    """How far the value lies beyond the limit, relative to the limit."""
    if test.op not in ("lt", "le", "gt", "ge") or isinstance(test.limit, list | str) or isinstance(test.value, str):
        return ""
    if test.limit == 0:
        return ""
    return f"{abs(test.value - test.limit) / abs(test.limit) * 100:.0f} %"
