"""The lines of many ACLs in the order of listings, made of columns: no object per ACL.

The same lines as aclog.authorizer.acl.rule_json and acl_text return, sorted by rule_fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from aclog.authorizer.acl import principal_text, rule_fields
from aclog.authorizer.index.layout import ByteStrings, numbered, sorted_rows
from aclog.authorizer.index.rule_columns import RuleColumns, TextColumn
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import SYMBOL_START, printable
from aclog.metalog.json_object import json_string
from aclog.metalog.native import np
from aclog.metalog.primitives import uuid_text
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PLAIN = re.compile(r"[ !#-\[\]-~]*")
"""ASCII that is the same in a string of JSON."""
_NULL = "null"
_AT_ONCE = 1 << 14
"""Rows whose texts are Python's at the same time."""


@frozen(eq=False, repr=False)
class _Field:
    """The texts of one field, distinct and in order, and the number of each row's."""

    texts: Sequence[str]
    numbers: Int64s

    @classmethod
    def of(cls, column: TextColumn, added: Sequence[str]) -> _Field:
        """Sort the texts of a column, and of more rows."""
        new = ByteStrings.of([text.encode() for text in added])
        data = np.concatenate((column.texts.data, new.data))
        offsets = np.concatenate((column.texts.offsets, new.offsets[1:] + column.texts.offsets[-1]))
        distinct, numbers = numbered(data.data, offsets[:-1], offsets[1:])
        order = sorted_rows(distinct.data, distinct.starts, distinct.ends)  # bytes of UTF-8 sort as code points do
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        rows = np.concatenate((column.numbers, np.arange(len(column.texts), len(column.texts) + len(added))))
        return cls(_decoded(distinct.take(order)), ranks[numbers[rows]])


def sorted_lines(columns: RuleColumns) -> Iterator[str] | None:
    """Return the lines of the ACLs in columns, sorted; None if a text has symbols (aclog.authorizer.symbols)."""
    fields = _fields(columns)
    return None if fields is None else _lines(fields, columns)


@frozen(eq=False, repr=False)
class OrderedTexts:
    """The texts of ACLs in columns, and the rows in the order of listings."""

    order: Int64s
    _fields: Sequence[_Field]

    @classmethod
    def of(cls, columns: RuleColumns) -> OrderedTexts | None:
        """Sort the ACLs; None if a text has symbols (aclog.authorizer.symbols)."""
        fields = _fields(columns)
        return None if fields is None else cls(_order(fields), fields)

    def lines(self) -> Iterator[str]:
        """Yield each ACL as acl_text returns it, made printable (aclog.metalog.errors)."""
        types, names, patterns, principals, hosts, operations, permissions = self._fields
        texts = [
            [f"{each} " for each in permissions.texts],
            [f"{printable(principal_text(each))} " for each in principals.texts],
            [f"{each} on " for each in operations.texts],
            [f"{each} " for each in types.texts],
            [f"{each} " for each in patterns.texts],
            [f"{printable(repr(each))} from " for each in names.texts],
            [printable(each) for each in hosts.texts],
        ]
        columns = (permissions, principals, operations, types, patterns, names, hosts)
        for first in range(0, len(self.order), _AT_ONCE):
            rows = self.order[first : first + _AT_ONCE]
            parts = (map(each.__getitem__, of.numbers[rows].tolist()) for each, of in zip(texts, columns, strict=True))
            yield from map("".join, zip(*parts, strict=True))


def _fields(columns: RuleColumns) -> Sequence[_Field] | None:
    """Return the fields of ACLs in columns; None if a text has symbols."""
    added = [rule_fields(rule) for rule in columns.added]
    fields = [_Field.of(column, [each[at] for each in added]) for at, column in enumerate(columns.fields)]
    if any(SYMBOL_START in text for field in fields for text in field.texts if not text.isascii()):
        return None
    return fields


def _order(fields: Sequence[_Field]) -> Int64s:
    types, names, patterns, principals, hosts, operations, permissions = fields
    # three numbers instead of seven to sort by
    resources = (types.numbers * len(names.texts) + names.numbers) * len(patterns.texts) + patterns.numbers
    who = principals.numbers * len(hosts.texts) + hosts.numbers
    codes = operations.numbers * len(permissions.texts) + permissions.numbers
    return np.lexsort((codes, who, resources))


def _lines(fields: Sequence[_Field], columns: RuleColumns) -> Iterator[str]:
    types, names, patterns, principals, hosts, operations, permissions = fields
    codes = operations.numbers * len(permissions.texts) + permissions.numbers
    order = _order(fields)
    texts = [
        [f'{{"resourceType":"{each}","resourceName":' for each in types.texts],
        _quoted(names.texts),
        [f',"patternType":"{each}","principal":' for each in patterns.texts],
        _quoted(principals.texts),
        _quoted(hosts.texts),
        [
            f',"operation":"{one}","permissionType":"{two}","id":'
            for one in operations.texts
            for two in permissions.texts
        ],
    ]
    numbers = (types.numbers, names.numbers, patterns.numbers, principals.numbers, hosts.numbers, codes)
    for first in range(0, len(order), _AT_ONCE):
        rows = order[first : first + _AT_ONCE]
        parts = (map(each.__getitem__, of[rows].tolist()) for each, of in zip(texts, numbers, strict=True))
        for kind, name, pattern, principal, host, code, text_id in zip(*parts, _ids(columns, rows), strict=True):
            yield f'{kind}{name}{pattern}{principal},"host":{host}{code}{text_id}}}'


def _ids(columns: RuleColumns, rows: Int64s) -> Iterator[str]:
    """Yield the id of each row as JSON."""
    count = len(columns) - len(columns.added)
    of_base = iter(() if columns.ids is None else _id_texts(columns.ids[rows[rows < count]]))
    for row in rows.tolist():
        if row < count:
            yield next(of_base, _NULL)
        else:
            rule_id = columns.added[row - count].id
            yield _NULL if rule_id is None else f'"{uuid_text(rule_id)}"'


def _id_texts(ids: NDArray[np.uint8]) -> list[str]:
    size = ids.shape[1] + 2
    quoted = np.full((len(ids), size), ord('"'), np.uint8)
    quoted[:, 1:-1] = ids
    text = quoted.tobytes().decode("ascii")
    return [text[at : at + size] for at in range(0, len(text), size)]


def _quoted(texts: Sequence[str]) -> list[str]:
    if _PLAIN.fullmatch("".join(texts)):
        return [f'"{text}"' for text in texts]
    return [f'"{text}"' if _PLAIN.fullmatch(text) else json_string(text) for text in texts]


def _decoded(strings: ByteStrings) -> list[str]:
    data = strings.data.tobytes()
    pairs = zip(strings.starts.tolist(), strings.ends.tolist(), strict=True)
    if data.isascii():
        text = data.decode()
        return [text[start:end] for start, end in pairs]
    return [data[start:end].decode() for start, end in pairs]
