"""The ways into the shell: one command, lines from a pipe, or the prompt."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from aclog.shell.engine import ONE_SHOT_COMMANDS, run_command, start_command
from aclog.shell.printer import print_lines
from aclog.shell.state import ShellState
from aclog.shell.words import argument_word


def run_shell(state: ShellState, command: Sequence[str] = ()) -> int:
    """Run one command if there is one, else the lines of stdin, else a prompt; returns the exit code, 0 or 1.

    1 says that a command complained (a path that is not there). A history file is kept for the prompt only.

    Raises:
        ConfigError: the one command is not one, or its arguments are not.
        MetadataError: the one command met a source that is damaged, or does not reach to where it was to go.

    """
    if command:
        return run_once(state, command, sys.stdout, sys.stderr)
    if not sys.stdin.isatty():
        return run_lines(state, sys.stdin, sys.stdout, sys.stderr)
    # its toolkit is slow to load, and a single command does not need it
    from aclog.shell.prompt import history_path, open_history, run_prompt  # noqa: PLC0415

    run_prompt(state, open_history(history_path(os.environ, Path.home())))
    return 0


def run_once(state: ShellState, command: Sequence[str], output: TextIO, errors: TextIO) -> int:
    """Run one command, given as the arguments of a process; globs in them are active. Raises as `run_shell`."""
    lines = start_command([argument_word(text) for text in command], state, ONE_SHOT_COMMANDS)
    return 0 if print_lines(lines, output, errors) else 1


def run_lines(state: ShellState, lines: Iterable[str], output: TextIO, errors: TextIO) -> int:
    """Run lines one after the other until `exit` or their end; a line that fails does not end it."""
    good = True
    for line in lines:
        good = print_lines(run_command(line, state), output, errors) and good
        if state.done:
            break
    return 0 if good else 1
