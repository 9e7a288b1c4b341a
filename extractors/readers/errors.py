"""What a reader raises: unusable input (told to the user), one unusable file (noted as health; the rest is read)."""

from __future__ import annotations


class InputError(Exception):
    """The given path cannot be diagnosed; the message is one line that says why and what to do."""


class UnreadableFileError(Exception):
    """One file of a rank cannot be used: ``issue`` is the name of the health fact, the message its detail."""

    def __init__(self, issue: str, detail: str, severity: str = "error") -> None:
        super().__init__(detail)
        self.issue = issue
        self.detail = detail
        self.severity = severity
