"""Running the same function over many ranks: in this process, or in worker processes.

Comes in: a picklable function and its inputs. Goes out: (position, result or ``Failure``) as they finish. Another way
to run them, such as a cluster, is one more class with ``run``. Callers must not rely on the order.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Failure:
    """An input that gave no result, and why, in one line."""

    reason: str


class Executor(Protocol):
    """Runs a function over inputs; never raises for one of them."""

    def run(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result | Failure]]:
        """Yield each input's position and outcome."""
        ...


class SerialExecutor:
    """In this process, one after the other."""

    def run(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result | Failure]]:
        """Yield in the order of the inputs."""
        for position, item in enumerate(items):
            try:
                outcome: Result | Failure = work(item)
            except Exception as error:
                outcome = Failure(reason_of(error))
            yield position, outcome


class ProcessExecutor:
    """In up to ``jobs`` worker processes.

    A worker that dies breaks its pool. Those in flight then run again, each in a process of its own, so that only the
    input that kills its worker is lost.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def run(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result | Failure]]:
        """Yield as they finish."""
        waiting = deque(enumerate(items))
        while waiting:
            in_flight: dict[Future[Result], int] = {}
            pool = _pool(min(self._jobs, len(waiting)))
            try:
                while waiting or in_flight:
                    while waiting and len(in_flight) < self._jobs:
                        position, item = waiting[0]
                        in_flight[pool.submit(work, item)] = position
                        waiting.popleft()
                    for done in wait(in_flight, return_when=FIRST_COMPLETED).done:
                        outcome = _outcome(done)
                        yield in_flight.pop(done), outcome
            except BrokenProcessPool:
                pass
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
            for position in sorted(in_flight.values()):
                yield position, _alone(work, items[position])


def executor_for(jobs: int, count: int) -> Executor:
    """Worker processes where they pay: for more than one job and more than one input."""
    return ProcessExecutor(jobs) if jobs > 1 and count > 1 else SerialExecutor()


def _pool(workers: int) -> ProcessPoolExecutor:
    # Never a plain fork: the caller may hold threads.
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    return ProcessPoolExecutor(workers, mp_context=context)


def _alone(work: Callable[[Item], Result], item: Item) -> Result | Failure:
    with _pool(1) as pool:
        try:
            return _outcome(pool.submit(work, item))
        except BrokenProcessPool:
            return Failure("its worker process died (out of memory, or killed)")


def _outcome(done: Future[Result]) -> Result | Failure:
    """The result, or why there is none; a broken pool is the caller's to handle."""
    try:
        return done.result()
    except BrokenProcessPool:
        raise
    except Exception as error:
        return Failure(reason_of(error))


def reason_of(error: Exception) -> str:
    """An error in one line."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
