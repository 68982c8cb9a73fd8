"""What a request changes, and a request in progress on the write path."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from attrs import define, frozen

from aclog.metalog.records import MetadataRecord
from aclog.nodes.controller.write_path.creation_group import CreationGroup
from aclog.nodes.loop_future import LoopFuture
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
