"""The work on each cluster of a repository: in several processes if that is faster, with the same results and notices.

The first cluster is done in this process: what it imports is shared with the others, and its time shows whether
processes are worth it. A process is a fork: a new one would take as long to start as 250 files to read.
"""

import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define

from aclog.metalog.primitives import elapsed_seconds
from aclog.terminal.notices import progress
from aclog.terminal.output import notices_to, repeat_notice

if TYPE_CHECKING:
    from concurrent.futures import Future

R = TypeVar("R")

WORTH_S = 0.3
"""The time that the other clusters take here, from which on processes are faster."""
MAX_PROCESSES = 8
"""Each has its own copy of what it reads."""


def each_cluster(
    names: Sequence[str], work: Callable[[str], R], *, processes: int | None = None
) -> Iterator[tuple[str, R]]:
    """Yield the name and the result of each cluster, in this order, with the notices and errors of its work.

    `processes`: how many, or None for one per core of this process, up to 8, where they are worth it; 1 for work that
    shares a stream, threads or programs among clusters. Raises what the work raises, for the first cluster that fails.
    """
    first, *rest = names
    start = elapsed_seconds()
    result = work(first)
    is_long = (elapsed_seconds() - start) * len(rest) > WORTH_S
    yield first, result
    count = min(len(rest), processes or (_cores() if is_long else 1))
    # A fork has only one of the threads of this process, and the locks of all.
    if count < 2 or sys.platform != "linux" or threading.active_count() > 1:
        yield from ((name, work(name)) for name in rest)
    else:
        yield from _in_forks(rest, work, count)


def _cores() -> int:
    """Return how many processes can run at once: a container or `taskset` may allow fewer cores than there are."""
    return min(len(os.sched_getaffinity(0)), MAX_PROCESSES) if sys.platform == "linux" else 1


def _in_forks(names: Sequence[str], work: Callable[[str], R], count: int) -> Iterator[tuple[str, R]]:
    import multiprocessing  # here, as below: a source of one cluster has no use for it
    from concurrent.futures import ProcessPoolExecutor

    from aclog.usage.processes import kill, without_signals

    forking = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(count, forking, initializer=_begin, initargs=(work,)) as pool:
        try:
            with without_signals():  # the first one starts all processes
                futures = [pool.submit(_done, name) for name in names]
            with progress("reading the files of clusters", "clusters") as advance:
                for number, (name, future) in enumerate(zip(names, futures, strict=True)):
                    advance(number, len(names))
                    data = _result(future)
                    # What fails, or ends its process, is done here: its error is that of one process.
                    yield name, work(name) if data is None else _repeated(data)
        except BaseException:
            kill(pool)  # such as at Ctrl-C, or after an error
            raise


def _result(future: "Future[bytes | None]") -> bytes | None:
    from concurrent.futures.process import BrokenProcessPool

    try:
        return future.result()
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
    work: Callable[[str], Any] | None = None


@cache
def _worker() -> _Worker:
    return _Worker()


def _begin(work: Callable[[str], Any]) -> None:
    from aclog.usage.processes import end_with_parent

    threading.Thread(target=end_with_parent, daemon=True).start()
    _worker().work = work


def _done(name: str) -> bytes | None:
    """Return the notices and the result of the work on a cluster; None if it fails, or cannot be passed on."""
    work, notices = _worker().work, list[str]()
    assert work is not None  # noqa: S101 - the pool has begun with it
    try:
        with notices_to(notices.append):
            return pickle.dumps((notices, work(name)), pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001 - any error: the other process meets it as well
        return None
