"""The forms of access logs, and how a file's is recognised."""

import json
import re
import zlib
from codecs import getincrementaldecoder
from enum import StrEnum
from typing import IO, Any, Final

from aclog.metalog.errors import ConfigError
from aclog.usage.decisions.accesses import REQUEST_COLUMNS

_BEGINNING: Final = 1 << 16
"""Bytes that are looked at."""
_AUDIT_LINE: Final = re.compile(rb"\s*\[\d{4}-\d{2}-\d{2}[ T]")
_MARKS_OF_AUDIT: Final = (b"Principal = ", b"is Allowed", b"is Denied")


class AccessForm(StrEnum):
    """What a file of accesses holds."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    """Lines as of `authorize --requests`, with `timestamp`."""
    KAFKA_LOG = "kafka-log"
    """kafka-authorizer.log of any Kafka."""
    EVENTS = "events-jsonl"
    """aclog's audit events as JSON lines, or a node's JSON log with such events in it."""
    AVRO = "events"
    """aclog's audit events in an Avro file."""
    OCSF = "ocsf"
    """API Activity (class 6003) as JSON lines: aclog's, or Redpanda's audit log."""
    CLOUDEVENTS = "cloudevents"
    """CloudEvents as JSON lines: aclog's, or Confluent's audit log."""


def form_of(opened: IO[bytes], path: str, *, named: bool = True) -> AccessForm:
    """Return the form of a file by its first bytes; an empty one counts as lines of JSON.

    Text of any other kind is read as lines of kafka-authorizer.log if it tells of accesses in another layout, or if it
    is not `named` itself but lies in a directory, as kafkaServer-gc.log does: its lines say what they are about.

    Raises:
        ConfigError: it is none of them.

    """
    beginning = opened.read(_BEGINNING)
    if beginning[:4] == b"PAR1":
        return AccessForm.PARQUET
    if beginning[:4] == b"Obj\x01":
        return AccessForm.AVRO
    if path.endswith(".gz"):
        beginning = _unpacked(beginning, path)
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text or text.startswith(b"{"):
        return _json_form(text)
    if _AUDIT_LINE.match(text):
        return AccessForm.KAFKA_LOG
    if (not named or any(mark in text for mark in _MARKS_OF_AUDIT)) and _is_text(text):
        return AccessForm.KAFKA_LOG
    where = "" if named else ": move it, or name the logs by a glob, such as 'logs/kafka-authorizer.log*'"
    raise ConfigError(
        f"{path}: not an access log: expected kafka-authorizer.log, Parquet, Avro or JSON lines, which begin with "
        f"`{{`{where}"
    )


def _is_text(beginning: bytes) -> bool:
    """Return whether the first bytes of a file are text; the last character may be cut off."""
    try:
        return "\0" not in getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        return False


def _json_form(text: bytes) -> AccessForm:
    """Return the form of JSON lines by the first that can be read; what is no event of a known kind is an access."""
    for line in text.split(b"\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return form_of_object(value) or AccessForm.JSONL
    return AccessForm.JSONL


def form_of_object(value: dict[str, Any]) -> AccessForm | None:
    """Return the form of an object by its keys; None if they are those of none."""
    return next((form for form, keys in _MARKS if keys <= value.keys()), None)


_MARKS: Final = (
    (AccessForm.EVENTS, {"result", "basis"}),
    (AccessForm.JSONL, {*REQUEST_COLUMNS}),
    (AccessForm.CLOUDEVENTS, {"specversion"}),
    (AccessForm.OCSF, {"class_uid"}),
    (AccessForm.EVENTS, {"audit"}),
    (AccessForm.EVENTS, {"logger"}),
)
"""A form of JSON lines, and the top-level keys by which it is known; the first that has all of them."""


def _unpacked(data: bytes, path: str) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _BEGINNING)
    except zlib.error as error:
        raise ConfigError(f"{path}: not a gzip file: {error}") from error
