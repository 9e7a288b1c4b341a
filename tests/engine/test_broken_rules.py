"""Every fault in a rule file is refused with file, line, column, and what was expected."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_advisor.engine.loader import load_folders
from hermes_advisor.engine.problems import KnowledgeBaseError

_spec = importlib.util.spec_from_file_location("rule_texts", Path(__file__).with_name("rule_texts.py"))
assert _spec and _spec.loader
texts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(texts)

S, U, C = "symptoms/starved.yaml", "causes/dispatch.yaml", "cases/cpu/many-short-kernels.yaml"

# (what is wrong, file, text replaced, by what, code, line, words that the message must hold)
BROKEN = [
    ("unknown fact", S, "fact: launch_profile\n    where", "fact: launch_profil\n    where", "unknown-fact", 9, "did you mean 'launch_profile'"),
    ("misspelt field", S, "starved_step_ratio: {ge", "starved_steps_ratio: {ge", "unknown-field", 11, "did you mean 'starved_step_ratio'"),
    ("evidence is no field", S, "starved_step_ratio: {ge: $ratio_min}", "worst: 3\n      starved_step_ratio: {ge: $ratio_min}", "unknown-field", 11, "evidence"),
    ("wrong type", S, "{ge: $ratio_min}", '{ge: "high"}', "bad-comparison", 11, "float"),
    ("order on a text", C, "where: {name: cpu.dispatch}", "where: {name: {lt: cpu.dispatch}}", "bad-comparison", 12, "only eq, ne and in"),
    ("bad unit", S, "unit: ratio, reason", "unit: us, reason", "bad-comparison", 11, "unit mismatch"),
    ("unit not in the list", S, "unit: ratio, reason", "unit: percent, reason", "wrong-value", 6, "'us', 'bytes'"),
    ("unused parameter", S, "{ge: $ratio_min}", "{ge: 0}", "unused-parameter", 6, "ratio_min"),
    ("unknown parameter", S, "{ge: $ratio_min}", "{ge: $ratio_mni}", "bad-comparison", 11, "unknown parameter"),
    ("unknown alias", U, "rank: $symptom.rank, step_ratio: {ge", "rank: $sympton.rank, step_ratio: {ge", "bad-comparison", 13, "unknown alias 'sympton'"),
    ("unknown operator", S, "{ge: $ratio_min}", "{gte: $ratio_min}", "unknown-operator", 11, "'gte'"),
    ("duplicate key", S, "status: stable", "status: stable\nstatus: draft", "yaml-duplicate-key", 5, "'status' is given twice"),
    ("unknown key", C, "severity: medium", "severity: medium\nseverety: high", "unknown-key", 17, "did you mean 'severity'"),
    ("missing key", C, "severity: medium\n", "", "missing-key", 1, "'severity' is missing"),
    ("wrong value", C, "effort: medium", "effort: some", "wrong-value", 29, "'low'"),
    ("bad version", S, "version: 1.0.0", "version: 1.0", "wrong-value", 3, "version"),
    ("unknown cause", C, "cause: cpu.dispatch\nparams", "cause: cpu.dispach\nparams", "unknown-cause", 6, "did you mean 'cpu.dispatch'"),
    ("nobody derives it", U, "where: {name: starved}", "where: {name: starving}", "never-derived", 7, "did you mean 'starved'"),
    ("unknown placeholder", C, "cost {cause.cost_us}", "cost {cause.cost}", "unknown-placeholder", 35, "{cause.cost}"),
    ("slug is not the file name", S, "slug: starved", "slug: starving", "wrong-place", 2, "starved.yaml"),
    ("wrong folder", C, "cause: cpu.dispatch\nparams", "cause: io.reading\nparams", "wrong-place", 6, "cases/io/"),
    ("id taken", U, "id: CAU-001", "id: SYM-001", "wrong-place", 1, "CAU-"),
    ("explains nothing known", C, "explains: [{name: starved}]", "explains: [{name: starvation}]", "unknown-conclusion", 24, "starvation"),
    ("unknown rule id", C, "explains: [{name: starved}]", "explains: [{name: starved}]\ncontradicts: [HMS-CPU-999]", "unknown-id", 25, "HMS-CPU-999"),
    ("yaml alias", S, "reason: r, source: s", "reason: &r r, source: *r", "yaml-alias", 6, "not allowed"),
    ("yaml tag", S, "slug: starved", "slug: !!python/name:os.system starved", "yaml-tag", 2, "not allowed"),
    ("not a number", S, "value: 0.2", "value: .nan", "yaml-number", 6, "not-a-number"),
    ("syntax", S, "params:\n", "params: [\n", "yaml-syntax", 7, "not valid YAML"),
    ("empty file", S, texts.SYMPTOM, "", "yaml-empty", 1, "empty"),
    ("depth bomb", S, "slug: starved", "slug: " + "[" * 5000, "yaml-depth", 1, "deeper"),
    ("no condition", S, "{ge: $ratio_min}", "{}", "missing-test", 11, "no test"),
    ("equality with a fraction", S, "starved_step_ratio: {ge: $ratio_min}", "rank: {eq: 0.5}\n      starved_step_ratio: {ge: $ratio_min}", "bad-comparison", 11, "whole number"),
    ("two aggregates at once", C, "fact: kernel_summary\n", "fact: kernel_summary\n    count: kernel_summary\n", "condition-kind", 13, "exactly one"),
    ("verify on an unknown field", C, "where: {starved_step_ratio: {lt: 0.1}}", "where: {starved_ratio: {lt: 0.1}}", "unknown-field", 31, "starved"),
    ("gain in the wrong unit", C, "recoverable_us: {mul: [0.5, $cause.cost_us]}", "recoverable_us: $cause.step_ratio", "bad-expression", 20, "expected us, got ratio"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "old", "new", "code", "line", "words"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN]
)
def test_broken_rule_is_refused_with_its_position(
    write_base: Callable[[dict[str, str]], Path], file: str, old: str, new: str, code: str, line: int, words: str
) -> None:
    assert old in texts.FILES[file]
    folder = write_base({**texts.FILES, file: texts.FILES[file].replace(old, new, 1)})
    with pytest.raises(KnowledgeBaseError) as caught:
        load_folders([folder])
    matching = [p for p in caught.value.problems if p.code == code and p.file == file]
    assert matching, [str(p) for p in caught.value.problems]
    assert matching[0].line == line
    assert matching[0].column >= 1
    assert words in matching[0].message


def test_the_correct_files_load(write_base: Callable[[dict[str, str]], Path]) -> None:
    base = load_folders([write_base(texts.FILES)])
    assert {i: base.levels[i] for i in base.rules} == {"SYM-001": 0, "CAU-001": 1, "HMS-CPU-001": 2}


def test_a_cycle_through_absence_is_refused(write_base: Callable[[dict[str, str]], Path]) -> None:
    looping = texts.SYMPTOM.replace(
        "derives:\n", "unless:\n  - fact: cause\n    where: {name: cpu.dispatch, rank: $launch.rank}\nderives:\n"
    )
    folder = write_base({**texts.FILES, S: looping})
    with pytest.raises(KnowledgeBaseError) as caught:
        load_folders([folder])
    problem = next(p for p in caught.value.problems if p.code == "cycle")
    assert "CAU-001 → SYM-001 → CAU-001" in problem.message
    assert (problem.file, problem.line) == (U, 7)


def test_all_faults_are_reported_at_once(write_base: Callable[[dict[str, str]], Path]) -> None:
    folder = write_base(
        {
            **texts.FILES,
            S: texts.SYMPTOM.replace("launch_profile\n    where", "nope\n    where"),
            C: texts.CASE.replace("effort: medium", "effort: some").replace("severity: medium", "severity: mild"),
        }
    )
    with pytest.raises(KnowledgeBaseError) as caught:
        load_folders([folder])
    assert {(p.file, p.code) for p in caught.value.problems} >= {(S, "unknown-fact"), (C, "wrong-value")}
    assert sum(p.code == "wrong-value" for p in caught.value.problems) == 2


def test_the_same_id_twice_is_refused(write_base: Callable[[dict[str, str]], Path]) -> None:
    twin = texts.SYMPTOM.replace("slug: starved", "slug: twin").replace("symptom: starved", "symptom: twin")
    with pytest.raises(KnowledgeBaseError) as caught:
        load_folders([write_base({**texts.FILES, "symptoms/twin.yaml": twin})])
    problem = next(p for p in caught.value.problems if p.code == "duplicate-id")
    assert (problem.file, problem.line) == ("symptoms/twin.yaml", 1)
