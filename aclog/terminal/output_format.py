"""The formats in which commands print what they list and answer."""

from enum import StrEnum


class OutputFormat(StrEnum):
    """A format of `--format`; each command says which of them it knows."""

    TEXT = "text"
    """Lines for people."""
    TABLE = "table"
    """Columns that fit the terminal."""
    KAFKA = "kafka"
    """The text of Kafka's own tool."""
    JSON = "json"
    """One JSON value: an array of rows, or an object."""
    JSONL = "jsonl"
    """A JSON object a line."""
    CSV = "csv"
    """RFC 4180, with a header."""
    MARKDOWN = "markdown"
    """A table of Markdown, or a report in it."""
    SARIF = "sarif"
    """SARIF 2.1.0, for code scanning."""


ROW_FORMATS = (OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.CSV, OutputFormat.MARKDOWN)
"""What every list can be printed in: rows of the same keys."""
