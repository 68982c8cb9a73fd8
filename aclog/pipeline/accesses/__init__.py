"""Access logs as input: a table of accesses, and a table of what could not be read."""

from aclog.pipeline.accesses.append import Appended, append
from aclog.pipeline.accesses.ingest import Counts, Ingested, Kind, Layout, RejectRateError, ingest, write
from aclog.pipeline.accesses.input import MALFORMED, pinned_accesses, plain_accesses, read_accesses
from aclog.pipeline.accesses.ledger import Ledger
from aclog.pipeline.accesses.line_files import NoFilesError
from aclog.pipeline.accesses.pinned_files import ChangedFilesError

__all__ = [
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
