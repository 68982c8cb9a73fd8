"""Pieces of work done in processes, or in this one if there are few."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
from attrs import define

from aclog.metalog.errors import ConfigError

P = TypeVar("P")
R = TypeVar("R")

Each: TypeAlias = Callable[[Sequence[Any], Callable[[], Callable[[Any], Any]]], Iterator[Any]]
"""Yields what is made of each part: `each_in_processes` with a number of workers, or Spark's tasks."""


def each_in_processes(parts: Sequence[P], make: Callable[[], Callable[[P], R]], *, workers: int) -> Iterator[R]:
    """Yield what is made of each part, in any order, in so many processes; in this one if `workers` is 1.

    Each process calls `make`, which is pickled, once, and its result for each part. No more results wait than there are
    processes, twice over.

    Raises:
        ConfigError: a process was killed; and whatever the work raises.

    """
    if workers == 1 or len(parts) < 2:
        yield from map(make(), parts)
        return
    # a process of its own rather than a fork: threads of this one may hold locks
    spawning = multiprocessing.get_context("spawn")
    count = min(workers, len(parts))
    with ProcessPoolExecutor(count, spawning, initializer=_begin, initargs=(make,)) as pool:
        waiting: set[Future[R]] = set()
        try:
            for part in parts:
                waiting.add(pool.submit(_work, part))
                if len(waiting) >= 2 * count:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool:
            raise ConfigError(
                "a process that read accesses was killed, perhaps for want of memory: run again, with fewer --workers"
            ) from None
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@define
class _Worker:
    """A process of the pool."""

    work: Callable[[Any], Any] | None = None


@cache
def _worker() -> _Worker:
    return _Worker()


def _begin(make: Callable[[], Callable[[Any], Any]]) -> None:
    # the processes share the cores: one that reads with all of them slows the others
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    _worker().work = make()


def _work(part: Any) -> Any:
    work = _worker().work
    assert work is not None  # noqa: S101 - the pool has begun with it
    return work(part)
