"""What is asked of the leader beside following it: batches that are no longer held, and snapshots."""

import asyncio
import time
from pathlib import Path

from attrs import define, field

from metalog.errors import CheckpointError, ConfigError, DecodeError, LogError, MetadataError
from metalog.filelog.names import CheckpointFile
from nodes.client.connection import Connection
from nodes.client.errors import LoginError
from nodes.observer.batch_run import BatchRun
from nodes.observer.fetch_messages import EpochEnd, FetchAnswer, Position
from nodes.observer.fetcher import Fetcher, fetch
from nodes.observer.snapshot_file import SnapshotFile
from nodes.observer.snapshot_messages import (
    FETCH_SNAPSHOT,
    NEWEST_VERSION,
    OLDEST_VERSION,
    parse_snapshot_response,
    snapshot_request,
)


class _SnapshotGoneError(LogError):
    """The leader does not have this snapshot: Kafka 4.3.1 answers -1 to whatever is wrong with one."""


@define(kw_only=True, eq=False)
class SideRequests:
    """Runs on the fetcher's event loop, over a connection of its own: a fetch that waits would hold these up.

    `directory` is where snapshots are put.
    """

    fetcher: Fetcher
    directory: Path
    _connection: Connection | None = field(default=None, init=False)
    _turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _download: SnapshotFile | None = field(default=None, init=False)
    _newest: CheckpointFile | None = field(default=None, init=False)

    async def read(self, offset: int, max_bytes: int) -> bytes:
        """Committed batches from the one that holds `offset` on, at most `max_bytes`, but one at least.

        Raises:
            LogError: they are no longer there, or there is no leader for as long as a read may wait.
            DecodeError: they are damaged.

        """
        shared, options = self.fetcher.shared, self.fetcher.options
        async with self._turn:
            end = time.monotonic() + options.read_seconds
            while True:
                try:
                    answer = await self._fetch(offset, min(max_bytes, options.fetch_bytes))
                    if answer.snapshot is None:
                        return self._committed(answer.records, offset, max_bytes)
                except MetadataError as error:
                    await self._retry(error, end)
                else:
                    shared.begin_at(answer.snapshot)
                    shared.check_bounds(offset)

    def _committed(self, records: bytes, offset: int, max_bytes: int) -> bytes:
        shared, run = self.fetcher.shared, BatchRun.of(records)
        run.check_follows(offset, 0)
        committed = run.slice(0, run.below(shared.high_watermark))
        if committed is None:
            raise LogError(f"{shared.name}: offset {offset}: no committed batch was given")
        return committed.read(offset, max_bytes)[0]

    async def _fetch(self, offset: int, max_bytes: int) -> FetchAnswer:
        """The answer to a fetch of committed batches: they cannot diverge, so any epoch does that the leader has."""
        fetcher, connection = self.fetcher, await self._connected()
        epoch = fetcher.following.leader_epoch
        position = Position(
            offset=offset, last_fetched_epoch=epoch if offset else 0, leader_epoch=epoch, high_watermark=-1
        )
        answer = await fetch(connection, position, fetcher.options, max_bytes=max_bytes, cluster_id=fetcher.cluster_id)
        if answer.error:
            raise LogError(f"{connection.address}: answers error {answer.error}")
        return answer

    async def _connected(self) -> Connection:
        """A connection to who the fetcher says leads now."""
        leader = self.fetcher.leader
        if self._connection is not None and self._connection.address != leader:
            await self.close()
        if self._connection is None:
            if leader is None:
                raise self.fetcher.shared.trouble or LogError(f"{self.fetcher.shared.name}: no leader is known")
            self._connection = await self.fetcher.connect(leader)
        return self._connection

    async def _retry(self, error: MetadataError, end: float) -> None:
        """Wait a little and begin anew, unless it is too late, or what was asked for is gone."""
        await self.close()
        shared = self.fetcher.shared
        hopeless = isinstance(error, LoginError | ConfigError) or shared.failure is not None
        if hopeless or time.monotonic() >= end:
            raise error
        await asyncio.sleep(self.fetcher.options.first_pause)

    async def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()

    async def snapshot(self) -> CheckpointFile | None:
        """The snapshot that the log begins after, downloaded; None where it begins at 0.

        A download that is cut goes on where it was; it is given up where nothing has come for as long as a read may
        wait.

        Raises:
            LogError: it cannot be had, or not be written here.
            CheckpointError: what the leader gives is no checkpoint.

        """
        async with self._turn:
            end = time.monotonic() + self.fetcher.options.read_seconds
            while (wanted := self.fetcher.shared.snapshot) is not None:
                if self._newest is not None and self._newest.end_offset == wanted.end_offset:
                    return self._newest
                before = self._progress
                try:
                    await self._fetch_snapshot(wanted)
                except MetadataError as error:
                    if self._progress != before:
                        end = time.monotonic() + self.fetcher.options.read_seconds
                    await self._after_failure(error, end)
            return None

    @property
    def _progress(self) -> int:
        return 0 if self._download is None else self._download.position

    async def _fetch_snapshot(self, wanted: EpochEnd) -> None:
        connection = await self._connected()
        if self._download is None or self._download.snapshot != wanted:
            self._download = SnapshotFile.begin(wanted, self.directory)
        while not self._download.whole:
            await self._fetch_chunk(connection, self._download)
        finished, self._download = self._download, None
        before, self._newest = self._newest, await asyncio.to_thread(finished.finish)
        if before is not None:
            before.path.unlink(missing_ok=True)

    async def _fetch_chunk(self, connection: Connection, download: SnapshotFile) -> None:
        fetcher = self.fetcher
        request = snapshot_request(
            download.snapshot,
            download.position,
            fetcher.following.leader_epoch,
            connection.version(FETCH_SNAPSHOT, OLDEST_VERSION, NEWEST_VERSION),
            max_bytes=fetcher.options.fetch_bytes,
            cluster_id=fetcher.cluster_id,
        )
        chunk = parse_snapshot_response(await connection.ask(request, fetcher.options.answer_seconds))
        if chunk.error:
            where = f"{connection.address}: snapshot {download.path.name}"
            raise _SnapshotGoneError(f"{where}: answered with error {chunk.error}")
        download.append(chunk)

    async def _after_failure(self, error: MetadataError, end: float) -> None:
        """What is wrong with the snapshot itself is forgotten, and the leader asked which one there is now."""
        if isinstance(error, CheckpointError | DecodeError | _SnapshotGoneError):
            self._download = None
        await self._retry(error, end)
        if isinstance(error, _SnapshotGoneError):
            await self._ask_for_snapshot(end)

    async def _ask_for_snapshot(self, end: float) -> None:
        try:
            answer = await self._fetch(0, 1)
        except MetadataError as error:
            await self._retry(error, end)
        else:
            if answer.snapshot is not None:
                self.fetcher.shared.begin_at(answer.snapshot)
