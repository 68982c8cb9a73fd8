"""The lines of many ACLs in the order of listings, made of columns: no object per ACL.

The same lines as aclog.authorizer.acl.rule_json and acl_text return, the same objects as StandardAclWithId.to_dict, and
the paragraphs of kafka-acls.sh: sorted by rule_fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from aclog.authorizer.acl import principal_text, rule_fields
from aclog.authorizer.codes import ResourceType
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

    def has(self, text: str) -> bool:
        """Return whether a row has a text."""
        return text in self.texts and bool((self.numbers == self.texts.index(text)).any())


def sorted_lines(columns: RuleColumns) -> Iterator[str] | None:
    """Return the lines of the ACLs in columns, sorted; None if a text has symbols (aclog.authorizer.symbols)."""
    fields = _fields(columns)
    return None if fields is None else _lines(fields, columns)


_KEYS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType", "id")


def sorted_objects(columns: RuleColumns) -> Iterator[dict[str, str | None]] | None:
    """Return the objects of the ACLs in columns, sorted, as StandardAclWithId.to_dict; None as `sorted_lines`."""
    fields = _fields(columns)
    return None if fields is None else _objects(fields, columns)


def sorted_paragraphs(columns: RuleColumns, show: Callable[[str], str]) -> Iterator[str] | None:
    """Return a paragraph for each resource, sorted, in the format of kafka-acls.sh, without its last line end.

    `show` formats the texts of a record for the output. None: a text has symbols, or resources that differ in a code
    that is unknown look alike.
    """
    fields = _fields(columns)
    if fields is None or any(field.has(ResourceType.UNKNOWN.name) for field in (fields[0], fields[2])):
        return None
    return _paragraphs(fields, show)


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
        parts = (
            _Field([f"{each} " for each in permissions.texts], permissions.numbers),
            _Field([f"{printable(principal_text(each))} " for each in principals.texts], principals.numbers),
            _Field([f"{each} on " for each in operations.texts], operations.numbers),
            _Field([f"{each} " for each in types.texts], types.numbers),
            _Field([f"{each} " for each in patterns.texts], patterns.numbers),
            _Field([f"{printable(repr(each))} from " for each in names.texts], names.numbers),
            _Field([printable(each) for each in hosts.texts], hosts.numbers),
        )
        for first in range(0, len(self.order), _AT_ONCE):
            yield from map("".join, zip(*_texts_of(parts, self.order[first : first + _AT_ONCE]), strict=True))


def _fields(columns: RuleColumns) -> Sequence[_Field] | None:
    """Return the fields of ACLs in columns; None if a text has symbols."""
    added = [rule_fields(rule) for rule in columns.added]
    fields = [_Field.of(column, [each[at] for each in added]) for at, column in enumerate(columns.fields)]
    if any(SYMBOL_START in text for field in fields for text in field.texts if not text.isascii()):
        return None
    return fields


def _order(fields: Sequence[_Field]) -> Int64s:
    *_, principals, hosts, operations, permissions = fields
    # three numbers instead of seven to sort by
    who = principals.numbers * len(hosts.texts) + hosts.numbers
    codes = operations.numbers * len(permissions.texts) + permissions.numbers
    return np.lexsort((codes, who, _resources(fields)))


def _resources(fields: Sequence[_Field]) -> Int64s:
    """Return a number of each row's resource, ascending in the order of listings."""
    types, names, patterns, *_ = fields
    return (types.numbers * len(names.texts) + names.numbers) * len(patterns.texts) + patterns.numbers


def _lines(fields: Sequence[_Field], columns: RuleColumns) -> Iterator[str]:
    types, names, patterns, principals, hosts, operations, permissions = fields
    granted = [
        f',"operation":"{one}","permissionType":"{two}","id":' for one in operations.texts for two in permissions.texts
    ]
    parts = (
        _Field([f'{{"resourceType":"{each}","resourceName":' for each in types.texts], types.numbers),
        _Field(_quoted(names.texts), names.numbers),
        _Field([f',"patternType":"{each}","principal":' for each in patterns.texts], patterns.numbers),
        _Field(_quoted(principals.texts), principals.numbers),
        _Field(_quoted(hosts.texts), hosts.numbers),
        _Field(granted, operations.numbers * len(permissions.texts) + permissions.numbers),
    )
    order = _order(fields)
    for first in range(0, len(order), _AT_ONCE):
        rows = order[first : first + _AT_ONCE]
        texts = _texts_of(parts, rows)
        for kind, name, pattern, principal, host, code, text_id in zip(*texts, _ids(columns, rows), strict=True):
            yield f'{kind}{name}{pattern}{principal},"host":{host}{code}{text_id}}}'


def _objects(fields: Sequence[_Field], columns: RuleColumns) -> Iterator[dict[str, str | None]]:
    order = _order(fields)
    for first in range(0, len(order), _AT_ONCE):
        rows = order[first : first + _AT_ONCE]
        ids = (None if each is _NULL else each[1:-1] for each in _ids(columns, rows))
        for row in zip(*_texts_of(fields, rows), ids, strict=True):
            yield dict(zip(_KEYS, row, strict=True))


def _texts_of(fields: Sequence[_Field], rows: Int64s) -> Iterator[Iterator[str]]:
    """Yield the texts of these rows, field by field."""
    return (map(field.texts.__getitem__, field.numbers[rows].tolist()) for field in fields)


def _paragraphs(fields: Sequence[_Field], show: Callable[[str], str]) -> Iterator[str]:
    order = _order(fields)
    if not len(order):
        return
    types, names, patterns, principals, hosts, operations, permissions = fields
    of_resource = (
        _Field(
            [f"Current ACLs for resource `ResourcePattern(resourceType={each}, name=" for each in types.texts],
            types.numbers,
        ),
        _Field([f"{show(each)}, patternType=" for each in names.texts], names.numbers),
        _Field([f"{each})`:\n" for each in patterns.texts], patterns.numbers),
    )
    of_entry = (
        _Field([f"\t(principal={show(each)}, host=" for each in principals.texts], principals.numbers),
        _Field([f"{show(each)}, operation=" for each in hosts.texts], hosts.numbers),
        _Field([f"{each}, permissionType=" for each in operations.texts], operations.numbers),
        _Field([f"{each})\n" for each in permissions.texts], permissions.numbers),
    )
    resources = _resources(fields)[order]
    edges = np.append(np.flatnonzero(np.diff(resources, prepend=-1)), len(order))
    at, last = 0, len(edges) - 1
    while at < last:  # whole resources, together about so many rows
        end = min(max(int(np.searchsorted(edges, edges[at] + _AT_ONCE)), at + 1), last)
        low, high = int(edges[at]), int(edges[end])
        entries = list(map("".join, zip(*_texts_of(of_entry, order[low:high]), strict=True)))
        heads = map("".join, zip(*_texts_of(of_resource, order[edges[at:end]]), strict=True))
        bounds = (edges[at : end + 1] - low).tolist()
        for head, start, stop in zip(heads, bounds, bounds[1:], strict=False):
            yield head + "".join(entries[start:stop])
        at = end


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
