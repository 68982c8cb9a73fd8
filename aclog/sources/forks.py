"""Independent parts of one work, such as clusters or files: in several processes if that is faster.

Results, notices and errors are those of one process, in the same order. The first part is done in this process: what it
imports is shared with the others, and its time shows whether processes are worth it. A process is a fork: a new one
would take as long to start as 250 files to read.
"""

import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar

from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define
from aclog.terminal.notices import progress
from aclog.terminal.output import notices_to, repeat_notice

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

WORTH_S = 0.3
"""The time that the other parts take here, from which on processes are faster."""
MAX_PROCESSES = 8
"""Each has its own copy of what it reads."""
_LOOKS, _BETWEEN_S = 5, 0.002
"""How often the threads of this process are counted, and when again, in seconds."""


def each_part(
    parts: Sequence[T], work: Callable[[T], R], *, what: str = "clusters", processes: int | None = None
) -> Iterator[tuple[T, R]]:
    """Yield each part and its result, in this order, with the notices and errors of its work.

    `what` the parts are, for people. `processes`: how many, or None for one per core of this process, up to 8, where
    they are worth it; 1 for work that shares a stream, threads or programs among parts. Work that fails in a process,
    or whose result cannot be passed on, is done again in this one. Raises what the work raises, for the first part that
    fails.
    """
    first, *rest = parts
    start = elapsed_seconds()
    result = work(first)
    is_long = (elapsed_seconds() - start) * len(rest) > WORTH_S
    yield first, result
    count = min(len(rest), processes or (_cores() if is_long else 1))
    if count < 2 or not is_alone():
        yield from ((part, work(part)) for part in rest)
    else:
        yield from _in_forks(rest, work, count, what)


@contextmanager
def ahead(work: Callable[[], R]) -> Iterator[Callable[[], R]]:
    """Begin work in another process, and yield a function that waits for its result; the process ends with the `with`.

    That function writes the notices of the work. If the work, or its process, fails, it is done in this process; so it
    is where a fork is not safe, or there is one core only.
    """
    if _cores() < 2 or not is_alone():
        yield work
        return
    with _forks([None], lambda _: work(), 1) as futures:

        def result() -> R:
            data = _result(futures.get(0))
            return work() if data is None else _repeated(data)

        yield result


def is_alone() -> bool:
    """Return whether this process has one thread, those of libraries included, on a system whose forks are safe then.

    A fork has only one of the threads of a process, and the locks of all.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        return False
    try:
        for _ in range(_LOOKS):
            if len(list(Path("/proc/self/task").iterdir())) == 1:
                return True
            sleep(_BETWEEN_S)  # a thread that was joined is there for a moment
    except OSError:  # a container without /proc
        pass
    return False


def _cores() -> int:
    """Return how many processes can run at once: a container or `taskset` may allow fewer cores than there are."""
    return min(len(os.sched_getaffinity(0)), MAX_PROCESSES) if sys.platform == "linux" else 1


def _in_forks(parts: Sequence[T], work: Callable[[T], R], count: int, what: str) -> Iterator[tuple[T, R]]:
    with _forks(parts, work, count) as futures, progress(f"working on {what}", what) as advance:
        for number, part in enumerate(parts):
            advance(number, len(parts))
            data = _result(futures.pop(number, None))
            # What fails, or ends its process, is done here: its error is that of one process.
            yield part, work(part) if data is None else _repeated(data)


@contextmanager
def _forks(parts: Sequence[T], work: Callable[[T], object], count: int) -> "Iterator[dict[int, Future[bytes | None]]]":
    """Begin work in so many processes, and yield the results to come by the numbers of the parts.

    The processes end with the `with`: results that are not taken by then are not needed, such as at Ctrl-C.
    """
    import multiprocessing  # here, as below: most work is short
    from concurrent.futures import ProcessPoolExecutor

    from aclog.usage.processes import kill

    forking = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(count, forking, initializer=_begin, initargs=(work,)) as pool:
        try:
            yield _begun(pool, parts)
        finally:
            kill(pool)


def _begun(pool: "ProcessPoolExecutor", parts: Sequence[T]) -> "dict[int, Future[bytes | None]]":
    """Start the processes, and return the results to come by the numbers of the parts; without processes none."""
    from concurrent.futures.process import BrokenProcessPool

    from aclog.usage.processes import kill, without_signals

    try:
        with without_signals():  # the first part starts all processes
            return {number: pool.submit(_done, part) for number, part in enumerate(parts)}
    except (BrokenProcessPool, OSError):  # the system allows no more, or ended one already
        kill(pool)
        return {}


def _result(future: "Future[bytes | None] | None") -> bytes | None:
    from concurrent.futures.process import BrokenProcessPool

    try:
        return None if future is None else future.result()
    except BrokenProcessPool:  # it was killed, perhaps for lack of memory
        return None


def _repeated(data: bytes) -> Any:
    notices, result = pickle.loads(data)  # noqa: S301 - of a process of this one
    for text in notices:
        repeat_notice(text)
    return result


# In the other processes.


@define
class _Worker:
    work: Callable[[Any], Any] | None = None


@cache
def _worker() -> _Worker:
    return _Worker()


def _begin(work: Callable[[Any], Any]) -> None:
    from aclog.usage.processes import end_with_parent

    threading.Thread(target=end_with_parent, daemon=True).start()
    _worker().work = work


def _done(part: object) -> bytes | None:
    """Return the notices and the result of the work on a part; None if it fails, or cannot be passed on."""
    work, notices = _worker().work, list[str]()
    assert work is not None  # noqa: S101 - the pool has begun with it
    try:
        with notices_to(notices.append):
            return pickle.dumps((notices, work(part)), pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001 - any error: the other process meets it as well
        return None
