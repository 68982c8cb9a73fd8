"""The `aclog snapshot` commands."""

from pathlib import Path
from typing import Annotated

import typer

from aclog.cli.flags.answer import AnswerFlags
from aclog.cli.flags.common import KeepOddRules
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.source import SourceFlags
from aclog.terminal.output import say

app = typer.Typer(name="snapshot", help="Write, check and list checkpoint files.", no_args_is_help=True)


@app.command()
@with_flags
def create(
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="The directory of the checkpoint; created if missing.", show_default=False
        ),
    ],
    source: SourceFlags,
    keep_odd_rules: KeepOddRules = False,
) -> None:
    """Write the state as a checkpoint, DIR/<end offset>-<epoch>.checkpoint, which Kafka's tools can read.

    An ACL in --acls that CreateAcls would refuse is refused, and nothing is
    written. A state of any other source is written as it is.

    [bold]Examples[/]

      aclog snapshot create --log DIR --as-of 70000 --out /tmp/then
      aclog snapshot create --acls rules.jsonl --out /tmp/rules
    """
    from aclog.cli.rule_warnings import WrittenRules
    from aclog.cli.snapshot.checkpoints import checked_image, create_checkpoint

    rules = WrittenRules(keep_odd_rules=keep_odd_rules)
    say(create_checkpoint(checked_image(source.choose(), rules), out))
    rules.report()


@app.command()
@with_flags
def verify(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Checkpoint files.", show_default=False)],
    output: AnswerFlags,
) -> None:
    """Check checkpoint files: every CRC, header, footer, name and record.

    Exit codes as of `aclog log verify`: 1 for damage, 2 for records of a newer
    Kafka. Warns of every ACL that no request can create, or that matches nobody.

    [bold]Example[/]

      aclog snapshot verify DIR/*.checkpoint
    """
    from aclog.cli.snapshot.checkpoints import verify_checkpoints

    verdict = verify_checkpoints(files, output.choose())
    if verdict:
        raise typer.Exit(verdict)


@app.command(name="list")
@with_flags
def list_(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A directory of checkpoints.", show_default=False)],
    output: AnswerFlags,
) -> None:
    """List the checkpoints of a directory, oldest first: end offset, epoch, time and contents.

    [bold]Example[/]

      aclog snapshot list DIR
    """
    from aclog.cli.snapshot.checkpoints import describe_checkpoints

    describe_checkpoints(directory, output.choose())
