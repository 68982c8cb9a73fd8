"""The message to a process that folds: what the overlay adds and removes, as lines of JSON.

Each line holds the columns of some thousand ACLs: the sender shares its interpreter with those who decide, and columns
take a fraction of the time of records.
"""

import json
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter
from typing import Any, BinaryIO
from uuid import UUID

from aclog.authorizer.index import layout
from aclog.authorizer.index.overlay import Overlay
from aclog.metalog.records import AccessControlEntryRecord, TaggedFields

_VERSION = 1
"""To be raised with every change of the message."""

IDENTITY = f"message {_VERSION}, flat base {layout.VERSION}, Python {sys.version}"
"""What both ends must be. They differ once a running node's installation has been replaced."""

_CHUNK = 4096

_COLUMNS = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)


def write_changes(file: BinaryIO, overlay: Overlay, pause: Callable[[], None]) -> None:
    """Write the changes of an overlay, calling `pause` between chunks."""
    _write(file, {"from": IDENTITY, "added": len(overlay.added), "removed": list(overlay.removed)})
    records = iter(overlay.added.values())
    while chunk := list(islice(records, _CHUNK)):
        tags = {
            n: [(tag, data.hex()) for tag, data in record.tagged_fields]
            for n, record in enumerate(chunk)
            if record.tagged_fields
        }
        columns = [list(map(attrgetter(name), chunk)) for name in _COLUMNS]
        ids = b"".join([record.id.int.to_bytes(16) for record in chunk]).hex()
        _write(file, {"ids": ids, "columns": columns, "tags": tags})
        pause()


def read_changes(file: BinaryIO) -> tuple[list[AccessControlEntryRecord], list[int]]:
    """Return the records added and the rows removed.

    Raises:
        ValueError: another program wrote the message, or it is cut off.

    """
    head = json.loads(file.readline())
    if head["from"] != IDENTITY:
        raise ValueError(f"its parent is another program ({head['from']}; this is {IDENTITY}): restart the node")
    added: list[AccessControlEntryRecord] = []
    while len(added) < head["added"]:
        added += _records(**json.loads(file.readline()))
    return added, head["removed"]


def _write(file: BinaryIO, line: dict[str, Any]) -> None:
    file.write(json.dumps(line).encode() + b"\n")


def _records(ids: str, columns: list[list[Any]], tags: dict[str, Any]) -> Iterator[AccessControlEntryRecord]:
    data = bytes.fromhex(ids)
    tags_of: dict[int, TaggedFields] = {
        int(n): tuple((tag, bytes.fromhex(value)) for tag, value in pairs) for n, pairs in tags.items()
    }
    for n, values in enumerate(zip(*columns, strict=True)):
        yield AccessControlEntryRecord(
            id=UUID(bytes=data[16 * n : 16 * n + 16]),
            tagged_fields=tags_of.get(n, ()),
            **dict(zip(_COLUMNS, values, strict=True)),
        )
