"""Opening untrusted files: regular files only, small JSON documents whole; faults become ``UnreadableFileError``.

In: a path. Out: a binary handle, or a decoded JSON value whose floats are kept as their text (a double cannot hold a
Unix time in microseconds to the nanosecond).
"""

from __future__ import annotations

import json
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol

import msgspec

from hermes_advisor.extractors.readers.errors import UnreadableFileError

MAX_JSON_BYTES = 512 << 20
"""Largest JSON document that is read whole; communication.json of a long capture has some tens of MB."""

_TEXT_FLOATS = msgspec.json.Decoder(float_hook=str)


class Note(Protocol):
    """Records one health fact of the file being read."""

    def __call__(self, issue: str, severity: str, detail: str, *, count: int = 1) -> None:
        """Record ``count`` occurrences of ``issue``."""


def reason(error: OSError) -> str:
    """The operating system's words for an error, without the path."""
    return (error.strerror or type(error).__name__).lower()


def open_file(path: Path) -> BufferedReader:
    """Open a regular file for reading; a directory, pipe or device is refused before it can block."""
    try:
        # A pipe would block in open(); O_NONBLOCK lets it be looked at first, and means nothing for a regular file.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise UnreadableFileError("unreadable_file", f"cannot be opened: {reason(error)}") from error
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise UnreadableFileError("not_a_file", "is a directory or a device where a file is expected")
        if info.st_size == 0:
            raise UnreadableFileError("empty_file", "is empty", "warning")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_json(path: Path, *, limit: int = MAX_JSON_BYTES) -> Any:
    """Decode a whole JSON document; floats come back as ``str``. NaN, Infinity and bad UTF-8 are let through."""
    with open_file(path) as handle:
        try:
            data = handle.read(limit + 1)
        except OSError as error:
            raise UnreadableFileError("unreadable_file", f"cannot be read: {reason(error)}") from error
    if len(data) > limit:
        raise UnreadableFileError("file_too_large", f"is larger than the {limit >> 20} MiB that are read of it")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise UnreadableFileError("empty_file", "is empty", "warning")
    try:
        return _TEXT_FLOATS.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass
    try:
        return _encodable(json.loads(data.decode("utf-8", "replace"), parse_float=str, strict=False))
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError("damaged_json", f"is no complete JSON document ({_short(error)})") from error


def encodable(text: str) -> str:
    """The text with half surrogates replaced: they pass JSON as escapes and could not be written out again."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {encodable(key): _encodable(item) for key, item in value.items()}
    return value


def _short(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error).splitlines()[0][:120]
