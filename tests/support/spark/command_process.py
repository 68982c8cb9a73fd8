"""A process that runs one command of aclog after another, in one JVM, and can be stopped within a command.

`python -m tests.support.spark.command_process` reads a command per line, as JSON. It answers with the result, or first
with `{}` where a command is about to call one of the functions that it is to stop before, until it reads a line.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO
from unittest import mock

from attrs import define, field

from tests.support.cli.command import Result, aclog
from tests.support.spark.jvm import submit_arguments


@define(kw_only=True)
class CommandProcess:
    """A process for commands, which starts with the first one."""

    settings: Mapping[str, str]
    environment: Mapping[str, str]
    log: Path
    """What its JVM prints."""
    master: str = "local[2]"
    _process: "subprocess.Popen[str] | None" = field(init=False, default=None)
    _is_busy: bool = field(init=False, default=False)

    def run(self, *arguments: object) -> Result:
        """Run a command to its end."""
        self._begin(arguments, (), 0)
        return self._result()

    def stop(self, *arguments: object, before: str | Sequence[str], number: int = 0) -> None:
        """Run a command up to its call `number` of a function, MODULE:NAME, or of several ones."""
        self._begin(arguments, [before] if isinstance(before, str) else before, number)
        answer = self._answer()
        assert answer == {}, f"the command has ended before: {answer}"

    def resume(self) -> Result:
        """Run the command that is stopped to its end."""
        self._send("")
        return self._result()

    def begin(self, *arguments: object) -> "subprocess.Popen[str]":
        """Begin a command, which is to be killed."""
        self._begin(arguments, (), 0)
        assert self._process is not None
        return self._process

    def kill(self) -> None:
        """Kill the process and its JVM; the next command starts another one."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            self._process = None
        self._is_busy = False

    def _begin(self, arguments: Sequence[object], before: Sequence[str], number: int) -> None:
        if self._is_busy:  # with the command of a test that has failed
            self.kill()
        if self._process is None:
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__],
                    env={**os.environ, **self.environment, "PYSPARK_SUBMIT_ARGS": submit_arguments(self.settings)},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                )
        self._is_busy = True
        words = [*map(str, arguments), "--master", self.master]
        self._send(json.dumps({"arguments": words, "before": list(before), "number": number}))

    def _send(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.log.read_text()[-3000:]
        return dict(json.loads(line))

    def _result(self) -> Result:
        result = Result(**self._answer())
        self._is_busy = False
        return result


def main() -> None:
    """Run the commands."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # of the JVM
    lines = sys.stdin
    while line := lines.readline():
        command = json.loads(line)
        with _stopping(command["before"], command["number"], lines, answers):
            result = aclog(*command["arguments"])
        _print(answers, {"code": result.code, "out": result.out, "err": result.err})


def _print(answers: TextIO, answer: Mapping[str, Any]) -> None:
    answers.write(f"{json.dumps(answer)}\n")
    answers.flush()


@contextmanager
def _stopping(functions: Sequence[str], number: int, lines: TextIO, answers: TextIO) -> Iterator[None]:
    """Stop once before call `number` of any of these functions."""
    calls = 0

    def stopping(function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number + 1:
                _print(answers, {})
                lines.readline()
            return function(*arguments, **named)

        return call

    with ExitStack() as stack:
        for each in functions:
            module, _, name = each.partition(":")
            function = getattr(import_module(module), name)
            stack.enter_context(mock.patch.object(import_module(module), name, stopping(function)))
        yield


if __name__ == "__main__":
    main()
