"""Writes the embedded demo profiles: ``python examples/generate.py [OUT]`` (default: ``examples/demo``).

In: nothing; every number comes from the simulation with a fixed seed. Out: ``slow/`` and ``healthy/``, two ranks each,
byte for byte the same on every run and platform. What is planted in ``slow/`` is told in README.md beside this file.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Write the folders; returns the exit code."""
    here = Path(__file__).resolve().parent
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print("usage: python examples/generate.py [OUT]", file=sys.stderr)
        return 2
    sys.path.insert(0, str(here.parent / ".pkg"))  # this checkout's package, installed or not
    from hermes_advisor.examples.simulation.folders import write_demo

    target = Path(arguments[0]) if arguments else here / "demo"
    write_demo(target)
    print(f"wrote {target / 'slow'} and {target / 'healthy'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
