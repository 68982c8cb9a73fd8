"""A query: the requests that a question is about."""

from functools import cached_property

from attrs import frozen

from aclog.analysis.regions.operations import REQUESTED
from aclog.analysis.regions.principals import EVERYONE, Principals
from aclog.analysis.regions.root import Root, root_of_names, topmost
from aclog.authorizer.acl import PatternType, ResourcePattern, ResourceType

RESOURCE_TYPES = tuple(kind for kind in ResourceType if kind > ResourceType.ANY)


@frozen(kw_only=True)
class Query:
    """The requests for these operations on these resources by these principals, from one host or from any."""

    resources: tuple[ResourcePattern, ...] = tuple(
        ResourcePattern(resource_type=kind, name="", pattern_type=PatternType.PREFIXED) for kind in RESOURCE_TYPES
    )
    """LITERAL: that name; PREFIXED: all that begin with it. `*` is just a name here."""
    operations: int = REQUESTED
    """A mask (aclog.analysis.regions.operations)."""
    principals: Principals = EVERYONE
    host: str | None = None
    """In the form of `host_address`; None for any."""

    @cached_property
    def roots(self) -> tuple[Root, ...]:
        """The roots of the resources, none inside another."""
        asked = (
            root_of_names(each.resource_type, each.name, literal=each.pattern_type == PatternType.LITERAL)
            for each in self.resources
        )
        return tuple(topmost(root for root in asked if root is not None))
