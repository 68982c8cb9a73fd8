"""One command line: its flags, what a context adds, and its exit status."""

import contextvars
import os
import sys
from collections.abc import Sequence
from functools import cache
from io import TextIOWrapper
from typing import Any

import typer
from typer.main import get_command

from aclog.metalog.errors import MetadataError
from aclog.terminal.output import complain
from aclog.terminal.pager import paging

BAD_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; bad input never raises."""
    _use_utf8()
    if shell := os.environ.get("_ACLOG_COMPLETE"):
        from aclog.cli.app import app
        from aclog.cli.completion import complete

        return complete(shell, arguments, app)
    try:
        # A context of its own: what the flags of one command line choose is not known to the next.
        code = contextvars.copy_context().run(_paged, arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    if code == INTERRUPTED:
        complain("interrupted")
    return code


def _paged(arguments: Sequence[str]) -> int:
    with paging():
        return _invoke(arguments)


@cache
def _command() -> Any:
    """Return the whole command: typer would build it anew, from every signature, for each command line."""
    from aclog.cli.app import app

    return get_command(app)


def _invoke(arguments: Sequence[str]) -> int:
    try:
        result = _command()(args=list(arguments), prog_name="aclog", standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as leave:
        if isinstance(leave.__context__, BrokenPipeError):  # typer exits with 1 on a broken pipe
            raise leave.__context__ from None
        raise
    except BrokenPipeError:  # of stdout: what was flushed once with an error may be gone from its buffer
        raise
    except (typer.TyperException, MetadataError, OSError) as error:
        _flush_or_drop()
        if text := _error_text(error):
            complain(text)
        return BAD_INPUT
    except ModuleNotFoundError as error:
        from aclog.installation import extra_of, install_command

        extra = extra_of(error.name)
        if extra is None:
            raise
        _flush_or_drop()
        complain(f"no module {error.name}: {install_command(extra)}")
        return BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def _error_text(error: Exception) -> str:
    if isinstance(error, typer.TyperException):
        return _usage(error)
    if isinstance(error, OSError) and error.strerror is not None:
        # Code that writes files names them in its errors: an error without a file name is about stdout.
        return f"{error.filename or 'standard output'}: {error.strerror}"
    return str(error)


def _usage(error: typer.TyperException) -> str:
    """Return what is wrong with the command line, and which --help to read; empty if help was printed instead."""
    if not error.format_message():
        return ""
    context = getattr(error, "ctx", None)
    hint = f" (see `{context.command_path} --help`)" if context is not None else ""
    what = error.format_message().replace(": Value error, ", ": ")  # a prefix of pydantic's, which typer passes on
    return " ".join(what.split()).rstrip(".") + hint


def _use_utf8() -> None:
    """Read and write UTF-8, whatever the locale: names in a log are Unicode."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")


def _flush_or_drop() -> None:
    """Flush stdout, or discard what is left in it if it takes no more. Raises BrokenPipeError: nobody reads it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        _drop_output()


def _drop_output() -> None:
    """Discard what is left in stdout: the interpreter's final flush would report the same again."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is not a file
        return
