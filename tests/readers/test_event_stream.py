"""Reading trace events in pieces: any order of keys, any damage, any place of the cut."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest

from hermes_advisor.extractors.readers.errors import UnreadableFileError
from hermes_advisor.extractors.readers.event_stream import EventStream
from hermes_advisor.extractors.readers.trace_columns import TraceColumns
from hermes_advisor.extractors.readers.trace_events import Event

# Names and arguments hold all that looks like a seam between events and is none.
EVENTS: list[dict[str, Any]] = [
    {
        "ph": "X", "name": 'a"}, {"ph"\\', "pid": 1, "tid": 2, "ts": "1736412474713010.400", "dur": 1.5, "cat": "cpu_op",
        "args": {"x": [{"name": 1}, {"name": "}, {"}], "Call stack": "a.py(1): f;\r\nb.py(2): \"g\""},
    },
    {
        "name": "kernel", "pid": 800, "tid": 3, "ts": "1736412474713011.400", "dur": 2,
        "args": {"Task Type": "AI_CORE", "connection_id": 7}, "ph": "X",
    },
    {"name": "HostToDevice1", "ph": "s", "cat": "HostToDevice", "id": "38654705663", "pid": 5, "tid": 6, "ts": "1.000"},
    {"name": "process_name", "ph": "M", "pid": 5, "args": {"name": "é漢\\"}},
]  # fmt: skip
NAMES = [event["name"] for event in EVENTS]
STYLES: dict[str, dict[str, Any]] = {
    "default": {}, "utf8": {"ensure_ascii": False}, "compact": {"separators": (",", ":")}, "pretty": {"indent": 2},
}  # fmt: skip


def read(data: bytes, chunk: int = 4 << 20, max_event: int = 4 << 20) -> tuple[list[Event], dict[str, int]]:
    stream = EventStream(io.BytesIO(data), chunk=chunk, max_event=max_event)
    events = [event for piece in stream for event in piece]
    return events, dict(stream.repairs)


def names(data: bytes, **sizes: int) -> list[str]:
    return [event.name for event in read(data, **sizes)[0]]


def complete_events(data: bytes) -> int:
    """How many events the stdlib can decode one by one before it fails."""
    text, place, count = data.decode("utf-8", "ignore"), 1, 0
    decoder = json.JSONDecoder()
    while True:
        while place < len(text) and text[place] in ", \n":
            place += 1
        try:
            _, place = decoder.raw_decode(text, place)
        except ValueError:
            return count
        count += 1


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("chunk", [64, 100, 257, 4096])
def test_pieces_of_any_size_give_the_same_events(style: str, chunk: int) -> None:
    data = json.dumps(EVENTS, **STYLES[style]).encode()
    events, repairs = read(data, chunk=chunk, max_event=4096)
    assert [event.name for event in events] == NAMES
    assert repairs == {}
    first, kernel, flow, process = events
    assert (first.ts, first.dur, first.pid, first.cat) == ("1736412474713010.400", 1.5, 1, "cpu_op")
    assert kernel.args is not None
    assert (kernel.args.task_type, kernel.args.connection_id) == ("AI_CORE", 7)
    assert flow.id == "38654705663"
    assert process.args is not None
    assert process.args.name == "é漢\\"


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("chunk", [100, 4096])
def test_cut_at_every_byte_all_complete_events_are_read(style: str, chunk: int) -> None:
    data = json.dumps(EVENTS, **STYLES[style]).encode()
    for cut in range(1, len(data)):
        events, repairs = read(data[:cut], chunk=chunk, max_event=4096)
        assert [event.name for event in events] == NAMES[: complete_events(data[:cut])], data[:cut]
        assert repairs["truncated_timeline"] == 1, data[:cut]


@pytest.mark.parametrize("rotation", range(8))
def test_the_order_of_keys_does_not_matter(rotation: int) -> None:
    def rotated(event: dict[str, Any]) -> dict[str, Any]:
        items = list(event.items())
        return dict(items[rotation % len(items) :] + items[: rotation % len(items)])

    data = json.dumps([rotated(event) for event in EVENTS * 20]).encode()
    for chunk in (300, 5000):
        assert names(data, chunk=chunk) == NAMES * 20


@pytest.mark.parametrize(
    ("data", "expected", "repairs"),
    [
        (b"[]", [], {}),
        (b"\xef\xbb\xbf [ ] \r\n", [], {}),
        (b"[", [], {"truncated_timeline": 1}),
        (b'[{"ph":"X","name":"a","ts":"1"},]', ["a"], {"stray_commas": 1}),
        (b'[,{"ph":"X","name":"a","ts":"1"}]', ["a"], {"stray_commas": 1}),
        (b'[{"ph":"X","name":"a","ts":"1"}', ["a"], {"truncated_timeline": 1}),
        (b'[{"ph":"X","name":"a","ts":"1"},\n', ["a"], {"truncated_timeline": 1}),
        (b'[{"ph":"X","name":"a","ts":"1"}] x', ["a"], {"trailing_data": 1}),
        (b'[{"ph":"X","name":"a","ts":"1"}][{"ph":"X","name":"b","ts":"1"}]', ["a"], {"trailing_data": 1}),
        (b'{"schema":1,"traceEvents" : [{"ph":"X","name":"a","ts":"1"}], "displayTimeUnit":"ms"}', ["a"], {}),
        (b'[{"ph":"X","name":"a","ts":"1","dur":NaN}]', ["a"], {"nonstandard_events": 1}),
        (b'[{"ph":"X","name":"a","ts":"1","dur":Infinity}]', ["a"], {"nonstandard_events": 1}),
        (b'[{"ph":"X","name":"a\\ud800","ts":"1"}]', ["a?"], {"nonstandard_events": 1}),
        (b'[{"ph":"X","name":"a\nb","ts":"1"}]', ["a\nb"], {"nonstandard_events": 1}),
        (b'[{"ph":"X","name":"a\xff","ts":"1"}]', ["a\ufffd"], {"bad_utf8": 1}),
        (b'[{"ph":"X","name":"a","ts":"1","args":[1]}]', ["a"], {"nonstandard_events": 1}),
        (b'[{"ph":"X","name":"a","ts":"1","pid":null,"cat":7}]', ["a"], {"nonstandard_events": 1}),
        (b'[{"ph":"X","name":"a","ts":"1"}, 7, null, [], "x", {"ph":"X","name":"b","ts":"1"}]', ["a", "b"], {"unreadable_events": 4}),
        (b'[{"ph":"X","name":"a","ts":"1"}, {"ph":}, {"ph":"X","name":"b","ts":"1"}]', ["a", "b"], {"unreadable_events": 1}),
        (b'[{"ph":"X","name":"a "quoted" b","ts":"1"}, {"ph":"X","name":"b","ts":"1"}, {"ph":"X","name":"c","ts":"1"}]', ["b", "c"], {"unreadable_events": 1}),
        (b'[{"ph":"X","name":"a","args":{"x":1}, {"ph":"X","name":"b","ts":"1"}, {"ph":"M","name":"c"}]', ["b", "c"], {"unreadable_events": 1}),
        (b'[{"ph":"X","name":"a","ts":"1"}}, {"ph":"X","name":"b","ts":"1"}, {"ph":"M","name":"c"}]', ["a", "b", "c"], {"unreadable_events": 1}),
    ],
)  # fmt: skip
def test_damage(data: bytes, expected: list[str], repairs: dict[str, int]) -> None:
    events, found = read(data)
    assert [event.name for event in events] == expected
    found.pop("truncated_timeline", None) if "truncated_timeline" not in repairs else None
    assert found == repairs


@pytest.mark.parametrize("good", [0, 1, 50])
def test_damage_among_good_events_costs_the_damaged_one_alone(good: int) -> None:
    event = '{"ph":"X","name":"good","ts":"1.000","args":{"a":1}}'
    for bad in ('{"ph":"X","name":"a "b" c","ts":"1"}', '{"ph":"X","args":{"ts":"1"}', '{"ph":"X","name":"\\"}'):
        data = f"[{', '.join([*[event] * good, bad, *[event] * 50])}]".encode()
        for chunk in (200, 1 << 20):
            events, repairs = read(data, chunk=chunk, max_event=1 << 12)
            assert [e.name for e in events].count("good") == good + 50, (bad, chunk)
            assert repairs["unreadable_events"] == 1, (bad, chunk, repairs)


def test_times_as_bare_numbers_keep_every_digit() -> None:
    data = b'[{"ph":"X","name":"a","ts":1736412474713010.123,"dur":1}, {"ph":"X","name":"b","ts":17,"dur":1}, {"ph":"M","name":"c"}]'
    events, repairs = read(data)
    assert [event.ts for event in events] == ["1736412474713010.123", "17", "0"]
    assert repairs == {}


def test_times_as_text_and_as_numbers_in_one_file() -> None:
    events, _ = read(
        b'[{"ph":"X","name":"a","ts":1736412474713010.123}, {"ph":"X","name":"b","ts":"1736412474713010.124"}]'
    )
    assert [event.ts for event in events] == ["1736412474713010.123", "1736412474713010.124"]


@pytest.mark.parametrize("inner", ["[" * 100_000, "[" * 100 + "]" * 100, '{"a":' * 500 + "1" + "}" * 500])
@pytest.mark.parametrize("place", ["event", "args", "element"])
def test_nesting_is_bounded(inner: str, place: str) -> None:
    damaged = {
        "event": f'{{"ph":"X","name":"deep","ts":"1","other":{inner}}}',
        "args": f'{{"ph":"X","name":"deep","ts":"1","args":{{"stack":{inner}, "dur":NaN}}}}',
        "element": inner,
    }[place]
    events, repairs = read(f'[{{"ph":"X","name":"a","ts":"1"}}, {damaged}, {{"ph":"X","name":"b","ts":"1"}}]'.encode())
    assert events[0].name == "a"
    if inner[-1] != "[":
        assert events[-1].name == "b"
    if inner[-1] != "[" and place == "args":
        assert repairs == {"nested_too_deep": 1}


def test_what_follows_the_array_is_seen_only_if_it_is_there() -> None:
    event = b'{"cat":"a","ph":"X","name":"a","ts":"1"}'
    for chunk in range(60, 120):  # the bracket ends a piece at one of these sizes
        events, repairs = read(b"[" + event + b"," + event + b"]", chunk=chunk)
        assert (len(events), repairs) == (2, {})
        assert read(b"[" + event + b"," + event + b"] []", chunk=chunk)[1] == {"trailing_data": 1}


def test_nothing_but_brackets() -> None:
    events, repairs = read(b"[" * 100_000)
    assert events == []
    assert repairs["truncated_timeline"] == 1


def test_huge_integers_are_no_numbers() -> None:
    huge = "9" * 10_000
    data = f'[{{"ph":"X","name":"a","ts":"1","pid":{huge}}}, {{"ph":"X","name":"b","ts":"{huge}","id":{"9" * 40}}}]'
    events, repairs = read(data.encode())
    assert [event.name for event in events] == ["b"]
    assert repairs == {"unreadable_events": 1}


def test_an_event_longer_than_any_is_given_up_and_the_next_are_read() -> None:
    long = '{"ph":"X","name":"' + "x" * 5000 + '","ts":"1"}'
    event = '{"ph":"X","name":"good","ts":"1"}'
    events, repairs = read(f"[{event}, {long}, {event}, {event}]".encode(), chunk=200, max_event=1000)
    assert [e.name for e in events].count("good") >= 2
    assert repairs["oversized_events"] == 1


def test_an_event_longer_than_a_piece_is_read() -> None:
    stack = "/".join(["frame.py(1): call;"] * 2000)
    data = json.dumps([{"ph": "X", "name": "a", "ts": "1", "args": {"Call stack": stack}}, *EVENTS]).encode()
    assert names(data, chunk=200) == ["a", *NAMES]


@pytest.mark.parametrize(
    ("data", "issue"),
    [
        (b" \n\t ", "empty_file"),
        (b" " * 5000, "empty_file"),
        (b"hello", "not_a_timeline"),
        (b'{"a": 1}', "not_a_timeline"),
        (b"\x1f\x8b\x08\x00\x00", "not_a_timeline"),
        (b"\xff\xfe[\x00{\x00", "not_a_timeline"),
        (bytes(range(256)) * 10, "not_a_timeline"),
    ],
)
def test_a_file_that_is_no_timeline(data: bytes, issue: str) -> None:
    with pytest.raises(UnreadableFileError) as error:
        read(data, chunk=100)
    assert error.value.issue == issue


def test_binary_junk_behind_the_bracket_gives_no_events() -> None:
    events, repairs = read(b"[" + bytes(range(256)) * 100, chunk=1000, max_event=2000)
    assert events == []
    assert repairs


def test_random_damage_ends_in_events_and_counts() -> None:
    rng = random.Random(7)
    tokens = [b"{", b"}", b"[", b"]", b'"', b",", b"\\", b'}, {"ph"', b'},{"name"', b"\xff", b"NaN", b"1e999", b"\0"]
    for _ in range(600):
        whole = EVENTS * rng.randrange(1, 6)
        data = bytearray(json.dumps(whole, **rng.choice(list(STYLES.values()))).encode())
        for _ in range(rng.randrange(1, 5)):
            place = rng.randrange(1, len(data))
            if rng.random() < 0.5:
                del data[place : place + rng.randrange(30)]
            else:
                data[place:place] = rng.choice(tokens)
        chunk = rng.choice([64, 333, 5000])
        events, repairs = read(bytes(data), chunk=chunk, max_event=4096)
        TraceColumns().add(events)
        try:
            left = len(json.loads(bytes(data)))  # the damage may have left valid JSON, of fewer events
        except UnicodeDecodeError:
            assert repairs or len(events) == len(whole), bytes(data)  # a key or a text that nobody reads
        except ValueError:
            assert repairs, bytes(data)  # nothing is lost without a word
        else:
            assert repairs or len(events) == left, bytes(data)


@pytest.mark.parametrize("chunk", [300, 1 << 16])
def test_damage_within_one_event_costs_its_neighbours_nothing(chunk: int) -> None:
    rng = random.Random(3)
    texts = [
        json.dumps({"ph": "X", "name": f"n{i}", "ts": f"{i}.000", "args": {"a": [i], "s": "}, {"}}) for i in range(60)
    ]
    for _ in range(200):
        victim, damaged = rng.randrange(60), texts.copy()
        text = texts[victim]
        place = rng.randrange(3, len(text) - 3)
        damage = rng.choice(['"', "{", "}", "[", "\\", ""])
        damaged[victim] = text[:place] + damage + text[place + (damage == "") * rng.randrange(1, 3) :]
        found = {event.name for event in read(f"[{', '.join(damaged)}]".encode(), chunk=chunk, max_event=1 << 14)[0]}
        assert found >= {f"n{i}" for i in range(60) if i != victim}, damaged[victim]
