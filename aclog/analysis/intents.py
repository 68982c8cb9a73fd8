"""Intents: the requests that real clients make together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from aclog.analysis.regions import Principals, Query

_READ, _WRITE, _CREATE, _DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE
_ALTER, _DESCRIBE = AclOperation.ALTER, AclOperation.DESCRIBE
_TOPIC, _GROUP, _TRANSACTION = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID


class Intent(StrEnum):
    """The purpose of a client."""

    PRODUCE = "produce"
    CONSUME = "consume"
    TRANSACT = "transact"
    """Produce in transactions; with a group, also commit its offsets in them (READ on its topics is CONSUME's)."""
    STREAM = "stream"
    """Kafka Streams: the application id is the group's name."""
    ADMIN = "admin"
    """Create, change and delete topics."""


@frozen(kw_only=True)
class Need:
    """Operations that are all needed on one resource: on some name of the patterns, or on every one."""

    resource_type: ResourceType
    operations: int
    """A mask (aclog.analysis.regions)."""
    patterns: tuple[ResourcePattern, ...]
    """LITERAL: that name; PREFIXED: the names that begin with it. Never empty."""
    every: bool = False
    """Whether the operations are needed on every name that the patterns cover."""

    def query(self, principals: "Principals", host: str | None = None) -> "Query":
        """Return the query for the requests of the need, by some principals from one host, or from any."""
        from aclog.analysis.regions import Query  # noqa: PLC0415 - commands that decide use the names of intents alone

        return Query(resources=self.patterns, operations=self.operations, principals=principals, host=host)


@frozen(kw_only=True)
class _Part:
    """A need of an intent; if `optional`, only for resources that are named."""

    resource_type: ResourceType
    operations: int
    optional: bool = False


def _mask(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


_PARTS: Mapping[Intent, tuple[_Part, ...]] = {
    Intent.PRODUCE: (_Part(resource_type=_TOPIC, operations=_mask(_WRITE, _DESCRIBE)),),
    Intent.CONSUME: (
        _Part(resource_type=_TOPIC, operations=_mask(_READ, _DESCRIBE)),
        _Part(resource_type=_GROUP, operations=_mask(_READ, _DESCRIBE)),
    ),
    Intent.TRANSACT: (
        _Part(resource_type=_TOPIC, operations=_mask(_WRITE, _DESCRIBE)),
        _Part(resource_type=_TRANSACTION, operations=_mask(_WRITE, _DESCRIBE)),
        _Part(resource_type=_GROUP, operations=_mask(_READ, _DESCRIBE), optional=True),
    ),
    Intent.STREAM: (
        _Part(resource_type=_TOPIC, operations=_mask(_READ, _DESCRIBE)),
        _Part(resource_type=_TOPIC, operations=_mask(_WRITE, _DESCRIBE)),
        _Part(resource_type=_GROUP, operations=_mask(_READ, _DESCRIBE)),
    ),
    Intent.ADMIN: (
        _Part(
            resource_type=_TOPIC,
            operations=_mask(
                _CREATE, _DELETE, _ALTER, _DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
            ),
        ),
    ),
}
_INTERNAL_TOPICS = _mask(_READ, _WRITE, _DESCRIBE, _CREATE, _DELETE)
"""Operations on the changelog and repartition topics of a Streams application, `<application id>-*`."""


def needs_of(intent: Intent, resources: Sequence[ResourcePattern]) -> tuple[Need, ...]:
    """Return the requests of a client with this intent on these resources; for a type not named, any resource counts.

    Several resources of a type are alternatives. For STREAM the only group is the application id, topics are its input
    and output topics, and a transactional id means exactly-once processing.

    Raises:
        ConfigError: a resource of a type that the intent does not use, or STREAM without exactly one group.

    """
    parts = _PARTS[intent]
    used = {part.resource_type for part in parts} | ({_TRANSACTION} if intent is Intent.STREAM else set())
    for resource in resources:
        if resource.resource_type not in used:
            names = ", ".join(sorted(kind.name for kind in used))
            kind = ResourceType(resource.resource_type).name
            raise ConfigError(f"intent {intent}: expected resources of type {names}, not {kind}")
    needs = [
        Need(
            resource_type=part.resource_type,
            operations=part.operations,
            patterns=_of_type(part.resource_type, resources) or _any(part.resource_type),
        )
        for part in parts
        if not part.optional or _of_type(part.resource_type, resources)
    ]
    return (*needs, *_internal(resources)) if intent is Intent.STREAM else tuple(needs)


def requests_of(
    needs: Iterable[Need], resources: Sequence[ResourcePattern]
) -> Iterator[tuple[AclOperation, ResourcePattern]]:
    """Yield the requests of needs on the resources that are named, and on every name that a need covers."""
    from aclog.analysis.regions import operations_of  # noqa: PLC0415 - as above

    for need in needs:
        for pattern in need.patterns:
            if need.every or pattern in resources:
                # READ or WRITE first: the others are implied by them, and are denied by rules of their own only.
                yield from ((operation, pattern) for operation in operations_of(need.operations))


def _internal(resources: Iterable[ResourcePattern]) -> tuple[Need, ...]:
    groups, transactions = _of_type(_GROUP, resources), _of_type(_TRANSACTION, resources)
    if len(groups) != 1 or groups[0].pattern_type != PatternType.LITERAL:
        raise ConfigError("intent stream: expected one literal --group: the application id")
    application = groups[0].name
    internal = _prefixed(_TOPIC, f"{application}-")
    needs = [Need(resource_type=_TOPIC, operations=_INTERNAL_TOPICS, patterns=(internal,), every=True)]
    if transactions:
        writing = _mask(_WRITE, _DESCRIBE)
        ids = _prefixed(_TRANSACTION, f"{application}-")
        needs.append(Need(resource_type=_TRANSACTION, operations=writing, patterns=(ids,), every=True))
    return tuple(needs)


def _of_type(kind: ResourceType, resources: Iterable[ResourcePattern]) -> tuple[ResourcePattern, ...]:
    return tuple(resource for resource in resources if resource.resource_type == kind)


def _any(kind: ResourceType) -> tuple[ResourcePattern, ...]:
    return (_prefixed(kind, ""),)


def _prefixed(kind: ResourceType, name: str) -> ResourcePattern:
    return ResourcePattern(resource_type=kind, name=name, pattern_type=PatternType.PREFIXED)
