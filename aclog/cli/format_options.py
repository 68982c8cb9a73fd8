"""The options of `aclog format`: kafka-storage's, as annotated types."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Config: TypeAlias = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="A server.properties, as a Kafka has it.", show_default=False)
]
ClusterId: TypeAlias = Annotated[
    str, typer.Option("--cluster-id", "-t", metavar="ID", help="The cluster's id.", show_default=False)
]
Standalone: TypeAlias = Annotated[
    bool,
    typer.Option("--standalone", "-s", metavar="", help="Make this controller the one voter of a dynamic quorum."),
]
InitialControllers: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--initial-controllers",
        "-I",
        metavar="VOTER",
        help="The one voter of a dynamic quorum: ID@HOST:PORT:DIRECTORY-ID.",
    ),
]
NoInitialControllers: TypeAlias = Annotated[
    bool, typer.Option("--no-initial-controllers", "-N", metavar="", help="Leave the voters to somebody else.")
]
AddScram: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--add-scram",
        "-S",
        metavar="SCRAM",
        help="A credential to begin with: SCRAM-SHA-256=\\[name=alice,password=...].",
    ),
]
Feature: TypeAlias = Annotated[
    list[str] | None, typer.Option("--feature", "-f", metavar="N=LEVEL", help="The level of a feature.")
]
ReleaseVersion: TypeAlias = Annotated[
    str | None, typer.Option("--release-version", "-r", metavar="R", help="The release whose levels are taken.")
]
IgnoreFormatted: TypeAlias = Annotated[
    bool, typer.Option("--ignore-formatted", "-g", metavar="", help="Pass over directories that are formatted.")
]
