"""Counts what cannot make rules, by its kind."""

import codecs

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.resources import Resource, resources
from aclog.sources.formats.source_file import SourceFile

_LONGEST = 60
"""Of a kind, in characters: it is shown to people."""


def leave_out(file: SourceFile, context: ReadContext) -> None:
    """Count a file that no format claims: the resources in it, or else the file.

    Raises:
        ConfigError: text in UTF-16, as Windows' shell writes what a tool prints: no format could know it.
        OSError: it cannot be read.

    """
    if file.has_suffix(".txt", ".csv", ".acls") and file.content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise file.error(1, "text in UTF-16: save it as UTF-8")
    found = _resources(file)
    if not found or not all(each.kind for each in found):
        context.ignore("other file")
        return
    for each in found:
        leave_out_resource(each, context)


def leave_out_resource(resource: Resource, context: ReadContext) -> None:
    """Count a resource, and what a Kafka of Strimzi says of access besides rules."""
    context.ignore(resource.kind[:_LONGEST] or "document without a kind")
    node = resource.node if resource.kind == "Kafka" else None
    for key in ("spec", "kafka", "authorization"):
        node = None if node is None else node.get(key)
    if node is None:
        return
    kind, users = node.get("type"), node.get("superUsers")
    if kind is not None and kind.raw != "simple":
        context.ignore(f"authorization of a Kafka by {kind.raw[:_LONGEST]}")
    for _ in users.value if users is not None and isinstance(users.value, tuple) else ():
        context.ignore("super user of a Kafka")


def _resources(file: SourceFile) -> list[Resource]:
    if not file.has_suffix(".yaml", ".yml", ".json") or b"kind" not in file.content:
        return []
    try:
        return list(resources(file.documents))
    except ConfigError:
        return []  # such as a template: no format claims it
