"""Whether a leader's log is the one that was followed before: a quorum may have been formatted again, or restored."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Self, TypeAlias

from attrs import define, field

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.batches import HEADER_SIZE, read_header
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.observer.errors import CommittedRecordsLostError
from aclog.nodes.observer.fetch_messages import FetchResponse

FetchAt: TypeAlias = Callable[[int], Awaitable[FetchResponse]]
"""Fetches from an offset, whatever the epoch before it."""

_CRC_START = 17
"""From the CRC on, a batch's header is covered by the CRC, or is the CRC: damage in transit cannot look like another
batch. Offsets and epochs are checked by the fetch itself.
"""


@define(eq=False)
class LogIdentity:
    """The headers of the first and of the last committed batch that were seen; empty if none was.

    Offsets, epochs and the cluster id may be the same after a quorum was wiped: timestamps and ids in its batches are
    not. The first batch is there for a new log that is still shorter than the old one.
    """

    _first: bytes = b""
    _last: bytes = b""

    @classmethod
    def of(cls, first: bytes, last: bytes) -> Self:
        """Return the identity of a log that holds these batches; both may be empty."""
        return cls(first[:HEADER_SIZE], last[:HEADER_SIZE])

    def add(self, committed: Iterable[BatchRun]) -> None:
        """Note the batches that have been committed now."""
        for run in committed:
            self._first = self._first or run.data[:HEADER_SIZE]
            start = int(run.positions[-2])
            self._last = run.data[start : start + HEADER_SIZE]

    def skip(self) -> None:
        """Note that a snapshot replaces the batches up to its end."""
        self._last = b""

    async def check(self, fetch_at: FetchAt, *, committed_only: bool = False) -> bool:
        """Compare the leader's batches with those that were seen; return whether the server responds as the leader.

        A batch that the leader no longer has, or does not have yet, is not compared. `committed_only`: neither is one
        above its high-water mark, which a leader that is about to be deposed may lose again.

        Raises:
            CommittedRecordsLostError: the leader has another batch in the place of a committed one.
            DecodeError: a damaged response.

        """
        for held in dict.fromkeys((self._last, self._first)):
            offset = read_header(held).base_offset if held else 0
            response = await fetch_at(offset)
            if response.error:
                return False
            if not held or not response.records:
                continue
            run = BatchRun.of(response.records)
            run.check_follows(offset, 0)
            if committed_only and int(run.ends[0]) > response.high_watermark:
                continue
            if run.data[_CRC_START:HEADER_SIZE] != held[_CRC_START:]:
                raise CommittedRecordsLostError(
                    f"the leader of epoch {response.leader_epoch} has another batch than was committed before offset "
                    f"{read_header(held).end_offset}: it was formatted again, or restored from a backup; expected "
                    "every committed record to be there"
                )
        return True


@define
class OlderLeaders:
    """Since when servers have been leading in an older epoch than the newest known one, on the clock of `note`.

    A leader that is cut off does so until it notices (one and a half times controller.quorum.fetch.timeout.ms); one
    that goes on has voters that have forgotten the newer epoch.
    """

    _since: dict[HostPort, float] = field(factory=dict, init=False)

    def note(self, address: HostPort, *, leads: bool, now: float) -> float:
        """Note what a server said; return for how many seconds it has led without interruption, 0 if it does not."""
        if not leads:
            self._since.pop(address, None)
            return 0.0
        return now - self._since.setdefault(address, now)

    def clear(self) -> None:
        """Forget all: a server leads in the newest epoch."""
        self._since.clear()
