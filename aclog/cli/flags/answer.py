"""The flags that say how an answer about many requests is printed."""

from typing import Annotated, TypeAlias

from attrs import frozen

from aclog.cli.flags.output import Columns, NoPager, Output, OutputFlags, format_option
from aclog.terminal.output_format import ROW_FORMATS, OutputFormat

ANSWER_FORMATS = (OutputFormat.TEXT, *ROW_FORMATS)

AnswerFormat: TypeAlias = Annotated[
    OutputFormat | None,
    format_option(*ANSWER_FORMATS, default="text", help="Lines for people, a table, or rows for programs."),
]


@frozen(kw_only=True)
class AnswerFlags:
    """How an answer is printed: in lines for people, or as rows."""

    format: AnswerFormat = None
    columns: Columns = None
    no_pager: NoPager = False

    def choose(self, *, is_live: bool = False, json: bool = False) -> Output:
        """Return how to print; `json`: as JSON lines if no format is given. Raises as OutputFlags.choose."""
        flags = OutputFlags(columns=self.columns, no_pager=self.no_pager)
        form = OutputFormat.JSONL if json and self.format is None else self.format
        return flags.choose(form, pipe=OutputFormat.TEXT, is_live=is_live)
