"""Recent accesses that a change breaks or opens, folded for people."""

from collections import defaultdict
from collections.abc import Mapping

from attrs import frozen

from aclog.analysis.by_generation import only_on
from aclog.analysis.deciding import is_allowed
from aclog.analysis.policy import Policy
from aclog.analysis.regions.region import Direction, Request
from aclog.authorizer.acl import AclOperation, ResourceType, code_name
from aclog.authorizer.generation import Generation

_SHOWN = 3


@frozen(kw_only=True)
class Flipped:
    """Accesses of one principal with one operation on resources of one type, all decided differently the same way."""

    direction: Direction
    principal: str
    operation: int
    resource_type: int
    names: tuple[str, ...]
    """Those accessed most often first."""
    accesses: int
    only: Generation | None = None
    """That of Kafka by which alone they are, if several may decide."""

    def text(self) -> str:
        """Return such as `User:a READ TOPIC orders, bills and 4 more: 340 accesses`."""
        operation, kind = code_name(AclOperation, self.operation), code_name(ResourceType, self.resource_type)
        more = len(self.names) - _SHOWN
        names = ", ".join(self.names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
        count = f"{self.accesses:,} access{'es' * (self.accesses != 1)}{only_on(self.only)}"
        return f"{self.principal} {operation} {kind} {names}: {count}"


def flipped(counts: Mapping[Request, int], old: Policy, new: Policy) -> list[Flipped]:
    """Return the accesses that two policies decide differently, lost ones first, by how many they are."""
    groups: dict[tuple[Direction, str, int, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for request, count in counts.items():
        was, now = is_allowed(old, request), is_allowed(new, request)
        if was is not now:
            direction = Direction.GAINED if now else Direction.LOST
            key = (direction, request.principal, request.operation, request.resource_type)
            groups[key][request.resource_name] += count
    found = [
        Flipped(
            direction=direction,
            principal=principal,
            operation=operation,
            resource_type=kind,
            names=tuple(sorted(names, key=lambda name: (-names[name], name))),
            accesses=sum(names.values()),
        )
        for (direction, principal, operation, kind), names in groups.items()
    ]
    return sorted(found, key=lambda each: (each.direction is Direction.GAINED, -each.accesses, each.text()))
