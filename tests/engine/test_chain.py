"""Chaining, absence, aggregates, what was not measured, and that proofs do not depend on order. Values by hand."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_advisor.engine import chain
from hermes_advisor.engine.diagnose import diagnose
from hermes_advisor.engine.kbtest import build_fact, run_tests
from hermes_advisor.engine.lint import lint
from hermes_advisor.engine.loader import KnowledgeBase, load_folders
from hermes_advisor.engine.matching.select import create_matcher
from hermes_advisor.engine.problems import KnowledgeBaseError
from hermes_advisor.engine.result import Diagnosis, Run

_spec = importlib.util.spec_from_file_location("rule_texts", Path(__file__).with_name("rule_texts.py"))
assert _spec and _spec.loader
texts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(texts)

RUN = Run(path="x", format="test", ranks=[0], ranks_expected=1, steps=[], duration_us=100000.0)
STARVED = {"fact": "launch_profile", "starved_step_ratio": 0.5, "starved_per_step_us": 50000}
SHORT = {"fact": "kernel_summary", "short_kernel_ratio": 0.9}
NO_COMPILE = {"fact": "operator_compile"}
Writer = Callable[..., Path]


@pytest.fixture
def base(write_base: Writer) -> KnowledgeBase:
    return load_folders([write_base(texts.FILES)])


def diagnosis(base: KnowledgeBase, *facts: dict[str, object]) -> Diagnosis:
    return diagnose([build_fact(f) for f in facts], RUN, base, create_matcher("reference"))


def test_three_layers_chain_into_one_finding_with_a_proof(base: KnowledgeBase) -> None:
    d = diagnosis(base, STARVED, SHORT, NO_COMPILE)
    (finding,) = d.findings
    assert (finding.case, finding.cause, finding.ranks) == ("HMS-CPU-001", "cpu.dispatch", [0])
    assert (finding.recoverable_us, finding.recoverable_share) == (25000.0, 0.25)
    assert finding.summary == "200 kernels cost 50.0 ms"
    assert [(f.rule, f.stratum) for f in d.firings] == [("SYM-001", 0), ("CAU-001", 1), ("HMS-CPU-001", 2)]
    symptom, cause, case = d.firings
    assert case.id == finding.proof
    assert case.bound["cause"] == cause.derived
    assert cause.bound["symptom"] == symptom.derived
    (test,) = symptom.tests
    assert (test.field, test.op, test.limit, test.value, test.parameter) == (
        "starved_step_ratio",
        "ge",
        0.2,
        0.5,
        "ratio_min",
    )
    (absent,) = cause.absent
    assert (absent.fact, absent.measured, absent.looked_at) == ("operator_compile", True, 1)
    assert finding.consequences == [symptom.derived]


def test_what_nobody_measured_is_not_taken_for_absent(base: KnowledgeBase) -> None:
    d = diagnosis(base, STARVED, SHORT)
    assert d.findings == []
    (entry,) = d.not_evaluated
    assert (entry.case, entry.missing, entry.ranks) == ("HMS-CPU-001", ["operator_compile"], [])
    assert "Level1" in entry.collect[0]


def test_a_rank_without_the_measurement_is_named(base: KnowledgeBase) -> None:
    d = diagnosis(base, STARVED, {**STARVED, "rank": 1}, SHORT, {**SHORT, "rank": 1}, NO_COMPILE)
    assert [f.ranks for f in d.findings] == [[0]]
    assert [(n.missing, n.ranks) for n in d.not_evaluated] == [(["operator_compile"], [1])]


def test_proceed_goes_on_and_says_so(write_base: Writer) -> None:
    cause = texts.CAUSE.replace("{ge: $compile_max}}", "{ge: $compile_max}}\n    if_unmeasured: proceed")
    base = load_folders([write_base({**texts.FILES, "causes/dispatch.yaml": cause})])
    d = diagnosis(base, STARVED, SHORT)
    assert len(d.findings) == 1
    assert [a.measured for f in d.firings for a in f.absent] == [False]


def test_aggregates_join_and_keep_their_members(write_base: Writer) -> None:
    symptom = texts.SYMPTOM.replace(
        "derives:\n",
        """  - alias: conversions
    sum: format_conversion.per_step_us
    where: {rank: $launch.rank, kernel_count: {gt: 0}}
    test: {ge: {mul: [$ratio_min, $launch.starved_per_step_us]}}
derives:
""",
    )
    base = load_folders([write_base({**texts.FILES, "symptoms/starved.yaml": symptom})])

    def conversion(rank: int, name: str, us: float) -> dict[str, object]:
        return {"fact": "format_conversion", "rank": rank, "conversion": name, "per_step_us": us}

    # 0.2 × 50,000 = 10,000: 6,000 + 4,000 reach it on rank 0, 9,000 on rank 1 do not.
    facts = [
        STARVED,
        {**STARVED, "rank": 1},
        conversion(0, "cast", 6000),
        conversion(0, "transdata", 4000),
        conversion(1, "cast", 9000),
    ]
    d = diagnosis(base, *facts)
    (firing,) = [f for f in d.firings if f.rule == "SYM-001"]
    (aggregate,) = firing.aggregates
    assert (aggregate.value, aggregate.members_count) == (10000, 2)
    assert [t.limit for t in aggregate.tests] == [10000.0]
    largest = next(f for f in d.facts if f.id == aggregate.members[0])
    assert largest.fields["per_step_us"] == 6000


def test_any_order_of_facts_gives_the_same_bytes(base: KnowledgeBase) -> None:
    facts = [{**f, "rank": r} for r in range(6) for f in (STARVED, SHORT, NO_COMPILE)]
    texts_seen = set()
    for seed in range(5):
        random.Random(seed).shuffle(facts)
        texts_seen.add(diagnosis(base, *facts).to_json())
    assert len(texts_seen) == 1


def test_a_draft_does_not_fire_until_it_is_enabled(write_base: Writer) -> None:
    folder = write_base(
        {**texts.FILES, "symptoms/starved.yaml": texts.SYMPTOM.replace("status: stable", "status: draft")}
    )
    assert diagnosis(load_folders([folder]), STARVED, SHORT, NO_COMPILE).findings == []
    overlay = write_base({"overlay.yaml": "enable: [SYM-001]\n"}, "own")
    base = load_folders([folder, overlay])
    assert len(diagnosis(base, STARVED, SHORT, NO_COMPILE).findings) == 1


def test_an_overlay_changes_a_threshold_and_the_report_says_so(write_base: Writer) -> None:
    overlay = write_base({"overlay.yaml": "params:\n  SYM-001: {ratio_min: 0.6}\n"}, "own")
    folder = write_base(texts.FILES)
    base = load_folders([folder, overlay])
    d = diagnosis(base, STARVED, SHORT, NO_COMPILE)
    assert d.findings == []
    assert d.knowledge_base.overlay == ["SYM-001.ratio_min = 0.6 (was 0.2)"]
    assert d.knowledge_base.digest != load_folders([folder]).digest


def test_an_overlaid_threshold_keeps_no_reason_that_is_not_its_own(write_base: Writer) -> None:
    text = "params:\n  SYM-001:\n    ratio_min: {value: 0.3, reason: our cards idle more, source: ours}\n"
    base = load_folders([write_base(texts.FILES), write_base({"overlay.yaml": text}, "own")])
    d = diagnosis(base, STARVED, SHORT, NO_COMPILE)
    used = d.rules["SYM-001"].params["ratio_min"]
    assert (used.value, used.source, used.overlaid) == (0.3, "ours", True)
    assert used.reason == "our cards idle more (stock: 0.2, r)"


def test_the_tests_in_rule_files_are_about_the_stated_thresholds(write_base: Writer) -> None:
    overlay = write_base({"overlay.yaml": "params:\n  SYM-001: {ratio_min: 0.6}\n"}, "own")
    base = load_folders([write_base(texts.FILES), overlay], settings=False)
    assert [o for o in run_tests(base, create_matcher("reference")) if not o.passed] == []
    assert lint(base) == []


def test_rules_that_an_overlay_adds_or_overrides_are_said(write_base: Writer) -> None:
    own = {
        "symptoms/starved.yaml": texts.SYMPTOM.replace("value: 0.2", "value: 0.4"),
        "symptoms/extra.yaml": texts.SYMPTOM.replace("SYM-001", "SYM-901").replace("starved\nversion", "extra\nversion")
        .replace("symptom: starved", "symptom: extra"),
    }  # fmt: skip
    base = load_folders([write_base(texts.FILES), write_base(own, "own")])
    assert base.overlay == (
        "SYM-901 added by own/symptoms/extra.yaml",
        "SYM-001 overridden by own/symptoms/starved.yaml",
    )


@pytest.mark.parametrize("name", ["rule.yaml", "case/cpu/x.yaml", "symptoms/x.yml", "overlay.yml"])
def test_a_rule_file_in_the_wrong_place_is_not_ignored(write_base: Writer, name: str) -> None:
    own = write_base({name: texts.SYMPTOM}, "own")
    with pytest.raises(KnowledgeBaseError) as caught:
        load_folders([write_base(texts.FILES), own])
    assert ("own/" + name, "stray-file") in {(p.file, p.code) for p in caught.value.problems}


def test_an_overlay_that_holds_nothing_is_refused(write_base: Writer) -> None:
    with pytest.raises(KnowledgeBaseError) as caught:
        load_folders([write_base(texts.FILES), write_base({}, "own")])
    assert [p.code for p in caught.value.problems] == ["empty-overlay"]


def test_a_draft_is_tested_though_it_does_not_fire(write_base: Writer) -> None:
    folder = write_base(
        {**texts.FILES, "cases/cpu/many-short-kernels.yaml": texts.CASE.replace("status: stable", "status: draft")}
    )
    base = load_folders([folder])
    assert diagnosis(base, STARVED, SHORT, NO_COMPILE).findings == []
    assert [o for o in run_tests(base, create_matcher("reference")) if not o.passed] == []


def test_the_healthy_profile_and_the_in_file_tests_pass(base: KnowledgeBase) -> None:
    outcomes = list(run_tests(base, create_matcher("reference")))
    assert len(outcomes) == 10
    assert [o for o in outcomes if not o.passed] == []
    assert lint(base) == []


def test_a_wrong_in_file_test_fails_with_the_reason(write_base: Writer) -> None:
    wrong = texts.SYMPTOM.replace("{name: low, facts: [{fact: launch_profile, starved_step_ratio: 0.1}]",
                                  "{name: low, facts: [{fact: launch_profile, starved_step_ratio: 0.3}]")  # fmt: skip
    base = load_folders([write_base({**texts.FILES, "symptoms/starved.yaml": wrong})])
    failed = [o for o in run_tests(base, create_matcher("reference")) if not o.passed]
    assert [(o.rule, o.name, o.line) for o in failed] == [("SYM-001", "low", 22)]
    assert "expected silent, got fires" in failed[0].message


def test_lint_wants_both_sides_of_a_threshold_and_all_kinds_of_test(write_base: Writer) -> None:
    text = texts.SYMPTOM.replace(
        "  - {name: low, facts: [{fact: launch_profile, starved_step_ratio: 0.1}], expect: silent}\n", ""
    )
    base = load_folders([write_base({**texts.FILES, "symptoms/starved.yaml": text})])
    assert [(p.code, p.line) for p in lint(base)] == [("one-sided-threshold", 11), ("missing-test-kind", 20)]


def test_a_literal_threshold_is_reported(write_base: Writer) -> None:
    text = texts.SYMPTOM.replace("{ge: $ratio_min}", "{ge: $ratio_min, lt: 0.95}")
    base = load_folders([write_base({**texts.FILES, "symptoms/starved.yaml": text})])
    assert [(p.code, p.line) for p in lint(base)] == [("literal-threshold", 11)]


def test_equal_facts_are_one(base: KnowledgeBase) -> None:
    facts = [build_fact(STARVED), build_fact(STARVED)]
    assert len(chain.run(base, facts, create_matcher("reference")).facts.entries) == 2  # the fact and the symptom


def test_what_is_known_not_to_hold_is_not_listed_as_unknown(base: KnowledgeBase) -> None:
    # Without compile times the cause could not be concluded, but the device is not starved in the first place.
    d = diagnosis(base, {**STARVED, "starved_step_ratio": 0.1}, SHORT)
    assert (d.not_evaluated, d.checked) == ([], ["HMS-CPU-001"])


def test_a_case_whose_other_half_fails_is_known_not_to_hold(base: KnowledgeBase) -> None:
    # No launches were measured, but the kernels are long: the case cannot hold whatever the launches would show.
    d = diagnosis(base, {**SHORT, "short_kernel_ratio": 0.1})
    assert (d.not_evaluated, d.checked) == ([], ["HMS-CPU-001"])
    d = diagnosis(base, SHORT)
    assert [n.missing for n in d.not_evaluated] == [["launch_profile", "operator_compile"]]


def test_part_of_a_kind_does_not_refute_what_needs_the_whole(write_base: Writer) -> None:
    symptom = texts.SYMPTOM.replace(
        "when:\n", "needs:\n  - {fact: launch_profile, where: {kernel_count: {gt: 1000}}}\nwhen:\n", 1
    )
    base = load_folders([write_base({**texts.FILES, "symptoms/starved.yaml": symptom})])
    d = diagnosis(base, {**STARVED, "starved_step_ratio": 0.1}, SHORT, NO_COMPILE)
    assert [n.missing for n in d.not_evaluated] == [["launch_profile(kernel_count > 1000)"]]


def test_a_symptom_that_no_case_uses_is_shown_as_unexplained(base: KnowledgeBase) -> None:
    d = diagnosis(base, STARVED, {**SHORT, "short_kernel_ratio": 0.1}, NO_COMPILE)
    assert d.findings == []
    (seen,) = d.unexplained
    assert (seen.symptom, seen.ranks, seen.cost_us, seen.step_ratio) == ("starved", [0], 50000.0, 0.5)
    assert seen.i18n["en"] == "starved for 50.0 %"
    assert diagnosis(base, STARVED, SHORT, NO_COMPILE).unexplained == []


@pytest.mark.parametrize("where", ["same", "others", "any"])
def test_a_case_explains_symptoms_on_the_ranks_it_says(write_base: Writer, where: str) -> None:
    case = texts.CASE.replace("explains: [{name: starved}]", f"explains: [{{name: starved, ranks: {where}}}]")
    base = load_folders([write_base({**texts.FILES, "cases/cpu/many-short-kernels.yaml": case})])
    # Rank 1 is starved, too, but its kernels are long: no finding of its own.
    d = diagnosis(base, STARVED, {**STARVED, "rank": 1}, SHORT, {**SHORT, "rank": 1, "short_kernel_ratio": 0.1},
                  NO_COMPILE, {**NO_COMPILE, "rank": 1})  # fmt: skip
    (finding,) = d.findings
    assert finding.ranks == [0]
    symptoms = {f.id: f.fields["rank"] for f in d.facts if f.type == "symptom"}
    explained = {symptoms[i] for i in finding.consequences}
    assert explained == {"same": {0}, "others": {1}, "any": {0, 1}}[where]
    assert [r for u in d.unexplained for r in u.ranks] == ([1] if where == "same" else [])


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("cause: cpu.dispatch\nparams", "cause: cpu.gc\nparams", "cause-not-bound"),
        ("short_kernel_ratio: 0.1}", "short_kernel_ration: 0.1}", "bad-test-fact"),
    ],
)  # fmt: skip
def test_lint_codes(write_base: Writer, old: str, new: str, code: str) -> None:
    assert old in texts.CASE
    folder = write_base({**texts.FILES, "cases/cpu/many-short-kernels.yaml": texts.CASE.replace(old, new)})
    assert code in {p.code for p in lint(load_folders([folder]))}


def test_an_absence_on_a_rank_that_nobody_measured_is_not_concluded(write_base: Writer) -> None:
    # Rank 1 has no operator_compile: whether it compiles is not known there, although it is on rank 0.
    compiling = texts.SYMPTOM.replace("SYM-001", "SYM-002").replace("slug: starved", "slug: compiling").replace(
        "fact: launch_profile\n    where:\n      starved_step_ratio", "fact: operator_compile\n    where:\n      step_ratio"
    ).replace("symptom: starved", "symptom: compiling").replace("$launch.starved_per_step_us", "$launch.per_step_us").replace(
        "$launch.starved_step_ratio", "$launch.step_ratio").replace("{launch.starved_step_ratio}", "")  # fmt: skip
    cause = texts.CAUSE.replace("  - fact: operator_compile\n    where: {rank: $symptom.rank, step_ratio: {ge: $compile_max}}",
                                "  - fact: symptom\n    where: {name: compiling, rank: $symptom.rank, step_ratio: {ge: $compile_max}}")  # fmt: skip
    files = {**texts.FILES, "symptoms/compiling.yaml": compiling, "causes/dispatch.yaml": cause}
    base = load_folders([write_base(files)])
    d = diagnosis(base, STARVED, {**STARVED, "rank": 1}, SHORT, {**SHORT, "rank": 1}, NO_COMPILE)
    assert [f.ranks for f in d.findings] == [[0]]
    assert [(n.missing, n.ranks) for n in d.not_evaluated] == [(["operator_compile"], [1])]


def test_a_cause_that_several_rules_conclude_is_unknown_while_one_of_them_is(write_base: Writer) -> None:
    other = texts.CAUSE.replace("CAU-001", "CAU-002").replace("slug: dispatch", "slug: other").replace(
        "fact: symptom\n    where: {name: starved}", "fact: free_time\n    where: {free_us: {gt: 0}, rank: {ge: 0}}").replace(
        "$symptom.cost_us", "$symptom.free_us").replace("$symptom.step_ratio", "$symptom.span_ratio")  # fmt: skip
    files = {**texts.FILES, "causes/other.yaml": other}
    base = load_folders([write_base(files)])
    d = diagnosis(base, {**STARVED, "starved_step_ratio": 0.1}, SHORT, NO_COMPILE)
    assert [n.missing for n in d.not_evaluated] == [["free_time"]]


def test_what_happens_in_some_steps_is_averaged_over_all(write_base: Writer) -> None:
    symptom = texts.SYMPTOM.replace("  rank: $launch.rank\n", "  rank: $launch.rank\n  step: $step.step\n").replace(
        "derives:\n", "  - alias: step\n    fact: step_breakdown\n    where: {rank: $launch.rank}\nderives:\n")  # fmt: skip
    cause = texts.CAUSE.replace("rank: $symptom.rank, cost_us", "rank: $symptom.rank, step: $symptom.step, cost_us")
    base = load_folders([write_base({**texts.FILES, "symptoms/starved.yaml": symptom, "causes/dispatch.yaml": cause})])
    facts = [build_fact(f) for f in (STARVED, SHORT, NO_COMPILE, {"fact": "step_breakdown", "step": 3})]
    run = RUN.model_copy(update={"steps": list(range(10))})
    (finding,) = diagnose(facts, run, base, create_matcher("reference")).findings
    assert (finding.steps, finding.recoverable_us, finding.recoverable_share) == ([3], 2500.0, 0.025)


def test_lists_that_multiply_are_refused_when_loading(write_base: Writer) -> None:
    wide = "kernel_count: {in: [" + ", ".join(map(str, range(300))) + "]}, rank: $cause.rank, short"
    files = {**texts.FILES, "cases/cpu/many-short-kernels.yaml": texts.CASE.replace("rank: $cause.rank, short", wide)}
    with pytest.raises(KnowledgeBaseError) as caught:
        load_folders([write_base(files)])
    assert [(p.code, p.line) for p in caught.value.problems] == [("wide-in", 9)]


def test_a_chain_of_hundreds_of_rules_is_refused_not_a_crash(write_base: Writer) -> None:
    files = {"symptoms/starved.yaml": texts.SYMPTOM}
    for n in range(2, 500):
        above = "starved" if n == 499 else f"s{n + 1}"
        files[f"symptoms/s{n}.yaml"] = (
            texts.SYMPTOM.replace("SYM-001", f"SYM-{n:03}").replace("slug: starved", f"slug: s{n}")
            .replace("fact: launch_profile\n    where:\n      starved_step_ratio", f"fact: symptom\n    where:\n      name: {above}\n      step_ratio")
            .replace("symptom: starved", f"symptom: s{n}").replace("$launch.starved_per_step_us", "$launch.cost_us")
            .replace("$launch.starved_step_ratio", "$launch.step_ratio").replace("{launch.starved_step_ratio}", "")
        )  # fmt: skip
    with pytest.raises(KnowledgeBaseError) as caught:
        load_folders([write_base(files)])
    assert {p.code for p in caught.value.problems} == {"too-deep"}


def test_an_absence_that_a_field_leaves_open_is_not_concluded(write_base: Writer) -> None:
    cause = texts.CAUSE.replace("fact: operator_compile\n    where: {rank: $symptom.rank, step_ratio: {ge: $compile_max}}",
                                "fact: operator_compile\n    where: {rank: $symptom.rank, op_compile_ratio: {ge: $compile_max}}")  # fmt: skip
    base = load_folders([write_base({**texts.FILES, "causes/dispatch.yaml": cause})])
    d = diagnosis(base, STARVED, SHORT, {**NO_COMPILE, "op_compile_ratio": None})
    assert d.findings == []
    assert [n.missing for n in d.not_evaluated] == [["operator_compile.op_compile_ratio"]]
    assert len(diagnosis(base, STARVED, SHORT, {**NO_COMPILE, "op_compile_ratio": 0.01}).findings) == 1


def test_a_cause_that_only_a_draft_concludes_is_not_known_to_be_absent(write_base: Writer) -> None:
    files = {**texts.FILES, "causes/dispatch.yaml": texts.CAUSE.replace("status: stable", "status: draft")}
    d = diagnosis(load_folders([write_base(files)]), STARVED, SHORT, NO_COMPILE)
    assert (d.checked, [n.missing for n in d.not_evaluated]) == ([], [["cause cpu.dispatch"]])
