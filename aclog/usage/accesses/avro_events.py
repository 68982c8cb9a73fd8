"""Accesses in Avro files of aclog's audit events, of any version of the schema."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from importlib.resources import files
from itertools import islice
from typing import IO, Final, cast

import fastavro

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define
from aclog.usage.accesses.access_batch import AccessBatch, AccessForm
from aclog.usage.accesses.events import batch_of
from aclog.usage.accesses.lines import JsonObject, PinnedFile

_ROWS: Final = 1 << 16
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def read_avro_events(file: PinnedFile, zone: tzinfo) -> Iterator[AccessBatch]:
    """Read a file of events.

    Raises:
        ConfigError: it has other records, is damaged, or was changed meanwhile.
        OSError: it was removed.

    """
    all_events = _events(file)
    while events := list(islice(all_events, _ROWS)):
        yield batch_of(((b"", event) for event in events), AccessForm.EVENTS, zone)


def _events(file: PinnedFile) -> Iterator[JsonObject]:
    schema = json.loads(files("aclog.authorizer").joinpath("audit_event.avsc").read_text(encoding="utf-8"))
    with file.open() as opened:
        pinned = _Pinned(opened, file.size)
        try:
            for event in fastavro.reader(cast("IO[bytes]", pinned), reader_schema=schema):
                record = dict(cast("JsonObject", event))
                yield {**record, "timestamp": _millis(record["timestamp"])}
        except Exception as error:  # on damaged bytes, and on other records, fastavro raises nearly any exception
            raise ConfigError(f"{file.path}: not a complete Avro file of audit events: {error}") from error


@define
class _Pinned:
    """A file up to its size at the listing, so that its reads match its digest."""

    opened: IO[bytes]
    remaining: int

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; empty at the end."""
        data = self.opened.read(self.remaining if size < 0 else min(size, self.remaining))
        self.remaining -= len(data)
        return data


def _millis(time: object) -> object:
    """Return ms since 1970 of a time as fastavro returns it."""
    return (time - _EPOCH) // timedelta(milliseconds=1) if isinstance(time, datetime) else time
