"""The page of JSON schemas: what each command prints as JSON, as `aclog schema` has it."""

import json

from aclog.cli.schema import schema_names, schema_of, schema_rows
from tests.docs.site.reference.tables import plain, table

_INTRODUCTION = """JSON schemas (draft 2020-12) of what commands print, as `aclog schema NAME` prints them. A schema
is that of a row: a line of `--format jsonl`, and an element of the array of `--format json`; or of the one object
that answers a question. [Output](../commands/index.md#output) has what is common to all.
"""


def schemas_page() -> str:
    """Return the page."""
    rows = [
        (f"[`{row['name']}`](#{row['name']})", _commands(row["commands"]), plain(row["description"]))
        for row in schema_rows()
    ]
    parts = ["# JSON schemas\n", _INTRODUCTION, table(("schema", "printed by", "what it is"), rows)]
    parts += [f"## {name}\n\n```json\n{json.dumps(schema_of(name), indent=2)}\n```\n" for name in schema_names()]
    return "\n".join(parts)


def _commands(names: list[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)
