"""Access logs as input: a table of accesses, and a table of what could not be read.

Begin with `ingestion.py` and `tables.py`.
"""

from aclog.pipeline.accesses.files import MALFORMED, ChangedFilesError, pinned_accesses, plain_accesses, read_accesses
from aclog.pipeline.accesses.ingestion import (
    INGESTED,
    Appended,
    Counts,
    Ingested,
    Kind,
    Layout,
    Ledger,
    RejectRateError,
    append,
    ingest,
    write,
)
from aclog.pipeline.accesses.kafka_log import NoFilesError

__all__ = [
    "INGESTED",
    "MALFORMED",
    "Appended",
    "ChangedFilesError",
    "Counts",
    "Ingested",
    "Kind",
    "Layout",
    "Ledger",
    "NoFilesError",
    "RejectRateError",
    "append",
    "ingest",
    "pinned_accesses",
    "plain_accesses",
    "read_accesses",
    "write",
]
