"""`aclog format`: kafka-storage.sh format."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command("format")
def format_(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A server.properties, as a Kafka has it.", show_default=False)
    ],
    cluster_id: Annotated[
        str, typer.Option("--cluster-id", "-t", metavar="ID", help="The cluster's id.", show_default=False)
    ],
    standalone: Annotated[
        bool,
        typer.Option("--standalone", "-s", metavar="", help="Make this controller the one voter of a dynamic quorum."),
    ] = False,
    initial_controllers: Annotated[
        str | None,
        typer.Option(
            "--initial-controllers",
            "-I",
            metavar="VOTER",
            help="The one voter of a dynamic quorum: ID@HOST:PORT:DIRECTORY-ID.",
        ),
    ] = None,
    no_initial_controllers: Annotated[
        bool, typer.Option("--no-initial-controllers", "-N", metavar="", help="Leave the voters to somebody else.")
    ] = False,
    add_scram: Annotated[
        list[str] | None,
        typer.Option(
            "--add-scram",
            "-S",
            metavar="SCRAM",
            help="A credential to begin with: SCRAM-SHA-256=\\[name=alice,password=...].",
        ),
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option("--feature", "-f", metavar="N=LEVEL", help="The level of a feature.")
    ] = None,
    release_version: Annotated[
        str | None,
        typer.Option("--release-version", "-r", metavar="R", help="The release whose levels are taken."),
    ] = None,
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", "-g", metavar="", help="Pass over directories that are formatted.")
    ] = False,
) -> None:
    """Format the log directories of CONFIG, with the flags of kafka-storage.sh format.

    A node formats empty directories by itself as it starts; this is for a
    cluster id of one's own, or credentials to begin with.

    [bold]Example[/]

      aclog format server.properties -t MkU3OEVBNTcwNTJENDM2Qg --standalone
    """
    from nodes.config.formatting import format_storage
    from nodes.config.loading import load_config

    done = format_storage(
        load_config(config),
        cluster_id,
        standalone=standalone,
        initial_controllers=initial_controllers,
        no_initial_controllers=no_initial_controllers,
        add_scram=add_scram or (),
        features=feature or (),
        release_version=release_version,
        ignore_formatted=ignore_formatted,
    )
    for line in done.lines:
        print(line)
