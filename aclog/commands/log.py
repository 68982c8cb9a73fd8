"""`aclog log`: what stands in a log, and whether it is sound."""

from pathlib import Path
from typing import Annotated

import typer

from aclog.options import ShowSecrets

app = typer.Typer(name="log", help="Print the records of a log, or check all of it.", no_args_is_help=True)


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
    from aclog.dumping import dump_json, dump_text

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
    from aclog.verifying import verify_log

    if not verify_log(directory):
        raise typer.Exit(1)
