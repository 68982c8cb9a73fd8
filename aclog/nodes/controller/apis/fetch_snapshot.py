"""FetchSnapshot: a checkpoint's bytes in chunks (KIP-630; KafkaRaftClient.handleFetchSnapshotRequest).

Kafka 4.3.1 turns every partition error into UNKNOWN_SERVER_ERROR; here the response carries the actual code.
"""

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from aclog.metalog.errors import LogError
from aclog.metalog.filelog.file_names import checkpoint_name
from aclog.metalog.filelog.filesystem import log_error
from aclog.nodes.apis.request import Request, RequestError
from aclog.nodes.controller.apis.quorum_state import METADATA_TOPIC, Quorum
from aclog.nodes.wire.api_keys import FETCH_SNAPSHOT
from aclog.nodes.wire.error_codes import (
    INCONSISTENT_CLUSTER_ID,
    INVALID_REQUEST,
    POSITION_OUT_OF_RANGE,
    SNAPSHOT_NOT_FOUND,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from aclog.nodes.wire.message_builder import build, build_response

_MOST_OPEN = 16
_KEEP_SECONDS = 60.0

MAX_BYTES = 8 << 20
"""The most bytes in one response."""

_INLINE_BYTES = 256 << 10


@define(eq=False, kw_only=True)
class OpenCheckpoints:
    """Open checkpoint files of a log directory. Used on one event loop's thread.

    A file stays open for a minute after its last use, so that retention cannot remove a checkpoint under its reader.
    """

    directory: Path
    monotonic: Callable[[], float] = time.monotonic
    _files: "OrderedDict[str, tuple[int, int, float]]" = field(factory=OrderedDict, init=False)
    """Descriptor, size and time of last use by file name, least recently used first."""

    def find(self, end_offset: int, epoch: int) -> tuple[int, int] | None:
        """Return the descriptor and size of a checkpoint; None if there is none with this id.

        Raises:
            LogError: The file cannot be opened.

        """
        now = self.monotonic()
        self._evict(now)
        name = checkpoint_name(end_offset, epoch)
        known = self._files.pop(name, None)
        if known is None:
            opened = self._open(self.directory / name)
            if opened is None:
                return None
            known = (*opened, now)
        self._files[name] = (known[0], known[1], now)
        return known[0], known[1]

    @staticmethod
    def _open(path: Path) -> tuple[int, int] | None:
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise log_error(error, path, "cannot open") from error
        return fd, os.fstat(fd).st_size

    def _evict(self, now: float) -> None:
        while self._files:
            fd, _, used = next(iter(self._files.values()))
            if len(self._files) < _MOST_OPEN and now - used < _KEEP_SECONDS:
                return
            self._files.popitem(last=False)
            os.close(fd)

    def close(self) -> None:
        """Close all files."""
        while self._files:
            os.close(self._files.popitem(last=False)[1][0])


@frozen(kw_only=True)
class _Chunk:
    """A part of a checkpoint, or an error; `size` is that of the whole checkpoint."""

    error_code: int = 0
    size: int = 0
    data: bytes = b""


@define(eq=False, kw_only=True)
class FetchSnapshotHandler:
    """Serves FetchSnapshot. Used on one event loop's thread."""

    quorum: Quorum
    files: OpenCheckpoints

    async def fetch(self, request: Request) -> bytes:
        """Return the body of the FetchSnapshotResponse (versions 0 and 1); the client is authorized already.

        Raises:
            RequestError: 104 for another cluster id, 42 unless there is exactly one partition.
            LogError: The checkpoint cannot be read.

        """
        body = request.body
        if body.cluster_id is not None and body.cluster_id != self.quorum.cluster_id:
            raise RequestError(INCONSISTENT_CLUSTER_ID)
        partitions = [(topic.name, each) for topic in body.topics for each in topic.partitions]
        if len(body.topics) != 1 or len(partitions) != 1:
            raise RequestError(INVALID_REQUEST, "expected partition 0 of the metadata topic, and nothing else")
        ((topic, wanted),) = partitions
        chunk = await self._read(topic, wanted, min(max(body.max_bytes, 0), MAX_BYTES))
        return self._encoded(request, topic, wanted, chunk)

    async def _read(self, topic: str, wanted: Any, max_bytes: int) -> _Chunk:
        """Read the bytes at the requested position."""
        if topic != METADATA_TOPIC or wanted.partition != 0:
            return _Chunk(error_code=UNKNOWN_TOPIC_OR_PARTITION)
        error = self.quorum.leader_error(wanted.current_leader_epoch)
        if error:
            return _Chunk(error_code=error)
        id = wanted.snapshot_id  # noqa: A001  # Kafka's name
        if id.end_offset < 0 or id.epoch < 0:
            return _Chunk(error_code=SNAPSHOT_NOT_FOUND)
        found = self.files.find(id.end_offset, id.epoch)
        if found is None:
            return _Chunk(error_code=SNAPSHOT_NOT_FOUND)
        fd, size = found
        if not 0 <= wanted.position < size:
            return _Chunk(error_code=POSITION_OUT_OF_RANGE, size=size)
        data = await self._piece(fd, min(max_bytes, size - wanted.position), wanted.position)
        return _Chunk(size=size, data=data)

    @staticmethod
    async def _piece(fd: int, length: int, position: int) -> bytes:
        try:
            if length <= _INLINE_BYTES:
                return os.pread(fd, length, position)
            return await asyncio.to_thread(_pread_and_close, os.dup(fd), length, position)
        except OSError as error:
            raise LogError(f"cannot read a checkpoint at byte {position}: {error.strerror}") from error

    def _encoded(self, request: Request, topic: str, wanted: Any, chunk: _Chunk) -> bytes:
        version, leader, id = request.header.api_version, self.quorum.leader(), wanted.snapshot_id  # noqa: A001
        partition = _part(
            version,
            "PartitionSnapshot",
            index=wanted.partition,
            error_code=chunk.error_code,
            snapshot_id=_part(version, "SnapshotId", end_offset=id.end_offset, epoch=id.epoch),
            current_leader=_part(version, "LeaderIdAndEpoch", leader_id=leader.leader_id, leader_epoch=leader.epoch),
            size=chunk.size,
            position=wanted.position,
            unaligned_records=chunk.data,
        )
        topics = (_part(version, "TopicSnapshot", name=topic, partitions=(partition,)),)
        at, nodes = self.quorum.leader_address(request.session.listener_name), []
        if version >= 1 and at is not None:
            nodes.append(_part(version, "NodeEndpoint", node_id=leader.leader_id, host=at.host, port=at.port))
        return build_response(
            FETCH_SNAPSHOT, version, throttle_time=timedelta(0), topics=topics, node_endpoints=tuple(nodes)
        )


def _part(version: int, structure: str, /, **values: Any) -> Any:
    return build(FETCH_SNAPSHOT, version, "response", structure, **values)


def _pread_and_close(fd: int, length: int, position: int) -> bytes:
    """Read from a duplicated descriptor: OpenCheckpoints may close the original meanwhile."""
    try:
        return os.pread(fd, length, position)
    finally:
        os.close(fd)
