"""Numbers to words by the unit in a field's name, and templates filled from bound facts."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

from hermes_advisor.engine.compile import PLACEHOLDER
from hermes_advisor.facts.base import unit_of

_MAX_TEXT = 200


def clean(text: str, limit: int = _MAX_TEXT) -> str:
    """Untrusted text made printable on one line: control, format and bidi characters become ``�``; long text is cut."""
    out = "".join("�" if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Co") else c for c in text)
    return out if len(out) <= limit else out[: limit - 1] + "…"


def quantity(name: str, value: Any) -> str:
    """A field's value with its unit, to the precision that a reader needs."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ranges(int(v) for v in value) if all(isinstance(v, int) for v in value) else ", ".join(map(str, value))
    if isinstance(value, str):
        return clean(value)
    return with_unit(unit_of(name), value)


def with_unit(unit: str, value: float | str) -> str:
    """A number in a unit of the vocabulary; text stays text."""
    if isinstance(value, str):
        return clean(value)
    if unit == "us":
        return _time(value)
    if unit == "ratio":
        return f"{value * 100:.1f} %"
    if unit == "bytes":
        return _bytes(value)
    if unit == "gb_per_s":
        return f"{value:.1f} GB/s"
    if unit == "mhz":
        return f"{value:.0f} MHz"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.3g}"
    return f"{int(value)}"


def _time(us: float) -> str:
    size = abs(us)
    if size >= 1e6:
        return f"{us / 1e6:.2f} s"
    if size >= 1e3:
        return f"{us / 1e3:.1f} ms" if size >= 1e4 else f"{us / 1e3:.2f} ms"
    return f"{us:.1f} µs"


def _bytes(value: float) -> str:
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= limit:
            return f"{value / limit:.2f} {unit}"
    return f"{value:.0f} B"


def ranges(numbers: Iterable[int]) -> str:
    """``0-3, 7`` for 0, 1, 2, 3, 7."""
    out: list[list[int]] = []
    for n in sorted(set(numbers)):
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ", ".join(f"{a}" if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in out)


def fill(template: str, value: Callable[[str, str], Any]) -> str:
    """Replace every ``{alias.field}`` by its formatted value; a value that was not measured reads 'n/a'."""

    def one(match: Any) -> str:
        alias, _, field = match.group(1).partition(".")
        found = value(alias, field)
        return "n/a" if found is None else quantity(field, found)

    return PLACEHOLDER.sub(one, template)
