"""The flags of `aclog diff` besides the two states."""

from enum import StrEnum
from typing import Annotated

import typer
from attrs import field, frozen

from aclog.cli.flags.answer import TopicsFile


class DiffFormat(StrEnum):
    """The format of a difference."""

    TEXT = "text"
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    SARIF = "sarif"


@frozen(kw_only=True)
class DiffFlags:
    """Names that the two states have differently, what is counted, and the format."""

    map_names: Annotated[
        list[str],
        typer.Option(
            "--map-names",
            metavar="OLD=NEW",
            help="Names of topics, groups and transactional ids of the first state that begin with OLD begin with NEW "
            "in the second one; can be repeated.",
        ),
    ] = field(factory=list)
    accesses: Annotated[
        str | None,
        typer.Option(
            "--accesses",
            metavar="PATH",
            help="Count which of these accesses flip: Parquet, or JSON lines as of [cyan]authorize --requests[/].",
            show_default=False,
        ),
    ] = None
    topics: TopicsFile = None
    format: Annotated[
        DiffFormat, typer.Option("--format", help="For people, for programs, for a merge request, for code scanning.")
    ] = DiffFormat.TEXT
