"""Knowing what a path holds when it is no profile that can be read: better an honest name than "no profile".

In: the names in a folder, or a file's name and beginning. Out: what it is, in words for the user, or nothing.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class OtherFormat:
    """A format that is known but not read: what it is, and what to do."""

    words: str
    advice: str = "not read yet: give a *_ascend_pt folder, a folder of several, or one trace_view.json"


CLUSTER_ANALYSIS = OtherFormat(
    "the output of cluster analysis", "not read yet: give the folders of the ranks that it was made from (*_ascend_pt)"
)
KINETO = OtherFormat("Kineto traces of the PyTorch profiler (*.pt.trace.json)")
MINDSPORE = OtherFormat("MindSpore profiles")
MSPROF = OtherFormat("msprof data (PROF_*)")
TRAINING_LOG = OtherFormat("training logs")

# The first that fits is taken: what other tools make out of a profile first, then profiles, then logs.
_BY_NAME: tuple[tuple[re.Pattern[str], OtherFormat], ...] = (
    (re.compile(r"cluster_analysis_output|cluster_(?:step_trace_time|communication(?:_matrix)?|analysis)\.\w+"),
     CLUSTER_ANALYSIS),
    (re.compile(r".+\.pt\.trace\.json(?:\.gz)?|.*trace\.json\.gz"), KINETO),
    (re.compile(r".+_ascend_ms|(?:ascend_)?timeline_display_\d+\.json|step_trace_raw_\d+_detail_time\.csv"
                r"|aicore_intermediate_\d+_\w+\.csv|minddata_pipeline_raw_\d+\.csv|pipeline_profiling_\d+\.json"),
     MINDSPORE),
    (re.compile(r"PROF_\w+|mindstudio_profiler_output|msprof_\w+\.(?:json|db)|op_summary_\w+\.csv"), MSPROF),
    (re.compile(r".+\.log(?:\.gz)?"), TRAINING_LOG),
)  # fmt: skip
_KINETO_HEAD = re.compile(rb'"(?:traceEvents|schemaVersion|deviceProperties|distributedInfo)"\s*:')
_STEP_LINE = re.compile(
    rb'"lm loss"|(?:iteration|iter|step)\s*[:=]?\s*\d+\s*/\s*\d+|step_avg|train_time|elapsed time per iteration',
    re.IGNORECASE,
)
_GZIP = b"\x1f\x8b"
_INFLATED_BYTES = 64 << 10


def by_name(names: Iterable[str]) -> OtherFormat | None:
    """What the names of files and folders tell."""
    known = list(names)
    return next((kind for pattern, kind in _BY_NAME if any(map(pattern.fullmatch, known))), None)


def by_content(head: bytes) -> OtherFormat | None:
    """What the beginning of a file, packed or not, tells."""
    text = _inflated(head) if head.startswith(_GZIP) else head
    if _KINETO_HEAD.search(text):
        return KINETO
    return TRAINING_LOG if _STEP_LINE.search(text) else None


def _inflated(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(head, _INFLATED_BYTES)
    except zlib.error:
        return b""
