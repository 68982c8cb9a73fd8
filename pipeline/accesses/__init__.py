"""Access logs in: what was asked of an authorizer, as one table, and a table of what could not be read."""

from pipeline.accesses.ingesting import Counts, Ingested, Kind, ingest, write
from pipeline.accesses.reading import MALFORMED, read_accesses

__all__ = ["MALFORMED", "Counts", "Ingested", "Kind", "ingest", "read_accesses", "write"]
