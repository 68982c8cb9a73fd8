"""Suppressions as tables of TOML: `[[ignore]]` of a file of its own, `[[lint.ignore]]` of aclog.toml."""

from collections.abc import Iterator
from pathlib import Path

from aclog.analysis.lint.catalogue import parse_lints
from aclog.analysis.lint_report.suppression import RULE_FIELDS, Suppression
from aclog.metalog.errors import ConfigError
from aclog.sources.repository.toml_document import read_toml
from aclog.sources.repository.toml_table import TomlTable

IGNORE = "ignore"
_KEYS = ("lint", *RULE_FIELDS, "file", "reason", "expires")


def read_suppressions(path: Path) -> tuple[Suppression, ...]:
    """Return the suppressions of a file of `[[ignore]]` tables.

    Raises:
        ConfigError: not TOML, an unknown key, or a suppression without lint or reason, with the line; OSError.

    """
    document = read_toml(path)
    table = TomlTable(document=document, values=document.values)
    table.only((IGNORE,))
    return tuple(suppressions_of(table))


def suppressions_of(table: TomlTable) -> Iterator[Suppression]:
    """Yield the suppressions in the array `ignore` of a table. Raises ConfigError as read_suppressions."""
    return map(_suppression, table.tables(IGNORE))


def _suppression(table: TomlTable) -> Suppression:
    table.only(_KEYS)
    where = table.document.place(table.path)
    lints = table.texts("lint")
    if not lints:
        raise table.document.error(table.path, 'expected the key lint with an id, such as "08", or an array of them')
    reason = (table.text("reason") or "").strip()
    if not reason:
        raise table.document.error(table.path, "expected the key reason: why this finding is accepted")
    fields = {key: value for key in RULE_FIELDS if (value := table.text(key)) is not None}
    try:
        ids = parse_lints(lints)
    except ConfigError as error:
        raise table.error("lint", str(error)) from error
    return Suppression(
        lints=ids,
        fields=fields,
        file=table.text("file"),
        reason=reason,
        expires=table.day("expires"),
        where=where,
    )
