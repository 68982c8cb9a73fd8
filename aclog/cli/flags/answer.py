"""The flags that say how an answer about many requests is printed, and what is counted in it."""

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer
from attrs import frozen


class AnswerFormat(StrEnum):
    """Lines for people, or JSON lines."""

    TEXT = "text"
    JSONL = "jsonl"


AnswerFormatFlag: TypeAlias = Annotated[AnswerFormat, typer.Option("--format", help="For people, or for programs.")]
TopicsFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--topics",
        metavar="FILE",
        help="Topics that exist, one a line, to count. [dim]Default: those in a log or a cluster that is read[/]",
    ),
]


@frozen(kw_only=True)
class AnswerFlags:
    """The format, and the topics to count."""

    topics_file: TopicsFile = None
    format: AnswerFormatFlag = AnswerFormat.TEXT
