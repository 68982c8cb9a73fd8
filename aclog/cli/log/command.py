"""`aclog log`: what stands in a log, whether it is sound, and a copy of it elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from aclog.cli.flags.common import ShowSecrets

app = typer.Typer(name="log", help="Print the records of a log, check all of it, or copy it.", no_args_is_help=True)


@app.command()
def dump(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Segments, checkpoints, or directories of them.", show_default=False),
    ],
    json: Annotated[bool, typer.Option("--json", metavar="", help="One JSON object a record.")] = False,
    show_secrets: ShowSecrets = False,
) -> None:
    """Print every record, one a line, control records too.

    With --json each line has the keys file, offset, leaderEpoch, timestamp (ms
    since 1970), type, version and data; what aclog does not interpret has its
    bytes in data.base64.

    [bold]Examples[/]

      aclog log dump DIR
      aclog log dump --json DIR | jq 'select(.leaderEpoch > 3)'
    """
    from aclog.cli.log.dump import dump_json, dump_text

    for line in (dump_json if json else dump_text)(paths, show_secrets=show_secrets):
        print(line)


@app.command()
def verify(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A directory of segments and checkpoints.", show_default=False)
    ],
) -> None:
    """Check every CRC, offset and leader epoch, and replay the whole; say what is wrong and where.

    Exit code 1 if anything is wrong.

    [bold]Example[/]

      aclog log verify DIR
    """
    from aclog.cli.log.verify import verify_log

    if not verify_log(directory):
        raise typer.Exit(1)


@app.command()
def copy(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="A log: DIR or kafka://HOST:PORT/TOPIC.", show_default=False)
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="TO", help="Where to: DIR or kafka://HOST:PORT/TOPIC, empty or not there yet.", show_default=False
        ),
    ],
    command_config: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Client properties, as Kafka's tools take them: security.protocol, sasl.*, ssl.*.",
        ),
    ] = None,
    replication_factor: Annotated[
        int,
        typer.Option("--replication-factor", metavar="N", min=1, help="Replicas of the topic; a new one gets so many."),
    ] = 3,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="FILE", help="For a log that begins after offset 0: put into the directory TO."
        ),
    ] = None,
) -> None:
    """Copy a log from a directory to a topic of a Kafka, or back: the same records at the same offsets.

    All that is committed when it begins is copied, read again, and compared; a
    TO that is not empty is refused. Nobody may write to FROM meanwhile who is
    to go on with TO. A topic gets all of the log at once or nothing of it; a
    directory appears when it is whole.

    [bold]Examples[/]

      aclog log copy DIR kafka://HOST:9092/__aclog_metadata
      aclog log copy kafka://HOST:9092/__aclog_metadata DIR --command-config FILE
    """
    from aclog.cli.log.copy import TopicClient, copy_log
    from aclog.nodes.config.librdkafka import librdkafka_properties
    from aclog.sources.bootstrap import client_security

    where = "" if command_config is None else f"{command_config}: "
    properties = librdkafka_properties(client_security(command_config), where)
    copy_log(source, target, TopicClient(properties=properties, replication_factor=replication_factor), checkpoint)
