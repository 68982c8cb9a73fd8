"""`aclog format`: kafka-storage.sh format."""

from pathlib import Path
from typing import Annotated

from attrs import field

from aclog.cli.options import Argument, Group, Option
from aclog.metalog.values import frozen
from aclog.terminal.output import note, say

app = Group()


@frozen(kw_only=True)
class FormatFlags:
    """The options of kafka-storage.sh format."""

    standalone: Annotated[
        bool,
        Option("--standalone", "-s", metavar="", help="Make this controller the only voter of a dynamic quorum."),
    ] = False
    initial_controllers: Annotated[
        str | None,
        Option(
            "--initial-controllers",
            "-I",
            metavar="VOTER",
            help="The only voter of a dynamic quorum: ID@HOST:PORT:DIRECTORY-ID.",
        ),
    ] = None
    no_initial_controllers: Annotated[
        bool,
        Option("--no-initial-controllers", "-N", metavar="", help="Write no voters: others form the quorum."),
    ] = False
    add_scram: Annotated[
        list[str],
        Option(
            "--add-scram",
            "-S",
            metavar="SCRAM",
            help="A credential to create: SCRAM-SHA-256=\\[name=alice,password=...].",
        ),
    ] = field(factory=list)
    features: Annotated[list[str], Option("--feature", "-f", metavar="N=LEVEL", help="The level of a feature.")] = (
        field(factory=list)
    )
    release_version: Annotated[
        str | None,
        Option("--release-version", "-r", metavar="R", help="The release whose feature levels are used."),
    ] = None
    ignore_formatted: Annotated[
        bool,
        Option("--ignore-formatted", "-g", metavar="", help="Skip directories that are already formatted."),
    ] = False


@app.command("format")
def format_(
    config: Annotated[Path, Argument(metavar="CONFIG", help="A server.properties, as for Kafka.", show_default=False)],
    cluster_id: Annotated[str, Option("--cluster-id", "-t", metavar="ID", help="The cluster id.", show_default=False)],
    flags: FormatFlags,
) -> None:
    """Format the log directories of CONFIG, with the flags of kafka-storage.sh format.

    A node starts on formatted directories only. `aclog serve --format-if-empty`
    formats empty ones too, with a random cluster id.

    [bold]Example[/]

      aclog format server.properties -t MkU3OEVBNTcwNTJENDM2Qg --standalone
    """
    from aclog.config.server_properties import load_config
    from aclog.server.storage import FormatOptions, format_storage
    from aclog.snapshots.image import KAFKA_VERSION_CONFIG

    loaded = load_config(config)
    done = format_storage(
        loaded,
        cluster_id,
        FormatOptions(
            standalone=flags.standalone,
            initial_controllers=flags.initial_controllers,
            no_initial_controllers=flags.no_initial_controllers,
            add_scram=flags.add_scram,
            features=flags.features,
            release_version=flags.release_version,
            ignore_formatted=flags.ignore_formatted,
        ),
    )
    for line in done.lines:
        say(line)
    if done.needed is not loaded.generation:
        note(f"a node of aclog starts there with {KAFKA_VERSION_CONFIG}={done.needed.value} in {config}")
