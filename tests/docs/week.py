"""The lines of docs/how-to/week.md, and what they print: `python -m tests.docs.week` writes it into the page."""

import contextlib
import doctest
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from attrs import evolve, frozen

import aclog as library
from tests.docs.recorded import COMMAND, estate, shell

PAGE = Path(__file__).parents[2] / "docs/how-to/week.md"
_TASK = re.compile(r"^### (?P<title>\d+\. .*?)\n(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
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
        command, code = COMMAND.search(found["text"]), _PYTHON.search(found["text"])
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
    return evolve(task, command_output=shell(task.command), code_output=_python(task.code))


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


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
    sys.stdout.write(f"{os.path.relpath(PAGE)}\n")
