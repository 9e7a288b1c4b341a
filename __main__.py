"""``python -m hermes_advisor``: the command line."""

from hermes_advisor.cli import main

main()
