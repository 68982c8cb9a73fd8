"""Runs the `aclog` command inside the test process: what it prints, says and returns."""

import atexit
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from attrs import frozen

from aclog.__main__ import run


@frozen
class Result:
    """Exit code, stdout and stderr of one command line."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of stdout."""
        return self.out.splitlines()

    @property
    def complaint(self) -> str:
        """The one line of stderr, without what is only noted or warned of."""
        lines = [line for line in self.err.splitlines() if not line.startswith(("aclog: note:", "aclog: warning:"))]
        assert len(lines) == 1, self.err
        assert lines[0].startswith("aclog: ")
        return lines[0].removeprefix("aclog: ")

    def ok(self) -> "Result":
        """This result, which must be a success."""
        assert self.code == 0, self
        return self

    def denied(self) -> "Result":
        """This result, which must be a negative answer."""
        assert self.code == 1, self
        return self


def aclog(*arguments: object, stdin: bytes = b"") -> Result:
    """Run one command line."""
    out, err = io.BytesIO(), io.BytesIO()
    streams = {
        "stdin": io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin)), encoding="utf-8"),
        "stdout": io.TextIOWrapper(io.BufferedWriter(out), encoding="utf-8"),
        "stderr": io.TextIOWrapper(io.BufferedWriter(err), encoding="utf-8"),
    }
    with mock.patch.multiple(sys, **streams), _process_that_ends():
        code = run([str(argument) for argument in arguments])
        streams["stdout"].flush()
        streams["stderr"].flush()
        return Result(code, out.getvalue().decode(), err.getvalue().decode())


@contextmanager
def _process_that_ends() -> Iterator[None]:
    """Run what aclog leaves to the end of its process at the end of the command: the test process goes on for long."""
    register = atexit.register

    with ExitStack() as ended:

        def until_then(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
            is_ours = (getattr(call, "__module__", None) or "").startswith("aclog.")
            return (ended.callback if is_ours else register)(call, *args, **kwargs)

        with mock.patch.object(atexit, "register", until_then):
            yield
