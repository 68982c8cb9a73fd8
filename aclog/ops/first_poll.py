"""What the first poll of `aclog sync` records: the ACLs of a whole cluster, in columns.

Of a million ACLs, none becomes an object unless a caller looks at it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import overload
from uuid import UUID

from attrs import field

from aclog.authorizer.acl import StandardAclWithId, acl_text, rule_fields
from aclog.authorizer.acls_image import acl_of_content, columns_of_contents
from aclog.authorizer.index.rule_columns import record_columns
from aclog.authorizer.index.rule_lines import OrderedTexts
from aclog.metalog.codec import ACL_FRAME
from aclog.metalog.errors import printable
from aclog.metalog.machine import randomness
from aclog.metalog.native import np
from aclog.metalog.primitives import DASH, RandomIds
from aclog.metalog.values import frozen
from aclog.snapshots.history import Change, ChangeKind

_ID = 16


@frozen(eq=False, repr=False)
class ListedAcls:
    """The ACLs of a poll by content, each once, in the order of listings (aclog.authorizer.acl.rule_fields)."""

    contents: Sequence[bytes]
    _texts: OrderedTexts | None
    """None if columns cannot hold them all: an ACL has symbols, or odd bytes."""

    @classmethod
    def of(cls, contents: Collection[bytes]) -> ListedAcls:
        """Sort the contents of ACLs, each once."""
        values = list(contents)
        columns, odd = columns_of_contents(values)
        texts = None if odd else OrderedTexts.of(record_columns(columns))
        if texts is not None:
            return cls([values[row] for row in texts.order.tolist()], texts)
        return cls(sorted(values, key=_fields_of), None)

    def __len__(self) -> int:
        return len(self.contents)

    def lines(self) -> Iterator[str]:
        """Yield each ACL as one printable line, as acl_text has it."""
        if self._texts is not None:
            return self._texts.lines()
        return (printable(acl_text(acl_of_content(each))) for each in self.contents)


def _fields_of(content: bytes) -> tuple[str, ...]:
    return rule_fields(StandardAclWithId(id=None, acl=acl_of_content(content)))


@frozen(eq=False, repr=False, kw_only=True)
class FirstPoll(Sequence[Change]):
    """The recorded ACLs as changes, each of which is made when it is looked at."""

    acls: ListedAcls
    ids: bytes
    """16 bytes for each ACL."""
    offset: int = 0
    """Of the first record; the others follow."""
    end_offset: int = 0
    timestamp: int = 0
    response: str | None = field(default=None)
    """The digest of the response (aclog.client.requests.AclResponse)."""

    def __len__(self) -> int:
        return len(self.acls)

    @overload
    def __getitem__(self, at: int) -> Change: ...
    @overload
    def __getitem__(self, at: slice) -> list[Change]: ...
    def __getitem__(self, at: int | slice) -> Change | list[Change]:
        if isinstance(at, slice):
            return [self[each] for each in range(len(self))[at]]
        row = range(len(self))[at]
        return Change(
            offset=self.offset + row,
            end_offset=self.end_offset,
            timestamp=self.timestamp,
            kind=ChangeKind.ADDED,
            rule=StandardAclWithId(id=UUID(bytes=self._id(row)), acl=acl_of_content(self.acls.contents[row])),
        )

    def _id(self, row: int) -> bytes:
        return self.ids[_ID * row : _ID * (row + 1)]

    def id_list(self) -> list[bytes]:
        """Return the ids one by one."""
        return [self.ids[at : at + _ID] for at in range(0, len(self.ids), _ID)]

    def values(self) -> list[bytes]:
        """Return the values of the records that add the ACLs."""
        return [
            b"%b%b%b" % (ACL_FRAME, id_, each) for id_, each in zip(self.id_list(), self.acls.contents, strict=True)
        ]

    def recorded(self) -> dict[bytes, bytes]:
        """Return the ids by content."""
        return dict(zip(self.acls.contents, self.id_list(), strict=True))


def new_ids(count: int) -> bytes:
    """Return so many new ids of 16 bytes, as aclog.metalog.primitives.random_uuid makes each."""
    ids = np.frombuffer(randomness.urandom(_ID * count), np.uint8).reshape(-1, _ID).copy()
    ids[:, 6] = ids[:, 6] & 0x0F | 0x40
    ids[:, 8] = ids[:, 8] & 0x3F | 0x80
    one = RandomIds()
    for row in np.flatnonzero(ids[:, 0] >> 2 == DASH).tolist():
        ids[row] = np.frombuffer(one().bytes, np.uint8)
    return ids.tobytes()
