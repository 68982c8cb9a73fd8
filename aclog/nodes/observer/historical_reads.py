"""Reads of committed batches that the fetch buffer no longer holds, or skipped."""

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.errors import LogError, MetadataError
from aclog.nodes.observer.side_connection import SideConnection


async def fetch_committed(side: SideConnection, offset: int, max_bytes: int) -> bytes:
    """Return committed batches from the one that holds `offset`, at most `max_bytes` but at least one batch.

    Raises:
        LogError: the batches are no longer on the leader, or no leader is found within `read_seconds`.
        DecodeError: the batches are damaged.

    """
    shared, options = side.fetcher.buffer, side.fetcher.options
    async with side.lock:
        deadline = side.deadline
        while True:
            # Read before fetching. A mark learned while the fetch is under way may be the next leader's; the one
            # that responds may have records below it that were never committed and have been replaced since.
            mark = shared.high_watermark
            try:
                response = await side.fetch(offset, min(max_bytes, options.fetch_bytes))
                if response.snapshot is None:
                    return _committed(shared.name, response.records, offset, mark).read(offset, max_bytes)[0]
            except MetadataError as error:
                await side.retry(error, deadline)
            else:
                shared.begin_at(response.snapshot, response.high_watermark)
                shared.check_bounds(offset)
                await side.retry(
                    LogError(f"{shared.name}: offset {offset}: the leader offers a snapshot instead"), deadline
                )


def _committed(name: str, records: bytes, offset: int, mark: int) -> BatchRun:
    if not records:
        raise LogError(f"{name}: offset {offset}: the leader returned no batch")
    run = BatchRun.of(records)
    run.check_follows(offset, 0)
    committed = run.slice(0, run.below(mark))
    if committed is None:
        raise LogError(f"{name}: offset {offset}: the leader returned no committed batch")
    return committed
