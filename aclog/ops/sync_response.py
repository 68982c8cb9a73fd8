"""The file `sync.response` beside a log of `aclog sync`: which response of the cluster has the ACLs of the log's state.

A poll whose response has the same bytes, or the same ACLs, has no changes, and the log need not be replayed to see it.

The file proves nothing by its name. It has a digest of every byte of the log that its state was replayed from, or
written as, and the id of the cluster: beside any other log, or after any other append, it is ignored, as is a damaged
file or one of another version. So it may be lost, copied, or older than the log, as after a crash between the two.
"""

from collections.abc import Collection
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from aclog.metalog.batches import end_offset
from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog import FileLog
from aclog.metalog.filelog.files import list_checkpoints, read_small, replace_durably, with_checksum, without_checksum
from aclog.metalog.values import frozen

RESPONSE_FILE = "sync.response"
LEAST_ACLS = 10_000
"""With fewer, a log is replayed and compared about as fast as it is digested: no file is written."""

_VERSION = "1"
"""Raised whenever the same bytes become other ACLs than before, of a log or of a response."""
_FIELDS = ("version", "cluster.id", "log.end.offset", "log.sha256", "acls", "acls.sha256", "response.sha256")
_READ_BYTES = 4 << 20


@frozen(kw_only=True)
class RecordedResponse:
    """The state of a log, by digests: `response` is that of a DescribeAcls response with exactly these ACLs."""

    cluster_id: str
    end_offset: int
    log: str
    """As log_digest returns it."""
    count: int
    """How many ACLs."""
    acls: str
    """As acls_digest returns it."""
    response: str
    """As aclog.client.requests.AclResponse has it."""


def acls_digest(contents: Collection[bytes]) -> str:
    """Return the SHA-256 of ACLs by content, each once, in any order."""
    # A content has the length of each text before it, and so an end: joined, different sets are different bytes.
    return sha256(b"".join(sorted(contents))).hexdigest()


def log_digest(log: FileLog) -> str | None:
    """Return the SHA-256 of all batches of a log; None if its state depends on more than its committed batches.

    Raises:
        MetadataError: the log cannot be read, or is damaged.

    """
    offset, end = log.start_offset(), log.high_watermark()
    if offset or end != log.end_offset() or list_checkpoints(log.directory):
        return None
    digest = sha256()
    while offset < end:
        batches = log.read(offset, _READ_BYTES)
        digest.update(batches)
        if end_offset(batches) <= offset:  # no checksum covers the offsets of a batch
            return None
        offset = end_offset(batches)
    return digest.hexdigest()


def read_response(log: FileLog, cluster_id: str) -> RecordedResponse | None:
    """Return what the file beside an open log has, if it is of this log as it is now; else None.

    A file that cannot be used is no error.

    Raises:
        DecodeError: the log is damaged.

    """
    recorded = _read(log.directory / RESPONSE_FILE)
    if recorded is None or (recorded.cluster_id, recorded.end_offset) != (cluster_id, log.end_offset()):
        return None
    return recorded if recorded.log == log_digest(log) else None


def _read(path: Path) -> RecordedResponse | None:
    try:
        data = read_small(path)
    except MetadataError:
        return None
    text = None if data is None else without_checksum(data)
    if text is None:
        return None
    try:
        pairs = [line.split("=", 1) for line in text.decode("utf-8").splitlines()]
        names, values = zip(*pairs, strict=True)
        version, cluster_id, end, log, count, acls, response = values
        if names != _FIELDS or version != _VERSION:
            return None
        return RecordedResponse(
            cluster_id=cluster_id, end_offset=int(end), log=log, count=int(count), acls=acls, response=response
        )
    except ValueError:
        return None


def write_response(directory: Path, recorded: RecordedResponse) -> None:
    """Write the file atomically; a failure costs nothing but time later."""
    values = (
        _VERSION,
        recorded.cluster_id,
        str(recorded.end_offset),
        recorded.log,
        str(recorded.count),
        recorded.acls,
        recorded.response,
    )
    if any(character in recorded.cluster_id for character in "\r\n"):
        return
    text = "".join(f"{name}={value}\n" for name, value in zip(_FIELDS, values, strict=True))
    with suppress(MetadataError):
        replace_durably(directory / RESPONSE_FILE, with_checksum(text.encode()))
