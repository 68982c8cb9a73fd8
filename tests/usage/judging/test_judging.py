"""Work in processes: all of it, and an error in words if a process is killed."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aclog.metalog.errors import ConfigError
from aclog.usage.judging import each_in_processes
from tests.support.processes.waiting import wait_until


def _squaring() -> Callable[[int], int]:
    return _square


def _square(number: int) -> int:
    if number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def _signalling() -> Callable[[int], int]:
    # a process that starts is a part of the group, too
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    return _square


def _naming() -> Callable[[str], None]:
    return _name_and_wait


def _name_and_wait(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(600)


def _wait_for_names(first: str, second: str) -> None:
    list(each_in_processes([first, second], _naming, workers=2))


@contextmanager
def _handled(number: signal.Signals) -> Iterator[None]:
    before = signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.slow(2)
def test_every_part_is_worked_on_once() -> None:
    assert sorted(each_in_processes(range(9), _squaring, workers=2)) == [number * number for number in range(9)]


@pytest.mark.slow(2)
def test_signals_to_the_group_are_this_process_s_to_handle() -> None:
    with _handled(signal.SIGTERM):
        assert sorted(each_in_processes([1, 2, 3], _signalling, workers=2)) == [1, 4, 9]
        with pytest.raises(ConfigError, match="was killed"):  # and the others do not wait for their SIGTERM
            list(each_in_processes([1, -1, 2], _squaring, workers=2))


@pytest.mark.slow(2)
def test_processes_end_with_this_one(tmp_path: Path) -> None:
    names = [tmp_path / "first", tmp_path / "second"]
    parent = multiprocessing.get_context("spawn").Process(target=_wait_for_names, args=tuple(map(str, names)))
    parent.start()
    try:
        wait_until(lambda: all(name.exists() and name.read_text() for name in names))
    finally:
        parent.kill()
        parent.join()
    wait_until(lambda: not any(Path("/proc", name.read_text(), "cwd").exists() for name in names))
