"""ACLs as the values of the AccessControlEntryRecords that they were read from."""

from collections.abc import Iterator

from aclog.authorizer.index.acl_index import AclIndex
from aclog.metalog.codec import encode_record
from aclog.metalog.fields import write_tagged_fields
from aclog.metalog.records import FRAME_VERSION, RecordType

_HEAD = bytes((FRAME_VERSION, RecordType.ACCESS_CONTROL_ENTRY_RECORD, 0))
_NO_TAGS = b"\0"


def encoded_records(index: AclIndex) -> Iterator[bytes]:
    """Yield the values in no particular order."""
    base, removed = index.base, index.overlay.removed
    ids, operations, permissions = base.ids.ids, base.operations, base.permissions
    for resource in range(len(base.resources)):
        key = base.resources.key(resource)
        low, high = base.cells(resource)
        for cell in range(low, high):
            pair = base.pairs.key(base.cell_pairs[cell])
            for row in base.rows(cell, cell + 1):
                if row in removed:
                    continue
                # Keys are the record's own bytes, so a value is put together from slices instead of being encoded;
                # only codes that were normalised in the key have to be put back.
                as_read = key
                if row in base.raw_codes:
                    kind, pattern = base.raw_codes[row]
                    as_read = bytes((kind & 0xFF,)) + key[1:-1] + bytes((pattern & 0xFF,))
                tags = write_tagged_fields(base.tags[row]) if row in base.tags else _NO_TAGS
                codes = bytes((operations[row], permissions[row]))
                yield b"".join((_HEAD, ids[16 * row : 16 * row + 16], as_read, pair, codes, tags))
    yield from map(encode_record, index.overlay.added.values())
