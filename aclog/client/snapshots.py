"""Download of a quorum's newest snapshot."""

import asyncio
from pathlib import Path
from typing import Any, Self

from attrs import field

from aclog.client.connection import Connection
from aclog.client.errors import LoginError
from aclog.client.fetching import METADATA_TOPIC, EpochEnd, Fetcher, FetchResponse, Position, fetch
from aclog.config.node_config import HostPort
from aclog.metalog.batches import scan_batches
from aclog.metalog.errors import CheckpointError, ConfigError, DecodeError, LogError, MetadataError
from aclog.metalog.filelog.files import PARTIAL_SUFFIX, CheckpointFile, checkpoint_name, log_error
from aclog.metalog.machine import clock, disk
from aclog.metalog.values import define, frozen
from aclog.protocol.messages import message_type

# A second connection to the leader, for historical reads and snapshots: a Fetch that waits would delay them.


@define(eq=False)
class SideConnection:
    """Opened on demand to the fetcher's leader. Runs on the fetcher's event loop; hold `lock` while using it."""

    fetcher: Fetcher
    lock: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _connection: Connection | None = field(default=None, init=False)

    async def connected(self) -> Connection:
        """Return the connection, opened if necessary; raises MetadataError if that is not possible now."""
        leader = self.fetcher.leader
        if self._connection is not None and self._connection.address != leader:
            await self.close()
        if self._connection is None:
            if leader is None:
                raise self.fetcher.buffer.error or LogError(f"{self.fetcher.buffer.name}: no known leader")
            self._connection = await self.fetcher.connect(leader)
        return self._connection

    async def fetch(self, offset: int, max_bytes: int) -> FetchResponse:
        """Fetch committed batches.

        Raises:
            MetadataError: there is no leader, or it responds with an error.

        """
        connection, fetcher = await self.connected(), self.fetcher
        # Committed batches cannot diverge, so the epoch before `offset` is not needed: the leader's own passes
        # its check of the last fetched epoch.
        epoch = fetcher.state.leader_epoch
        position = Position(
            offset=offset, last_fetched_epoch=epoch if offset else 0, leader_epoch=epoch, high_watermark=-1
        )
        response = await fetch(
            connection, position, fetcher.options, max_bytes=max_bytes, cluster_id=fetcher.cluster_id
        )
        if response.error:
            raise LogError(f"{connection.address}: responds with error {response.error}")
        return response

    async def ask(self, message: Any) -> Any:
        """Send a request and return its response. Raises as Connection.ask."""
        return await (await self.connected()).ask(message, self.fetcher.options.response_seconds)

    @property
    def deadline(self) -> float:
        """When to give up an operation that starts now, on the clock of clock.monotonic()."""
        return clock.monotonic() + self.fetcher.options.read_seconds

    async def retry(self, error: MetadataError, deadline: float) -> None:
        """Disconnect and back off, before the caller tries again.

        Raises:
            MetadataError: why the log can never be followed again; else `error`, after the deadline or if a retry
                cannot help.

        """
        await self.close()
        if (failure := self.fetcher.buffer.failure) is not None:
            raise failure.with_traceback(None) from error
        if isinstance(error, LoginError | ConfigError) or clock.monotonic() >= deadline:
            raise error
        await asyncio.sleep(self.fetcher.options.retry_backoff)

    async def close(self) -> None:
        """Close the connection; the next use opens a new one."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()


# FetchSnapshot requests and responses, reduced to the metadata partition (KIP-630).


FETCH_SNAPSHOT = 59
OLDEST_VERSION = 0
NEWEST_VERSION = 1


@frozen(kw_only=True)
class SnapshotChunk:
    """Bytes of a snapshot file from `position` on, not aligned to batches; `size` is that of the whole file.

    `error` is the response's, else the partition's; 0 for none.
    """

    error: int = 0
    size: int = -1
    position: int = -1
    data: bytes = field(default=b"", repr=lambda data: f"{len(data)} bytes")


def snapshot_request(
    snapshot: EpochEnd, position: int, leader_epoch: int, version: int, *, max_bytes: int, cluster_id: str | None
) -> Any:
    """Build the FetchSnapshotRequest for a snapshot's bytes from `position` on."""
    request = message_type(FETCH_SNAPSHOT, version, "request")
    topic = message_type(FETCH_SNAPSHOT, version, "request", "TopicSnapshot")
    partition = message_type(FETCH_SNAPSHOT, version, "request", "PartitionSnapshot")
    snapshot_id = message_type(FETCH_SNAPSHOT, version, "request", "SnapshotId")
    partition_request = partition(
        partition=0,
        current_leader_epoch=leader_epoch,
        snapshot_id=snapshot_id(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
        position=position,
    )
    topics = (topic(name=METADATA_TOPIC, partitions=(partition_request,)),)
    return request(cluster_id=cluster_id, max_bytes=max_bytes, topics=topics)


def parse_snapshot_response(response: Any) -> SnapshotChunk:
    """Parse a FetchSnapshotResponse.

    Raises:
        DecodeError: it is not about the metadata partition alone.

    """
    if response.error_code:
        return SnapshotChunk(error=int(response.error_code))
    partitions = [partition for topic in response.topics for partition in topic.partitions]
    names = [topic.name for topic in response.topics]
    if names != [METADATA_TOPIC] or len(partitions) != 1 or partitions[0].index:
        raise DecodeError(f"a FetchSnapshot response of topics {names}: expected partition 0 of {METADATA_TOPIC}")
    partition_data = partitions[0]
    return SnapshotChunk(
        error=int(partition_data.error_code),
        size=partition_data.size,
        position=partition_data.position,
        data=bytes(partition_data.unaligned_records),
    )


# A snapshot file while it is downloaded: it grows under a temporary name and is renamed when complete.


@define(eq=False)
class SnapshotFile:
    """One download. `position` is the number of bytes written; `size` is that of the whole file, -1 while unknown."""

    snapshot: EpochEnd
    directory: Path
    position: int = 0
    size: int = -1

    @classmethod
    def begin(cls, snapshot: EpochEnd, directory: Path) -> Self:
        """Create an empty temporary file, replacing an earlier one.

        Raises:
            LogError: the file cannot be written.

        """
        begun = cls(snapshot, directory)
        try:
            begun._partial.write_bytes(b"")
        except OSError as error:
            raise log_error(error, begun._partial, "cannot write") from error
        return begun

    @property
    def path(self) -> Path:
        """The path of the complete file."""
        return self.directory / checkpoint_name(self.snapshot.end_offset, self.snapshot.epoch)

    @property
    def _partial(self) -> Path:
        return self.path.with_name(self.path.name + PARTIAL_SUFFIX)

    @property
    def whole(self) -> bool:
        """Whether the download is complete."""
        return self.position == self.size

    def append(self, chunk: SnapshotChunk) -> None:
        """Append the next chunk.

        Raises:
            DecodeError: the chunk does not continue the file, or changes its size.
            LogError: the file cannot be written.

        """
        if chunk.position != self.position or chunk.size <= 0 or self.size not in (-1, chunk.size):
            raise DecodeError(
                f"a snapshot chunk at byte {chunk.position} of {chunk.size}: expected byte {self.position}"
                + (f" of {self.size}" if self.size >= 0 else "")
            )
        if not chunk.data or chunk.position + len(chunk.data) > chunk.size:
            raise DecodeError(
                f"a snapshot chunk of {len(chunk.data)} bytes at byte {chunk.position}: expected 1 to "
                f"{chunk.size - chunk.position} bytes"
            )
        try:
            with self._partial.open("ab") as file:
                file.write(chunk.data)
        except OSError as error:
            raise log_error(error, self._partial, "cannot write") from error
        self.position, self.size = self.position + len(chunk.data), chunk.size

    def finish(self) -> CheckpointFile:
        """Check the complete file, and rename it to `path`.

        Raises:
            CheckpointError: it is not a checkpoint.
            LogError: it cannot be read or renamed.

        """
        try:
            _check(self._partial.read_bytes(), self.path)
            self._partial.rename(self.path)
        except OSError as error:
            raise log_error(error, self._partial, "cannot read or rename") from error
        return CheckpointFile(end_offset=self.snapshot.end_offset, epoch=self.snapshot.epoch, path=self.path)


def _check(data: bytes, path: Path) -> None:
    """Check the structure without decoding records: CRCs, lengths, and the control batches at both ends."""
    headers, damage = scan_batches(data)
    whole = int(headers.end[-1]) if len(headers) else 0
    if damage is not None or whole != len(data):
        raise CheckpointError(f"{path}: byte {whole}: damaged or truncated: expected complete batches to the end")
    if len(headers) < 2 or not (headers.is_control[0] and headers.is_control[-1]):
        raise CheckpointError(f"{path}: not a checkpoint: expected control records at both ends")


# Download of a quorum's newest snapshot (KafkaRaftClient's FetchSnapshot, RaftClient.latestSnapshotId).


class _RefusedSnapshotError(LogError):
    """The leader does not serve the snapshot. Kafka 4.3.1 responds with error -1 in every such case."""


@define(eq=False)
class SnapshotDownload:
    """Runs on the fetcher's event loop. The newest snapshot's file stays until a newer one is requested."""

    side: SideConnection
    directory: Path | None = field(default=None, init=False)
    """The directory of the files, once there is one; private, since snapshots contain credentials."""
    _file: SnapshotFile | None = field(default=None, init=False)
    _file_source: tuple[HostPort, int] | None = field(default=None, init=False)
    """The leader's address and epoch. A download cannot continue at another node: each node writes its own snapshot of
    an offset, and the records' order differs.
    """
    _newest: CheckpointFile | None = field(default=None, init=False)

    async def newest(self) -> CheckpointFile | None:
        """Return the snapshot that the log begins after; None if the log begins at 0.

        An interrupted download is continued, and is given up only after `read_seconds` without progress.

        Raises:
            LogError: the snapshot cannot be downloaded, or not be written to disk.
            CheckpointError, DecodeError: the data of the leader is not a checkpoint.

        """
        async with self.side.lock:
            deadline = self.side.deadline
            while (snapshot := self.side.fetcher.buffer.snapshot) is not None:
                if self._has(snapshot):
                    return self._newest
                before = self._position
                try:
                    await self._fetch(snapshot)
                except MetadataError as error:
                    if isinstance(error, CheckpointError | DecodeError):
                        # Damaged bytes: start over, instead of appending to them.
                        self._file = None
                    # Progress extends the deadline, so a large snapshot over a slow link completes.
                    deadline = self.side.deadline if self._position > before else deadline
                    await self.side.retry(error, deadline)
                    if isinstance(error, _RefusedSnapshotError):
                        await self._refresh_snapshot_id(deadline)
            return None

    @property
    def _position(self) -> int:
        return 0 if self._file is None else self._file.position

    def _has(self, snapshot: EpochEnd) -> bool:
        """Whether the file is there; a cleaner of temporary directories may have removed it."""
        return (
            self._newest is not None and self._newest.end_offset == snapshot.end_offset and self._newest.path.exists()
        )

    async def _fetch(self, snapshot: EpochEnd) -> None:
        source = self._source(await self.side.connected())
        if self._file is None or self._file.snapshot != snapshot or self._file_source != source:
            self._file, self._file_source = SnapshotFile.begin(snapshot, self._directory()), source
        while not self._file.whole:
            await self._fetch_chunk(self._file)
        finished, self._file = self._file, None
        # Off the event loop: the check reads the whole file, and must not delay fetches.
        before, self._newest = self._newest, await asyncio.to_thread(finished.finish)
        if before is not None and before.path != self._newest.path:
            # After the newer one is complete, so that a caller always finds a complete one.
            before.path.unlink(missing_ok=True)

    def _directory(self) -> Path:
        if self.directory is None:
            try:
                self.directory = Path(disk.mkdtemp(prefix="aclog-observer-"))
            except OSError as error:
                raise LogError(f"cannot create a directory for a snapshot: {error.strerror or error}") from error
        return self.directory

    async def _fetch_chunk(self, file: SnapshotFile) -> None:
        connection, fetcher = await self.side.connected(), self.side.fetcher
        if self._source(connection) != self._file_source:
            raise LogError(
                f"{connection.address}: it leads now: snapshot {file.path.name} has to be downloaded from its start"
            )
        request = snapshot_request(
            file.snapshot,
            file.position,
            fetcher.state.leader_epoch,
            connection.version(FETCH_SNAPSHOT, OLDEST_VERSION, NEWEST_VERSION),
            max_bytes=fetcher.options.fetch_bytes,
            cluster_id=fetcher.cluster_id,
        )
        chunk = parse_snapshot_response(await self.side.ask(request))
        if chunk.error:
            where = f"{connection.address}: snapshot {file.path.name}"
            raise _RefusedSnapshotError(f"{where}: responds with error {chunk.error}")
        file.append(chunk)

    def _source(self, connection: Connection) -> tuple[HostPort, int]:
        return connection.address, self.side.fetcher.state.leader_epoch

    async def _refresh_snapshot_id(self, deadline: float) -> None:
        """Query which snapshot the leader has now: retention may have deleted the requested one."""
        try:
            response = await self.side.fetch(0, 1)
        except MetadataError as error:
            await self.side.retry(error, deadline)
        else:
            if response.snapshot is not None:
                self.side.fetcher.buffer.begin_at(response.snapshot, response.high_watermark)
