"""Batches of lines or rows, split into accesses and what is none."""

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from aclog.pipeline.accesses.access_table import ACCESS_COLUMNS, REJECT_COLUMNS, TIMESTAMP, Reason

_INTEGER = "resourceReferenceCount"
_TYPES: Final = {TIMESTAMP: pa.timestamp("us", tz="UTC"), _INTEGER: pa.int32()}

ACCESS_SCHEMA: Final = pa.schema([(name, _TYPES.get(name, pa.string())) for name in ACCESS_COLUMNS])
REJECT_SCHEMA: Final = pa.schema([(name, pa.string()) for name in REJECT_COLUMNS])


@frozen(kw_only=True)
class Split:
    """What became of the rows of a batch; the three add up to all of them."""

    accesses: pa.RecordBatch
    """With ACCESS_SCHEMA."""
    rejects: pa.RecordBatch
    """With REJECT_SCHEMA."""
    blanks: int


Splitting = Callable[[pa.RecordBatch], Split]
"""How the rows of a source are split. It goes to Spark's workers."""


def split_judged(batch: pa.RecordBatch) -> Split:
    """Split rows that `judge` has judged: by their reason."""
    reasons = batch.column("reason")
    accesses = batch.filter(pc.is_null(reasons)).select(list(ACCESS_COLUMNS)).cast(ACCESS_SCHEMA)
    rejects = (
        batch.filter(pc.not_equal(reasons, pa.scalar(Reason.BLANK.value)))
        .select(list(REJECT_COLUMNS))
        .cast(REJECT_SCHEMA)
    )
    blanks = batch.num_rows - accesses.num_rows - rejects.num_rows
    return Split(accesses=accesses, rejects=rejects, blanks=blanks)
