"""`aclog schema`: JSON schemas of what commands print."""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

from aclog.cli.flags.common import OutputFlags, format_option
from aclog.cli.options import Argument, Group
from aclog.metalog.errors import ConfigError
from aclog.terminal.columns import ROW_FORMATS, Column, OutputFormat, Row

# `aclog schema`: JSON schemas of what commands print.


app = Group()


def _complete(incomplete: str) -> list[str]:

    return [name for name in schema_names() if name.startswith(incomplete)]


@app.command()
def schema(
    output: OutputFlags,
    name: Annotated[
        str | None,
        Argument(metavar="[NAME]", help="The schema to print; without it, all are listed.", autocompletion=_complete),
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

    from aclog.terminal.output import emit

    how = output.choose(format_, pipe=OutputFormat.TABLE)
    if name is None:
        how.print_rows(SCHEMA_COLUMNS, schema_rows())
    else:
        emit(json.dumps(schema_of(name), indent=2))


# The JSON schemas in schemas.json: one for the rows, or the object, that a command prints as JSON.


SCHEMA_COLUMNS = (
    Column(key="name"),
    Column(key="commands", text=", ".join, cut=True),
    Column(key="description", flows=True),
)
"""Of `schema_rows`."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_rows() -> Iterator[Row]:
    """Yield a row for each schema: its name, the commands that print such objects, and what these are."""
    for name, document in _file()["documents"].items():
        yield {"name": name, "commands": document["commands"], "description": document["description"]}


def schema_names() -> list[str]:
    """Return the names of all schemas."""
    return list(_file()["documents"])


def schema_of(name: str) -> dict[str, Any]:
    """Return a schema (draft 2020-12), whole in itself.

    Raises:
        ConfigError: there is no such schema; its text names those that exist.

    """
    documents = _file()["documents"]
    if name not in documents:
        raise ConfigError(f"no schema {name[:80]!r}: expected one of {', '.join(documents)}")
    document = documents[name]
    head = {"$schema": _DIALECT, "$id": f"urn:aclog:schema:{name}", "title": name}
    used: dict[str, Any] = {}
    _collect(document["schema"], used)
    description = f"{document['description']} Printed by {', '.join(f'aclog {each}' for each in document['commands'])}."
    return {**head, "description": description, **document["schema"], "$defs": dict(sorted(used.items()))}


def _collect(schema: object, used: dict[str, Any]) -> None:
    """Add the definitions that a schema refers to, and those that these refer to."""
    if isinstance(schema, list):
        for each in schema:
            _collect(each, used)
    if not isinstance(schema, dict):
        return
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name and name not in used:
        used[name] = _file()["$defs"][name]
        _collect(used[name], used)
    for each in schema.values():
        _collect(each, used)


@cache
def _file() -> dict[str, Any]:
    schemas: dict[str, Any] = json.loads(files(__package__).joinpath("schemas.json").read_text(encoding="utf-8"))
    return schemas
