"""Committed batches that are no longer held, or not yet, fetched once more."""

from metalog.batch_run import BatchRun
from metalog.errors import LogError, MetadataError
from nodes.observer.shared_log import SharedLog
from nodes.observer.side_connection import SideConnection


async def read_past(side: SideConnection, offset: int, max_bytes: int) -> bytes:
    """Committed batches from the one that holds `offset` on, at most `max_bytes`, but one at least.

    Raises:
        LogError: they are no longer there, or there is no leader for as long as a read may wait.
        DecodeError: they are damaged.

    """
    shared, options = side.fetcher.shared, side.fetcher.options
    async with side.turn:
        deadline = side.deadline
        while True:
            try:
                answer = await side.fetch(offset, min(max_bytes, options.fetch_bytes))
                if answer.snapshot is None:
                    return _committed(shared, answer.records, offset, max_bytes)
            except MetadataError as error:
                await side.retry(error, deadline)
            else:
                shared.begin_at(answer.snapshot, answer.high_watermark)
                shared.check_bounds(offset)
                await side.retry(LogError(f"{shared.name}: offset {offset}: a snapshot is offered for it"), deadline)


def _committed(shared: SharedLog, records: bytes, offset: int, max_bytes: int) -> bytes:
    if not records:
        raise LogError(f"{shared.name}: offset {offset}: no batch was given")
    run = BatchRun.of(records)
    run.check_follows(offset, 0)
    committed = run.slice(0, run.below(shared.high_watermark))
    if committed is None:
        raise LogError(f"{shared.name}: offset {offset}: no committed batch was given")
    return committed.read(offset, max_bytes)[0]
