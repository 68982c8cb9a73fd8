"""The flag that says how an answer about many requests is printed."""

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer


class AnswerFormat(StrEnum):
    """Lines for people, or JSON lines."""

    TEXT = "text"
    JSONL = "jsonl"


AnswerFormatFlag: TypeAlias = Annotated[AnswerFormat, typer.Option("--format", help="For people, or for programs.")]
