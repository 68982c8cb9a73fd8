"""Larger Arrow batches for workers: Spark passes on as few rows at a time as its file reader returns."""

from collections.abc import Iterator

import pyarrow as pa


def regrouped(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of at least `rows` rows, except for the last one."""
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
