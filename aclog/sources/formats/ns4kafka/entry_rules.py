"""The ACLs of an entry (com.michelin.ns4kafka.service.executor.AccessControlEntryAsyncExecutor)."""

from collections.abc import Iterable, Iterator

from aclog.authorizer.acl import WILDCARD_PRINCIPAL, AclOperation, PatternType, ResourceType
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.ns4kafka.entry import Entry
from aclog.sources.formats.ns4kafka.namespace import Namespace
from aclog.sources.formats.statement import Statement

_OF_OWNER = {
    ResourceType.TOPIC: (AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE_CONFIGS),
    ResourceType.GROUP: (AclOperation.READ,),
}


def rules_of_entry(entry: Entry, granted: Namespace | None, *, has_streams: bool) -> Iterator[LocatedRule]:
    """Yield the rules of an entry that makes some.

    `granted` is the namespace that it is granted to, None for everybody; `has_streams` is whether that namespace has a
    Kafka Streams application, whose transactional ids begin with the name of its group. Raises ConfigError: a rule that
    no Kafka accepts.
    """
    principal = WILDCARD_PRINCIPAL if granted is None else granted.principal
    for statement in _statements(entry, granted, has_streams=has_streams):
        yield statement.rule(principal)


def _statements(entry: Entry, granted: Namespace | None, *, has_streams: bool) -> Iterator[Statement]:
    def of(kind: ResourceType, name: str, operation: AclOperation, pattern_type: PatternType) -> Statement:
        return Statement(
            where=entry.node, resource_type=kind, name=name, operation=operation, pattern_type=pattern_type
        )

    if entry.resource_type == "CONNECT":
        yield of(ResourceType.GROUP, f"connect-{entry.resource}", AclOperation.READ, entry.pattern_type)
        return
    kind = ResourceType[entry.resource_type]
    for operation in _OF_OWNER[kind] if entry.permission == "OWNER" else (AclOperation[entry.permission],):
        yield of(kind, entry.resource, operation, entry.pattern_type)
    if kind == ResourceType.GROUP and granted is not None:
        for prefix in _transactional_ids(entry, granted, has_streams=has_streams):
            for operation in (AclOperation.WRITE, AclOperation.DESCRIBE):
                yield of(ResourceType.TRANSACTIONAL_ID, prefix, operation, PatternType.PREFIXED)


def _transactional_ids(entry: Entry, granted: Namespace, *, has_streams: bool) -> Iterable[str]:
    """Return the prefixes of transactional ids that come with a group, whatever its own pattern is."""
    if granted.transactions:
        return (f"connect-cluster-{entry.resource}", entry.resource)
    return (entry.resource,) if has_streams else ()
