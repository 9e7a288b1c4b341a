"""The process that runs durable_rules: one JSON request per line in, one JSON answer per line out.

Run by file path, alone: a crash, a leak or an endless loop of the C code ends this process and nothing else.
Arguments: folder of ``durable_rules_engine``, memory limit in bytes (0: none), CPU seconds per request (0: none).
The first line out is ``{"ready": true}`` or ``{"error": why}``. Request: ``{"max_matches": n, "shards": [{"ruleset":
text, "facts": [text]}]}``. Answer: ``{"shards": [[[rule, [serial of the fact in p0, …]]]]}`` or ``{"error": why}``,
after which the process ends: nothing is reused after a failure.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any, BinaryIO

try:
    import resource
except ImportError:  # not a POSIX system: the parent's clock is the only limit
    resource = None  # type: ignore[assignment]

BOOT_FACT = '{"id":"boot","t":1,"one":1}'


class Refused(Exception):
    """durable_rules answered what it must not."""


def main() -> None:
    """Answer requests until the input ends or one fails."""
    folder, memory_bytes, cpu_s = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    answers = own_stdout()
    # Ctrl-C goes to the whole group; the parent decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit_memory(memory_bytes)
    # Last, so that nothing beside the C module can shadow the standard library.
    sys.path.append(folder)
    try:
        # G1: the C module only; durable.lang and durable.engine start threads that take actions away.
        import durable_rules_engine
    except Exception as error:
        send(answers, {"error": f"cannot import durable_rules_engine: {error}"})
        return
    send(answers, {"ready": True})
    for line in sys.stdin.buffer:
        limit_cpu(cpu_s)
        try:
            request = json.loads(line)
            answer = {"shards": [run(durable_rules_engine, s, request["max_matches"]) for s in request["shards"]]}
        except MemoryError:
            send(answers, {"error": "out of memory"})
            return
        except Exception as error:
            send(answers, {"error": f"{error}" or type(error).__name__})
            return
        send(answers, answer)


def run(engine: Any, shard: dict[str, Any], max_matches: int) -> list[list[Any]]:
    """All matches of one shard. On an exception the handle is left alone: freeing it then is not safe."""
    # G8: a fresh handle for every shard of every request.
    handle = engine.create_ruleset("shard", shard["ruleset"])
    code, state = engine.assert_fact(handle, BOOT_FACT)
    if code != 0 or engine.start_action_for_state(handle, state) is None:
        raise Refused("the boot rule did not fire")
    if engine.complete_and_start_action(handle, state) is not None:
        raise Refused("the boot rule fired twice")
    matches: list[list[Any]] = []
    for fact in shard["facts"]:
        # G2: one at a time; assert_facts drops what it cannot read and says that all is well.
        code, _ = engine.assert_fact(handle, fact)
        # 0: filled a pattern, 1: filled none, 2: taken for a fact seen before.
        if code not in (0, 1):
            raise Refused(f"assert_fact returned {code}")
        # After each fact, so that a runaway join is refused before it fills the memory.
        started = engine.start_action_for_state(handle, state)
        action = started and started[1]
        while action is not None:
            matches.append(read_match(action))
            if len(matches) > max_matches:
                raise Refused(f"more than {max_matches} matches")
            action = engine.complete_and_start_action(handle, state)
    # G13: nothing is retracted; a new round is a new handle.
    # G8: in this order only; otherwise nearly all the memory stays behind.
    engine.delete_state(handle, None)
    engine.delete_ruleset(handle)
    return matches


def read_match(action: str) -> list[Any]:
    """``{"r3": {"p1": {"id": "f000000007", …}, "p0": …}}`` → [3, [serial in p0, 7]]."""
    ((rule, filled),) = json.loads(action).items()
    return [int(rule[1:]), [int(filled[f"p{place}"]["id"][1:]) for place in range(len(filled))]]


def own_stdout() -> BinaryIO:
    """The pipe to the parent, out of reach of anything that prints."""
    answers = os.fdopen(os.dup(1), "wb")
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.close(silent)
    return answers


def limit_memory(memory_bytes: int) -> None:
    """Bound the address space; leave no core file of a crash."""
    if resource is not None:
        set_soft_limit(resource.RLIMIT_CORE, 0)
        if memory_bytes:
            set_soft_limit(resource.RLIMIT_AS, memory_bytes)


def limit_cpu(cpu_s: int) -> None:
    """End this process even if the parent is gone and the C code loops; counted anew for each request."""
    if resource is not None and cpu_s:
        set_soft_limit(resource.RLIMIT_CPU, int(time.process_time()) + cpu_s + 1)


def set_soft_limit(which: int, value: int) -> None:
    """As wished, or as far as the host allows."""
    _, hard = resource.getrlimit(which)
    resource.setrlimit(which, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def send(answers: BinaryIO, message: dict[str, Any]) -> None:
    """One line, at once."""
    answers.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
