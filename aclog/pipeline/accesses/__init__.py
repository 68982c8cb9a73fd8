"""Access logs as input: a table of accesses, and a table of what could not be read."""

from aclog.pipeline.accesses.ingest import Counts, Ingested, Kind, ingest, write
from aclog.pipeline.accesses.input import MALFORMED, pinned_accesses, read_accesses

__all__ = ["MALFORMED", "Counts", "Ingested", "Kind", "ingest", "pinned_accesses", "read_accesses", "write"]
