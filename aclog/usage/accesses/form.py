"""The forms of access logs, and how a file's is recognised."""

import re
import zlib
from enum import StrEnum
from typing import IO, Final

from aclog.metalog.errors import ConfigError

_BEGINNING: Final = 1 << 16
"""Bytes that are looked at."""
_AUDIT_LINE: Final = re.compile(rb"\s*\[\d{4}-\d{2}-\d{2} ")


class AccessForm(StrEnum):
    """What a file of accesses holds."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    """Lines as of `authorize --requests`, with `timestamp`."""
    KAFKA_LOG = "kafka-log"
    """kafka-authorizer.log of any Kafka."""


def form_of(opened: IO[bytes], path: str) -> AccessForm:
    """Return the form of a file by its first bytes; an empty one counts as lines of JSON.

    Raises:
        ConfigError: it is none of them.

    """
    beginning = opened.read(_BEGINNING)
    if beginning[:4] == b"PAR1":
        return AccessForm.PARQUET
    if path.endswith(".gz"):
        beginning = _unpacked(beginning, path)
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text or text.startswith(b"{"):
        return AccessForm.JSONL
    if _AUDIT_LINE.match(text):
        return AccessForm.KAFKA_LOG
    raise ConfigError(
        f"{path}: not an access log: expected kafka-authorizer.log, Parquet or JSON lines, which begin with `{{`"
    )


def _unpacked(data: bytes, path: str) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _BEGINNING)
    except zlib.error as error:
        raise ConfigError(f"{path}: not a gzip file: {error}") from error
