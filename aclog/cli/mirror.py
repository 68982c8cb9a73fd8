"""The `aclog mirror` command."""

from pathlib import Path
from typing import Annotated

from aclog.cli.flags.common import FollowerFlags
from aclog.cli.options import Group, Option

app = Group()


@app.command()
def mirror(
    bootstrap_controller: Annotated[
        str,
        Option(
            "--bootstrap-controller",
            metavar="HOST:PORT",
            help="The controllers, comma-separated, of a running quorum (aclog or Kafka).",
            show_default=False,
        ),
    ],
    to: Annotated[
        Path,
        Option(
            "--to",
            metavar="DIR",
            help="The mirror: an empty or missing directory, or an existing mirror to continue.",
            show_default=False,
        ),
    ],
    command_config: Annotated[
        Path | None,
        Option(
            "--command-config",
            metavar="FILE",
            help="Client properties, as for Kafka's tools: security.protocol, sasl.*, ssl.*.",
        ),
    ] = None,
    once: Annotated[
        bool,
        Option("--once", metavar="", help="Stop at the high-water mark seen at the start."),
    ] = False,
    *,
    follower: FollowerFlags,
) -> None:
    """Copy everything a quorum commits, byte for byte, into a directory of segments.

    Every command that reads a log accepts the directory as --log DIR. The mirror
    keeps the full history, even after the quorum has deleted old segments. The
    command runs until Ctrl-C or SIGTERM. When it is started again, it resumes
    from the end of the mirror.

    [bold]Examples[/]

      aclog mirror --bootstrap-controller HOST:9093 --to DIR --once
      aclog acls list --log DIR --as-of 2026-11-20T10:00:00Z
    """
    from aclog.cli.mirror_run import MirrorOptions, mirror_quorum
    from aclog.sources.server_flags import client_security, parse_servers

    controllers = parse_servers("--bootstrap-controller", bootstrap_controller)
    mirror_quorum(
        MirrorOptions(
            controllers=controllers,
            security=client_security(command_config),
            directory=to,
            once=once,
            http=follower.address(),
            give_up_after=follower.patience(),
        )
    )
