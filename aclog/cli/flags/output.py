"""The flags that say how a list or an answer is printed."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, TypeAlias

import typer
from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.terminal.columns import Column, Row
from aclog.terminal.json_text import json_text
from aclog.terminal.output import emit
from aclog.terminal.output_format import ROW_FORMATS, OutputFormat
from aclog.terminal.pager import page_output

PANEL = "Output"

Columns: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="A,B,C",
        help="These columns, in this order, by their keys in JSON. Without [cyan]--format[/]: in a table.",
        rich_help_panel=PANEL,
    ),
]
NoPager: TypeAlias = Annotated[
    bool, typer.Option("--no-pager", metavar="", help="Show long output without a pager.", rich_help_panel=PANEL)
]


@frozen(kw_only=True)
class Output:
    """How a command prints its rows: the format, and the keys of the chosen columns, none for all."""

    form: OutputFormat
    columns: tuple[str, ...] = ()

    @property
    def is_rows(self) -> bool:
        """Whether the format is one of rows; else the command prints it in its own way."""
        return self.form in ROW_FORMATS

    def print_rows(self, columns: Sequence[Column], rows: Iterable[Row]) -> None:
        """Print the rows of a list. Raises as aclog.terminal.rows.print_rows."""
        from aclog.terminal.rows import print_rows

        print_rows(columns, rows, self.form, chosen=self.columns)

    def print_answer(self, answer: Row, columns: Sequence[Column], rows: Iterable[Row]) -> None:
        """Print the answer to one question: as one JSON object, or what it lists as rows. Raises as print_rows."""
        if self.form in (OutputFormat.JSON, OutputFormat.JSONL) and not self.columns:
            emit(json_text(answer))
        else:
            self.print_rows(columns, rows)


@frozen(kw_only=True)
class OutputFlags:
    """What the commands that list or answer have besides `--format`."""

    columns: Columns = None
    no_pager: NoPager = False

    def choose(
        self,
        form: OutputFormat | None,
        *,
        pipe: OutputFormat,
        terminal: OutputFormat | None = None,
        is_live: bool = False,
    ) -> Output:
        """Return how to print, if `form` is the value of `--format`: without it as in a `pipe` or on a `terminal`.

        From now on what is printed goes through a pager, unless it is live: a stream that never ends.

        Raises:
            ConfigError: columns are chosen for a format that has none.

        """
        keys = _keys(self.columns)
        if form is None and keys:
            form = OutputFormat.TABLE
        if form is None:
            form = terminal if terminal is not None and sys.stdout.isatty() else pipe
        if keys and form not in ROW_FORMATS:
            raise ConfigError(f"--columns: {form} has no columns: expected --format {', '.join(ROW_FORMATS)}")
        if not self.no_pager and not is_live:
            page_output()
        return Output(form=form, columns=keys)


def format_option(*formats: OutputFormat, default: str, help: str = "How to print it.") -> Any:  # noqa: A002 - typer's
    """Return the option `--format` with these values; `default` says what is printed without it."""
    return typer.Option(
        "--format",
        metavar=f"[{'|'.join(formats)}]",
        parser=_parser(formats),
        autocompletion=_completer(formats),
        help=help,
        show_default=default,
        rich_help_panel=PANEL,
    )


def _parser(formats: Iterable[OutputFormat]) -> Callable[[str], OutputFormat]:
    known = {form.value: form for form in formats}

    def parse(text: str) -> OutputFormat:
        """Return the format of this name."""
        if isinstance(text, OutputFormat):  # a default
            return text
        if text not in known:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, known))}.")
        return known[text]

    return parse


def _completer(formats: Sequence[OutputFormat]) -> Callable[[str], list[str]]:
    return lambda incomplete: [form.value for form in formats if form.startswith(incomplete)]


def _keys(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    keys = tuple(key.strip() for key in text.split(","))
    if not all(keys):
        raise ConfigError(f"--columns {text[:80]!r}: expected keys with commas between them")
    return keys
