"""Processes of a pool: this process handles signals, and the others end with it."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager


def kill(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool, whose results are not needed."""
    for process in list((pool._processes or {}).values()):  # the pool's own SIGTERM may be blocked
        process.kill()


@contextmanager
def without_signals() -> Iterator[None]:
    """Block the signals that this process handles: a process that starts meanwhile keeps them blocked."""
    numbers = [signal.SIGINT, *([signal.SIGTERM] if callable(signal.getsignal(signal.SIGTERM)) else [])]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Wait for the end of the parent, and end this process: for a thread of its own."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # a kill of the parent leaves the pool's pipe open: the other processes also have it
