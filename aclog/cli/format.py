"""`aclog format`: kafka-storage.sh format."""

import typer

from aclog.cli.format_options import (
    AddScram,
    ClusterId,
    Config,
    Feature,
    IgnoreFormatted,
    InitialControllers,
    NoInitialControllers,
    ReleaseVersion,
    Standalone,
)

app = typer.Typer()


@app.command("format")
def format_(
    config: Config,
    cluster_id: ClusterId,
    standalone: Standalone = False,
    initial_controllers: InitialControllers = None,
    no_initial_controllers: NoInitialControllers = False,
    add_scram: AddScram = None,
    feature: Feature = None,
    release_version: ReleaseVersion = None,
    ignore_formatted: IgnoreFormatted = False,
) -> None:
    """Format the log directories of CONFIG, with the flags of kafka-storage.sh format.

    A node formats empty directories by itself as it starts; this is for a
    cluster id of one's own, or credentials to begin with.

    [bold]Example[/]

      aclog format server.properties -t MkU3OEVBNTcwNTJENDM2Qg --standalone
    """
    from aclog.nodes.config.server_properties import load_config
    from aclog.nodes.storage.format import format_storage

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
