"""A session of the shell: one command, lines from a pipe, or a terminal with completion."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from aclog.shell.command import ShellState, argument_word, print_lines
from aclog.shell.engine import ONE_SHOT_COMMANDS, run_command, start_command


def run_shell(state: ShellState, command: Sequence[str] = ()) -> int:
    """Run the command if given, else the lines of stdin, else the prompt; return the exit code, 0 or 1.

    It is 1 if a command printed an error, such as a missing path. Only the prompt keeps a history file.

    Raises:
        ConfigError: the given command does not exist, or its arguments are invalid.
        MetadataError: the source is damaged, or does not have the state that the command reads.

    """
    if command:
        return run_once(state, command, sys.stdout, sys.stderr)
    if not sys.stdin.isatty():
        return run_lines(state, sys.stdin, sys.stdout, sys.stderr)
    # prompt_toolkit is slow to import, and a single command does not need it.
    from aclog.shell.prompt import history_path, open_history, run_prompt  # noqa: PLC0415

    run_prompt(state, open_history(history_path(os.environ, Path.home())))
    return 0


def run_once(state: ShellState, command: Sequence[str], output: TextIO, errors: TextIO) -> int:
    """Run one command given as process arguments, in which globs are active. Raises as `run_shell`."""
    state.warn_of_age()
    lines = start_command([argument_word(text) for text in command], state, ONE_SHOT_COMMANDS)
    return 0 if print_lines(lines, output, errors) else 1


def run_lines(state: ShellState, lines: Iterable[str], output: TextIO, errors: TextIO) -> int:
    """Run lines until `exit` or the end of input; a line that fails does not stop the others."""
    good = True
    for line in lines:
        state.warn_of_age()
        good = print_lines(run_command(line, state), output, errors) and good
        if state.done:
            break
    return 0 if good else 1
