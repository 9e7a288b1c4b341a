"""Where reports go: a console on stdout or on a file; what cannot be written becomes an ``OutputError`` of one line."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console


class OutputError(Exception):
    """The output cannot be written; says why in one line."""


class _Patient(Console):
    """A reader that goes away ends the output, not the command: rich would exit with 1, which means findings."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        _drop_stdout()


@contextlib.contextmanager
def open_console(output: Path | None) -> Iterator[Console]:
    """A console on stdout, or on a file that appears whole or not at all. Raises OutputError."""
    if output is None:
        given = os.environ.get("COLUMNS", "")
        piped = max(40, int(given[:4])) if given.isascii() and given.isdigit() else 100
        width = None if sys.stdout.isatty() else piped  # rich asks the terminal
        with guarded_stdout():
            yield _Patient(width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)
        return
    part = target = Path(os.path.realpath(output))
    try:
        if target.is_dir():
            raise OutputError(f"cannot write {output}: it is a folder; name a file")
        # A pipe or a device is written to as it is; a file is replaced whole or not at all.
        if not target.exists() or target.is_file():
            part = target.with_name(f".{target.name[:200]}.{os.getpid()}.part")
        with part.open("w", encoding="utf-8", errors="replace") as stream:
            yield Console(file=stream, width=100, markup=False, highlight=False, emoji=False)
        if part != target:
            part.replace(target)
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror}") from None
    finally:
        if part != target:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


@contextlib.contextmanager
def guarded_stdout() -> Iterator[None]:
    """A reader that goes away (| head) is no error of ours; any other fault of stdout is an OutputError."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_stdout()
    except OSError as error:
        _drop_stdout()
        raise OutputError(f"cannot write the output: {error.strerror}") from None


def _drop_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
