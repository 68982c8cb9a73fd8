"""The ACLs by which one state may allow more than another, in columns: all others need no comparison of regions."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclog.authorizer.acl import StandardAcl, is_cidr
from aclog.authorizer.codes import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.index.layout import expanded, rule_mask
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.values import frozen
from aclog.usage.arrow import ACL_FIELDS

_ALLOWED = (1 << 16) - 1
_MOST_KEYS = 1 << 62
_ANY, _RANGE = 0, 1
"""Numbers in place of a principal or a host: any one, and any range of addresses."""
_RESERVED = 2
_IS_ODD = 1 << 32
_ODD_SHIFT = 17


def gaining(old: pa.Table, new: pa.Table) -> list[StandardAcl] | None:
    """Return ACLs, at least one of which applies to each request that `new` allows and `old` denies.

    None: it may be any ACL. Both are tables of text (ACL_FIELDS), decided with the same settings and without
    allow.everyone.if.no.acl.found. A request that only `new` allows matches an ALLOW that no ALLOW of `old` covers, or
    it matched a DENY that `new` lacks. So these are the ALLOWs of `new` without an ALLOW of `old` that covers them,
    and the DENYs that `new` lacks and that may apply to a request to which an ALLOW of `new` applies.
    """
    both = pa.concat_tables([old.select(ACL_FIELDS), new.select(ACL_FIELDS)]).combine_chunks()
    if not len(both):
        return []
    columns = _Columns.of(both)
    if columns is None:
        return None
    is_new = np.arange(len(both)) >= len(old)
    uncovered, lost = _uncovered(columns, is_new), _lost(columns, is_new)
    return list(_acls(both.take(pa.array(np.flatnonzero(uncovered | lost), pa.int64()))))


def _acls(table: pa.Table) -> Iterator[StandardAcl]:
    for row in table.to_pylist():
        yield StandardAcl(
            resource_type=ResourceType[row["resourceType"]],
            resource_name=row["resourceName"],
            pattern_type=PatternType[row["patternType"]],
            principal=row["principal"],
            host=row["host"],
            operation=AclOperation[row["operation"]],
            permission_type=AclPermissionType[row["permissionType"]],
        )


@frozen(eq=False, kw_only=True)
class _Columns:
    """ACLs as numbers. A pattern has a number, and so has each prefix pattern and `*` of each resource type."""

    pattern: Int64s
    principal: Int64s
    host: Int64s
    allows: Int64s
    """The operations that it allows, as bits; 0 for a DENY."""
    denies: Int64s
    odd: Int64s
    """In other bits than `allows`: the whole ACL, if it is odd; such an ACL is compared with the same one alone."""
    plain: Bools
    """Whether an ACL is not odd: its principal has a colon, its name is not empty and does not begin with `*`."""
    everyone: int
    """The number of the principal `User:*`."""
    all_hosts: int
    """The number of the host `*`."""
    ranges: Bools
    """By host: whether it is a range of addresses."""
    wider: "_Wider"
    sizes: tuple[int, int]
    """More than the highest number of a principal, and of a host."""

    @classmethod
    def of(cls, table: pa.Table) -> "_Columns | None":
        """Number the columns; None if the numbers are too large to be combined."""
        encoded = {name: _encoded(table, name) for name in ACL_FIELDS}
        (principals, principal), (hosts, host) = encoded["principal"], encoded["host"]
        (names, name), (types, type_of) = encoded["resourceName"], encoded["patternType"]
        kinds, kind = encoded["resourceType"]
        operations, permissions = encoded["operation"], encoded["permissionType"]
        masks = np.array(
            [
                [rule_mask(AclOperation[each], AclPermissionType[permission]) for permission in permissions[0]]
                for each in operations[0]
            ],
            np.int64,
        )[operations[1], permissions[1]]
        literal, prefixed = (np.array([each == code.name for each in types])[type_of] for code in _PATTERN_TYPES)
        is_star = np.array([each == WILDCARD for each in names])[name]
        odd_name = np.array([not each or each.startswith(WILDCARD) for each in names])[name]
        has_colon = np.array([":" in each for each in principals])[principal]
        plain = has_colon & (literal | prefixed) & (~odd_name | (literal & is_star))
        pattern = (kind * len(names) + name) * len(types) + type_of
        sizes = len(principals) + _RESERVED + 1, len(hosts) + _RESERVED + 1
        if len(kinds) * len(names) * len(types) * sizes[0] * sizes[1] >= _MOST_KEYS:
            return None
        return cls(
            pattern=pattern,
            principal=principal + _RESERVED,
            host=host + _RESERVED,
            allows=np.where(plain, masks & _ALLOWED, 0),
            denies=masks >> 16,
            odd=np.where(plain, 0, (masks | _IS_ODD) << _ODD_SHIFT),
            plain=plain,
            everyone=_number(principals, WILDCARD_PRINCIPAL),
            all_hosts=_number(hosts, WILDCARD),
            ranges=np.array([*[False] * _RESERVED, *map(is_cidr, hosts), False], np.bool_),
            wider=_Wider.of(pattern[plain], prefixed[plain], names, len(types)),
            sizes=sizes,
        )

    def key(self, pattern: Int64s, principal: Int64s | int, host: Int64s | int) -> Int64s:
        """Return pattern, principal and host as one number."""
        return (pattern * self.sizes[0] + principal) * self.sizes[1] + host


_PATTERN_TYPES = (PatternType.LITERAL, PatternType.PREFIXED)


def _encoded(table: pa.Table, name: str) -> tuple[list[str], Int64s]:
    column: Any = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    encoded = column.dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices).astype(np.int64)


def _number(texts: Sequence[str], text: str) -> int:
    """Return the number of a text; one that no row has, if it is not there."""
    return (texts.index(text) if text in texts else len(texts)) + _RESERVED


@frozen(eq=False)
class _Wider:
    """By pattern: itself, and the others that cover it, among some patterns."""

    patterns: Int64s
    """Ascending."""
    starts: Int64s
    covering: Int64s

    @classmethod
    def of(cls, pattern: Int64s, prefixed: Bools, names: Sequence[str], types: int) -> Self:
        """Find the patterns that cover others; `types` is the number of pattern types."""
        patterns, first = np.unique(pattern, return_index=True)
        is_prefix = prefixed[first]
        kind, name = np.divmod(patterns // types, len(names))
        narrow, wide = [np.arange(len(patterns))], [np.arange(len(patterns))]
        texts: Any = pa.array([names[each] for each in name.tolist()], pa.string())
        lengths = np.asarray(pc.utf8_length(texts))
        for length in np.unique(lengths[is_prefix]).tolist():
            of_length = np.flatnonzero(is_prefix & (lengths == length))
            # shorter names are no prefix of this length, and a literal name is covered by the prefix of its own text
            longer = np.flatnonzero((lengths > length) | ((lengths == length) & ~is_prefix))
            heads = pc.utf8_slice_codeunits(texts.take(pa.array(longer)), 0, length)
            distinct: Any = pc.unique(texts.take(pa.array(of_length)))
            head: Any = pc.index_in(heads, value_set=distinct)
            known = np.flatnonzero(np.asarray(head.is_valid()))
            at: Any = pc.index_in(texts.take(pa.array(of_length)), value_set=distinct)
            wide_keys = kind[of_length] * len(distinct) + np.asarray(at)
            order = np.argsort(wide_keys)
            keys = kind[longer[known]] * len(distinct) + np.asarray(head.drop_null())
            place = np.minimum(np.searchsorted(wide_keys[order], keys), len(order) - 1)
            same = wide_keys[order][place] == keys
            narrow.append(longer[known[same]])
            wide.append(of_length[order[place[same]]])
        all_names = np.flatnonzero(np.array([text == WILDCARD for text in names])[name] & ~is_prefix)
        for star in all_names.tolist():
            others = np.flatnonzero((kind == kind[star]) & (np.arange(len(patterns)) != star))
            narrow.append(others)
            wide.append(np.full(len(others), star))
        below, above = np.concatenate(narrow), np.concatenate(wide)
        order = np.argsort(below, kind="stable")
        starts = np.searchsorted(below[order], np.arange(len(patterns) + 1))
        return cls(patterns, starts, patterns[above[order]])

    def expand(self, pattern: Int64s) -> tuple[Int64s, Int64s]:
        """Return pairs of a row and a pattern that covers its pattern."""
        at = np.searchsorted(self.patterns, pattern)
        row, place = expanded(self.starts[at], self.starts[at + 1])
        return row, self.covering[place]


@frozen(eq=False)
class _Masks:
    """Masks by key."""

    keys: Int64s
    masks: Int64s

    @classmethod
    def of(cls, keys: Int64s, masks: Int64s) -> Self:
        """Join the masks of equal keys."""
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(keys) else np.zeros(0, np.int64)
        return cls(ordered[starts], np.bitwise_or.reduceat(masks[order], starts) if len(keys) else masks)

    def at(self, keys: Int64s) -> Int64s:
        """Return the mask of each key; 0 without one."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.masks[place], 0)


def _uncovered(columns: _Columns, is_new: Bools) -> Bools:
    """Return which rows are ALLOWs of `new` that the ALLOWs of `old` do not cover."""
    masks = columns.allows | columns.odd
    key = columns.key(columns.pattern, columns.principal, columns.host)
    lacking = masks & ~_Masks.of(key[~is_new], masks[~is_new]).at(key)
    uncovered: Bools = is_new & (lacking != 0)
    rows = np.flatnonzero(uncovered & columns.plain)
    of_old = ~is_new & columns.plain
    known = _Masks.of(key[of_old], columns.allows[of_old])
    at, pattern = columns.wider.expand(columns.pattern[rows])
    covered = np.zeros(len(rows), np.int64)
    for principal in (columns.principal[rows], np.full(len(rows), columns.everyone)):
        for host in (columns.host[rows], np.full(len(rows), columns.all_hosts)):
            np.bitwise_or.at(covered, at, known.at(columns.key(pattern, principal[at], host[at])))
    uncovered[rows] = lacking[rows] & ~covered != 0
    return uncovered


def _lost(columns: _Columns, is_new: Bools) -> Bools:
    """Return which rows are DENYs that only `old` has and that may overrule an ALLOW of `new`."""
    key = columns.key(columns.pattern, columns.principal, columns.host)
    # what an odd ACL applies to is not known here
    masks = np.where(columns.plain, columns.denies, columns.odd)
    lost: Bools = ~is_new & (masks & ~_Masks.of(key[is_new], masks[is_new]).at(key) != 0)
    rows = np.flatnonzero(lost & columns.plain)
    allowing = np.flatnonzero(is_new & (columns.allows != 0))
    # a DENY may overrule an odd ALLOW
    if not len(rows) or np.any(is_new & (columns.odd >> _ODD_SHIFT & _ALLOWED != 0)):
        return lost
    meeting = np.zeros(len(rows), np.int64)
    by_own, by_wider = (_by_anyone(columns, *pairs) for pairs in _pairs(columns, allowing))
    own, wider = _pairs(columns, rows)
    for allows, (row, pattern) in ((by_own, wider), (by_wider, own)):
        at = np.searchsorted(rows, row)
        principal, host = columns.principal[row], columns.host[row]
        every = principal == columns.everyone
        everywhere = (host == columns.all_hosts) | columns.ranges[host]
        for who in (np.where(every, _ANY, principal), np.full(len(row), columns.everyone)):
            for where in (np.where(everywhere, _ANY, host), np.full(len(row), columns.all_hosts), _RANGE):
                np.bitwise_or.at(meeting, at, allows.at(columns.key(pattern, who, where)))
    lost[rows] = columns.denies[rows] & meeting != 0
    return lost


def _pairs(columns: _Columns, rows: Int64s) -> tuple[tuple[Int64s, Int64s], tuple[Int64s, Int64s]]:
    """Return pairs of a row and a pattern: its own, and all those that cover it."""
    at, pattern = columns.wider.expand(columns.pattern[rows])
    return (rows, columns.pattern[rows]), (rows[at], pattern)


def _by_anyone(columns: _Columns, row: Int64s, pattern: Int64s) -> _Masks:
    """Return the masks of ALLOWs by pattern, principal or any, and host, any host or any range."""
    principal, host = columns.principal[row], columns.host[row]
    ranged = np.where(columns.ranges[host], _RANGE, host)
    keys = [
        columns.key(pattern, who, where)
        for who in (principal, np.full(len(row), _ANY))
        for where in (ranged, np.full(len(row), _ANY))
    ]
    return _Masks.of(np.concatenate(keys), np.tile(columns.allows[row], len(keys)))
