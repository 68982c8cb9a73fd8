"""What a request changes, and a request in progress on the write path."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from attrs import define, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.control import AclCreation
from aclog.authorizer.interface import AclCreateResult
from aclog.metalog.errors import MetadataError
from aclog.metalog.records import MetadataRecord
from aclog.nodes.apis.request import OutcomeUnknownError, RequestError
from aclog.nodes.controller.write_path.creation_group import CreationGroup
from aclog.nodes.loop_future import LoopFuture
from aclog.nodes.wire.error_codes import NOT_CONTROLLER
from aclog.snapshots.image import Image

T = TypeVar("T")


@frozen(kw_only=True)
class ControllerResult(Generic[T]):
    """Records that become one atomic batch (none if nothing changes), and the response (ControllerResult)."""

    records: Sequence[MetadataRecord]
    response: T


Operation: TypeAlias = Callable[[Image], ControllerResult[T]]
"""A pure function from the newest image, committed or not, to what a request changes (ControllerWriteOperation)."""


@define
class WriteEvent:
    """A request in progress (QuorumController.ControllerWriteEvent)."""

    operation: Operation[Any]
    reply: LoopFuture[Any] | CreationGroup
    offload: bool = False
    batch: bytes = b""
    """The staged batch to append; empty if there are no records."""
    appended: bool = False
    confirmed: bool = False
    """Whether the response is valid even if this node is no longer active."""
    record_count: int = 0
    response: Any = None
    begun: float = 0.0
    end_offset: int = -1
    """The response is sent once the high-water mark reaches this offset."""

    @property
    def request_count(self) -> int:
        """The number of requests that get the response."""
        return len(self.reply.requests) if isinstance(self.reply, CreationGroup) else 1

    def failure(self, stopped: MetadataError, *, contested: bool) -> MetadataError:
        """Return the error of the request if its controller stopped: on a contested log, whether to try another one."""
        if not contested:
            return stopped
        if self.appended:
            # The transaction may have been committed without this node learning of it: neither success nor failure.
            return OutcomeUnknownError(f"appended, but the commit is unknown: {stopped}")
        return RequestError(NOT_CONTROLLER, "This node is no longer the active controller.")


def creation_event(
    group: CreationGroup, decide: Callable[[Image, Sequence[StandardAcl]], AclCreation], *, begun: float
) -> WriteEvent:
    """Return the event that decides a group of CreateAcls requests."""

    def operation(image: Image) -> ControllerResult[tuple[AclCreateResult, ...]]:
        """See Operation."""
        creation = decide(image, group.acls)
        return ControllerResult(records=creation.records, response=creation.results)

    return WriteEvent(operation, group, begun=begun)
