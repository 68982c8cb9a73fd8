"""The fields of many ACLs as columns of text, made of the columns of an index: no object per ACL.

A million ACLs have few principals, hosts and codes. Each column is some texts, and by row the number of its text, as a
dictionary of Arrow or an array of objects takes them.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING
from uuid import UUID

from aclog.authorizer.acl import AclBindingFilter, StandardAcl, StandardAclWithId, acl_of, make_acl, make_rule, rule_of
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index import layout
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.base import Base, row_keys
from aclog.authorizer.index.queries import filter_matches
from aclog.authorizer.interface import ResourceGroups
from aclog.metalog.columns import AclColumns, Bools, Bytes, Int64s, unsigned_varints
from aclog.metalog.native import np
from aclog.metalog.records import AccessControlEntryRecord
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CODES = 256
_ID_BYTES, _ID_TEXT = 16, 22


@frozen(eq=False, repr=False)
class TextColumn:
    """A text by row: some texts in UTF-8, which may repeat, and the number of each row's."""

    texts: layout.ByteStrings
    numbers: layout.Int32s


@frozen(eq=False, kw_only=True, repr=False)
class RuleColumns:
    """ACLs in columns, and those that an index has as objects: the changes since its base."""

    fields: tuple[TextColumn, ...]
    """In the order of aclog.authorizer.acl.rule_fields."""
    ids: NDArray[np.uint8] | None
    """By row: the text of the id, 22 bytes of ASCII; None if the source has no ids."""
    added: Sequence[StandardAclWithId]

    def __len__(self) -> int:
        return len(self.fields[0].numbers) + len(self.added)


def rule_columns(index: AclIndex, acl_filter: AclBindingFilter) -> RuleColumns | None:
    """Return the ACLs that a filter matches; None if it names a resource, a principal or a host.

    Few ACLs match such a filter, and aclog.authorizer.index.queries.matching looks these up.
    """
    if _is_named(acl_filter):
        return None
    base = index.base
    resource_of, pair_of = row_keys(base)
    keys, starts, ends = key_bytes(base.resources)
    types, patterns = keys[starts][resource_of], keys[ends - 1][resource_of]
    for row, (kind, pattern) in base.raw_codes.items():
        types[row], patterns[row] = kind & 0xFF, pattern & 0xFF
    codes = (types, patterns, np.frombuffer(base.operations, np.uint8), np.frombuffer(base.permissions, np.uint8))
    rows = _matched(index, acl_filter, codes)
    types, patterns, operations, permissions = (each[rows] for each in codes)
    pairs = pair_of[rows]
    principals, hosts = pair_texts(base)
    return RuleColumns(
        fields=(
            _named(ResourceType, layout.known_type, types),
            TextColumn(_names(keys, starts, ends), resource_of[rows]),
            _named(PatternType, layout.known_pattern, patterns),
            TextColumn(principals, pairs),
            TextColumn(hosts, pairs),
            _named(AclOperation, layout.known_operation, operations),
            _named(AclPermissionType, layout.known_permission, permissions),
        ),
        ids=_id_texts(_ids(base)[rows]) if base.has_ids else None,
        added=[rule for rule in map(rule_of, index.overlay.added.values()) if filter_matches(acl_filter, rule.acl)],
    )


_ROWS_AT_ONCE = 1 << 14
"""Rows whose texts are decoded at once, which bounds the memory of a caller that keeps none of the ACLs."""


def base_acls(index: AclIndex) -> Iterator[tuple[Int64s, Iterator[StandardAcl]]]:
    """Yield the ACLs of the base that were not removed, in parts: their rows, and the ACL of each, with raw codes.

    A resource, a principal or a host of a part is decoded once, however many ACLs have it.
    """
    base = index.base
    (keys, *edges), pairs = key_bytes(base.resources), pair_texts(base)
    resource_of, pair_of = row_keys(base)
    operations, permissions = np.frombuffer(base.operations, np.int8), np.frombuffer(base.permissions, np.int8)
    signed = keys.view(np.int8)
    rows = _rows_left(index)
    for low in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[low : low + _ROWS_AT_ONCE]
        resources, resource_at = np.unique(resource_of[some], return_inverse=True)
        some_pairs, pair_at = np.unique(pair_of[some], return_inverse=True)
        starts, ends = (edge[resources] for edge in edges)
        names = _decoded(_names(keys, starts, ends))
        principals, hosts = (_decoded(texts.take(some_pairs)) for texts in pairs)
        types, patterns = signed[starts][resource_at].tolist(), signed[ends - 1][resource_at].tolist()
        if base.raw_codes:
            for at, row in enumerate(some.tolist()):
                types[at], patterns[at] = base.raw_codes.get(row) or (types[at], patterns[at])
        by_row = resource_at.tolist(), pair_at.tolist()
        yield (
            some,
            map(
                make_acl,
                types,
                map(names.__getitem__, by_row[0]),
                patterns,
                map(principals.__getitem__, by_row[1]),
                map(hosts.__getitem__, by_row[1]),
                operations[some].tolist(),
                permissions[some].tolist(),
            ),
        )


def base_rules(index: AclIndex) -> Iterator[StandardAclWithId]:
    """Yield the same ACLs with their ids."""
    base = index.base
    for rows, acls in base_acls(index):
        ids: Iterable[UUID | None] = repeat(None)
        if base.has_ids:
            data = _ids(base)[rows].tobytes()
            ids = (UUID(bytes=data[at : at + _ID_BYTES]) for at in range(0, len(data), _ID_BYTES))
        yield from map(make_rule, ids, acls)


def _rows_left(index: AclIndex) -> Int64s:
    """Return the rows of the base that were not removed."""
    rows = np.arange(len(index.base), dtype=np.int64)
    return np.delete(rows, np.fromiter(index.overlay.removed, np.int64)) if index.overlay.removed else rows


def _decoded(texts: layout.ByteStrings) -> list[str]:
    return [text.decode() for text in texts.values()]


def resource_groups(index: AclIndex, acl_filter: AclBindingFilter) -> ResourceGroups | None:
    """Return the ACLs that a filter matches; None if they are to be listed as objects.

    That is so if the filter names a resource, a principal or a host, of which few ACLs are, or if a record of the base
    has a code of a resource pattern that Kafka does not know.
    """
    if _is_named(acl_filter) or index.base.raw_codes:
        return None
    base = index.base
    resource_of, pair_of = row_keys(base)
    resources, pairs = base.resources.strings(), base.pairs.strings()
    operations, permissions = np.frombuffer(base.operations, np.uint8), np.frombuffer(base.permissions, np.uint8)
    types, patterns = resources.data[resources.starts], resources.data[resources.ends - 1]
    rows = _matched(index, acl_filter, (types[resource_of], patterns[resource_of], operations, permissions))
    resource_of, pair_of = resource_of[rows], pair_of[rows]
    codes = np.stack((operations[rows], permissions[rows]), axis=1)
    added = [record for record in index.overlay.added.values() if filter_matches(acl_filter, acl_of(record))]
    if added:
        numbers: dict[bytes, int] = {}
        resource_of = np.append(resource_of, [_number_of(base, record, numbers) for record in added])
        pair_of = np.append(pair_of, len(pairs) + np.arange(len(added)))
        more = [(record.operation & 0xFF, record.permission_type & 0xFF) for record in added]
        codes = np.concatenate((codes, np.array(more, np.uint8)))
        resources = resources.joined(layout.ByteStrings.of(list(numbers)))
        texts = [layout.pair_key(record.principal, record.host) for record in added]
        pairs = pairs.joined(layout.ByteStrings.of(texts))
        order = np.argsort(resource_of, kind="stable")
        resource_of, pair_of, codes = resource_of[order], pair_of[order], codes[order]
    firsts = layout.changes(resource_of)
    resources = resources.take(resource_of[firsts])
    return ResourceGroups(
        resources=resources.data,
        resource_offsets=resources.offsets,
        firsts=np.append(firsts, len(resource_of)),
        pairs=pairs.data,
        pair_offsets=pairs.offsets,
        pair_of=pair_of.astype(np.int64),
        codes=codes,
    )


def _number_of(base: Base, record: AccessControlEntryRecord, numbers: dict[bytes, int]) -> int:
    """Return the number of a resource: that of the base, or a new one in order of appearance."""
    kind, pattern = record.resource_type, record.pattern_type
    if layout.known_type(kind) == kind and pattern in {PatternType.LITERAL, PatternType.PREFIXED}:
        number = base.resource(kind, record.resource_name, literal=pattern == PatternType.LITERAL)
        if number >= 0:
            return number
    key = bytes((kind & 0xFF,)) + layout.compact(record.resource_name) + bytes((pattern & 0xFF,))
    return numbers.setdefault(key, len(base.resources) + len(numbers))


def _is_named(acl_filter: AclBindingFilter) -> bool:
    return any(each is not None for each in (acl_filter.resource_name, acl_filter.principal, acl_filter.host))


def record_columns(columns: AclColumns) -> RuleColumns:
    """Return ACLs in the columns of their records, whose ids are left out."""
    data, rows = np.frombuffer(columns.buffer, np.uint8), np.arange(len(columns), dtype=np.int32)
    return RuleColumns(
        fields=(
            _named(ResourceType, layout.known_type, columns.resource_type.view(np.uint8)),
            TextColumn(layout.ByteStrings.cut(data, columns.name_start, columns.resource_end - 1), rows),
            _named(PatternType, layout.known_pattern, columns.pattern_type.view(np.uint8)),
            TextColumn(layout.ByteStrings.cut(data, columns.principal_start, columns.principal_end), rows),
            TextColumn(layout.ByteStrings.cut(data, columns.host_start, columns.pair_end), rows),
            _named(AclOperation, layout.known_operation, columns.operation.view(np.uint8)),
            _named(AclPermissionType, layout.known_permission, columns.permission_type.view(np.uint8)),
        ),
        ids=None,
        added=(),
    )


def base_contents(index: AclIndex) -> tuple[layout.ByteStrings, Int64s]:
    """Return the contents of the ACLs of the base that were not removed, and their rows; no ACL may have tagged fields.

    The same bytes as aclog.authorizer.index.queries.encoded_records has behind the ids.
    """
    base = index.base
    resource_of, pair_of = row_keys(base)
    rows = _rows_left(index)
    (keys, *_), (pairs, *_) = tables = key_bytes(base.resources), key_bytes(base.pairs)
    codes = np.zeros((len(base), 3), np.uint8)
    codes[:, 0] = np.frombuffer(base.operations, np.uint8)
    codes[:, 1] = np.frombuffer(base.permissions, np.uint8)
    edges = np.empty((2, len(rows), 3), np.int64)
    edges[:, :, 0] = [column[resource_of[rows]] for column in tables[0][1:]]
    edges[:, :, 1] = [column[pair_of[rows]] + len(keys) for column in tables[1][1:]]
    edges[:, :, 2] = [rows * 3 + len(keys) + len(pairs), rows * 3 + len(keys) + len(pairs) + 3]
    cut = layout.ByteStrings.cut(np.concatenate((keys, pairs, codes.ravel())), edges[0].ravel(), edges[1].ravel())
    offsets, data = cut.offsets[::3], cut.data
    if base.raw_codes:  # the keys have the codes as Kafka reads them
        data = data.copy()
        kept = {int(row): at for at, row in enumerate(rows.tolist()) if row in base.raw_codes}
        for row, at in kept.items():
            kind, pattern = base.raw_codes[row]
            data[cut.offsets[3 * at]], data[cut.offsets[3 * at + 1] - 1] = kind & 0xFF, pattern & 0xFF
    return layout.ByteStrings(offsets, data), rows


def _matched(index: AclIndex, acl_filter: AclBindingFilter, codes: Sequence[Bytes]) -> Int64s | slice:
    """Return the rows of the base that were not removed and whose codes, as Kafka reads them, the filter has."""
    conditions: list[Bools] = []
    for column, read_code, filtered, every in zip(
        codes,
        (layout.known_type, layout.known_pattern, layout.known_operation, layout.known_permission),
        (acl_filter.resource_type, acl_filter.pattern_type, acl_filter.operation, acl_filter.permission_type),
        (
            (ResourceType.ANY,),
            (PatternType.ANY, PatternType.MATCH),
            (AclOperation.ANY,),
            (AclPermissionType.ANY,),
        ),
        strict=True,
    ):
        code = read_code(filtered)
        if code not in every:
            fits = np.array([read_code(layout.signed(each)) == code for each in range(_CODES)], np.bool_)
            conditions.append(fits[column])
    if index.overlay.removed:
        remaining = np.ones(len(index.base), np.bool_)
        remaining[np.fromiter(index.overlay.removed, np.int64)] = False
        conditions.append(remaining)
    return np.flatnonzero(np.logical_and.reduce(conditions)) if conditions else slice(None)


def _named(
    kind: type[ResourceType | PatternType | AclOperation | AclPermissionType],
    read_code: Callable[[int], int],
    codes: Bytes,
) -> TextColumn:
    """Return the names of codes; UNKNOWN for those that Kafka 4.3.1 does not define."""
    names = [each.name.encode() for each in kind]
    number = {int(each): at for at, each in enumerate(kind)}
    table = np.array([number[read_code(layout.signed(each))] for each in range(_CODES)], np.int32)
    return TextColumn(layout.ByteStrings.of(names), table[codes])


def key_bytes(table: layout.KeyTable) -> tuple[Bytes, Int64s, Int64s]:
    """Return the bytes of all keys, and where each begins and ends."""
    keys = table.strings()
    return keys.data, keys.starts, keys.ends


def _names(keys: Bytes, starts: Int64s, ends: Int64s) -> layout.ByteStrings:
    """Return the names in resource keys: type, length, name, pattern."""
    _, names, _ = unsigned_varints(keys, starts + 1)
    return layout.ByteStrings.cut(keys, names, ends - 1)


def pair_texts(base: Base) -> tuple[layout.ByteStrings, layout.ByteStrings]:
    """Return the principals and the hosts in pair keys, each after its length plus one."""
    keys, starts, ends = key_bytes(base.pairs)
    sizes, principals, _ = unsigned_varints(keys, starts)
    middle = principals + sizes - 1
    _, hosts, _ = unsigned_varints(keys, middle)
    return layout.ByteStrings.cut(keys, principals, middle), layout.ByteStrings.cut(keys, hosts, ends)


def _ids(base: Base) -> NDArray[np.uint8]:
    return np.frombuffer(base.ids.ids, np.uint8).reshape(-1, _ID_BYTES)


def _id_texts(ids: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the texts of ids, as aclog.metalog.primitives.uuid_text has them: base64 for URLs, without padding."""
    # Of 18 bytes each, so that no text depends on the next id, and one call encodes all.
    padded = np.zeros((len(ids), 18), np.uint8)
    padded[:, :_ID_BYTES] = ids
    encoded = np.frombuffer(urlsafe_b64encode(padded.data), np.uint8)
    return np.ascontiguousarray(encoded.reshape(len(ids), 24)[:, :_ID_TEXT])
