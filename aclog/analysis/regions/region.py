"""A region: a set of requests that is a product of five sets."""

from enum import Enum

from attrs import frozen

from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.names import Names, contains
from aclog.analysis.regions.principals import Principals
from aclog.analysis.regions.region_text import hosts_text, requests_text, who_text
from aclog.authorizer.acl import ResourceType
from aclog.metalog.printable import printable


class Direction(Enum):
    """What a change does to the requests of a region."""

    GAINED = "GAINED"
    LOST = "LOST"


@frozen(kw_only=True)
class Request:
    """One request for one of the 13 operations on one resource; `host` is in the form of `host_address`."""

    principal: str
    host: str
    operation: int
    resource_type: int
    resource_name: str


@frozen(kw_only=True)
class Region:
    """All requests by these principals, from these hosts, for these operations, on these names of one type."""

    resource_type: ResourceType
    operations: int
    """A mask (aclog.analysis.regions.operations)."""
    principals: Principals
    hosts: Hosts
    names: Names

    def __str__(self) -> str:
        what = requests_text(self.operations, [self.resource_type.name], self.names)
        return printable(f"{who_text(self.principals)}: {what}, from {hosts_text(self.hosts)}")

    def __contains__(self, request: Request) -> bool:
        return (
            request.resource_type == self.resource_type
            and bool(self.operations >> request.operation & 1)
            and request.principal in self.principals
            and request.host in self.hosts
            and contains(self.names, request.resource_name)
        )


@frozen(kw_only=True)
class Difference:
    """A region in which one policy allows every request, and another none."""

    direction: Direction
    region: Region

    def __str__(self) -> str:
        return f"{self.direction.value}  {self.region}"
