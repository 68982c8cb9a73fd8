"""The ACL part of a metadata image: all ACLs of one moment, immutable and indexed (AclsImage)."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import cache
from hashlib import blake2b
from typing import Self
from uuid import UUID

from attrs import define, field

from aclog.authorizer.acl import (
    AclBindingFilter,
    AclOperation,
    ResourcePattern,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
    code_name,
)
from aclog.authorizer.acl_records import acl_of
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index import by_type, colonless, filters, inventory, rules, subjects
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.arrays import Pause, no_pause
from aclog.authorizer.index.base import Subject
from aclog.authorizer.index.build import build, rows_of_acls, rows_of_columns
from aclog.authorizer.index.core import ASK_PYTHON, DOCUMENTED, IN_RANGES, NO_RULE, RULE_OF_PYTHON
from aclog.authorizer.index.flat_base import base_of
from aclog.authorizer.index.masks import ALLOWED, DENIED, known_operation, known_type
from aclog.authorizer.index.merge import merged_rows
from aclog.authorizer.index.overlay import key_of
from aclog.authorizer.index.overlay_changes import Change, apply_changes
from aclog.authorizer.index.record_values import encoded_records
from aclog.authorizer.name_notation import is_set
from aclog.metalog.acl_columns import AclColumns
from aclog.metalog.checksum import crc32c
from aclog.metalog.errors import DecodeError, ReplayError

PROBE = "hardcode"
"""The resource name that authorizeByResourceType authorizes first (Authorizer.java)."""


class Verdict(IntEnum):
    """What the ACLs say. NO_CANDIDATE is an ALLOWED with allow.everyone.if.no.acl.found; NO_MATCH never is."""

    NO_CANDIDATE = 0
    NO_MATCH = 1
    ALLOW = 2
    DENY = 3


def check_by_resource_type(operation: int, resource_type: int) -> None:
    """Check the arguments of authorizeByResourceType.

    Raises:
        InvalidRequestError: the operation or the resource type is ANY or UNKNOWN.

    """
    if known_operation(operation) <= AclOperation.ANY or known_type(resource_type) <= ResourceType.ANY:
        raise InvalidRequestError(
            f"operation {code_name(AclOperation, operation)} on resource type "
            f"{code_name(ResourceType, resource_type)}: ANY and UNKNOWN cannot be authorized"
        )


@define(eq=False)
class AclsImage:
    """Indexed ACLs (Kafka's AclsImage and StandardAuthorizerData in one).

    Immutable by convention: every update makes a new one, and an attrs frozen class takes five times as long to make.
    """

    index: AclIndex
    documented: bool = False
    """Documented semantics: LITERAL `*` also covers longer names that begin with `*`, which it does not in Kafka."""
    cidr: bool = False
    """Whether the host of an ACL may be a CIDR range (KIP-1276)."""
    in_ranges: bool = field(init=False)
    """Whether some host may be a range: if none is, nothing depends on `cidr`."""
    semantics: int = field(init=False)
    """What the native core is told of all that (aclog.authorizer.index.core)."""

    def __attrs_post_init__(self) -> None:
        self.in_ranges = self.cidr and self.index.has_slashes
        self.semantics = DOCUMENTED * self.documented | IN_RANGES * self.in_ranges

    def __repr__(self) -> str:
        return f"AclsImage(acls={len(self)})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the flat base and its checksum: the same bytes in another process are the same index."""
        base = (self.merged() if self.overlay_size else self).index.base
        data = bytes(base.buffer)
        return _unpickled, (data, crc32c(data), self.documented, self.cidr)

    @classmethod
    def empty(cls) -> Self:
        """Return the image without ACLs."""
        return cls(index=_empty_index())

    def with_options(self, *, documented: bool, cidr: bool) -> Self:
        """Return the same ACLs with other semantics."""
        if documented is self.documented and cidr is self.cidr:
            return self
        return type(self)(index=self.index, documented=documented, cidr=cidr)

    @classmethod
    def from_acls(cls, acls: Iterable[StandardAclWithId]) -> Self:
        """Return an image of these ACLs.

        Raises:
            ReplayError: an id occurs twice, or the same ACL under two ids.

        """
        try:
            return cls(index=AclIndex(build(rows_of_acls(acls))))
        except ReplayError as e:
            number = "" if e.position is None else f"rule {e.position + 1}: "
            raise ReplayError(number + e.what) from None

    @classmethod
    def from_columns(cls, columns: AclColumns, *, has_ids: bool = True) -> Self:
        """Return an image of records in bulk; `columns.buffer` is not kept. Without `has_ids`, its ACLs have no ids.

        Raises:
            ReplayError: as `from_acls`; `position` is the offset of the later record's value in the buffer.

        """
        try:
            return cls(index=AclIndex(build(rows_of_columns(columns, has_ids=has_ids))))
        except ReplayError as e:
            row = e.position
            raise ReplayError(e.what, position=None if row is None else int(columns.value_start[row])) from None

    def apply(self, changes: Iterable[Change]) -> Self:
        """Return the image after these records, applied in order, all or none.

        Raises:
            ReplayError: an added id exists already, an added ACL exists under another id, or a removed id does not
                exist.

        """
        # The new image shares the base, and with it the memo: it starts warm.
        base = self.index.base
        overlay = apply_changes(base, self.index.overlay, changes)
        return type(self)(AclIndex(base, overlay), self.documented, self.cidr)

    def __len__(self) -> int:
        overlay = self.index.overlay
        return len(self.index.base) + len(overlay.added) - len(overlay.removed)

    def subject(self, principal: str, host: str) -> Subject:
        """Resolve a principal and host. Raises InvalidRequestError if Kafka's authorizer throws on the principal."""
        if self.in_ranges:
            return subjects.resolve_ranges(self.index, principal, host)
        return subjects.resolve(self.index, principal, host)

    def verdict(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Verdict:
        """Return what the ACLs say about one request.

        Raises:
            InvalidRequestError: the principal has no colon or is `User:*`, or an ACL that Kafka visits has a principal
                without a colon.

        """
        mask = self.mask(principal, host, resource_type, name)
        if self.index.has_colonless:
            self.check_principals(principal, host, operation, resource_type, name)
        bits = mask >> known_operation(operation)
        if bits & DENIED:
            return Verdict.DENY
        if bits & ALLOWED:
            return Verdict.ALLOW
        return Verdict.NO_MATCH if mask or self.has_candidate(resource_type, name) else Verdict.NO_CANDIDATE

    def mask(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """Return the mask of all ACLs that cover a name and match the subject (aclog.authorizer.index.masks).

        Raises:
            InvalidRequestError: the principal has no colon or is `User:*`.

        """
        core = self.index.core
        mask = ASK_PYTHON if core is None else core.mask(principal, host, resource_type, name, self.semantics)
        return self.computed_mask(principal, host, resource_type, name) if mask == ASK_PYTHON else mask

    def computed_mask(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """Return the same without the native core. Raises as `mask`."""
        # Inlined `subject`: this is the hot path where there is no core.
        index = self.index
        subject = None if self.in_ranges else index.base.memo.subjects.young.get((principal, host))
        if subject is None:
            subject = self.subject(principal, host)
        return index.mask(subject, resource_type, name, self.documented)

    def check_principals(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> None:
        """Check whether Kafka would visit an ACL whose principal has no colon; needed only if `index.has_colonless`.

        Raises:
            InvalidRequestError: it would, and its authorizer throws.

        """
        colonless.check_principals(
            self.index,
            self.subject(principal, host),
            known_operation(operation),
            resource_type=known_type(resource_type),
            name=name,
            documented=self.documented,
        )

    def has_candidate(self, resource_type: int, name: str) -> bool:
        """Return whether any ACL covers this name, whomever it is for."""
        core = self.index.core
        if core is not None:
            found = core.has_candidate(resource_type, name, self.semantics)
            if found >= 0:
                return bool(found)
        levels = self.index.levels(known_type(resource_type), name, documented=self.documented)
        return bool(levels.named or levels.wildcard or levels.empty)

    def covers(self, pattern: ResourcePattern) -> bool:
        """Return whether any ACL covers the resource of a question.

        For all names that begin with a prefix, it is False: some of them may have no ACL, whatever the others have.
        """
        return not is_set(pattern) and self.has_candidate(pattern.resource_type, pattern.name)

    def rule(
        self, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> StandardAclWithId | None:
        """Return the ACL that Kafka names as the reason; None if no ACL matches. Raises as `verdict`."""
        core = self.index.core
        if core is not None:
            row = core.rule(principal, host, known_operation(operation), resource_type, name, self.semantics)
            if row != RULE_OF_PYTHON:
                return None if row == NO_RULE else self.index.base.rule(row)
        return rules.determining(
            self.index,
            self.subject(principal, host),
            known_operation(operation),
            resource_type=known_type(resource_type),
            name=name,
            documented=self.documented,
        )

    def candidates(self, resource_type: int, name: str) -> Iterator[StandardAclWithId]:
        """Yield every ACL that covers a name, whomever it is for, in the order in which Kafka visits them."""
        return rules.candidates(self.index, known_type(resource_type), name, documented=self.documented)

    def get(self, id: UUID) -> StandardAcl | None:  # noqa: A002
        """Return the ACL with this id, or None."""
        overlay = self.index.overlay
        record = overlay.added.get(id.int)
        if record is not None:
            return acl_of(record)
        row = self.index.base.ids.find(id.int) if self.index.base.has_ids else -1
        return None if row < 0 or row in overlay.removed else self.index.base.rule(row).acl

    def find(self, acl: StandardAcl) -> UUID | None:
        """Return the id of exactly this ACL, or None."""
        # One cell is enough: an equal ACL has the same resource, principal and host.
        kind, name, literal = key_of(acl)
        if self.index.base.resource(kind, name, literal=literal) < 0:
            touched = self.index.overlay.resource(kind, name, literal=literal)
            cell = None if touched is None else touched.cells.get((acl.principal, acl.host))
            return None if cell is None else next((each.id for each in cell.added if acl_of(each) == acl), None)
        resource = self.index.named(kind, name)[0 if literal else 1]
        subject = self.index.base.subject(((acl.principal, acl.host),))
        return next((rule.id for rule in rules.rules_of(self.index, resource, subject) if rule.acl == acl), None)

    def __iter__(self) -> Iterator[StandardAclWithId]:
        for _, resource in self.index.resources():
            yield from rules.rules_of(self.index, resource)

    def ids(self, low: int = 0, high: int = 1 << 128) -> Iterator[UUID]:
        """Yield the ids in [low, high), given as integers, in ascending order, lazily."""
        return inventory.ids(self.index, low, high)

    def changed_ids(self, before: "AclsImage") -> tuple[set[int], set[int]] | None:
        """Return the ids of ACLs that only `before` has, and of those that only this image has, as integers.

        An id that was removed and added again is in both. The cost is that of the changes since the base was built,
        which both images must share; if they do not, it is None.
        """
        return inventory.changed_ids(before.index, self.index)

    def resource_patterns(self) -> Iterator[ResourcePattern]:
        """Yield every resource pattern that has an ACL once, in no particular order, with the codes of the records."""
        return inventory.resource_patterns(self.index)

    def principals(self) -> set[str]:
        """Return every principal that has an ACL."""
        return inventory.principals(self.index)

    def matching(self, wanted: AclBindingFilter) -> Iterator[StandardAclWithId]:
        """Yield the ACLs that a filter matches, lazily, in no particular order."""
        return filters.matching(self.index, wanted)

    def by_resource_type(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Return whether the operation is allowed on at least one resource of the type (authorizeByResourceType).

        Raises:
            InvalidRequestError: as `verdict`; or the operation or the type is ANY or UNKNOWN; or an ACL holds ANY or
                MATCH.

        """
        check_by_resource_type(operation, resource_type)
        if self.verdict(principal, host, operation, resource_type, name=PROBE) is Verdict.ALLOW:
            return True
        return by_type.any_resource_allowed(
            self.index, self.subject(principal, host), operation, resource_type, cidr=self.cidr
        )

    def merged(self, pause: Pause = no_pause) -> Self:
        """Return the same ACLs with all changes merged into a new base; meant for a background thread.

        `pause` is called about every millisecond, so that other threads can take the GIL.
        """
        index = self.index
        base = build(merged_rows(index.base, list(index.overlay.added.values()), index.overlay.removed, pause), pause)
        return type(self)(AclIndex(base), self.documented, self.cidr)

    @property
    def overlay_size(self) -> int:
        """The number of changes since the base was built, which `merged` would fold in."""
        return self.index.overlay.changes

    def allows_some(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Do as `by_resource_type` without authorizing `hardcode` first, like AclAuthorizer (Kafka before 4.0).

        Raises:
            InvalidRequestError: as `by_resource_type`.

        """
        check_by_resource_type(operation, resource_type)
        return by_type.any_resource_allowed(
            self.index, self.subject(principal, host), operation, resource_type, cidr=self.cidr
        )

    def records(self) -> Iterator[bytes]:
        """Yield every ACL as the value of an AccessControlEntryRecord, as it was read, in no particular order."""
        return encoded_records(self.index)

    def digest(self) -> bytes:
        """Return 16 bytes that are equal for equal sets of records, for comparing images."""
        # A sum of hashes does not depend on the order, which differs between a base and an overlay.
        total = sum(int.from_bytes(blake2b(value, digest_size=16).digest()) for value in self.records())
        return (total & (1 << 128) - 1).to_bytes(16)


@cache
def _empty_index() -> AclIndex:
    """Return the index without ACLs, made once: every new authorizer begins with it."""
    return AclIndex(build(rows_of_acls(())))


def _unpickled(data: bytes, checksum: int, documented: bool, cidr: bool) -> AclsImage:
    """Return the image of a pickle.

    Raises:
        DecodeError: another version of aclog made it, or it is damaged.

    """
    if crc32c(data) != checksum:
        raise DecodeError("a pickled image is damaged: its checksum does not match")
    return AclsImage(index=AclIndex(base_of(memoryview(data))), documented=documented, cidr=cidr)
