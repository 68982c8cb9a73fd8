"""Which files are ns4kafka's, and the ACLs of all of them together: an entry needs the namespace it is granted to."""

from collections.abc import Iterator, Sequence

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.left_out import leave_out_resource
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.ns4kafka.entry import Entry, parse_entry
from aclog.sources.formats.ns4kafka.entry_rules import rules_of_entry
from aclog.sources.formats.ns4kafka.namespace import Namespace, Namespaces, parse_namespace
from aclog.sources.formats.ns4kafka.stream_rules import owner_of_stream, rules_of_stream
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.resources import Resource, resources
from aclog.sources.formats.source_file import SourceFile

_VERSION = "v1"
_MARKS = (b"AccessControlEntry", b"KafkaStream", b"kafkaUser")
_OTHERS = ("KafkaPrincipalAuthorization", "KafkaPrincipalRole", "KafkaUser")
"""Kinds that other tools make ACLs of: beside an entry, they would be left out."""


def claims(file: SourceFile) -> bool:
    """Return whether an entry, a Kafka Streams application or a namespace with a Kafka user is in the file.

    Raises:
        ConfigError: it may be and is not YAML; OSError: it cannot be read.

    """
    if not file.has_suffix(".yaml", ".yml", ".json") or not file.mentions(*_MARKS):
        return False
    return any(_makes_rules(each) for each in resources(file.documents))


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of the entries and of Kafka Streams applications; everything else is counted.

    Raises:
        ConfigError: what ns4kafka refuses, or a namespace that is not in the files; with file and line.
        OSError: a file cannot be read.

    """
    entries: list[Entry] = []
    streams: list[Resource] = []
    namespaces = Namespaces()
    for resource in (each for file in files for each in resources(file.documents)):
        if not _makes_rules(resource):
            if resource.kind in _OTHERS:
                raise resource.node.error(
                    f"a {resource.kind} beside ns4kafka's resources: put it into a file of its own"
                )
            leave_out_resource(resource, context)
        elif resource.kind == "Namespace":
            namespaces.add(parse_namespace(resource))
        elif resource.kind == "KafkaStream":
            streams.append(resource)
        else:
            entries.append(parse_entry(resource))
    if not (entries or streams or namespaces):  # files that were not claimed, but given with the format
        raise ConfigError(f"{', '.join(file.name for file in files)}: expected a Namespace or an AccessControlEntry")
    yield from _rules(entries, streams, namespaces, context)


def _rules(
    entries: Sequence[Entry], streams: Sequence[Resource], namespaces: Namespaces, context: ReadContext
) -> Iterator[LocatedRule]:
    owned = [(stream, owner_of_stream(stream, entries, namespaces)) for stream in streams]
    with_streams = {owner.name for _, owner in owned}
    for entry in entries:
        granted: Namespace | None = namespaces.granted_to(entry)
        if entry.makes_rules:
            yield from rules_of_entry(entry, granted, has_streams=granted is not None and granted.name in with_streams)
        else:
            context.ignore(f"AccessControlEntry of {entry.resource_type}")
    for stream, owner in owned:
        yield from rules_of_stream(stream, owner)


def _makes_rules(resource: Resource) -> bool:
    """Return whether a resource is ns4kafka's and can make ACLs. Kubernetes has a Namespace of this version, too."""
    if resource.api_version != _VERSION:
        return False
    if resource.kind != "Namespace":
        return resource.kind in ("AccessControlEntry", "KafkaStream")
    spec, metadata = resource.node.get("spec"), resource.node.get("metadata")
    has_user = spec is not None and spec.get("kafkaUser") is not None
    return has_user or (metadata is not None and metadata.get("cluster") is not None)
