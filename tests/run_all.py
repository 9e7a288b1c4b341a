"""Everything that must hold, in one command: ``python3 tests/run_all.py``.

In: the Python interpreters that the machine has (3.10 to 3.13). Out: exit code 0 if all passed, and one closing line.
The first interpreter found runs ruff, mypy, import-linter, ``hermes kb lint`` and ``hermes kb test``; the tests then
run on every interpreter found, each in an environment of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.10", "3.12", "3.13")
TOOLS = ["hypothesis>=6.100", "jsonschema>=4.21", "pytest>=8.2", "pytest-xdist>=3.6"]
CHECKERS = ["import-linter>=2.0", "mypy>=1.11", "pandas-stubs>=2.1", "ruff~=0.17.6", "types-jsonschema", "types-PyYAML"]
CLOSING = re.compile(r"(\d+) (passed|failed|skipped|error)")


def interpreters() -> dict[str, Path]:
    """Version → executable, of those on PATH and those that pyenv holds."""
    found: dict[str, Path] = {}
    for version in VERSIONS:
        candidates = [shutil.which(f"python{version}"), sys.executable]
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        candidates += [str(p / "bin" / "python") for p in sorted(pyenv.glob(f"{version}.*"))]
        for candidate in filter(None, candidates):
            probe = subprocess.run(
                [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
            )
            if probe.returncode == 0 and probe.stdout.strip() == version:
                found[version] = Path(candidate)
                break
    return found


def environment(version: str, python: Path, packages: list[str]) -> Path:
    """An environment with Hermes installed from this tree (editable) and the given packages; returns its bin folder."""
    folder = ROOT / ".venv-check" / version
    run([str(python), "-m", "venv", "--clear", str(folder)])
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "-e", str(ROOT), *packages])
    return folder / "bin"


def run(command: list[str]) -> None:
    """Run a command in the repository; end with its exit code if it fails."""
    print("+", " ".join(command), flush=True)
    done = subprocess.run(command, cwd=ROOT)
    if done.returncode:
        sys.exit(done.returncode)


def pytest(bin_folder: Path) -> dict[str, int]:
    """Run the tests; the counts of pytest's closing line. Ends when one fails or none ran."""
    command = [str(bin_folder / "python"), "-m", "pytest", "-q", "-n", str(os.cpu_count() or 1)]
    print("+", " ".join(command), flush=True)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    counts = {word: int(n) for n, word in CLOSING.findall(done.stdout.strip().splitlines()[-1])}
    if done.returncode or not counts.get("passed"):
        sys.exit(done.returncode or 1)
    return counts


def main() -> None:
    """Check the code once, then test on every interpreter."""
    found = interpreters()
    if not found:
        sys.exit("no Python 3.10 to 3.13 found")
    total = {"passed": 0, "skipped": 0}
    for index, (version, python) in enumerate(found.items()):
        bin_folder = environment(version, python, TOOLS + (CHECKERS if index == 0 else []))
        if index == 0:
            run([str(bin_folder / "ruff"), "check", "."])
            run([str(bin_folder / "ruff"), "format", "--check", "."])
            run([str(bin_folder / "mypy")])
            run([str(bin_folder / "lint-imports")])
            run([str(bin_folder / "hermes"), "kb", "lint"])
            run([str(bin_folder / "hermes"), "kb", "test"])
        for word, count in pytest(bin_folder).items():
            total[word] = total.get(word, 0) + count
    missing = [v for v in sorted(VERSIONS) if v not in found]
    print(
        f"Python {', '.join(sorted(found))} tested"
        + (f"; not on this machine: {', '.join(missing)}" if missing else "")
    )
    print(f"{total['passed']} passed, 0 failed, {total['skipped']} skipped")


if __name__ == "__main__":
    main()
