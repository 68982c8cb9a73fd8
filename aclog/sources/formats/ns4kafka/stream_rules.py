"""Kafka Streams applications: whose they are, and the ACLs for their internal topics."""

from collections.abc import Iterator, Sequence

from aclog.authorizer.acl import AclOperation, PatternType, ResourceType
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.ns4kafka.entry import Entry
from aclog.sources.formats.ns4kafka.namespace import Namespace, Namespaces
from aclog.sources.formats.resources import Resource
from aclog.sources.formats.statement import Statement


def owner_of_stream(stream: Resource, entries: Sequence[Entry], namespaces: Namespaces) -> Namespace:
    """Return the namespace of an application.

    Without one in its metadata, it is the only one that owns topics and groups of its name: ns4kafka refuses others,
    and lets no two namespaces own a name (StreamService.isNamespaceOwnerOfKafkaStream, AclService).

    Raises:
        ConfigError: that namespace is not in the files, or there is not one; with the line of the application.

    """
    given = stream.namespace
    names = {given.text("metadata.namespace")} if given is not None else _owners(stream.name, entries)
    owners = [owner for owner in map(namespaces.get, sorted(names)) if owner is not None]
    if len(owners) == 1:
        return owners[0]
    if given is not None:
        raise given.error(f"its namespace {given.raw[:60]!r} is not in the files")
    raise stream.node.error(
        f"KafkaStream {stream.name[:60]} names no namespace, and {len(owners)} namespaces in the files own prefixes "
        "of it as TOPIC and as GROUP: expected metadata.namespace"
    )


def _owners(name: str, entries: Sequence[Entry]) -> set[str]:
    def of(kind: str) -> set[str]:
        return {
            entry.granted_to
            for entry in entries
            if (entry.resource_type, entry.permission, entry.pattern_type) == (kind, "OWNER", PatternType.PREFIXED)
            and name.startswith(entry.resource)
        }

    return of("TOPIC") & of("GROUP")


def rules_of_stream(stream: Resource, owner: Namespace) -> Iterator[LocatedRule]:
    """Yield the rules for changelog and repartition topics, which begin with the name of the application."""
    for operation in (AclOperation.CREATE, AclOperation.DELETE):
        statement = Statement(
            where=stream.node,
            resource_type=ResourceType.TOPIC,
            name=stream.name,
            operation=operation,
            pattern_type=PatternType.PREFIXED,
        )
        yield statement.rule(owner.principal)
