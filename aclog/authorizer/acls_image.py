"""The ACL part of a metadata image: all ACLs at one moment, immutable, their content as bytes, and their changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, IntEnum, StrEnum
from functools import cache, cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Self
from uuid import UUID

from attrs import field

from aclog.authorizer.acl import (
    CODES,
    AclBindingFilter,
    FileOrigin,
    Origin,
    Origins,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    acl_of,
    acl_text,
    code_name,
    is_cidr,
    is_symbolic,
    record_of,
    rule_of,
    rule_of_object,
)
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.index import layout, queries, subjects
from aclog.authorizer.index.acl_index import AclIndex, Change, apply_changes, key_of, merged_rows
from aclog.authorizer.index.base import Subject, base_of, build, empty_base, rows_of_acls, rows_of_columns
from aclog.authorizer.index.queries import encoded_records
from aclog.authorizer.interface import AuthorizationResult, InvalidRequestError, ResourceGroups
from aclog.authorizer.settings import is_set
from aclog.metalog.batches import crc32c
from aclog.metalog.codec import ACL_CONTENT, ACL_FRAME, decode_record, encode_acl, encode_record
from aclog.metalog.columns import AclColumns, read_acls
from aclog.metalog.errors import SYMBOL_START, ConfigError, DecodeError, ReplayError
from aclog.metalog.native import np, regex
from aclog.metalog.primitives import ZERO
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from aclog.metalog.values import define, frozen

if TYPE_CHECKING:
    from aclog.authorizer.index.rule_columns import RuleColumns

# The ACL part of a metadata image: all ACLs of one moment, immutable and indexed (AclsImage).


PROBE = "hardcode"
"""The resource name that authorizeByResourceType authorizes first (Authorizer.java)."""


class Verdict(IntEnum):
    """The result of the ACLs. NO_CANDIDATE becomes ALLOWED with allow.everyone.if.no.acl.found; NO_MATCH does not."""

    NO_CANDIDATE = 0
    NO_MATCH = 1
    ALLOW = 2
    DENY = 3


# A decision with its reason, for explanations and the audit log; plain authorize() does not need one.


class Basis(Enum):
    """What a decision is based on; the values are Kafka's texts (MatchingRule)."""

    SUPER_USER = "SuperUser"
    DEFAULT_ALLOW = "DefaultAllow"
    DEFAULT_DENY = "DefaultDeny"
    MATCHING_ACL = "MatchingAcl"


@frozen(kw_only=True)
class Decision:
    """The result for one action and its reason; `rule` is set for MATCHING_ACL only."""

    result: AuthorizationResult
    basis: Basis
    rule: StandardAclWithId | None = None

    def __bool__(self) -> bool:
        """Return whether the action is allowed."""
        return self.result is AuthorizationResult.ALLOWED

    @cached_property
    def text(self) -> str:
        """The reason as in Kafka's audit line."""
        return self.basis.value if self.rule is None else f"{self.basis.value}(acl={self.rule.acl})"


SUPER_USER = Decision(result=AuthorizationResult.ALLOWED, basis=Basis.SUPER_USER)
DEFAULT_ALLOW = Decision(result=AuthorizationResult.ALLOWED, basis=Basis.DEFAULT_ALLOW)
DEFAULT_DENY = Decision(result=AuthorizationResult.DENIED, basis=Basis.DEFAULT_DENY)
"""The decisions that no ACL determines."""


def check_by_resource_type(operation: int, resource_type: int) -> None:
    """Check the arguments of authorizeByResourceType.

    Raises:
        InvalidRequestError: the operation or the resource type is ANY or UNKNOWN.

    """
    if layout.known_operation(operation) <= AclOperation.ANY or layout.known_type(resource_type) <= ResourceType.ANY:
        raise InvalidRequestError(
            f"operation {code_name(AclOperation, operation)} on resource type "
            f"{code_name(ResourceType, resource_type)}: ANY and UNKNOWN cannot be authorized"
        )


_MARK = regex(re.escape(SYMBOL_START.encode()))


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
    """Whether the host of any ACL may be a range: otherwise `cidr` has no effect."""
    semantics: int = field(init=False)
    """The options as bits for the native core (aclog.authorizer.index.layout)."""

    def __attrs_post_init__(self) -> None:
        self.in_ranges = self.cidr and self.index.has_slashes
        self.semantics = layout.DOCUMENTED * self.documented | layout.IN_RANGES * self.in_ranges

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

    def symbolic(self) -> tuple[StandardAcl, ...]:
        """Return the ACLs with symbols (aclog.authorizer.symbols); files may have some, logs and clusters have none."""
        base = self.index.base
        marked = any(map(_MARK.search, (base.resources.data, base.pairs.data)))
        if not marked and not self.overlay_size:
            return ()
        return tuple(rule.acl for rule in self if is_symbolic(rule.acl))

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
        """Return the result of the ACLs for one request.

        Raises:
            InvalidRequestError: the principal has no colon or is `User:*`, or an ACL that Kafka visits has a principal
                without a colon.

        """
        mask = self.mask(principal, host, resource_type, name)
        if self.index.has_colonless:
            self.check_principals(principal, host, operation, resource_type, name)
        bits = mask >> layout.known_operation(operation)
        if bits & layout.DENIED:
            return Verdict.DENY
        if bits & layout.ALLOWED:
            return Verdict.ALLOW
        return Verdict.NO_MATCH if mask or self.has_candidate(resource_type, name) else Verdict.NO_CANDIDATE

    def mask(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """Return the mask of all ACLs that cover a name and match the subject (aclog.authorizer.index.layout).

        Raises:
            InvalidRequestError: the principal has no colon or is `User:*`.

        """
        core = self.index.core
        mask = layout.ASK_PYTHON if core is None else core.mask(principal, host, resource_type, name, self.semantics)
        return self.computed_mask(principal, host, resource_type, name) if mask == layout.ASK_PYTHON else mask

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
        subjects.check_principals(
            self.index,
            self.subject(principal, host),
            layout.known_operation(operation),
            resource_type=layout.known_type(resource_type),
            name=name,
            documented=self.documented,
        )

    def has_candidate(self, resource_type: int, name: str) -> bool:
        """Return whether any ACL covers this name, for any principal."""
        core = self.index.core
        if core is not None:
            candidate = core.has_candidate(resource_type, name, self.semantics)
            if candidate >= 0:
                return bool(candidate)
        levels = self.index.levels(layout.known_type(resource_type), name, documented=self.documented)
        return bool(levels.named or levels.wildcard or levels.empty)

    def covers(self, pattern: ResourcePattern) -> bool:
        """Return whether any ACL covers the resource of a question.

        For all names with a prefix it is False: some of them may have no ACL.
        """
        return not is_set(pattern) and self.has_candidate(pattern.resource_type, pattern.name)

    def rule(
        self, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> StandardAclWithId | None:
        """Return the ACL that Kafka names as the reason; None if no ACL matches. Raises as `verdict`."""
        core = self.index.core
        if core is not None:
            row = core.rule(principal, host, layout.known_operation(operation), resource_type, name, self.semantics)
            if row != layout.RULE_OF_PYTHON:
                return None if row == layout.NO_RULE else self.index.base.rule(row)
        return queries.determining(
            self.index,
            self.subject(principal, host),
            layout.known_operation(operation),
            resource_type=layout.known_type(resource_type),
            name=name,
            documented=self.documented,
        )

    def candidates(self, resource_type: int, name: str) -> Iterator[StandardAclWithId]:
        """Yield every ACL that covers a name, for any principal, in the order in which Kafka visits them."""
        return queries.candidates(self.index, layout.known_type(resource_type), name, documented=self.documented)

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
        return next((rule.id for rule in queries.rules_of(self.index, resource, subject) if rule.acl == acl), None)

    def __iter__(self) -> Iterator[StandardAclWithId]:
        if len(self.index.base) < _MANY:
            for _, resource in self.index.resources():
                yield from queries.rules_of(self.index, resource)
            return
        from aclog.authorizer.index.rule_columns import base_rules  # noqa: PLC0415 - no decision needs it

        yield from base_rules(self.index)
        yield from map(rule_of, self.index.overlay.added.values())

    def without_ids(self) -> list[StandardAcl]:
        """Return all ACLs without their ids, in the order of iteration."""
        if len(self.index.base) < _MANY:
            return [rule.acl for rule in self]
        from aclog.authorizer.index.rule_columns import base_acls  # noqa: PLC0415 - as above

        acls = [acl for _, some in base_acls(self.index) for acl in some]
        return acls + [acl_of(record) for record in self.index.overlay.added.values()]

    def ids(self, low: int = 0, high: int = 1 << 128) -> Iterator[UUID]:
        """Yield the ids in [low, high), given as integers, in ascending order, lazily."""
        return queries.ids(self.index, low, high)

    def changed_ids(self, before: AclsImage) -> tuple[set[int], set[int]] | None:
        """Return the ids of ACLs that only `before` has, and of those that only this image has, as integers.

        An id that was removed and added again is in both. The cost is that of the changes since the base was built,
        which both images must share; if they do not, it is None.
        """
        return queries.changed_ids(before.index, self.index)

    def resource_patterns(self) -> Iterator[ResourcePattern]:
        """Yield every resource pattern that has an ACL once, in no particular order, with the codes of the records."""
        return queries.resource_patterns(self.index)

    def principals(self) -> set[str]:
        """Return every principal that has an ACL."""
        return queries.principals(self.index)

    def has_principal(self, principal: str) -> bool:
        """Return whether a principal has an ACL."""
        return queries.has_principal(self.index, principal)

    def may_be_spelled_otherwise(self, principal: str) -> bool:
        """Return whether the principal of an ACL may differ from another one in case alone; False is certain."""
        return queries.may_be_spelled_otherwise(self.index, principal)

    def matching(self, acl_filter: AclBindingFilter) -> Iterator[StandardAclWithId]:
        """Yield the ACLs that a filter matches, lazily, in no particular order."""
        return queries.matching(self.index, acl_filter)

    def columns(self, acl_filter: AclBindingFilter) -> RuleColumns | None:
        """Return the same as columns; None if the filter names a resource, a principal or a host."""
        from aclog.authorizer.index.rule_columns import rule_columns  # noqa: PLC0415 - no decision needs it

        return rule_columns(self.index, acl_filter)

    def groups(self, acl_filter: AclBindingFilter) -> ResourceGroups | None:
        """Return the same by resource pattern; None if they are few, or to be listed as objects for another reason."""
        if len(self.index.base) < _MANY:
            return None
        from aclog.authorizer.index.rule_columns import resource_groups  # noqa: PLC0415 - as above

        return resource_groups(self.index, acl_filter)

    def odd_rules(self, is_odd: Callable[[StandardAcl], bool]) -> Iterator[StandardAclWithId]:
        """Yield the ACLs for which `is_odd` holds (aclog.authorizer.index.odd_rules: of which parts it may be)."""
        from aclog.authorizer.index.odd_rules import odd_rules  # noqa: PLC0415 - as above

        return odd_rules(self.index, is_odd)

    def by_resource_type(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Return whether the operation is allowed on at least one resource of the type (authorizeByResourceType).

        Raises:
            InvalidRequestError: as `verdict`; or the operation or the type is ANY or UNKNOWN; or an ACL holds ANY or
                MATCH.

        """
        check_by_resource_type(operation, resource_type)
        if self.verdict(principal, host, operation, resource_type, name=PROBE) is Verdict.ALLOW:
            return True
        return queries.any_resource_allowed(
            self.index, self.subject(principal, host), operation, resource_type, cidr=self.cidr
        )

    def merged(self, pause: layout.Pause = layout.no_pause) -> Self:
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
        return queries.any_resource_allowed(
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
    return AclIndex(empty_base())


def _unpickled(data: bytes, checksum: int, documented: bool, cidr: bool) -> AclsImage:
    """Return the image of a pickle.

    Raises:
        DecodeError: another version of aclog made it, or it is damaged.

    """
    if crc32c(data) != checksum:
        raise DecodeError("a pickled image is damaged: its checksum does not match")
    return AclsImage(index=AclIndex(base_of(memoryview(data))), documented=documented, cidr=cidr)


# The content of an ACL as bytes: its record after the id. Sets of many ACLs are compared by content.
#
# As objects, a hundred thousand ACLs take a second to create and hash; as bytes, a tenth of that.


_MANY = 1_000
"""ACLs from which on columns are faster than one record after the other, numpy's import included."""
_SHORT = 0x7E
"""The most bytes of a text whose length takes one byte."""
_TEXTS = ("resourceName", "principal", "host")
_BYTES = tuple(bytes((code,)) for code in range(0x80))


def contents_of(acls: AclsImage) -> set[bytes]:
    """Return the contents of all ACLs of an image."""
    if _has_tags(acls):
        return {content_of(rule.acl) for rule in acls}
    if len(acls.index.base) < _MANY:
        return {record[ACL_CONTENT:] for record in acls.records()}
    from aclog.authorizer.index.rule_columns import base_contents  # noqa: PLC0415 - no decision needs it

    contents, _ = base_contents(acls.index)
    return {*contents.values(), *(record[ACL_CONTENT:] for record in _added(acls))}


def ids_by_content(acls: AclsImage) -> dict[bytes, bytes]:
    """Return the 16 bytes of the id of each ACL of an image that has one, by its content."""
    if _has_tags(acls) or not acls.index.base.has_ids:
        return {content_of(rule.acl): rule.id.bytes for rule in acls if rule.id is not None}
    if len(acls.index.base) < _MANY:
        return {record[ACL_CONTENT:]: record[ACL_CONTENT - 16 : ACL_CONTENT] for record in acls.records()}
    from aclog.authorizer.index.rule_columns import base_contents  # noqa: PLC0415 - as above

    contents, rows = base_contents(acls.index)
    ids = bytes(acls.index.base.ids.ids)
    found = dict(zip(contents.values(), [ids[16 * row : 16 * row + 16] for row in rows.tolist()], strict=True))
    found |= {record[ACL_CONTENT:]: record[ACL_CONTENT - 16 : ACL_CONTENT] for record in _added(acls)}
    return found


def _added(acls: AclsImage) -> Iterator[bytes]:
    """Yield the records of the changes since the base."""
    return map(encode_record, acls.index.overlay.added.values())


def _has_tags(acls: AclsImage) -> bool:
    return bool(acls.index.base.tags) or any(record.tagged_fields for record in acls.index.overlay.added.values())


def content_of(acl: StandardAcl) -> bytes:
    """Return the content of an ACL. Raises EncodeError: a text that no record can hold."""
    return encode_acl(acl, ZERO)[ACL_CONTENT:]


def content_of_object(value: dict[str, object]) -> bytes:
    """Return the content of the ACL in a JSON object. Raises ConfigError: as rule_of_object; EncodeError."""
    return _plain_content(value) or content_of(rule_of_object(value).acl)


def acl_of_content(content: bytes) -> StandardAcl:
    """Return the ACL with this content."""
    record = decode_record(_HEAD + content)
    if not isinstance(record, AccessControlEntryRecord):
        raise TypeError(f"not the content of an ACL: {content!r}")
    return acl_of(record)


def pattern_of_content(content: bytes) -> tuple[int, str, int, str]:
    """Return resource type, resource name, pattern type and principal, faster than through the ACL."""
    size = content[1] - 1
    at = 2 + size  # of the pattern type, if both lengths take one byte
    if size < _SHORT and content[at + 1] <= _SHORT:
        principal = content[at + 2 : at + 1 + content[at + 1]].decode()
        return content[0], content[2:at].decode(), content[at], principal
    acl = acl_of_content(content)
    return acl.resource_type, acl.resource_name, acl.pattern_type, acl.principal


def ranges_among(contents: Iterable[bytes]) -> Iterator[StandardAcl]:
    """Yield the ACLs with these contents whose hosts are ranges of addresses."""
    for content in contents:
        if b"/" in content:  # rare, and creating the ACL takes longer
            acl = acl_of_content(content)
            if is_cidr(acl.host):
                yield acl


def columns_of_contents(contents: Iterable[bytes]) -> tuple[AclColumns, list[bytes]]:
    """Return the ACLs with these contents as columns, and what is not the plain content of one."""
    values = [_HEAD + content for content in contents]
    ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
    columns, left_out = read_acls(b"".join(values), np.concatenate((np.zeros(1, np.int64), ends))[:-1], ends)
    return columns, [values[row][ACL_CONTENT:] for row in left_out.tolist()]


def image_of(contents: Iterable[bytes]) -> AclsImage:
    """Return an image of the ACLs with these contents, each once, without ids."""
    columns, left_out = columns_of_contents(contents)
    if left_out:  # none that content_of returns
        raise ValueError(f"not the content of an ACL: {left_out[0]!r}")
    return AclsImage.from_columns(columns, has_ids=False)


def _plain_content(value: Mapping[str, object]) -> bytes | None:
    """Return the content of an object of the usual form, with short ASCII texts and known names; None for any other."""
    types, patterns, operations, permissions = CODES
    try:
        name, principal, host = (value[key].encode("ascii") for key in _TEXTS)  # type: ignore[attr-defined]
        kind, pattern = types[value["resourceType"]], patterns[value["patternType"]]  # type: ignore[index]
        codes = bytes((operations[value["operation"]], permissions[value["permissionType"]], 0))  # type: ignore[index]
    except (KeyError, AttributeError, TypeError, UnicodeEncodeError):
        return None
    if len(name) >= _SHORT or len(principal) >= _SHORT or len(host) >= _SHORT:
        return None
    return b"".join(
        (
            _BYTES[kind],
            _BYTES[len(name) + 1],
            name,
            _BYTES[pattern],
            _BYTES[len(principal) + 1],
            principal,
            _BYTES[len(host) + 1],
            host,
            codes,
        )
    )


_HEAD = ACL_FRAME + ZERO.bytes


# Changes of ACLs, and their application to a set of ACLs.


_ID, _REST = 3, 19
"""Where the id begins in the record of an ACL, and the rest after it: the frame's header has three bytes."""

_MANY = 100
"""Changes; with more, folding them into a new base costs less than to read past them."""


class Action(StrEnum):
    """The kind of a change of an ACL."""

    ADD = "ADD"
    REMOVE = "REMOVE"


@frozen(kw_only=True)
class RuleChange:
    """An ACL that is added or removed; `where` is the flag, file and line that it comes from, for errors."""

    added: bool
    acl: StandardAcl
    where: str = field(default="", eq=False)
    origin: FileOrigin | None = field(default=None, eq=False)
    """The file and line of the change."""


def existing_rule(change: RuleChange) -> ConfigError:
    """Return the error of adding an ACL that exists."""
    return ConfigError(f"{change.where}: the ACL exists already: {acl_text(change.acl)}")


def missing_rule(change: RuleChange) -> ConfigError:
    """Return the error of removing an ACL that does not exist."""
    return ConfigError(f"{change.where}: no such ACL: {acl_text(change.acl)}")


def changed_acls(acls: AclsImage, changes: Sequence[RuleChange]) -> AclsImage:
    """Return the ACLs after these changes, applied in order; a new ACL gets an id made of its content.

    Raises:
        ConfigError: an ACL to add exists already, or one to remove does not exist.

    """
    if not changes:  # two settings on one state, for which a new index would be made
        return acls
    return _changed_records(acls, changes) if acls.index.base.has_ids else _changed_contents(acls, changes)


@frozen
class ChangedOrigins:
    """The locations of the ACLs of a state and of its changes (aclog.authorizer.acl.Origins).

    An ACL that the state's source does not locate has the location of the change that adds or removes it.
    """

    _before: Origins
    _changed: Mapping[StandardAcl, FileOrigin]

    @staticmethod
    def of_changes(before: Origins, changes: Iterable[RuleChange]) -> ChangedOrigins:
        """Return the locations before and after the changes."""
        return ChangedOrigins(before, {each.acl: each.origin for each in changes if each.origin is not None})

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return every location of an ACL."""
        origins = self._before.of(acl)
        return origins or ((self._changed[acl],) if acl in self._changed else ())


def net_changes(changes: Iterable[RuleChange]) -> list[RuleChange]:
    """Return the net changes of some that were applied in order, without ACLs that were added and removed."""
    net: dict[StandardAcl, RuleChange] = {}
    for change in changes:
        if net.pop(change.acl, None) is None:
            net[change.acl] = change
    return list(net.values())


def changes_between(old: AclsImage, new: AclsImage) -> list[RuleChange]:
    """Return the changes from the contents of one image to those of another; ids are ignored."""
    # Contents are compared as bytes: a million ACLs as objects would take far longer.
    only_old = {record[:_ID] + record[_REST:]: record for record in old.records()}
    only_new: dict[bytes, bytes] = {}
    for record in new.records():
        content = record[:_ID] + record[_REST:]
        if only_old.pop(content, None) is None:
            only_new[content] = record
    removed, added = _acls(only_old.values()), _acls(only_new.values())
    return [
        *(RuleChange(added=False, acl=acl) for acl in removed if acl not in added),
        *(RuleChange(added=True, acl=acl) for acl in added if acl not in removed),
    ]


def _acls(records: Iterable[bytes]) -> dict[StandardAcl, None]:
    decoded = map(decode_record, records)
    return dict.fromkeys(acl_of(record) for record in decoded if isinstance(record, AccessControlEntryRecord))


def _changed_records(acls: AclsImage, changes: Sequence[RuleChange]) -> AclsImage:
    for change in changes:
        rule_id = acls.find(change.acl)
        if change.added and rule_id is not None:
            raise existing_rule(change)
        if change.added:
            acls = acls.apply((record_of(change.acl, _content_id(change.acl)),))
        elif rule_id is None:
            raise missing_rule(change)
        else:
            acls = acls.apply((RemoveAccessControlEntryRecord(id=rule_id),))
    # Who compares states below many patterns looks through all that the overlay touched, for each.
    return acls.merged() if len(changes) > _MANY else acls


def _changed_contents(acls: AclsImage, changes: Sequence[RuleChange]) -> AclsImage:
    contents = contents_of(acls)
    for change in changes:
        content = content_of(change.acl)
        if change.added is (content in contents):
            raise existing_rule(change) if change.added else missing_rule(change)
        if change.added:
            contents.add(content)
        else:
            contents.remove(content)
    return image_of(contents).with_options(documented=acls.documented, cidr=acls.cidr)


def _content_id(acl: StandardAcl) -> UUID:
    return UUID(bytes=blake2b(repr(acl).encode("utf-8", "surrogatepass"), digest_size=16).digest())
