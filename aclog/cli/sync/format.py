"""Output formats of `aclog sync`."""

from enum import StrEnum


class SyncFormat(StrEnum):
    """How recorded changes are printed."""

    TABLE = "table"
    JSONL = "jsonl"
