"""Chrome trace events of trace_view.json as typed structs; in: JSON bytes of an array or one event, out: ``Event``.

Only what the tables need is declared: call stacks and input shapes are skipped by the decoder without being built.
The time is kept as text: a double cannot hold a Unix time in microseconds to the nanosecond.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec

from hermes_advisor.extractors.readers.files import encodable

Number = int | float | str | None


class Args(msgspec.Struct, gc=False):
    """The arguments that tell what an event is; those of other events stay None."""

    name: str | None = None
    connection_id: int | str | None = None
    task_type: str | None = msgspec.field(default=None, name="Task Type")
    copied_bytes: Number = msgspec.field(default=None, name="data size(Byte)")
    direction: str | None = msgspec.field(default=None, name="memcpy direction")
    level: str | None = None
    hccl_task: str | None = msgspec.field(default=None, name="task type")
    size_bytes: Number = msgspec.field(default=None, name="size(Byte)")
    src: Number = msgspec.field(default=None, name="src rank")
    dst: Number = msgspec.field(default=None, name="dst rank")
    transport: str | None = msgspec.field(default=None, name="transport type")
    link_type: str | None = msgspec.field(default=None, name="link type")
    mhz: Number = msgspec.field(default=None, name="MHz")
    read_mb_per_s: Number = msgspec.field(default=None, name="Read(MB/s)")
    write_mb_per_s: Number = msgspec.field(default=None, name="Write(MB/s)")
    kb: Number = msgspec.field(default=None, name="KB")


class Event(msgspec.Struct, gc=False):
    """One event; ``ts`` in microseconds since 1970 as text, ``dur`` in microseconds (NaN: not written)."""

    ph: str = ""
    name: str = ""
    pid: int | str = -1
    tid: int | str = -1
    ts: str = ""
    dur: float = float("nan")
    cat: str = ""
    args: Args | None = None
    id: int | str | None = None


class _NumericTimeEvent(Event, gc=False):
    """The same with a bare number as time, as other writers have it; Decimal keeps every digit."""

    ts: Decimal = Decimal(0)  # type: ignore[assignment]


_ARRAY = msgspec.json.Decoder(list[Event])
_NUMERIC_ARRAY = msgspec.json.Decoder(list[_NumericTimeEvent])
_ONE = msgspec.json.Decoder(Event)
_PATIENT = json.JSONDecoder(parse_float=str, strict=False)
_FAULTS = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


def decode_array(data: bytes | bytearray | memoryview) -> list[Event] | None:
    """The events of a JSON array; None when any of them is not of the expected form."""
    try:
        return _ARRAY.decode(data)
    except msgspec.ValidationError:
        return _decode_numeric(data)
    except _FAULTS:
        return None


def _decode_numeric(data: bytes | bytearray | memoryview) -> list[Event] | None:
    try:
        events = _NUMERIC_ARRAY.decode(data)
    except _FAULTS:
        return None
    return [Event(e.ph, e.name, e.pid, e.tid, str(e.ts), e.dur, e.cat, e.args, e.id) for e in events]


def decode_one(data: bytes) -> tuple[Event | None, str]:
    """One event in whatever form, and the name of the leniency it needed; None when it is no event at all."""
    try:
        return _ONE.decode(data), ""
    except _FAULTS:
        pass
    text = data.decode("utf-8", "replace")
    try:
        value = _PATIENT.decode(text)
    except (ValueError, RecursionError):
        return None, ""
    if not isinstance(value, dict):
        return None, ""
    return _lenient(value), "bad_utf8" if "\ufffd" in text else "nonstandard_events"


def decode_first(data: bytes) -> Event | None:
    """The event that ``data`` begins with, whatever follows it."""
    try:
        value, _ = _PATIENT.raw_decode(data.decode("utf-8", "replace").lstrip())
    except (ValueError, RecursionError):
        return None
    return _lenient(value) if isinstance(value, dict) else None


def _lenient(value: dict[str, Any]) -> Event:
    arguments = value.get("args")
    args = Args()
    if isinstance(arguments, dict):
        for field in msgspec.structs.fields(Args):
            given = arguments.get(field.encode_name)
            if isinstance(given, str):
                setattr(args, field.name, encodable(given))
            elif isinstance(given, int) and not isinstance(given, bool) and field.type != str | None:
                setattr(args, field.name, given)
    return Event(
        ph=_text(value.get("ph")), name=_text(value.get("name")), cat=_text(value.get("cat")),
        pid=_label(value.get("pid")), tid=_label(value.get("tid")), id=_label(value.get("id")),
        ts=_text(value.get("ts")), dur=_float(value.get("dur")), args=args,
    )  # fmt: skip


def _text(value: Any) -> str:
    if isinstance(value, str):
        return encodable(value)
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _label(value: Any) -> int | str:
    return value if isinstance(value, int | str) and not isinstance(value, bool) else -1


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
