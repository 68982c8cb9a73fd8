"""`aclog schema`: JSON schemas of what commands print."""

from typing import Annotated

import typer

from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.output import OutputFlags, format_option
from aclog.terminal.output_format import ROW_FORMATS, OutputFormat

app = typer.Typer()


def _complete(incomplete: str) -> list[str]:
    from aclog.cli.schema.documents import schema_names

    return [name for name in schema_names() if name.startswith(incomplete)]


@app.command()
@with_flags
def schema(
    output: OutputFlags,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="The schema to print; without it, all are listed.", autocompletion=_complete
        ),
    ] = None,
    format_: Annotated[OutputFormat | None, format_option(*ROW_FORMATS, default="table")] = None,
) -> None:
    """Print the JSON schema of what a command prints as JSON, or list these schemas.

    A schema is that of a row, which is a line of --format jsonl and an element
    of the array of --format json; or of the one object that answers a question.

    [bold]Examples[/]

      aclog schema
      aclog schema acl > acl.schema.json
    """
    import json

    from aclog.cli.schema.documents import SCHEMA_COLUMNS, schema_of, schema_rows
    from aclog.terminal.output import emit

    how = output.choose(format_, pipe=OutputFormat.TABLE)
    if name is None:
        how.print_rows(SCHEMA_COLUMNS, schema_rows())
    else:
        emit(json.dumps(schema_of(name), indent=2))
