"""Committed batches that are no longer held, or not yet, fetched once more."""

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.errors import LogError, MetadataError
from aclog.nodes.observer.side_connection import SideConnection


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
            mark = shared.high_watermark
            try:
                answer = await side.fetch(offset, min(max_bytes, options.fetch_bytes))
                if answer.snapshot is None:
                    return _committed(shared.name, answer.records, offset, mark, max_bytes)
            except MetadataError as error:
                await side.retry(error, deadline)
            else:
                shared.begin_at(answer.snapshot, answer.high_watermark)
                shared.check_bounds(offset)
                await side.retry(LogError(f"{shared.name}: offset {offset}: a snapshot is offered for it"), deadline)


async def look_back(side: SideConnection, offset: int) -> bytes | None:
    """The batch that holds an offset, as the leader has it; None where its log does not reach back to it.

    Raises:
        LogError: there is no leader for as long as a read may wait.
        DecodeError: it is damaged.

    """
    async with side.turn:
        deadline = side.deadline
        while True:
            try:
                answer = await side.fetch(offset, 1)
                if answer.snapshot is not None or answer.diverging is not None:
                    return None
                run = BatchRun.of(answer.records)
                run.check_follows(offset, 0)
                return run.read(offset, 1)[0]
            except MetadataError as error:
                await side.retry(error, deadline)


def _committed(name: str, records: bytes, offset: int, mark: int, max_bytes: int) -> bytes:
    """What a leader gave, below a mark that was known before it was asked.

    A mark that was learned meanwhile may be another leader's, who has other records where this one's were never
    committed.
    """
    if not records:
        raise LogError(f"{name}: offset {offset}: no batch was given")
    run = BatchRun.of(records)
    run.check_follows(offset, 0)
    committed = run.slice(0, run.below(mark))
    if committed is None:
        raise LogError(f"{name}: offset {offset}: no committed batch was given")
    return committed.read(offset, max_bytes)[0]
