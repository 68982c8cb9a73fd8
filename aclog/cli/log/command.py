"""The `aclog log` commands."""

from pathlib import Path
from typing import Annotated

import typer

from aclog.cli.flags.answer import AnswerFlags
from aclog.cli.flags.common import ShowSecrets
from aclog.cli.flags.groups import with_flags
from aclog.terminal.output import say

app = typer.Typer(name="log", help="Print the records of a log, verify it, copy it, or adopt it.", no_args_is_help=True)


@app.command()
@with_flags
def dump(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Segments, checkpoints, or directories of them.", show_default=False),
    ],
    output: AnswerFlags,
    json: Annotated[
        bool, typer.Option("--json", metavar="", help="One JSON object per record, as --format jsonl.")
    ] = False,
    show_secrets: ShowSecrets = False,
) -> None:
    """Print every record, control records included, one per line.

    With --json each line has the keys file, offset, leaderEpoch, timestamp (ms
    since 1970), type, version and data; a record that aclog does not interpret
    has its bytes in data.base64.

    [bold]Examples[/]

      aclog log dump DIR
      aclog log dump --json DIR | jq 'select(.leaderEpoch > 3)'
    """
    from aclog.cli.log.dump import RECORD_COLUMNS, dump_rows, dump_text
    from aclog.metalog.filelog.notice import notices
    from aclog.terminal.notices import note

    for text in [text for path in paths if path.is_dir() for text in notices(path)]:
        note(text)
    how = output.choose(json=json)
    if how.is_rows:
        how.print_rows(RECORD_COLUMNS, dump_rows(paths, show_secrets=show_secrets))
    else:
        for line in dump_text(paths, show_secrets=show_secrets):
            say(line)


@app.command()
@with_flags
def verify(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A directory of segments and checkpoints.", show_default=False)
    ],
    output: AnswerFlags,
) -> None:
    """Check every CRC, offset and leader epoch, replay the log, and print what is wrong and where.

    Exit code 1 for damage, 2 if all is whole but a newer Kafka wrote records
    that this aclog does not know: a node would not start on it. Also 2 if there
    is no log in DIR. Warns of every ACL that no request can create, with what
    Kafka 4.3.1 throws on it, and of every ACL that matches nobody.

    [bold]Example[/]

      aclog log verify DIR
    """
    from aclog.cli.log.verify import verify_log

    verdict = verify_log(directory, output.choose())
    if verdict:
        raise typer.Exit(verdict)


@app.command()
def copy(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="A log: DIR or kafka://HOST:PORT/TOPIC.", show_default=False)
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="TO", help="The target: DIR or kafka://HOST:PORT/TOPIC, empty or missing.", show_default=False
        ),
    ],
    command_config: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Client properties, as for Kafka's tools: security.protocol, sasl.*, ssl.*.",
        ),
    ] = None,
    replication_factor: Annotated[
        int,
        typer.Option("--replication-factor", metavar="N", min=1, help="Replicas of a topic that is created."),
    ] = 3,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="For a log that begins after offset 0: the checkpoint to put into the directory TO.",
        ),
    ] = None,
    until_damage: Annotated[
        bool,
        typer.Option("--until-damage", metavar="", help="Copy what stands before the damage of a topic."),
    ] = False,
) -> None:
    """Copy a log from a directory to a Kafka topic, or back: the same records at the same offsets.

    Everything committed at the start is copied, read back and compared; a TO
    that is not empty is refused. Stop the writers of FROM first if they are to
    continue on TO. The copy is atomic: a topic gets the whole log or nothing, a
    directory appears when it is complete.

    With --until-damage a topic that readers refuse is copied up to the last whole
    batch before the damage; what stands after it is counted. Exit code 1 if
    there is any.

    [bold]Examples[/]

      aclog log copy DIR kafka://HOST:9092/__aclog_metadata
      aclog log copy kafka://HOST:9092/__aclog_metadata DIR --command-config FILE
    """
    from aclog.cli.log.copy import TopicClient, copy_log
    from aclog.nodes.config.librdkafka import librdkafka_properties
    from aclog.sources.server_flags import client_security

    security = client_security(command_config)
    properties = librdkafka_properties(security, "" if command_config is None else f"{command_config}: ")
    client = TopicClient(properties=properties, replication_factor=replication_factor, security=security)
    if not copy_log(source, target, client, checkpoint, until_damage=until_damage):
        raise typer.Exit(1)


@app.command()
def adopt(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="The controller's server.properties.", show_default=False)
    ],
    force: Annotated[bool, typer.Option("--force", metavar="", help="Do not ask.")] = False,
) -> None:
    """Make a controller on a Kafka topic accept another topic as its log.

    A controller refuses a topic that is not the one it has followed, or that
    does not hold all that it has seen committed. This shows both ends, asks,
    and records the topic that CONFIG names now. Stop the controller first.

    [bold]Example[/]

      aclog log adopt server.properties
    """
    from aclog.cli.log.adopt import adopt_topic

    adopt_topic(config, force=force)
