"""ACLs that may be odd, found by their parts: a million ACLs have few codes, hosts and lists, and no object is made.

Separate from aclog.authorizer.index.rule_columns, which makes all ACLs into columns: here most are only passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from aclog.authorizer.acl import StandardAcl, StandardAclWithId, rule_of
from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, PatternType, ResourceType
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.base import Base, row_keys
from aclog.authorizer.index.layout import ByteStrings, Int32s, known_type, numbered
from aclog.authorizer.index.rule_columns import key_bytes, pair_texts
from aclog.metalog.columns import Bools, Bytes, Int64s, unsigned_varints
from aclog.metalog.native import np

_COLON, _COMMA = b":,"
_PRINCIPAL = "User:a"


def odd_rules(index: AclIndex, is_odd: Callable[[StandardAcl], bool]) -> Iterator[StandardAclWithId]:
    """Yield the ACLs for which `is_odd` holds, in the order of the base, and then those that were added since.

    It must depend on nothing but these parts: the codes together; the host; whether the name is empty; whether the
    principal has a colon or a comma; and, where one of these is odd or the type is CLUSTER or USER, on everything.
    """
    base = index.base
    resource_of, pair_of = row_keys(base)
    of_pairs = _odd_pairs(base, is_odd)
    suspect = _odd_resources(base)[resource_of] | of_pairs[pair_of] | _odd_codes(base, resource_of, is_odd)
    suspect[list(base.raw_codes)] = True
    removed = index.overlay.removed
    rows = (base.rule(row) for row in np.flatnonzero(suspect).tolist() if row not in removed)
    added = map(rule_of, index.overlay.added.values())
    yield from (rule for rules in (rows, added) for rule in rules if is_odd(rule.acl))


def _odd_resources(base: Base) -> Bools:
    keys, starts, ends = key_bytes(base.resources)
    _, names, _ = unsigned_varints(keys, starts + 1)
    types = keys[starts]
    odd: Bools = (names == ends - 1) | (types == ResourceType.CLUSTER) | (types == ResourceType.USER)
    return odd


def _odd_pairs(base: Base, is_odd: Callable[[StandardAcl], bool]) -> Bools:
    principals, hosts = pair_texts(base)
    data, starts, ends = np.ascontiguousarray(principals.data), principals.starts, principals.ends
    distinct, number = _distinct(hosts)
    odd = np.array([is_odd(_rule(host=host.decode())) for host in distinct], np.bool_)
    return ~_has(data, starts, ends, _COLON) | _has(data, starts, ends, _COMMA) | odd[number]


def _distinct(texts: ByteStrings) -> tuple[list[bytes], Int32s]:
    distinct, number = numbered(texts.data.tobytes(), texts.starts, texts.ends)
    return distinct.values(), number


def _has(data: Bytes, starts: Int64s, ends: Int64s, byte: int) -> Bools:
    """Return which slices have a byte."""
    positions = np.flatnonzero(data == byte)  # few: a running count of all bytes takes eight times their memory
    return np.asarray(np.searchsorted(positions, ends) > np.searchsorted(positions, starts))


def _odd_codes(base: Base, resource_of: Int32s, is_odd: Callable[[StandardAcl], bool]) -> Bools:
    keys, starts, ends = key_bytes(base.resources)
    parts = (
        keys[starts][resource_of],
        keys[ends - 1][resource_of],
        np.frombuffer(base.operations, np.uint8),
        np.frombuffer(base.permissions, np.uint8),
    )
    packed = np.stack(parts, axis=1).view(np.uint32)[:, 0]
    distinct = np.unique(packed)  # without the number of each row in it, which would take 20 bytes a rule
    codes = distinct[:, None].view(np.int8).tolist()
    odd = [number for number, each in zip(distinct.tolist(), codes, strict=True) if is_odd(_rule(codes=tuple(each)))]
    return np.isin(packed, np.array(odd, np.uint32))


def _rule(
    codes: tuple[int, ...] = (ResourceType.TOPIC, PatternType.LITERAL, 3, 3), host: str = WILDCARD
) -> StandardAcl:
    """Return a rule with these codes, or this host, in which nothing else is odd."""
    kind, pattern, operation, permission = codes
    return StandardAcl(
        resource_type=kind,
        resource_name=CLUSTER_NAME if known_type(kind) == ResourceType.CLUSTER else _PRINCIPAL,
        pattern_type=pattern,
        principal=_PRINCIPAL,
        host=host,
        operation=operation,
        permission_type=permission,
    )
