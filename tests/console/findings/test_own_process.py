"""Work in a process of its own: its answer, its error, and that it is gone afterwards."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

from aclog.console.findings import NoAnswerError, in_own_process
from aclog.metalog.errors import ConfigError


def process_and(text: str) -> tuple[int, str]:
    return os.getpid(), text


def fail() -> None:
    raise ConfigError("no such lint")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dawdle() -> None:
    time.sleep(600)


@pytest.mark.slow(1)
def test_it_answers_from_another_process_which_ends() -> None:
    process, text = in_own_process(threading.Event(), process_and, "found")
    assert (process != os.getpid(), text) == (True, "found")
    assert not multiprocessing.active_children()


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("work", "error", "said"), [(fail, ConfigError, "no such lint"), (die, NoAnswerError, "killed")]
)
def test_an_error_is_raised_here_and_a_killed_process_is_one(work, error, said) -> None:
    with pytest.raises(error, match=said):
        in_own_process(threading.Event(), work)
    assert not multiprocessing.active_children()


@pytest.mark.slow(1)
def test_it_is_stopped_when_the_console_ends() -> None:
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(NoAnswerError, match="stopped"):
        in_own_process(stopping, dawdle)
    assert not multiprocessing.active_children()
