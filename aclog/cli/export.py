"""`aclog export`: a state, the history of its ACLs, or its ACLs as the files of another tool."""

from pathlib import Path
from typing import Annotated

from aclog.cli.flags.common import ExportFormat, ShowSecrets
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group, Option

app = Group()


@app.command()
def export(
    format_: Annotated[
        ExportFormat,
        Option(
            "--format",
            help="Avro (the schemas are in the docs), or JSON lines with the same fields; "
            "or ACLs alone, as the files of another tool.",
        ),
    ],
    source: SourceFlags,
    history: Annotated[
        bool, Option("--history", metavar="", help="With --log: every change of an ACL instead of the state.")
    ] = False,
    out: Annotated[
        Path | None,
        Option("--out", metavar="FILE", help="The output file.", show_default="standard output"),
    ] = None,
    show_secrets: ShowSecrets = False,
) -> None:
    """Write a state (ACLs, credentials, tokens, features, other records as bytes), or the history of its ACLs.

    An export with --show-secrets can be imported without loss; without it,
    SCRAM credentials have no keys.

    The formats of other tools hold ACLs only. What a format cannot hold is listed, and nothing is written.

    [bold]Examples[/]

      aclog export --log DIR --format avro --out state.avro
      aclog export --log DIR --format jsonl --history | grep REMOVED
      aclog export --bootstrap-server HOST:9092 --format terraform --out acls.tf
    """
    from aclog.cli.transfer.transfer import export_acls, export_history, export_image

    choice = source.choose()
    if history:
        export_history(choice.source, choice.moment, format_, out)
    elif format_.is_for_acls_only:
        export_acls(choice.image(), format_, out)
    else:
        export_image(choice.image(), format_, out, show_secrets=show_secrets)
    choice.note_without_authorizer()
