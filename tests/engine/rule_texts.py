"""A small knowledge base as text: one symptom, one cause, one case, each correct."""

from __future__ import annotations

SYMPTOM = """\
id: SYM-001
slug: starved
version: 1.0.0
status: stable
params:
  ratio_min: {value: 0.2, unit: ratio, reason: r, source: s}
when:
  - alias: launch
    fact: launch_profile
    where:
      starved_step_ratio: {ge: $ratio_min}
derives:
  symptom: starved
  rank: $launch.rank
  cost_us: $launch.starved_per_step_us
  step_ratio: $launch.starved_step_ratio
text: {en: "starved for {launch.starved_step_ratio}", zh: "饥饿 {launch.starved_step_ratio}"}
references:
  - {url: "https://example.org/a", checked: 2026-01-01}
tests:
  - {name: high, facts: [{fact: launch_profile, starved_step_ratio: 0.5}], expect: fires}
  - {name: low, facts: [{fact: launch_profile, starved_step_ratio: 0.1}], expect: silent}
  - {name: none, facts: [{fact: step_breakdown}], expect: not_evaluated}
"""

CAUSE = """\
id: CAU-001
slug: dispatch
version: 1.0.0
status: stable
params:
  compile_max: {value: 0.05, unit: ratio, reason: r, source: s}
when:
  - alias: symptom
    fact: symptom
    where: {name: starved}
unless:
  - fact: operator_compile
    where: {rank: $symptom.rank, step_ratio: {ge: $compile_max}}
derives: {cause: cpu.dispatch, rank: $symptom.rank, cost_us: $symptom.cost_us, step_ratio: $symptom.step_ratio}
text: {en: "not compiling", zh: "未编译"}
references:
  - {url: "https://example.org/a", checked: 2026-01-01}
tests:
  - name: fires
    facts:
      - {fact: launch_profile, starved_step_ratio: 0.5, starved_per_step_us: 50000}
      - {fact: operator_compile, step_ratio: 0.01}
    expect: fires
  - name: compiling
    facts:
      - {fact: launch_profile, starved_step_ratio: 0.5}
      - {fact: operator_compile, step_ratio: 0.3}
    expect: silent
  - {name: compile time unknown, facts: [{fact: launch_profile, starved_step_ratio: 0.5}], expect: not_evaluated}
"""

CASE = """\
id: HMS-CPU-001
slug: many-short-kernels
version: 1.2.3
status: stable
applies: {devices: [ascend], frameworks: [any]}
cause: cpu.dispatch
params:
  short_min: {value: 0.5, unit: ratio, reason: r, source: s}
when:
  - alias: cause
    fact: cause
    where: {name: cpu.dispatch}
  - alias: kernels
    fact: kernel_summary
    where: {rank: $cause.rank, short_kernel_ratio: {ge: $short_min}}
severity: medium
confidence: 0.7
gain:
  kind: upper_bound
  recoverable_us: {mul: [0.5, $cause.cost_us]}
  recoverable_share: {mul: [0.5, $cause.step_ratio]}
  how: {en: half of the starved time, zh: 一半的等待时间}
scope: {ranks: $cause.rank, steps: $cause.step}
explains: [{name: starved}]
remedies:
  - id: fuse
    text: {en: Fuse them., zh: 融合算子。}
    settings: ["export X=1"]
    effort: medium
    risk: {en: none, zh: 无}
    verify: {fact: launch_profile, where: {starved_step_ratio: {lt: 0.1}}}
references:
  - {url: "https://example.org/a", checked: 2026-01-01}
text:
  en: {title: Many short kernels, summary: "{kernels.short_kernel_count} kernels cost {cause.cost_us}", why: short}
  zh: {title: 大量短算子, summary: "{kernels.short_kernel_count} 个算子耗时 {cause.cost_us}", why: 短}
tests:
  - name: fires
    facts:
      - {fact: launch_profile, starved_step_ratio: 0.5, starved_per_step_us: 50000}
      - {fact: operator_compile}
      - {fact: kernel_summary, short_kernel_ratio: 0.9, short_kernel_count: 900}
    expect: fires
    ranks: [0]
    recoverable_us: 25000
    recoverable_share: 0.25
  - name: long kernels
    facts:
      - {fact: launch_profile, starved_step_ratio: 0.5}
      - {fact: operator_compile}
      - {fact: kernel_summary, short_kernel_ratio: 0.1}
    expect: silent
  - {name: nothing, facts: [{fact: step_breakdown}], expect: not_evaluated}
"""

FILES = {
    "symptoms/starved.yaml": SYMPTOM,
    "causes/dispatch.yaml": CAUSE,
    "cases/cpu/many-short-kernels.yaml": CASE,
}
