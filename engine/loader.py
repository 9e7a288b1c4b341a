"""Folders of rule files in, a checked and layered ``KnowledgeBase`` out, or every fault with its position.

The first folder is the base; each later one overrides rules by id, and its ``overlay.yaml`` changes parameters or
switches rules off. Everything overridden is recorded, because the report must say so.
"""

from __future__ import annotations

import dataclasses
import difflib
import errno
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from hermes_advisor.engine import yamlio
from hermes_advisor.engine.compile import compile_document, validate
from hermes_advisor.engine.problems import KnowledgeBaseError, Problem, did_you_mean
from hermes_advisor.engine.result import MAX_STRATUM
from hermes_advisor.engine.rules import Rule
from hermes_advisor.engine.schema import Manifest, Overlay, OverlayParam
from hermes_advisor.engine.strata import derivers, reads, stratify
from hermes_advisor.facts.vocabulary import CAUSES, DERIVED_KINDS

BUNDLED = Path(__file__).resolve().parent.parent / "knowledge_base"
FOLDERS: dict[str, Literal["symptom", "cause", "case"]] = {"symptoms": "symptom", "causes": "cause", "cases": "case"}
AREAS = {
    "parallel": "PAR", "io": "IO", "cpu": "CPU", "compute": "CMP", "communication": "COM", "memory": "MEM",
    "hardware": "HW",
}  # fmt: skip
MAX_FILES = 5000
_PLACES = "symptoms/, causes/ or cases/<bottleneck>/, as <slug>.yaml"
_CAUSE_FOLDER = {"comm": "communication", "fluctuation": "hardware"}


@dataclass(frozen=True)
class KnowledgeBase:
    """Everything that rules say, ready to run. ``digest`` covers the content of every file in use."""

    name: str
    version: str
    digest: str
    overlay: tuple[str, ...]
    rules: Mapping[str, Rule]
    levels: Mapping[str, int]
    documents: Mapping[str, yamlio.Document] = field(repr=False)
    enabled: frozenset[str] = frozenset()

    def active(self) -> list[Rule]:
        """The rules that run: not drafts (unless an overlay enables them), not deprecated ones."""
        return [r for _, r in sorted(self.rules.items()) if r.status in ("test", "stable") or r.id in self.enabled]

    def cases(self) -> list[Rule]:
        """The active cases."""
        return [r for r in self.active() if r.kind == "case"]


def load(folders: Sequence[Path] = (), *, settings: bool = True) -> KnowledgeBase:
    """Load the bundled base and overlay folders. Raises KnowledgeBaseError with every problem."""
    return load_folders([BUNDLED, *folders], settings=settings)


def load_folders(folders: Sequence[Path], *, settings: bool = True) -> KnowledgeBase:
    """Load the first folder as the base and the others over it. Raises KnowledgeBaseError with every problem.

    ``settings`` False checks each ``overlay.yaml`` but does not apply it: the tests inside rule files are about the
    thresholds that the files state.
    """
    loading = _Loading(settings=settings)
    for index, folder in enumerate(folders):
        loading.folder(folder, base=index == 0)
    return loading.finish()


@dataclass
class _Loading:
    settings: bool = True
    rules: dict[str, Rule] = field(default_factory=dict)
    documents: dict[str, yamlio.Document] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    overlay: list[str] = field(default_factory=list)
    manifest: Manifest | None = None
    disabled: set[str] = field(default_factory=set)
    enabled: set[str] = field(default_factory=set)
    hash: list[tuple[str, str]] = field(default_factory=list)

    def folder(self, folder: Path, *, base: bool) -> None:
        label = "" if base else f"{folder.resolve().name}/"
        if not folder.is_dir():
            self.problems.append(Problem(str(folder), 1, 1, "no-folder", "no such knowledge base folder"))
            return
        manifest = self.read(folder / "manifest.yaml", label)
        if manifest is not None:
            found = cast("Manifest | None", validate(manifest, Manifest))
            self.problems += manifest.problems
            if base:
                self.manifest = found
        elif base:
            self.problems.append(
                Problem(f"{label}manifest.yaml", 1, 1, "no-manifest", "the base needs a manifest.yaml")
            )
        here: dict[str, Rule] = {}
        files = sorted(p for name in FOLDERS for p in (folder / name).rglob("*.yaml"))
        if len(files) > MAX_FILES:
            self.problems.append(Problem(str(folder), 1, 1, "too-many-files", f"more than {MAX_FILES} rule files"))
            files = []
        for file in files:
            self.rule_file(file, folder, label, here)
        for rule in here.values():
            if not base:
                done = "overridden by" if rule.id in self.rules else "added by"
                self.overlay.append(f"{rule.id} {done} {rule.file}")
            self.rules[rule.id] = rule
        if not base:
            self.apply_overlay(folder, label)
            if not here and not files and not (folder / "overlay.yaml").is_file():
                text = f"holds no rules and no overlay.yaml; rules belong in {_PLACES}"
                self.problems.append(Problem(label, 1, 1, "empty-overlay", text))
        self.strays(folder, label, set(files))

    def strays(self, folder: Path, label: str, taken: set[Path]) -> None:
        """A rule file in the wrong place would be ignored without a word."""
        known = taken | {folder / "manifest.yaml", folder / "overlay.yaml"}
        for file in sorted(p for ending in ("yaml", "yml") for p in folder.rglob(f"*.{ending}")):
            if file not in known:
                name = label + file.relative_to(folder).as_posix()
                self.problems.append(
                    Problem(name, 1, 1, "stray-file", f"would be ignored here; rules belong in {_PLACES}")
                )

    def read(self, file: Path, label: str) -> yamlio.Document | None:
        try:
            if not file.is_file():
                return None
            data = _read(file)
        except OSError as error:
            self.problems.append(Problem(str(file), 1, 1, "unreadable", f"cannot read: {error.strerror}"))
            return None
        name = label + file.name
        self.hash.append((name, hashlib.sha256(data).hexdigest()))
        return self.parse(data, name)

    def parse(self, data: bytes, name: str) -> yamlio.Document:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            doc = yamlio.Document(name)
            doc.problem((), "yaml-encoding", f"not UTF-8 at byte {error.start}")
            return doc
        return yamlio.parse(text, name)

    def rule_file(self, file: Path, folder: Path, label: str, here: dict[str, Rule]) -> None:
        parts = file.relative_to(folder).parts
        name = label + "/".join(parts)
        try:
            data = _read(file)
        except OSError as error:
            self.problems.append(Problem(name, 1, 1, "unreadable", f"cannot read: {error.strerror}"))
            return
        self.hash.append((name, hashlib.sha256(data).hexdigest()))
        doc = self.parse(data, name)
        rule = compile_document(doc, FOLDERS[parts[0]])
        self.documents[name] = doc
        if rule is not None:
            _check_place(doc, rule, parts)
            if rule.id in here:
                doc.problem(("id",), "duplicate-id", f"id {rule.id} is also used by {here[rule.id].file}")
            here[rule.id] = rule
        self.problems += doc.problems

    def apply_overlay(self, folder: Path, label: str) -> None:
        doc = self.read(folder / "overlay.yaml", label)
        if doc is None:
            return
        found = cast("Overlay | None", validate(doc, Overlay))
        for rule_id, values in (found.params if found else {}).items():
            rule = self.rules.get(rule_id)
            if rule is None:
                doc.problem(("params", rule_id), "unknown-id", f"no rule {rule_id}{self.similar(rule_id)}")
                continue
            changed = self.with_params(doc, rule, values)
            if self.settings:
                self.rules[rule_id] = changed
        for part in ("disable", "enable"):
            for i, rule_id in enumerate(getattr(found, part) if found else []):
                if rule_id not in self.rules:
                    doc.problem((part, i), "unknown-id", f"no rule {rule_id}{self.similar(rule_id)}")
                if self.settings:
                    (self.disabled if part == "disable" else self.enabled).add(rule_id)
                self.overlay.append(f"{rule_id} {part}d")
        self.problems += doc.problems

    def similar(self, name: str) -> str:
        """The rule that a wrong id or a slug probably means."""
        by_slug = [r.id for r in self.rules.values() if r.slug == name]
        close = by_slug or difflib.get_close_matches(name, self.rules, n=1, cutoff=0.8)
        return f"; did you mean '{close[0]}'?" if close else "; 'hermes kb list' shows all ids"

    def with_params(self, doc: yamlio.Document, rule: Rule, values: Mapping[str, OverlayParam]) -> Rule:
        params, specs = dict(rule.params), dict(rule.param_specs)
        for name, given in values.items():
            path, value = ("params", rule.id, name), given.value
            if name not in params:
                doc.problem(
                    path, "unknown-parameter", f"{rule.id} has no parameter '{name}'{did_you_mean(name, params)}"
                )
                continue
            old = params[name]
            if isinstance(value, str) != isinstance(old, str):
                wanted = "a text" if isinstance(old, str) else f"a number such as {old}"
                doc.problem((*path, "value"), "wrong-value", f"'{name}' needs {wanted}, got {value!r}")
                continue
            self.overlay.append(f"{rule.id}.{name} = {value} (was {old})")
            if isinstance(old, int) and isinstance(value, float):
                doc.problem(
                    (*path, "value"), "wrong-value", f"'{name}' needs a whole number such as {old}, got {value}"
                )
                continue
            params[name] = float(value) if isinstance(old, float) else value
            stock = specs[name]
            reason = f"{given.reason or 'changed by an overlay, no reason given'} (stock: {old}, {stock.reason})"
            specs[name] = stock.model_copy(
                update={
                    "value": value,
                    "reason": reason,
                    "source": given.source or f"{doc.file}; stock: {stock.source}",
                }
            )
        return dataclasses.replace(rule, params=params, param_specs=specs, overlaid=(*rule.overlaid, *values))

    def finish(self) -> KnowledgeBase:
        rules = {i: r for i, r in sorted(self.rules.items()) if i not in self.disabled}
        self.check_conclusions(rules)
        levels, cycles = stratify(rules)
        for loop in cycles:
            first = rules[loop[0]]
            line, column = self.documents[first.file].at(("when",))
            text = " → ".join([*loop, loop[0]])
            self.problems.append(Problem(first.file, line, column, "cycle", f"rules depend on each other: {text}"))
        for rule_id, level in levels.items():
            if level > MAX_STRATUM:
                first = rules[rule_id]
                self.problem(
                    self.documents[first.file], ("when",), "too-deep", f"more than {MAX_STRATUM} layers of rules"
                )
        if self.problems or self.manifest is None:
            raise KnowledgeBaseError(self.problems)
        content = "\n".join(f"{name} {digest}" for name, digest in sorted(self.hash))
        return KnowledgeBase(
            name=self.manifest.name, version=self.manifest.version,
            digest="sha256:" + hashlib.sha256(content.encode()).hexdigest(),
            overlay=tuple(self.overlay), rules=rules, levels=levels, documents=self.documents,
            enabled=frozenset(self.enabled),
        )  # fmt: skip

    def check_conclusions(self, rules: Mapping[str, Rule]) -> None:
        derived = {(r.kind, r.derives_name) for r in rules.values() if r.head}
        symptoms = {name for kind, name in derived if kind == "symptom"}
        for rule in rules.values():
            doc = self.documents[rule.file]
            for kind, name in sorted(reads(rule), key=str):
                if kind in DERIVED_KINDS and not derivers((kind, name), rules.values()):
                    self.problem(doc, ("when",), "never-derived", f"no active rule derives the {kind} '{name}'"
                                 + did_you_mean(str(name), [n for k, n in derived if k == kind]))  # fmt: skip
            case = rule.case
            for i, name in enumerate([e.name for e in case.explains] if case else []):
                if name not in symptoms and name not in CAUSES:
                    self.problem(doc, ("explains", i), "unknown-conclusion",
                                 f"no symptom or cause '{name}'{did_you_mean(name, symptoms | CAUSES)}")  # fmt: skip
            for i, other in enumerate(case.contradicts if case else []):
                if other not in self.rules:
                    self.problem(doc, ("contradicts", i), "unknown-id", f"no rule {other}{self.similar(other)}")

    def problem(self, doc: yamlio.Document, path: yamlio.Path, code: str, message: str) -> None:
        line, column = doc.at(path)
        self.problems.append(Problem(doc.file, line, column, code, message))


def _read(file: Path) -> bytes:
    """The file up to what a rule file may hold; a pipe or a device is not waited for. Raises OSError."""
    if not file.is_file():
        raise OSError(errno.EINVAL, "not a regular file")
    with file.open("rb") as stream:
        return stream.read(yamlio.MAX_BYTES + 1)


def _check_place(doc: yamlio.Document, rule: Rule, parts: tuple[str, ...]) -> None:
    if f"{rule.slug}.yaml" != parts[-1]:
        doc.problem(("slug",), "wrong-place", f"slug '{rule.slug}' and file name '{parts[-1]}' must agree")
    prefix = {"symptom": "SYM-", "cause": "CAU-"}.get(rule.kind)
    if prefix and not rule.id.startswith(prefix):
        doc.problem(("id",), "wrong-place", f"ids in {parts[0]}/ start with {prefix}")
    if rule.case is not None:
        area = rule.case.cause.partition(".")[0]
        folder = _CAUSE_FOLDER.get(area, area)
        if len(parts) < 3 or parts[1] != folder:
            doc.problem(("cause",), "wrong-place", f"a case of cause {rule.case.cause} belongs in cases/{folder}/")
        elif not rule.id.startswith(f"HMS-{AREAS[folder]}-"):
            doc.problem(("id",), "wrong-place", f"ids in cases/{folder}/ start with HMS-{AREAS[folder]}-")
