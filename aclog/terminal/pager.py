"""Long output goes through a pager on a terminal, as git's does.

`ACLOG_PAGER`, else `PAGER`, else less; `cat` or nothing for none. It is started at the first line that is printed: what
comes before, such as a progress bar, has the terminal for itself. Who leaves it early ends no command: what is printed
after that goes nowhere, and the exit code is the command's.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aclog.terminal.paged_output import PagerProcess

VARIABLE = "ACLOG_PAGER"
_NONE = ("", "cat")
_SHELL = frozenset("|&;<>()$`\\\"'*?[#~=% \t\n")
"""In a command with one of these a shell finds out what is to be run."""

_REFUSED: ContextVar[bool] = ContextVar("aclog_no_pager", default=False)
"""Whether this invocation of a command has --no-pager."""
_PAGED: ContextVar["PagerProcess | None"] = ContextVar("aclog_pager", default=None)


def refuse_pager() -> None:
    """Use no pager for the rest of this invocation (--no-pager)."""
    _REFUSED.set(True)


def page_output() -> None:
    """Let what this invocation prints from now on go through a pager, if it prints on a terminal and one is wanted."""
    if _REFUSED.get() or _PAGED.get() is not None or not sys.stdout.isatty():
        return
    if (command := pager_command(os.environ)) is not None:
        from aclog.terminal.paged_output import PagedOutput, PagerProcess  # not for --help

        paged = PagerProcess(command=command, terminal=sys.stdout)
        _PAGED.set(paged)
        sys.stdout = PagedOutput(paged)


def pager_command(environment: Any) -> str | None:
    """Return the pager to use, None for none: a program that is not installed is none."""
    if environment.get("TERM", "dumb") == "dumb":
        return None
    chosen = next((text for name in (VARIABLE, "PAGER") if (text := environment.get(name)) is not None), "less")
    command = chosen.strip()
    if command in _NONE:
        return None
    program = command.split()[0]
    return None if not _SHELL & set(program) and shutil.which(program) is None else command


def is_reader_gone() -> bool:
    """Return whether nobody reads what is printed any more: a list may end."""
    paged = _PAGED.get()
    return paged is not None and paged.is_gone


@contextmanager
def paging() -> Iterator[None]:
    """Around an invocation: at its end wait until the reader has left the pager."""
    outside = sys.stdout, sys.stderr
    try:
        yield
    finally:
        if (paged := _PAGED.get()) is not None:
            sys.stdout, sys.stderr = outside
            paged.end()
