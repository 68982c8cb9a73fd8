"""Work in processes: all of it, and an error in words if a process is killed."""

import os
import signal
from collections.abc import Callable

import pytest

from aclog.metalog.errors import ConfigError
from aclog.usage.judging import each_in_processes


def _squaring() -> Callable[[int], int]:
    return _square


def _square(number: int) -> int:
    if number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


@pytest.mark.slow(2)
def test_every_part_is_worked_on_once() -> None:
    assert sorted(each_in_processes(range(9), _squaring, workers=2)) == [number * number for number in range(9)]
    with pytest.raises(ConfigError, match="was killed"):
        list(each_in_processes([1, -1, 2], _squaring, workers=2))
