"""Batches of Arrow in larger pieces: Spark hands over as few rows as its reader of files has at once."""

from collections.abc import Iterator

import pyarrow as pa


def regrouped(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows, at least so many together but for the last."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if held:
        yield pa.Table.from_batches(held)
