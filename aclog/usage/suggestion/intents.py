"""The intents of grants: what the client that uses them is for."""

from collections.abc import Iterable, Mapping
from typing import Final

from attrs import define, field

from aclog.analysis.answers.intents import Intent, needs_of
from aclog.authorizer.acl import AclOperation, ResourceType, StandardAcl
from aclog.usage.decisions.accesses import ParsedAccess

_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_READ, _WRITE = AclOperation.READ, AclOperation.WRITE
_IMPLIED: Final = 1 << AclOperation.DESCRIBE | 1 << AclOperation.DESCRIBE_CONFIGS
"""Operations that others imply: they alone are no sign of an intent."""


@define(eq=False)
class _Used:
    """What one principal used."""

    operations: dict[int, int] = field(factory=dict)
    """By resource type: a mask."""
    names: dict[tuple[int, int], set[str]] = field(factory=dict)
    """By resource type and operation."""

    def has(self, kind: int, operations: int) -> bool:
        """Return whether all of these operations, but for implied ones, were used on the type."""
        wanted = operations & ~_IMPLIED
        return self.operations.get(kind, 0) & wanted == wanted

    def streams(self) -> bool:
        """Return whether an internal topic of a Streams application was read and written: `<group>-...`."""
        both = self.names.get((_TOPIC, _READ), set()) & self.names.get((_TOPIC, _WRITE), set())
        groups = tuple(f"{group}-" for group in self.names.get((_GROUP, _READ), ()))
        return bool(groups) and any(name.startswith(groups) for name in both)


@define(eq=False)
class Intents:
    """Names the intents of grants."""

    _found: Mapping[str, tuple[Intent, ...]]
    """By principal."""

    @classmethod
    def of(cls, accesses: Iterable[ParsedAccess]) -> "Intents":
        """Find the intents of principals from what they used."""
        used: dict[str, _Used] = {}
        for access in accesses:
            mine = used.setdefault(access.principal, _Used())
            kind, operation = access.resource_type, access.operation
            mine.operations[kind] = mine.operations.get(kind, 0) | 1 << operation
            mine.names.setdefault((kind, operation), set()).add(access.resource_name)
        return cls({principal: tuple(i for i in Intent if _has(i, mine)) for principal, mine in used.items()})

    def behind(self, acl: StandardAcl) -> tuple[Intent, ...]:
        """Return the intents of the principal that need a rule's operation on its type of resource."""
        if 1 << acl.operation & _IMPLIED:
            return ()
        kind, bit = acl.resource_type, 1 << acl.operation
        found = (i for i in self._found.get(acl.principal, ()) if _operations(i).get(kind, 0) & bit)
        return tuple(found)


def _has(intent: Intent, used: _Used) -> bool:
    if intent is Intent.STREAM:
        return used.streams()
    if intent is Intent.ADMIN:
        wanted = _operations(intent)[_TOPIC] & ~_IMPLIED
        return bool(used.operations.get(_TOPIC, 0) & wanted)
    return all(used.has(kind, operations) for kind, operations in _operations(intent).items())


def _operations(intent: Intent) -> dict[int, int]:
    """Return the operations of an intent by resource type."""
    if intent is Intent.STREAM:
        return {_TOPIC: 1 << _READ | 1 << _WRITE, _GROUP: 1 << _READ}
    found: dict[int, int] = {}
    for need in needs_of(intent, ()):
        found[need.resource_type] = found.get(need.resource_type, 0) | need.operations
    return found
