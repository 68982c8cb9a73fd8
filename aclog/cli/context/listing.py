"""Prints contexts: all of them in a list, or one with its client properties, whose secrets are never shown."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aclog.cli.flags.output import Output
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.sources.contexts.choosing import ChosenContext
from aclog.sources.contexts.client_secrets import shown_value, warn_of_readers
from aclog.sources.contexts.context import Context
from aclog.sources.contexts.context_file import ContextFile
from aclog.terminal.columns import Column
from aclog.terminal.json_text import json_text
from aclog.terminal.notices import warn
from aclog.terminal.output import emit, say
from aclog.terminal.output_format import OutputFormat
from aclog.terminal.rows import print_rows

COLUMNS = (
    Column(key="current", title="", text=lambda value: "*" if value else ""),
    Column(key="name"),
    Column(key="source"),
    Column(key="address", cut=True),
    Column(key="superUsers", title="SUPER USERS", cut=True, spare=True),
    Column(key="commandConfig", title="COMMAND CONFIG", cut=True, spare=True),
)


def print_contexts(file: ContextFile, chosen: str | None, output: Output) -> bool:
    """Print a row for each context of the file; `chosen`: the one that commands use now.

    Returns whether all of them can be used; a warning says what is wrong with one that cannot.
    """
    rows, is_sound = [], True
    for name in file.names:
        try:
            rows.append(_row(file.context(name), chosen))
        except ConfigError as error:
            is_sound = False
            warn(str(error))
    print_rows(COLUMNS, rows, output.form, chosen=output.columns)
    return is_sound


def print_context(context: Context, chosen: ChosenContext | None, form: OutputFormat) -> None:
    """Print all that is known of a context, as text or as one JSON object."""
    found = _object(context)
    if form is OutputFormat.JSON:
        emit(json_text(found))
        return
    used = f"   # {chosen.by}" if chosen is not None and chosen.context == context else ""
    say(f"{context.name}   {context.place}{used}")
    for key, value in found.items():
        if isinstance(value, dict):
            say(f"  {key}:")
            for name, text in value.items():
                say(f"    {name}={text}")
        elif key != "name":
            say(f"  {key}: {value if isinstance(value, str) else json_text(value)}")
    if context.command_config is not None:
        warn_of_readers(context.command_config)


def _row(context: Context, chosen: str | None) -> dict[str, Any]:
    return {
        "current": context.name == chosen,
        "name": context.name,
        "source": context.kind,
        "address": context.value,
        "superUsers": context.super_users,
        "commandConfig": None if context.command_config is None else str(context.command_config),
    }


def _object(context: Context) -> dict[str, Any]:
    values = {
        "name": context.name,
        context.kind: context.value,
        "acls-format": context.acls_format,
        "modules": dict(context.modules) or None,
        "topics": context.topics,
        "super-users": context.super_users,
        "allow-everyone-if-no-acl-found": context.allow_everyone,
        "semantics": context.semantics,
        "kafka-version": context.kafka_version,
        "cidr": context.cidr if context.kafka_version is None else None,
        "timezone": context.timezone,
        "format": context.format,
    }
    for key, path in (("command-config", context.command_config), ("zookeeper-config", context.zookeeper_config)):
        if path is not None:
            values[key] = str(path)
            values[f"{key} properties"] = dict(_properties(path))
    return {key: value for key, value in values.items() if value is not None}


def _properties(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the properties of a file without secrets; a file that cannot be read is warned of."""
    from aclog.nodes.config.java_properties import read_properties

    try:
        found, _ = read_properties(path)
    except (MetadataError, OSError) as error:
        warn(f"{path}: {getattr(error, 'strerror', None) or error}")
        return
    for key, value in found.items():
        yield key, shown_value(key, value)
