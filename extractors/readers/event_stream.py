"""Reading a big array of trace events in pieces of a few MB, whatever its state.

In: an open file. Out: lists of ``Event``, with every repair counted. A piece ends where one event ends and the next
begins; the place is guessed by a cheap search and proved by the decoder, for the brackets or quotes of a wrong cut do
not balance. A piece that does not decode is outlined exactly (``json_scan``) and read event by event. A file cut off
anywhere gives all events that are complete.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from io import BufferedIOBase
from itertools import pairwise

import numpy as np

from hermes_advisor.extractors.readers.errors import UnreadableFileError
from hermes_advisor.extractors.readers.json_scan import Scan, scan
from hermes_advisor.extractors.readers.trace_events import Event, decode_array, decode_first, decode_one

CHUNK_BYTES = 4 << 20
MAX_EVENT_BYTES = 16 << 20
MAX_DEPTH = 64
_SEARCHED_BYTES = 64 << 10
_SEAM_BYTES = 256

_OPEN, _CLOSE, _COMMA = ord("["), ord("]"), ord(",")
_SPACE = b" \t\r\n"
# The raw quotes around the key cannot stand inside a JSON string: this is a seam between two objects, or damage.
_SEAM = re.compile(rb'\}\s*(,)\s*\{\s*"(?:ph|name)"')
_TRACE_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')


class EventStream:
    """Iterates over the events of one file; ``repairs`` counts, by health issue, what was mended or left out."""

    def __init__(self, handle: BufferedIOBase, *, chunk: int = CHUNK_BYTES, max_event: int = MAX_EVENT_BYTES) -> None:
        self.repairs: Counter[str] = Counter()
        self._handle = handle
        self._chunk, self._max_event = chunk, max_event
        # Byte 0 always holds a bracket, so that whole events at the front are an array without being copied.
        self._buffer = self._new_buffer()
        self._end = 1
        self._eof = False
        self._bare = True
        self._torn = False
        self._before_last: Counter[str] | None = None
        """The repairs before what may turn out to be the cut-off end of the last event."""

    def __iter__(self) -> Iterator[list[Event]]:
        """Yield the events, piece by piece."""
        self._skip_head()
        closed = False
        while not (self._eof or closed):
            seam = self._last_seam()
            events = self._decode(seam) if seam else None
            if events is not None:
                self._torn = False
                self._drop(seam + 1)
            else:
                events, closed = self._mend()
            yield events
            self._fill()
        if not closed:
            yield from self._finish()

    # The buffer: bytes 1 to _end are data that begin at an event.

    def _new_buffer(self) -> bytearray:
        buffer = bytearray(self._chunk + 1)
        buffer[0] = _OPEN
        return buffer

    def _fill(self) -> None:
        with memoryview(self._buffer) as view:
            while self._end < len(view) and not self._eof:
                count = self._handle.readinto(view[self._end :])
                self._eof = not count
                self._end += count

    def _drop(self, until: int) -> None:
        """Forget the data before ``until``; the rest moves to the front."""
        rest = self._buffer[until : self._end]
        if len(self._buffer) > self._chunk + 1 and len(rest) <= self._chunk // 2:
            self._buffer = self._new_buffer()
        self._buffer[1 : 1 + len(rest)] = rest
        self._end = 1 + len(rest)

    def _skip_head(self) -> None:
        """Move to the first event."""
        self._fill()
        if self._buffer[1:4] == b"\xef\xbb\xbf":
            self._drop(4)
        while True:
            data = self._buffer[1 : self._end]
            start = self._end - len(data.lstrip(_SPACE))
            if start < self._end or self._eof:
                break
            self._end = 1
            self._fill()
        if start == self._end:
            raise UnreadableFileError("empty_file", "is empty", "warning")
        if self._buffer[start] != _OPEN:
            found = _TRACE_EVENTS.search(self._buffer, start, self._end) if self._buffer[start] == ord("{") else None
            if found is None:
                raise UnreadableFileError("not_a_timeline", "does not begin with an array of trace events")
            self._bare = False
            start = found.end() - 1
        self._drop(start + 1)
        self._fill()

    def _last_seam(self) -> int:
        """Position of the comma of the last seam near the end; 0 when there is none."""
        last = 0
        for found in _SEAM.finditer(self._buffer, max(1, self._end - _SEARCHED_BYTES), self._end):
            last = found.start(1)
        return last

    def _decode(self, stop: int) -> list[Event] | None:
        """The events before ``stop`` (a comma or the closing bracket); None when they do not decode as they stand."""
        kept, self._buffer[stop] = self._buffer[stop], _CLOSE
        with memoryview(self._buffer) as view, view[: stop + 1] as array:
            events = decode_array(array)
        self._buffer[stop] = kept
        return events

    def _mend(self) -> tuple[list[Event], bool]:
        """The complete events of a buffer that needs a close look, and whether the array ends in it."""
        outline = scan(np.frombuffer(self._buffer, np.uint8, self._end - 1, 1))
        seams = [found.start(1) for found in _SEAM.finditer(self._buffer, 1, self._end)]
        if self._is_torn(outline, seams):
            self._torn = True
            repairs = self.repairs.copy()
            events = self._read_pieces([0, *seams], None)
            if self._eof and not events and self._before_last is None:
                # Unless an event follows, this is the last one, cut off, and the seams were within it.
                self._before_last = repairs
            self._drop(seams[-1] + 1)
            return events, False
        if outline.end >= 0 and self._buffer[outline.end + 1] == _CLOSE:
            events = self._read_whole(outline, outline.end)
            if self._torn and not events:
                # What is left of a broken event closes a bracket of its own.
                self._drop(outline.end + 2)
                return [], False
            self._note_rest(outline.end + 2)
            return events, True
        if len(outline.commas):
            last = int(outline.commas[-1])
            events = self._read_whole(outline, last)
            self._drop(last + 2)
            return events, False
        self._grow()
        return [], False

    def _is_torn(self, outline: Scan, seams: Sequence[int]) -> bool:
        """Whether quotes or brackets do not match: then the seams say more than the outline."""
        if not seams:
            return False
        if outline.in_string(np.array(seams) - 1).any():
            return True
        if outline.end >= 0:
            return self._buffer[outline.end + 1] != _CLOSE
        # Nested objects have seams too, so a long event is given room before it is called broken.
        return not len(outline.commas) and (self._eof or len(self._buffer) > self._max_event)

    def _read_whole(self, outline: Scan, stop: int) -> list[Event]:
        events = self._decode(stop + 1)
        if events is not None and not self._torn:
            return events
        commas = outline.commas[outline.commas < stop]
        return self._read_pieces([0, *(commas + 1).tolist(), stop + 1], outline)

    def _read_pieces(self, bounds: Sequence[int], outline: Scan | None) -> list[Event]:
        """Read event by event: each lies between two bounds (positions of commas, or of what encloses the events)."""
        events = []
        for before, after in pairwise(bounds):
            if outline is not None and outline.depth_between(before, after - 1) > MAX_DEPTH:
                self.repairs["nested_too_deep"] += 1
                continue
            piece = bytes(self._buffer[before + 1 : after])
            if not piece.strip(_SPACE):
                # `[]` is empty and whole; a comma with nothing beside it is not.
                if len(bounds) > 2:
                    self.repairs["stray_commas"] += 1
                continue
            event, leniency = decode_one(piece)
            if event is None or (self._torn and not _is_complete(event)):
                leniency = "unreadable_events"
                # Damage can hide the seam before it, so that the piece begins with a whole event.
                event = decode_first(piece) if self._torn else None
            if event is not None and (not self._torn or _is_complete(event)):
                events.append(event)
            if leniency:
                self.repairs[leniency] += 1
        return events

    def _grow(self) -> None:
        """Make room for an event longer than the buffer; give it up when it is longer than any event may be."""
        if self._eof:
            return
        if len(self._buffer) <= self._max_event:
            self._buffer.extend(bytes(len(self._buffer)))
            return
        self.repairs["oversized_events"] += 1
        while (found := _SEAM.search(self._buffer, 1, self._end)) is None:
            self._drop(max(1, self._end - _SEAM_BYTES))
            before = self._end
            self._fill()
            if self._end == before:
                self._end = 1
                return
        self._drop(found.start(1) + 1)

    def _finish(self) -> Iterator[list[Event]]:
        """The events at the end of the file."""
        last = len(self._buffer[1 : self._end].rstrip(_SPACE))
        if last and self._buffer[last] == _CLOSE:
            events = self._decode(last)
            if events is not None and not self._torn:
                yield events
                return
        closed, left = False, -1
        while not closed and self._end != left:
            event, _ = decode_one(bytes(self._buffer[1 : self._end]))
            if event is not None and _is_complete(event):
                self._before_last = None
                yield [event]
                break
            left = self._end
            events, closed = self._mend()
            if events:
                self._before_last = None
            yield events
        if not closed:
            if self._before_last is not None:
                self.repairs = self._before_last
            self.repairs["truncated_timeline"] += 1

    def _note_rest(self, start: int) -> None:
        """Data behind the array's end: normal in an object of ``traceEvents``, else another file's."""
        self._drop(start)
        self._fill()
        if self._bare and (self._buffer[1 : self._end].strip(_SPACE) or not self._eof):
            self.repairs["trailing_data"] += 1


def _is_complete(event: Event) -> bool:
    """Whether it is an event and not an object from within a broken one: those have no phase or time."""
    return bool(event.ph and (event.ts or event.ph == "M"))
