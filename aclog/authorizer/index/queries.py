"""Queries of an index.

ACLs by id, resource, name or filter; authorizeByResourceType; and a number that is equal for equal sets of ACLs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import islice, product
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl, StandardAclWithId, in_cidr, rule_of
from aclog.authorizer.codes import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index import layout, subjects
from aclog.authorizer.index.acl_index import AclIndex, Resource, added_for, key_of
from aclog.authorizer.index.base import Base, RowColumns, Subject, pairs_of, row_columns, row_keys
from aclog.authorizer.index.scan_order import first_visits, last_visits, name_ranks, scan_key
from aclog.authorizer.index.subjects import SubjectRules
from aclog.authorizer.interface import InvalidRequestError
from aclog.metalog.codec import encode_record, write_tagged_fields
from aclog.metalog.columns import Bools, Bytes, Int64s
from aclog.metalog.native import np
from aclog.metalog.records import FRAME_VERSION, AccessControlEntryRecord, RecordType

if TYPE_CHECKING:
    from numpy.typing import NDArray

# ACLs as objects: those of a resource, those that cover a name, and the one that determines a decision.


def rules_of(index: AclIndex, resource: Resource, subject: Subject | None = None) -> Iterator[StandardAclWithId]:
    """Yield the ACLs of a resource pattern in no particular order; with a subject, only those that match it."""
    base, removed = index.base, index.overlay.removed
    low, high = base.cells(resource.number)
    cells: Iterator[int] | range = range(low, high)
    if subject is not None:
        ranges = (base.cell(resource.number, pair) for pair in subject.pairs)
        cells = (cell for cell, end in ranges if cell < end)
    key = base.resources.key(resource.number) if low < high else b""
    for cell in cells:
        rows = base.rows(cell, cell + 1)
        yield from base.rules(
            [row for row in rows if row not in removed] if removed else rows, key, resource.name, cell
        )
    if resource.touched is not None:
        touched = resource.touched.cells
        keys = touched.keys() if subject is None else [key for key in subject.keys if key in touched]
        for pair in keys:
            yield from map(rule_of, touched[pair].added)


def candidates(index: AclIndex, resource_type: int, name: str, *, documented: bool) -> Iterator[StandardAclWithId]:
    """Yield every ACL that covers a name, for any principal, in the order of Kafka's first visits."""
    levels = index.levels(resource_type, name, documented=documented)
    for level in first_visits(index, levels, resource_type, name):
        yield from sorted((rule for resource in level for rule in rules_of(index, resource)), key=scan_key)


def matches(rule: StandardAclWithId, operation: int) -> bool:
    """Return whether an ACL that matches the subject allows or denies the operation."""
    return bool(
        layout.rule_mask(rule.acl.operation, rule.acl.permission_type) >> operation & (layout.ALLOWED | layout.DENIED)
    )


def determining(
    index: AclIndex, subject: Subject, operation: int, *, resource_type: int, name: str, documented: bool
) -> StandardAclWithId | None:
    """Return the ACL that Kafka names: the first that denies, else the last that allows, else None."""
    # The mask shows whether to look for a DENY or an ALLOW, so only resources with such an ACL are read, and of
    # these only the level that Kafka visits first or last.
    mask = index.mask(subject, resource_type, name, documented)
    if mask & layout.DENIED << operation:
        denying = SubjectRules(index, subject, layout.DENIED << operation)
        levels = denying.levels(resource_type, name, documented=documented)
        level = levels.only or next(filter(None, first_visits(index, levels, resource_type, name)))
        return _extreme(min, denying.rules(level))
    if mask & layout.ALLOWED << operation:
        allowing = SubjectRules(index, subject, layout.ALLOWED << operation)
        levels = allowing.levels(resource_type, name, documented=documented)
        if levels.only:
            return _extreme(max, allowing.rules(levels.only))
        for visit in reversed(last_visits(index, levels, resource_type, name)):
            last = max(filter(visit.has, allowing.rules(visit.level)), key=scan_key, default=None)
            if last is not None:
                return last
    return None


def _extreme(first_or_last: Callable[..., StandardAclWithId], rules: Iterator[StandardAclWithId]) -> StandardAclWithId:
    """Return the first (`min`) or last (`max`) of these ACLs on one name; usually there is one."""
    one, *others = rules
    return first_or_last((one, *others), key=scan_key) if others else one


# Listing by filter (AclBindingFilter.matches): a filter with a name or a principal reads only their ACLs.


_BLOCK = 1 << 14
"""Rows compared at a time."""


def filter_matches(acl_filter: AclBindingFilter, acl: StandardAcl) -> bool:
    """Return whether a filter matches an ACL; codes are compared as Kafka reads them."""
    if acl_filter.principal is not None and acl_filter.principal != acl.principal:
        return False
    if acl_filter.host is not None and acl_filter.host != acl.host:
        return False
    kind = layout.known_type(acl_filter.resource_type)
    if kind not in (ResourceType.ANY, layout.known_type(acl.resource_type)):
        return False
    operation = layout.known_operation(acl_filter.operation)
    if operation not in (AclOperation.ANY, layout.known_operation(acl.operation)):
        return False
    permission = layout.known_permission(acl_filter.permission_type)
    if permission not in (AclPermissionType.ANY, layout.known_permission(acl.permission_type)):
        return False
    return _pattern_matches(acl_filter, acl)


def _pattern_matches(acl_filter: AclBindingFilter, acl: StandardAcl) -> bool:
    pattern, name = layout.known_pattern(acl_filter.pattern_type), acl_filter.resource_name
    if pattern not in (PatternType.ANY, PatternType.MATCH, layout.known_pattern(acl.pattern_type)):
        return False
    if name is None:
        return True
    if pattern != PatternType.MATCH:
        return name == acl.resource_name
    if acl.pattern_type == PatternType.LITERAL:
        return acl.resource_name in (name, WILDCARD)
    return name.startswith(acl.resource_name)


def matching(index: AclIndex, acl_filter: AclBindingFilter) -> Iterator[StandardAclWithId]:
    """Yield the ACLs that a filter matches, lazily, in no particular order."""
    if acl_filter.resource_name is not None:
        rules = _of_name(index, acl_filter, acl_filter.resource_name)
        # With regular ACLs and a filter on the resource alone, the look-up by name is exact and needs no second check.
        if not index.base.raw_codes and not index.overlay.irregular and _any_entry(acl_filter):
            return rules
    elif acl_filter.principal is not None:
        rules = _of_rows(index, acl_filter, _rows_of_principal(index, acl_filter))
    else:
        rules = _of_rows(index, acl_filter, np.arange(len(index.base), dtype=np.int32))
    return (rule for rule in rules if filter_matches(acl_filter, rule.acl))


def _any_entry(acl_filter: AclBindingFilter) -> bool:
    """Return whether the filter restricts nothing but the resource."""
    return (
        acl_filter.principal is None
        and acl_filter.host is None
        and acl_filter.operation == AclOperation.ANY
        and acl_filter.permission_type == AclPermissionType.ANY
        and acl_filter.pattern_type in (PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED)
    )


def _of_name(index: AclIndex, acl_filter: AclBindingFilter, name: str) -> Iterator[StandardAclWithId]:
    kind = layout.known_type(acl_filter.resource_type)
    for code in range(layout.TYPES) if kind == ResourceType.ANY else (kind,):
        for resource in _resources(index, acl_filter, code, name):
            yield from _of_resource(index, acl_filter, resource)


def _resources(index: AclIndex, acl_filter: AclBindingFilter, kind: int, name: str) -> Iterator[Resource]:
    pattern = layout.known_pattern(acl_filter.pattern_type)
    if pattern == PatternType.MATCH:
        # Unlike in authorize(), `*` also covers names that begin with `*`.
        yield from index.prefixes(kind, name)
        if name != WILDCARD:
            yield index.literal(kind, WILDCARD)
        yield index.literal(kind, name)
        return
    literal, prefixed = index.named(kind, name)
    if pattern in (PatternType.ANY, PatternType.LITERAL):
        yield literal
    if pattern != PatternType.LITERAL:
        yield prefixed


def _of_resource(index: AclIndex, acl_filter: AclBindingFilter, resource: Resource) -> Iterator[StandardAclWithId]:
    """Yield the ACLs of a resource; if the filter has both principal and host, only theirs."""
    if acl_filter.principal is not None and acl_filter.host is not None:
        keys = ((acl_filter.principal, acl_filter.host),)
        yield from rules_of(index, resource, index.base.subject(keys))
    else:
        yield from rules_of(index, resource)


def _rows_of_principal(index: AclIndex, acl_filter: AclBindingFilter) -> layout.Int32s:
    base, principal = index.base, acl_filter.principal or ""
    if acl_filter.host is not None:
        return row_columns(base).of_pair(base.pair(principal, acl_filter.host))
    columns = row_columns(base)
    return np.concatenate([columns.of_pair(pair) for pair in (*pairs_of(base, principal), -1)])


def _of_rows(index: AclIndex, acl_filter: AclBindingFilter, rows: layout.Int32s) -> Iterator[StandardAclWithId]:
    """Yield the ACLs of these rows that may match, and all that were added since."""
    base, removed = index.base, index.overlay.removed
    columns = row_columns(base)
    # In blocks, so that the first ACLs of a large listing are returned soon.
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        for row in block[_entry_matches(columns, acl_filter, block)].tolist():
            if row not in removed:
                yield base.rule(row)
    principal = acl_filter.principal
    yield from map(rule_of, index.overlay.added.values() if principal is None else added_for(index, principal))


def _entry_matches(columns: RowColumns, acl_filter: AclBindingFilter, rows: layout.Int32s) -> Bools:
    """Return which rows match the filter's type, operation and permission; unknown codes count as UNKNOWN (0)."""
    fits = np.ones(len(rows), np.bool_)
    kind, operation = layout.known_type(acl_filter.resource_type), layout.known_operation(acl_filter.operation)
    permission = layout.known_permission(acl_filter.permission_type)
    if kind != ResourceType.ANY:
        fits &= columns.types[rows] == kind
    if operation != AclOperation.ANY:
        codes = columns.operations[rows]
        fits &= (codes == operation) | (operation == 0) & (codes >= layout.OPERATIONS)
    if permission != AclPermissionType.ANY:
        codes = columns.permissions[rows]
        fits &= (codes == permission) | (permission == 0) & (codes > AclPermissionType.ALLOW)
    return fits


# Listings of ids, resource patterns and principals that do not make an object per ACL.


def ids(index: AclIndex, low: int, high: int) -> Iterator[UUID]:
    """Yield the ids in [low, high), given as integers, in ascending order. ACLs without an id are left out."""
    added = sorted(number for number in index.overlay.added if low <= number < high)
    return (UUID(int=number) for number in merge(_base_ids(index, low, high), added))


def _base_ids(index: AclIndex, low: int, high: int) -> Iterator[int]:
    if not index.base.has_ids:
        return
    id_index, removed = index.base.ids, index.overlay.removed
    for row in id_index.rows_from(low):
        number = id_index.number(row)
        if number >= high:
            return
        if row not in removed:
            yield number


def changed_ids(old: AclIndex, new: AclIndex) -> tuple[set[int], set[int]] | None:
    """Return the ids of ACLs that only the old index has, and of those that only the new one has; None: too far apart.

    An id that another ACL has now is in both. The cost is that of the overlays, over one and the same base.
    """
    if old.base is not new.base:
        return None
    was, now = old.overlay, new.overlay
    removed = {number for number, record in was.added.items() if now.added.get(number) is not record}
    come = {number for number, record in now.added.items() if was.added.get(number) is not record}
    if old.base.has_ids:
        number_of = old.base.ids.number
        removed.update(number_of(row) for row in now.removed if row not in was.removed)
        come.update(number_of(row) for row in was.removed if row not in now.removed)
    return removed, come


def resource_patterns(index: AclIndex) -> Iterator[ResourcePattern]:
    """Yield every resource pattern that has an ACL once, in no particular order, with the codes of the records."""
    for kind, resource in index.resources():
        if resource.touched is None and not index.base.raw_codes:
            pattern_type = PatternType.LITERAL if resource.literal else PatternType.PREFIXED
            yield ResourcePattern(resource_type=kind, name=resource.name, pattern_type=pattern_type)
        else:  # ACLs whose records hold other codes share the resource that Kafka reads from them
            codes = {(rule.acl.resource_type, rule.acl.pattern_type) for rule in rules_of(index, resource)}
            for code, pattern_code in codes:
                yield ResourcePattern(resource_type=code, name=resource.name, pattern_type=pattern_code)


def principals(index: AclIndex) -> set[str]:
    """Return every principal that has an ACL."""
    base, overlay = index.base, index.overlay
    names = {layout.split_pair(base.pairs.key(pair))[0] for pair in range(len(base.pairs))}
    names.update(record.principal for record in overlay.added.values())
    if overlay.removed:
        # Only principals of removed rows can have lost their last ACL.
        pairs = np.unique(row_columns(base).pair_of[np.fromiter(overlay.removed, np.int64)]).tolist()
        for principal in {layout.split_pair(base.pairs.key(pair))[0] for pair in pairs}:
            if next(matching(index, AclBindingFilter(principal=principal)), None) is None:
                names.discard(principal)
    return names


def has_principal(index: AclIndex, principal: str) -> bool:
    """Return whether a principal has an ACL."""
    base, overlay = index.base, index.overlay
    if any(record.principal == principal for record in overlay.added.values()):
        return True
    if overlay.removed:
        return principal in principals(index)
    prefix, data = layout.compact(principal), bytes(base.pairs.data)
    at = data.find(prefix)
    while at >= 0:
        if base.pairs.offsets[bisect_left(base.pairs.offsets, at)] == at:  # not within another key
            return True
        at = data.find(prefix, at + 1)
    return False


def may_be_spelled_otherwise(index: AclIndex, principal: str) -> bool:
    """Return whether the principal of an ACL may differ from another one in case alone; False is certain."""
    data = bytes(index.base.pairs.data)
    if index.overlay.changes or not (data.isascii() and principal.isascii()):
        return True
    return principal.lower().encode() in data.lower()


# authorizeByResourceType for subjects with many allowed and many denied resources: one vectorised scan by name.
#
# Sorted by name, the resources that a denied prefix excludes are adjacent, right after the prefix. The outermost
# denied prefixes therefore cut the sorted names into ranges, each of which begins with the excluded ones. If the last
# allowed name of a range does not begin with the range's prefix, it survives; if it does, so do all others of the
# range.


def any_survives(index: AclIndex, subject: Subject, operation: int, resource_type: int) -> bool:
    """Return whether an ACL of the base allows the operation on a resource that no DENY excludes.

    A DENY excludes its own pattern and, on a prefix that is not empty, every resource whose name begins with the
    prefix.
    """
    base, ask = index.base, (subject, operation, resource_type)
    denied = _matched_resources(index, *ask, AclPermissionType.DENY)
    # A DENY on the empty prefix excludes nothing here, though it denies everything in authorize().
    denied = denied[denied != base.resource(resource_type, "", literal=False)]
    prefixes = {_name(base, number): number for number in denied[_are_prefixes(base, denied)].tolist()}
    literals: list[int] = []
    for record in added(index, *ask, AclPermissionType.DENY):
        _, name, literal = key_of(record)
        if literal:
            literals.append(base.resource(resource_type, name, literal=True))
        elif name:
            prefixes.setdefault(name, base.resource(resource_type, name, literal=False))
    is_left = np.zeros(len(base.resources) + 1, np.bool_)  # the last one for -1, "not in the base"
    is_left[_matched_resources(index, *ask, AclPermissionType.ALLOW)] = True
    is_left[denied] = False
    is_left[literals] = False
    remaining = np.flatnonzero(is_left)
    return _some_beyond(base, remaining, {name: prefixes[name] for name in layout.outermost(prefixes)})


def added(
    index: AclIndex, subject: Subject, operation: int, resource_type: int, permission: int
) -> Iterator[AccessControlEntryRecord]:
    """Yield the overlay's ACLs with this permission for the operation and type, as byResourceType reads them."""
    for record in index.overlay.added.values():
        if (
            (record.principal, record.host) in subject.keys
            and record.operation in (operation, AclOperation.ALL)
            and record.permission_type == permission
            and record.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
            and layout.known_type(record.resource_type) == resource_type
        ):
            yield record


def _matched_resources(
    index: AclIndex, subject: Subject, operation: int, resource_type: int, permission: int
) -> layout.Int32s:
    """Return the resources of the base with such an ACL, possibly repeated."""
    columns = row_columns(index.base)
    entries = product(subject.pairs, {operation, int(AclOperation.ALL)})
    rows = np.concatenate(
        [columns.by_pair[:0], *(columns.of(pair, resource_type, op, permission) for pair, op in entries)]
    )
    # Rows with raw codes are left out with the removed ones: Kafka compares pattern types exactly here.
    excluded = np.array([*index.overlay.removed, *index.base.raw_codes], np.int32)
    resources: layout.Int32s = columns.resource_of[rows[~np.isin(rows, excluded)]]
    return resources


def _are_prefixes(base: Base, resources: layout.Int32s) -> Bools:
    ends = np.asarray(base.resources.offsets)[resources + 1]
    return np.asarray(np.frombuffer(base.resources.data, np.uint8)[ends - 1] == PatternType.PREFIXED)


def _some_beyond(base: Base, resources: Int64s, prefixes: dict[str, int]) -> bool:
    """Return whether the name of any of these resources begins with none of the outermost prefixes.

    `prefixes` are sorted; the values are their numbers in the base, or -1.
    """
    if not len(resources) or not prefixes:
        return bool(len(resources))
    ranks = name_ranks(base)
    is_here = np.zeros(len(ranks.order), np.bool_)
    is_here[ranks.of_resource[resources]] = True
    here = np.flatnonzero(is_here)
    starts = np.array([ranks.of(name, number) for name, number in prefixes.items()])
    range_of = np.searchsorted(starts, here, "right") - 1
    # A name before the first range begins with no prefix.
    if range_of[0] < 0:
        return True
    last = np.flatnonzero(np.append(range_of[1:] != range_of[:-1], [True]))
    pairs = zip(ranks.order[here[last]].tolist(), range_of[last].tolist(), strict=True)
    names = list(prefixes)
    return any(not _name(base, resource).startswith(names[at]) for resource, at in pairs)


def _name(base: Base, resource: int) -> str:
    return layout.resource_name(base.resources.key(resource))


# The second step of authorizeByResourceType: is the operation allowed on at least one resource of a type?
#
# StandardAuthorizer does not override the default method of Kafka's Authorizer interface, which reads ACLs in its own
# way: no operation implies another, only DENY denies, only LITERAL and PREFIXED count, and a DENY on the empty prefix
# excludes nothing.


_FIRST_BLOCK = 64
_MAX_ONE_BY_ONE = 64
"""Allowed resources to check one by one, before aclog.authorizer.index.queries: usually the first one is not
denied."""


def any_resource_allowed(index: AclIndex, subject: Subject, operation: int, resource_type: int, *, cidr: bool) -> bool:
    """Return whether the subject is allowed the operation on a resource that no DENY excludes.

    Raises:
        InvalidRequestError: an ACL on which Kafka throws: it holds ANY or MATCH, or its principal has no colon.

    """
    _check(index, subject, resource_type, cidr=cidr)
    # On LITERAL `*` either answer is final: an ALLOW there wins even over denied prefixes.
    denied, allowed = _says(index, index.literal(resource_type, WILDCARD), subject, operation)
    if denied or allowed:
        return not denied
    deny_rules = _DenyRules(index, subject, operation, resource_type)
    # A row's own mask shows a DENY of the same cell, unless it may be out of date or hold what does not count here.
    masks_tell = not deny_rules.exactly and not index.overlay.removed
    allows = added(index, subject, operation, resource_type, permission=AclPermissionType.ALLOW)
    if any(not deny_rules.denies(record.resource_name, literal=key_of(record)[2]) for record in allows):
        return True
    resources = _allowed(index, subject, operation, resource_type, skip_denied=masks_tell)
    for name, literal in islice(resources, _MAX_ONE_BY_ONE):
        if not deny_rules.denies(name, literal=literal):
            return True
    # All of the first were denied, so probably most are: from here on all at once.
    return next(resources, None) is not None and any_survives(index, subject, operation, resource_type)


def _check(index: AclIndex, subject: Subject, resource_type: int, *, cidr: bool) -> None:
    if index.base.unbindable + index.overlay.unbindable:
        raise InvalidRequestError("an ACL holds ANY or MATCH, which only filters may: authorize each resource by name")
    if not index.has_colonless:
        return
    # The subject's keys have the ranges of its own principal and of `User:*` only.
    _, host = subject.keys[0]
    for acl in subjects.of_type(index, resource_type):
        if acl.host in (host, WILDCARD) or (cidr and in_cidr(acl.host, host)):
            raise InvalidRequestError(
                f"an ACL has the principal {acl.principal!r}: expected principalType:principalName"
            )


def _says(index: AclIndex, resource: Resource, subject: Subject, operation: int) -> tuple[bool, bool]:
    """Return whether a resource's ACLs deny and allow the subject the operation, read as byResourceType does."""
    permissions = set()
    for rule in rules_of(index, resource, subject):
        if rule.acl.operation in (operation, AclOperation.ALL) and (
            rule.acl.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
        ):
            permissions.add(rule.acl.permission_type)
    return AclPermissionType.DENY in permissions, AclPermissionType.ALLOW in permissions


class _DenyRules:
    """The DENY ACLs that exclude an allowed resource: on the same pattern, or on a prefix that is not empty."""

    def __init__(self, index: AclIndex, subject: Subject, operation: int, resource_type: int) -> None:
        self.index, self.subject, self.operation, self.resource_type = index, subject, operation, resource_type
        _, empty = index.named(resource_type, "")
        self.exactly = bool(
            index.base.irregular + index.overlay.irregular or _says(index, empty, subject, operation)[0]
        )
        """Whether the masks, made for authorize(), may deny what is not denied here, so that ACLs have to be read."""

    def denies(self, name: str, *, literal: bool) -> bool:
        """Return whether an allowed resource of this name is excluded."""
        index, subject, kind = self.index, self.subject, self.resource_type
        if not self.exactly:
            mask = index.prefix_mask(subject, kind, name)
            if literal:
                mask |= index.literal_mask(subject, kind, name)
            return bool(mask >> self.operation & layout.DENIED)
        resources = [resource for resource in index.prefixes(kind, name) if resource.name]
        if literal:
            resources.append(index.literal(kind, name))
        return any(_says(index, resource, subject, self.operation)[0] for resource in resources)


def _allowed(
    index: AclIndex, subject: Subject, operation: int, resource_type: int, *, skip_denied: bool
) -> Iterator[tuple[str, bool]]:
    """Yield the resources of the base, as (name, whether LITERAL), on which the subject is allowed the operation.

    With `skip_denied`, those are left out whose cell also denies it, which most denied resources are.
    """
    base, removed = index.base, index.overlay.removed
    columns = row_columns(base)
    for pair, op in product(subject.pairs, {operation, int(AclOperation.ALL)}):
        rows, start, size = columns.of(pair, resource_type, op, AclPermissionType.ALLOW), 0, _FIRST_BLOCK
        while start < len(rows):
            block = rows[start : start + size]
            # Blocks grow from small to large: the first resource usually decides, the last one may be far away.
            if skip_denied:
                block = block[columns.masks[block] >> np.uint32(operation) & np.uint32(layout.DENIED) == 0]
            for row in block.tolist():
                if row not in removed and row not in base.raw_codes:
                    key = base.resources.key(columns.resource_of[row])
                    yield layout.resource_name(key), key[-1] == PatternType.LITERAL
            start, size = start + size, size * 8


# A digest that is equal for equal sets of ACLs, of any base: it proves that a merge has not lost, added or mixed up
# any.
#
# It is a sum over the ACLs, so the digest of a merged base is the sum of its parts. It guards against mistakes and
# damage, not against an attacker who chooses the merged ACLs.


_MULTIPLIERS = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93
_HALF = 32
_WORD = 8

SUMS = 1 << 64
"""Digests are below this, and added modulo this."""

if TYPE_CHECKING:
    Hashes: TypeAlias = NDArray[np.uint64]


def base_digest(base: Base, without: Iterable[int] = ()) -> int:
    """Return the digest of all ACLs of a base, or of all but some of its rows."""
    resource_of, pair_of = row_keys(base)
    hashes = _rows(
        _of_strings(base.resources.strings())[resource_of],
        _of_strings(base.pairs.strings())[pair_of],
        ids=np.frombuffer(base.ids.ids, np.uint8),
        operations=np.frombuffer(base.operations, np.uint8),
        permissions=np.frombuffer(base.permissions, np.uint8),
    )
    removed = np.fromiter(without, np.int64)
    return (int(hashes.sum()) - int(hashes[removed].sum())) % SUMS


def ids_digest(ids: Bytes) -> int:
    """Return a digest of ids alone, 16 bytes each; in few steps, as `base_digest` is not."""
    return int(_mixed(_of_ids(ids)).sum()) % SUMS


def records_digest(records: Iterable[AccessControlEntryRecord]) -> int:
    """Return the digest of these ACLs."""
    rules = list(records)
    resources, pairs = [], []
    for record in rules:
        kind, name, literal = key_of(record)
        resources.append(layout.resource_key(kind, name, literal=literal))
        pairs.append(layout.pair_key(record.principal, record.host))
    hashes = _rows(
        _of_strings(layout.ByteStrings.of(resources)),
        _of_strings(layout.ByteStrings.of(pairs)),
        ids=np.frombuffer(b"".join(record.id.int.to_bytes(16) for record in rules), np.uint8),
        operations=np.array([record.operation & 0xFF for record in rules], np.uint8),
        permissions=np.array([record.permission_type & 0xFF for record in rules], np.uint8),
    )
    return int(hashes.sum()) % SUMS


def _rows(resources: Hashes, pairs: Hashes, *, ids: Bytes, operations: Bytes, permissions: Bytes) -> Hashes:
    """Return the hash of each row."""
    one, two, _, _ = _MULTIPLIERS
    hashes = resources * one
    hashes ^= pairs * two
    hashes += _of_ids(ids)
    hashes += (operations.astype(np.uint64) << np.uint64(8) | permissions) * two
    return _mixed(hashes)


def _of_ids(ids: Bytes) -> Hashes:
    halves = ids.view("<u8").reshape(-1, 2)
    hashes: Hashes = halves[:, 0] * _MULTIPLIERS[2]
    hashes ^= halves[:, 1] * _MULTIPLIERS[3]
    return hashes


def _mixed(hashes: Hashes) -> Hashes:
    hashes ^= hashes >> _HALF
    hashes *= _MULTIPLIERS[0]
    hashes ^= hashes >> _HALF
    return hashes


def _of_strings(strings: layout.ByteStrings) -> Hashes:
    """Return the hash of each string, eight bytes at a time."""
    padded = np.concatenate((strings.data, np.zeros(_WORD, np.uint8)))
    # Every position is the start of a word: an unaligned view of the same bytes.
    words = np.ndarray(len(strings.data) + 1, np.dtype("<u8"), padded, strides=(1,))
    at, remaining = strings.starts, strings.ends - strings.starts
    hashes, masks = remaining.astype(np.uint64), layout.low_bytes()
    rows: Int64s | slice = slice(None)
    while len(at):
        hashes[rows] = _mixed(hashes[rows] * _MULTIPLIERS[1] ^ words[at] & masks[np.minimum(remaining, _WORD)])
        longer = np.flatnonzero(remaining > _WORD)
        rows = longer if isinstance(rows, slice) else rows[longer]
        at, remaining = at[longer] + _WORD, remaining[longer] - _WORD
    return hashes


# ACLs as the values of the AccessControlEntryRecords that they were read from.


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
