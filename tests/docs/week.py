"""The lines of docs/how-to/week.md, and what they print: `python -m tests.docs.week` writes it into the page."""

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from attrs import evolve, frozen

import aclog as library
from tests.support.builders.week import WEEK
from tests.support.cli.command import aclog

PAGE = Path(__file__).parents[2] / "docs/how-to/week.md"
_TASK = re.compile(r"^### (?P<title>\d+\. .*?)\n(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"```console\n\$ (?P<line>.*)\n(?P<output>(?:.*\n)*?)```")
_PYTHON = re.compile(r"```python\n(?P<code>(?:(?:>>>|\.\.\.) .*\n)+)(?P<output>(?:.*\n)*?)```")


@frozen(kw_only=True)
class Task:
    """A task: its title, its command line and its lines of Python, and what the page says that each prints."""

    title: str
    command: str
    command_output: str
    code: str
    code_output: str


def tasks(page: str) -> Iterator[Task]:
    """Yield the tasks of the page, in order."""
    for found in _TASK.finditer(page):
        command, code = _COMMAND.search(found["text"]), _PYTHON.search(found["text"])
        assert command is not None, found["title"]
        assert code is not None, found["title"]
        yield Task(
            title=found["title"],
            command=command["line"],
            command_output=command["output"],
            code=code["code"],
            code_output=code["output"],
        )


def run(task: Task) -> Task:
    """Return the task with what its lines print in the working directory, the command's first: it may write."""
    return evolve(task, command_output=_shell(task.command), code_output=_python(task.code))


def _shell(line: str) -> str:
    """Run a command line, with `|` and `&&`, and nothing else of a shell; return what reaches stdout."""
    shown = ""
    for step in line.split(" && "):
        out = ""
        for command in step.split(" | "):
            name, *arguments = shlex.split(command)
            assert name == "aclog"
            out = aclog(*arguments, stdin=out.encode()).out
        shown += out
    return "".join(f"{each.rstrip()}\n" for each in shown.splitlines())


def _python(code: str) -> str:
    """Run lines of Python as an interpreter does; return what they print."""
    example = doctest.DocTestParser().get_doctest(
        code + "\n", {"aclog": library, "json": json, "Path": Path}, "week", None, 0
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for each in example.examples:
            exec(compile(each.source, "<week>", "single"), example.globs)
    return printed.getvalue()


def written(page: str) -> str:
    """Return the page with what its lines print now, each task's on a fresh copy of the estate."""
    for task in tasks(page):
        with tempfile.TemporaryDirectory() as folder, estate(Path(folder)):
            now = run(task)
        page = page.replace(f"$ {task.command}\n{task.command_output}```", f"$ {task.command}\n{now.command_output}```")
        page = page.replace(f"{task.code}{task.code_output}```", f"{task.code}{now.code_output}```")
    return page


@contextlib.contextmanager
def estate(folder: Path) -> Iterator[None]:
    """Work in a copy of the estate."""
    shutil.copytree(WEEK, folder / "week")
    with contextlib.chdir(folder / "week"):
        yield


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
    sys.stdout.write(f"{os.path.relpath(PAGE)}\n")
