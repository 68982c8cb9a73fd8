"""Download of a quorum's newest snapshot (KafkaRaftClient's FetchSnapshot, RaftClient.latestSnapshotId)."""

import asyncio
import tempfile
from pathlib import Path

from attrs import define, field

from aclog.metalog.errors import CheckpointError, DecodeError, LogError, MetadataError
from aclog.metalog.filelog.file_names import CheckpointFile
from aclog.nodes.client.connection import Connection
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.observer.fetch_messages import EpochEnd
from aclog.nodes.observer.side_connection import SideConnection
from aclog.nodes.observer.snapshot_file import SnapshotFile
from aclog.nodes.observer.snapshot_messages import (
    FETCH_SNAPSHOT,
    NEWEST_VERSION,
    OLDEST_VERSION,
    parse_snapshot_response,
    snapshot_request,
)


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
            CheckpointError, DecodeError: what the leader sends is not a checkpoint.

        """
        async with self.side.lock:
            deadline = self.side.deadline
            while (wanted := self.side.fetcher.buffer.snapshot) is not None:
                if self._has(wanted):
                    return self._newest
                before = self._position
                try:
                    await self._fetch(wanted)
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

    def _has(self, wanted: EpochEnd) -> bool:
        """Whether the file is there; a cleaner of temporary directories may have removed it."""
        return self._newest is not None and self._newest.end_offset == wanted.end_offset and self._newest.path.exists()

    async def _fetch(self, wanted: EpochEnd) -> None:
        source = self._source(await self.side.connected())
        if self._file is None or self._file.snapshot != wanted or self._file_source != source:
            self._file, self._file_source = SnapshotFile.begin(wanted, self._directory()), source
        while not self._file.whole:
            await self._fetch_chunk(self._file)
        finished, self._file = self._file, None
        # Off the event loop: the check reads the whole file, and must not delay fetches.
        before, self._newest = self._newest, await asyncio.to_thread(finished.finish)
        if before is not None and before.path != self._newest.path:
            # After the newer one is complete, so that a caller always finds one of them.
            before.path.unlink(missing_ok=True)

    def _directory(self) -> Path:
        if self.directory is None:
            try:
                self.directory = Path(tempfile.mkdtemp(prefix="aclog-observer-"))
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
        """Learn which snapshot the leader has now: the wanted one may have been deleted by retention."""
        try:
            response = await self.side.fetch(0, 1)
        except MetadataError as error:
            await self.side.retry(error, deadline)
        else:
            if response.snapshot is not None:
                self.side.fetcher.buffer.begin_at(response.snapshot, response.high_watermark)
