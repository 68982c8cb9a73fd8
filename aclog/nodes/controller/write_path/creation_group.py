"""CreateAcls requests that arrive together and become one batch, as in Kafka's BatchAccumulator."""

from collections.abc import Sequence

from attrs import define, field

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.interface import AclCreateResult
from aclog.nodes.loop_future import LoopFuture

MOST_ACLS = 256
"""The most ACLs that are decided together on the event loop, which takes about 5 ms."""


@define(eq=False)
class CreationGroup:
    """Requests in order of arrival, decided as one: each gets the results that it would get alone, after those before.

    Whatever holds for a whole request must not hold for a group: requests with ANY or MATCH, and those of more than
    MOST_ACLS, are decided alone. So is every request of a group that fails.
    """

    acls: list[StandardAcl] = field(factory=list, init=False)
    requests: list[tuple[int, LoopFuture[list[AclCreateResult]]]] = field(factory=list, init=False)
    """The number of ACLs of each request, and its future."""

    def has_room(self, count: int) -> bool:
        """Whether as many more ACLs may join."""
        return len(self.acls) + count <= MOST_ACLS

    def add(self, acls: Sequence[StandardAcl], future: LoopFuture[list[AclCreateResult]]) -> None:
        """Add a request."""
        self.acls += acls
        self.requests.append((len(acls), future))

    def set_result(self, results: Sequence[AclCreateResult]) -> None:
        """Complete the future of each request with its results."""
        at = 0
        for count, future in self.requests:
            future.set_result(list(results[at : at + count]))
            at += count

    def set_exception(self, error: BaseException) -> None:
        """Let all requests fail."""
        for _, future in self.requests:
            future.set_exception(error)

    def apart(self) -> "list[CreationGroup]":
        """Return a group for each request."""
        groups, at = [], 0
        for count, future in self.requests:
            group = CreationGroup()
            group.add(self.acls[at : at + count], future)
            groups.append(group)
            at += count
        return groups
