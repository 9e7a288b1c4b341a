"""The command line: parse, call, print, exit code. Heavy imports happen inside the commands.

Exit codes: 0 done (nothing at or above ``--fail-on``), 1 findings at or above it, 2 usage, 3 knowledge base faulty,
4 input unusable.
"""

from __future__ import annotations

import contextlib
import enum
import io
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from hermes_advisor import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from hermes_advisor.engine.loader import KnowledgeBase
    from hermes_advisor.engine.result import Diagnosis
    from hermes_advisor.extractors.run import Progress, RunExtract

app = typer.Typer(
    name="hermes", help="Tells why a training job is slow, and proves it.", no_args_is_help=True,
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip
kb_app = typer.Typer(help="Look at and check the knowledge base.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(kb_app, name="kb")

_PLATFORMS = {"ascend_pytorch_text": ("ascend", "pytorch")}
"""Input format → device and framework that cases may be confined to."""
EXIT_FINDINGS, EXIT_USAGE, EXIT_KNOWLEDGE, EXIT_INPUT = 1, 2, 3, 4


T = TypeVar("T")
MAX_RESULT_BYTES = 512 * 1024 * 1024
_RESULT_HINT = "give a file written by 'hermes diagnose --format json -o FILE'"


class Format(str, enum.Enum):
    """Output format."""

    table = "table"
    json = "json"


class Language(str, enum.Enum):
    """Language of words."""

    en = "en"
    zh = "zh"


class MatcherChoice(str, enum.Enum):
    """Which matcher runs the rules."""

    auto = "auto"
    durable = "durable"
    reference = "reference"


class FailOn(str, enum.Enum):
    """Least severity of a finding that makes the exit code 1."""

    never = "never"
    info = "info"
    low = "low"
    medium = "medium"
    high = "high"
    critical = "critical"


PathsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="PATH...", help="Profile folders (*_ascend_pt, or a parent), or a trace_view.json."),
]
KbOption = Annotated[
    list[Path] | None,
    typer.Option("--kb", help="Overlay folder with own rules or an overlay.yaml; may be repeated, later ones win."),
]
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="Output format.")]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file instead of stdout.")]
LangOption = Annotated[Language, typer.Option("--lang", help="Language of the words.")]
JobsOption = Annotated[
    int, typer.Option("--jobs", "-j", min=1, max=256, help="Processes that read ranks side by side.")
]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="All remedies and everything to collect.")]
FailOnOption = Annotated[FailOn, typer.Option("--fail-on", help="Exit with 1 if a finding is at least this severe.")]
MatcherOption = Annotated[MatcherChoice, typer.Option("--matcher", help="Matcher that runs the rules.")]


@app.command()
def diagnose(
    paths: PathsArgument,
    format: FormatOption = Format.table,
    output: OutputOption = None,
    lang: LangOption = Language.en,
    kb: KbOption = None,
    jobs: JobsOption = 1,
    fail_on: FailOnOption = FailOn.never,
    verbose: VerboseOption = False,
    matcher: MatcherOption = MatcherChoice.auto,
) -> None:
    """Diagnose profiles.

    Prints ranked findings; -f json holds the proofs.
    """
    result = _diagnose(paths, kb, jobs, lang, matcher)
    _emit(result, format, output, lang, verbose)
    _exit_on(result, fail_on)


@app.command()
def facts(
    paths: PathsArgument,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", "-k", help="Only facts of this kind; may be repeated.")
    ] = None,
    format: FormatOption = Format.table,
    output: OutputOption = None,
    jobs: JobsOption = 1,
) -> None:
    """Show what was measured, and where.

    Every fact with its fields, units, file and row.
    """
    from hermes_advisor.engine.problems import did_you_mean
    from hermes_advisor.facts.vocabulary import FACT_TYPES
    from hermes_advisor.reports.facts import facts_json, render_facts

    for name in kind or []:
        if name not in FACT_TYPES:
            raise fail(f"unknown fact kind '{name}'{did_you_mean(name, FACT_TYPES)}", EXIT_USAGE)
    found = [f for f in _extract(paths, jobs).facts if not kind or f.kind in kind]
    with _console(output) as console:
        if format is Format.json:
            console.file.write(facts_json(found))
        else:
            render_facts(found, console)


@app.command()
def explain(
    result: Annotated[Path, typer.Argument(help="A result written by 'hermes diagnose --format json'.")],
    finding: Annotated[
        str | None, typer.Argument(help="Number, case id, cause, or an unexplained symptom; all findings if omitted.")
    ] = None,
    format: FormatOption = Format.table,
    output: OutputOption = None,
    lang: LangOption = Language.en,
) -> None:
    """Show why a finding was made.

    Every step of its proof: rule, version, threshold, measured value, file and row.
    """
    import json

    from hermes_advisor.engine import explain as reasoning
    from hermes_advisor.reports.terminal import render_tree

    diagnosis = _read_result(result)
    found = diagnosis.findings if finding is None else [f] if (f := reasoning.find(diagnosis, finding)) else []
    try:
        trees = [reasoning.explain(diagnosis, f, lang.value) for f in found]
        seen = None if finding is None or trees else reasoning.explain_symptom(diagnosis, finding, lang.value)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # A result comes from outside: what passes its schema can still hold values that no diagnosis writes.
        raise fail(f"{result} was altered: {type(error).__name__} in its facts or proofs", EXIT_INPUT) from None
    if finding is not None and not trees:
        if seen is None:
            names = [f"{i} ({f.case})" for i, f in enumerate(diagnosis.findings, 1)]
            names += [u.symptom for u in diagnosis.unexplained]
            raise fail(f"nothing named '{finding}' in {result.name}; it has: {', '.join(names) or 'none'}", EXIT_USAGE)
        trees = [seen]
    with _console(output) as console:
        if format is Format.json:
            console.file.write(json.dumps([t.as_dict() for t in trees], ensure_ascii=False, indent=2) + "\n")
        elif not trees:
            console.print("This result has no findings; nothing to explain.")
        else:
            for tree in trees:
                render_tree(tree, console)


@app.command()
def demo(
    format: FormatOption = Format.table,
    output: OutputOption = None,
    lang: LangOption = Language.en,
    healthy: Annotated[bool, typer.Option("--healthy", help="Diagnose the healthy twin instead.")] = False,
    verbose: VerboseOption = False,
    matcher: MatcherOption = MatcherChoice.auto,
) -> None:
    """Diagnose the embedded example.

    Two ranks with two planted faults, or their healthy twin.
    """
    folder = Path(__file__).resolve().parent / "examples" / "demo" / ("healthy" if healthy else "slow")
    result = _diagnose([folder], None, 1, lang, matcher, label=f"demo/{folder.name}")
    _emit(result, format, output, lang, verbose)


@kb_app.command("list")
def kb_list(
    kb: KbOption = None,
    facts: Annotated[bool, typer.Option("--facts", help="List fact kinds and their fields instead.")] = False,
    causes: Annotated[bool, typer.Option("--causes", help="List the causes that cases may name instead.")] = False,
    lang: LangOption = Language.en,
) -> None:
    """List rules, or what rules may use."""
    from hermes_advisor.reports.knowledge import render_causes, render_fact_kinds, render_rules

    with _console(None) as console:
        if facts:
            render_fact_kinds(console)
        elif causes:
            render_causes(console)
        else:
            render_rules(load_knowledge(kb), console, lang.value)


@kb_app.command("lint")
def kb_lint(kb: KbOption = None) -> None:
    """Check every rule file.

    Shape, facts, units, tests; exit code 3 when anything is wrong.
    """
    from hermes_advisor.engine.lint import lint
    from hermes_advisor.engine.wording import clean

    knowledge = load_knowledge(kb, settings=False)
    _say_overlay(knowledge)
    problems = lint(knowledge)
    cases = sum(r.kind == "case" for r in knowledge.rules.values())
    with _guarded_stdout():
        for problem in problems:
            print(clean(str(problem), 2000))
        print(f"{len(knowledge.rules)} rules ({cases} cases), {len(problems)} problem(s)")
    if problems:
        raise typer.Exit(EXIT_KNOWLEDGE)


@kb_app.command("test")
def kb_test(
    kb: KbOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show tests that pass, too.")] = False,
    matcher: MatcherOption = MatcherChoice.reference,
) -> None:
    """Run the tests inside rule files.

    Exit code 3 when one fails.
    """
    from hermes_advisor.engine.chain import ChainError
    from hermes_advisor.engine.kbtest import run_tests
    from hermes_advisor.engine.matching.interface import MatcherFailure
    from hermes_advisor.engine.matching.select import create_matcher

    knowledge = load_knowledge(kb, settings=False)
    _say_overlay(knowledge)
    failed = passed = 0
    chosen = create_matcher(matcher.value)
    try:
        with _guarded_stdout():
            for outcome in run_tests(knowledge, chosen):
                passed, failed = passed + outcome.passed, failed + (not outcome.passed)
                place = f"{outcome.file}:{outcome.line}:{outcome.column}"
                if not outcome.passed:
                    print(f"{place}: FAILED {outcome.rule} '{outcome.name}': {outcome.message}")
                elif verbose:
                    print(f"{place}: ok {outcome.rule} '{outcome.name}'")
            print(f"{passed} passed, {failed} failed")
    except (MatcherFailure, ChainError) as error:
        raise fail(f"the tests could not be run: {error}", EXIT_KNOWLEDGE) from None
    finally:
        chosen.close()
    if failed:
        raise typer.Exit(EXIT_KNOWLEDGE)


@kb_app.command("schema")
def kb_schema(
    kind: Annotated[str, typer.Argument(help="case, rule, manifest, overlay or result.")] = "case",
) -> None:
    """Print a JSON Schema.

    For editors, and for programs that read results.
    """
    from hermes_advisor.engine.json_schema import MODELS, schema_text
    from hermes_advisor.engine.problems import did_you_mean

    if kind not in MODELS:
        raise fail(f"no schema '{kind}'{did_you_mean(kind, MODELS)}", EXIT_USAGE)
    with _guarded_stdout():
        print(schema_text(kind), end="")


def load_knowledge(folders: list[Path] | None, *, settings: bool = True) -> KnowledgeBase:
    """Load the knowledge base, or end with every fault and exit code 3; ``settings``: apply each overlay.yaml."""
    from hermes_advisor.engine.loader import load
    from hermes_advisor.engine.problems import KnowledgeBaseError
    from hermes_advisor.engine.wording import clean

    try:
        return load(folders or [], settings=settings)
    except KnowledgeBaseError as error:
        for problem in error.problems:
            print(clean(str(problem), 2000), file=sys.stderr)
        raise fail(f"the knowledge base has {len(error.problems)} fault(s); nothing was run", EXIT_KNOWLEDGE) from None


def _say_overlay(knowledge: KnowledgeBase) -> None:
    for line in knowledge.overlay:
        print(f"overlay: {line}")


def fail(message: str, code: int) -> typer.Exit:
    """Print one clear line to stderr and give the exit to raise."""
    from hermes_advisor.engine.wording import clean

    print(f"hermes: {clean(message, 2000)}", file=sys.stderr)
    return typer.Exit(code)


def _diagnose(
    paths: list[Path],
    kb: list[Path] | None,
    jobs: int,
    lang: Language,
    matcher: MatcherChoice,
    label: str | None = None,
) -> Diagnosis:
    from hermes_advisor.engine.chain import ChainError
    from hermes_advisor.engine.diagnose import diagnose as run_diagnosis
    from hermes_advisor.engine.matching.interface import MatcherFailure
    from hermes_advisor.engine.matching.select import create_matcher
    from hermes_advisor.engine.result import HealthEntry, Run
    from hermes_advisor.facts.base import encodable

    chosen = create_matcher(matcher.value)
    chosen.start()  # its child process starts while the profile is read
    try:
        knowledge = load_knowledge(kb)
        extract = _extract(paths, jobs)
        device, framework = _PLATFORMS.get(extract.format, ("any", "any"))
        run = Run(
            path=label or encodable(" ".join(str(p) for p in paths)), format=extract.format, ranks=list(extract.ranks),
            ranks_expected=extract.ranks_expected,
            ranks_expected_is_lower_bound=extract.ranks_expected_is_lower_bound,
            steps=list(extract.steps), duration_us=extract.duration_us,
            health=[
                HealthEntry(
                    kind=h.issue, severity=h.severity, count=h.occurrence_count, detail=h.detail, rank=h.rank,
                    file=h.source.file if h.source else "",
                )
                for h in extract.health
            ],
        )  # fmt: skip
        return run_diagnosis(extract.facts, run, knowledge, chosen, device=device, framework=framework, lang=lang.value)
    except ChainError as error:
        raise fail(str(error), EXIT_KNOWLEDGE) from None
    except MatcherFailure as error:
        raise fail(f"the rules could not be run: {error}", EXIT_KNOWLEDGE) from None
    finally:
        chosen.close()


def _extract(paths: list[Path], jobs: int) -> RunExtract:
    from hermes_advisor.extractors.readers.discover import discover
    from hermes_advisor.extractors.readers.errors import InputError
    from hermes_advisor.extractors.run import extract_run

    try:
        found = discover(paths)
        with _progress(len(found.sources)) as advance:
            extract = extract_run(found, jobs, progress=advance)
    except InputError as error:
        raise fail(str(error), EXIT_INPUT) from None
    if not extract.ranks:
        reasons = "; ".join(sorted({h.detail for h in extract.health if h.severity == "error"})[:3])
        raise fail(f"no rank could be read: {reasons}", EXIT_INPUT)
    return extract


@contextlib.contextmanager
def _progress(ranks: int) -> Iterator[Progress | None]:
    """A progress bar over ranks on stderr, none when it is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading ranks", total=ranks)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _emit(result: Diagnosis, format: Format, output: Path | None, lang: Language, verbose: bool) -> None:
    from hermes_advisor.reports.terminal import render

    with _console(output) as console:
        if format is Format.json:
            console.file.write(result.to_json())
        else:
            render(result, console, lang.value, verbose=verbose)


def _exit_on(result: Diagnosis, fail_on: FailOn) -> None:
    from hermes_advisor.engine.result import SEVERITIES

    if fail_on is FailOn.never:
        return
    least = SEVERITIES.index(fail_on.value)
    if any(SEVERITIES.index(f.severity) >= least for f in result.findings):
        raise typer.Exit(EXIT_FINDINGS)


@contextlib.contextmanager
def _output(opened: AbstractContextManager[T]) -> Iterator[T]:
    """What cannot be written ends in one line."""
    from hermes_advisor.reports.output import OutputError

    try:
        with opened as found:
            yield found
    except OutputError as error:
        raise fail(str(error), EXIT_USAGE) from None


def _console(output: Path | None) -> AbstractContextManager[Console]:
    from hermes_advisor.reports.output import open_console

    return _output(open_console(output))


def _guarded_stdout() -> AbstractContextManager[None]:
    from hermes_advisor.reports.output import guarded_stdout

    return _output(guarded_stdout())


def _read_result(path: Path) -> Diagnosis:
    from pydantic import ValidationError

    from hermes_advisor.engine.result import Diagnosis

    try:
        if path.exists() and not path.is_file():
            raise fail(f"cannot read {path}: not a file; {_RESULT_HINT}", EXIT_INPUT)
        with path.open("rb") as stream:
            data = stream.read(MAX_RESULT_BYTES + 1)
        if len(data) > MAX_RESULT_BYTES:
            raise fail(f"cannot read {path}: larger than {MAX_RESULT_BYTES} bytes", EXIT_INPUT)
        return Diagnosis.model_validate_json(data.decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise fail(f"cannot read {path}: {reason}; {_RESULT_HINT}",
                   EXIT_INPUT) from None  # fmt: skip
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(p) for p in first["loc"]) or "the file"
        raise fail(
            f"{path} is no result of 'hermes diagnose --format json': {place}: {first['msg']}", EXIT_INPUT
        ) from None


def _version(value: bool) -> None:
    if value:
        print(f"hermes {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Entry point of the ``hermes`` command."""
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character must not end the report
    try:
        app()
    except KeyboardInterrupt:
        print("hermes: interrupted", file=sys.stderr)
        sys.exit(130)
