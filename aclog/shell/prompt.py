"""The interactive prompt: lines from a terminal, with completion and history."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.completion import Completion as Suggestion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from aclog.shell.command import ShellState, print_lines
from aclog.shell.engine import complete, run_command
from aclog.snapshots.moments import moment_text
from aclog.terminal.output import has_colors

WELCOME = "aclog shell: help lists the commands, Tab completes, quit or Ctrl-D exits."


def run_prompt(state: ShellState, history: History) -> None:
    """Run lines from the terminal until `exit` or Ctrl-D; Ctrl-C stops a command or discards a line."""
    session: PromptSession[str] = PromptSession(
        history=history, completer=PathCompleter(state), complete_while_typing=False
    )
    print(WELCOME)  # noqa: T201
    while not state.done:
        try:
            line = session.prompt(_colored_prompt(prompt_text(state)))
            state.screen_width = shutil.get_terminal_size().columns
            state.warn_of_age()
            print_lines(run_command(line, state), sys.stdout, sys.stdout)
        except KeyboardInterrupt:
            print()  # noqa: T201
        except EOFError:
            return


def prompt_text(state: ShellState) -> str:
    """Return the prompt: the working directory and, after `at`, the moment."""
    moment = "" if state.moment is None else f"@{moment_text(state.moment)}"
    return f"{state.path}{moment}> "


def _colored_prompt(text: str) -> FormattedText | str:
    return FormattedText([("ansicyan bold", text)]) if has_colors() else text


def history_path(environment: Mapping[str, str], home: Path) -> Path:
    """Return the history file: `$XDG_STATE_HOME/aclog/shell-history`, by default in ~/.local/state."""
    base = environment.get("XDG_STATE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else home / ".local" / "state") / "aclog" / "shell-history"


def open_history(path: Path) -> History:
    """Return the history in a file that only its owner may read; in memory if the file cannot be created."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Created with its mode before prompt_toolkit appends to it: typed lines may contain principals and addresses.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.fchmod(descriptor, 0o600)  # also of a file that exists
        os.close(descriptor)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


class PathCompleter(Completer):
    """Adapts aclog.shell.engine to prompt_toolkit."""

    def __init__(self, state: ShellState) -> None:
        """`state` is the session whose lines are completed."""
        self._state = state

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Suggestion]:
        """Yield the completions at the cursor (Completer.get_completions)."""
        del complete_event
        line = document.text_before_cursor
        completion = complete(line, self._state)
        for candidate in completion.candidates:
            yield Suggestion(candidate.text, start_position=completion.start - len(line), display=candidate.display)
