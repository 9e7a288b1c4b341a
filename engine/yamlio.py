"""Strict YAML: text in, plain data and the position of every node out.

YAML 1.2 core scalars (``yes``, ``on`` and dates stay text), no duplicate keys, no aliases, no tags, no inf or nan, and
caps on size, depth and node count, because a rule file may come from anyone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from hermes_advisor.engine.problems import Problem

MAX_BYTES = 262_144
MAX_DEPTH = 24
MAX_NODES = 20_000

Path = tuple[str | int, ...]

# The base loader: it constructs nothing and resolves no tags of its own; scalars are read here, by YAML 1.2.
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_INT = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_TAGS = frozenset(f"tag:yaml.org,2002:{t}" for t in ("str", "seq", "map"))


@dataclass
class Document:
    """Parsed data with, per path, the 1-based (line, column) of its key or list item."""

    file: str
    data: Any = None
    positions: dict[Path, tuple[int, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def at(self, path: Path) -> tuple[int, int]:
        """Position of a path, or of its closest ancestor."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.positions:
                return self.positions[path[:end]]
        return (1, 1)

    def problem(self, path: Path, code: str, message: str, severity: str = "error") -> None:
        """Record a fault at a path."""
        line, column = self.at(path)
        self.problems.append(Problem(self.file, line, column, code, message, severity))


def parse(text: str, file: str) -> Document:
    """Parse one document; faults are in ``problems`` and ``data`` is None when it cannot be used."""
    doc = Document(file)
    doc.positions[()] = (1, 1)
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        doc.problem((), "yaml-size", f"the file is larger than {MAX_BYTES} bytes; split it")
        return doc
    if text.count("[") + text.count("{") > MAX_NODES or _deep(text):
        doc.problem((), "yaml-depth", f"nested deeper than {MAX_DEPTH} levels")
        return doc
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        doc.problems.append(Problem(file, line, column, "yaml-syntax", _one_line(error)))
        return doc
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        doc.problem((), "yaml-syntax", _one_line(error))
        return doc
    finally:
        loader.dispose()
    if node is None:
        doc.problem((), "yaml-empty", "the file is empty; expected a rule")
        return doc
    data = _Builder(doc).build(node, (), 0)
    doc.data = None if any(p.severity == "error" for p in doc.problems) else data
    return doc


class _Builder:
    """Turns composed nodes into plain data, recording positions and refusing what rule files must not hold."""

    def __init__(self, doc: Document):
        self.doc = doc
        self.seen: set[int] = set()

    def build(self, node: Any, path: Path, depth: int) -> Any:
        mark = node.start_mark
        self.doc.positions.setdefault(path, (mark.line + 1, mark.column + 1))
        if id(node) in self.seen:
            self.doc.problem(path, "yaml-alias", "aliases (*name) are not allowed; write the value out")
            return None
        self.seen.add(id(node))
        if len(self.seen) > MAX_NODES or depth > MAX_DEPTH:
            self.doc.problem(path, "yaml-depth", f"more than {MAX_NODES} values or {MAX_DEPTH} levels")
            return None
        if node.tag not in _TAGS:
            self.doc.problem(path, "yaml-tag", f"tag {node.tag!r} is not allowed; write a plain value")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self._item(child, (*path, i), depth) for i, child in enumerate(node.value)]
        return self._scalar(node, path)

    def _item(self, child: Any, path: Path, depth: int) -> Any:
        self.doc.positions[path] = (child.start_mark.line + 1, child.start_mark.column + 1)
        return self.build(child, path, depth + 1)

    def _mapping(self, node: Any, path: Path, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            position = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            if not isinstance(key_node, yaml.ScalarNode):
                self.doc.problems.append(
                    Problem(self.doc.file, *position, "yaml-key", "a key must be a plain word, not a list or map")
                )
                continue
            key = key_node.value
            self.seen.add(id(key_node))
            if key in out:
                self.doc.problems.append(
                    Problem(self.doc.file, *position, "yaml-duplicate-key", f"'{key}' is given twice; keep one")
                )
                continue
            self.doc.positions[(*path, key)] = position
            out[key] = self.build(value_node, (*path, key), depth + 1)
        return out

    def _scalar(self, node: Any, path: Path) -> Any:
        text = node.value
        if node.style in ("'", '"', "|", ">"):
            return text
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if _INT.match(text):
            if len(text) > 19:
                self.doc.problem(path, "yaml-number", "the integer does not fit 62 bits")
                return None
            return int(text)
        if _FLOAT.match(text):
            value = float(text)
            if value in (float("inf"), float("-inf")):
                self.doc.problem(path, "yaml-number", "the number is too large")
                return None
            return value
        if text.lower().lstrip("+-") in (".inf", ".nan"):
            self.doc.problem(path, "yaml-number", "infinite and not-a-number values are not allowed")
            return None
        return text


def _deep(text: str) -> bool:
    # The C composer recurses per level: a bomb must be seen before it is composed.
    depth = most = 0
    for char in re.findall(r"[\[\]{}]", text):
        depth += 1 if char in "[{" else -1
        most = max(most, depth)
    indents = [len(m.group(0)) for m in re.finditer(r"(?m)^ *(?:[-?:] +)*", text)]
    return most > MAX_DEPTH or max(indents, default=0) > 4 * MAX_DEPTH


def _one_line(error: Exception) -> str:
    problem = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
    context = getattr(error, "context", None)
    return f"not valid YAML: {problem}" + (f" ({context})" if context else "")
