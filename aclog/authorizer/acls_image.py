"""The ACL part of an image: all rules of one moment, immutable, and every question about them."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from hashlib import blake2b
from typing import Self
from uuid import UUID

from attrs import define

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
from aclog.authorizer.index import by_type, filters, rules, subjects
from aclog.authorizer.index import inventory as listing
from aclog.authorizer.index.arrays import Pause, go_on
from aclog.authorizer.index.base import Subject
from aclog.authorizer.index.build import build, rows_of_acls, rows_of_columns
from aclog.authorizer.index.decision_mask import State
from aclog.authorizer.index.masks import ALLOWED, DENIED, known_operation, known_type
from aclog.authorizer.index.merge import merged_rows
from aclog.authorizer.index.overlay import key_of
from aclog.authorizer.index.overlay_changes import Change, apply_changes
from aclog.authorizer.index.record_values import encoded_records
from aclog.metalog.acl_columns import AclColumns
from aclog.metalog.errors import ReplayError

PROBE = "hardcode"
"""The name that byResourceType asks about first (Authorizer.authorizeByResourceType)."""


class Verdict(IntEnum):
    """What the rules say; the first two are told apart by allow.everyone.if.no.acl.found."""

    NO_CANDIDATE = 0
    NO_MATCH = 1
    ALLOW = 2
    DENY = 3


def check_kinds(operation: int, resource_type: int) -> None:
    """Refuse what byResourceType cannot be asked.

    Raises:
        InvalidRequestError: an operation or a resource type that is ANY or UNKNOWN.

    """
    if known_operation(operation) <= AclOperation.ANY or known_type(resource_type) <= ResourceType.ANY:
        raise InvalidRequestError(
            f"operation {code_name(AclOperation, operation)} on type {code_name(ResourceType, resource_type)}: "
            "expected neither ANY nor UNKNOWN"
        )


@define(eq=False)
class AclsImage:
    """Rules, indexed (AclsImage and StandardAuthorizerData in one). Kept for ever, it never changes.

    Nobody assigns to one that is made; `frozen` would see to it, but one is made for every update, five times slower.
    """

    state: State
    documented: bool = False
    """Whether LITERAL `*` matches a name that begins with `*` and is longer; with Kafka it does not."""
    cidr: bool = False
    """Whether a rule's host may be a CIDR range (KIP-1276)."""

    @classmethod
    def empty(cls) -> Self:
        """The image without rules."""
        return cls.from_acls(())

    def with_options(self, *, documented: bool, cidr: bool) -> Self:
        """The same rules, read in another way."""
        if documented is self.documented and cidr is self.cidr:
            return self
        return type(self)(state=self.state, documented=documented, cidr=cidr)

    @classmethod
    def from_acls(cls, acls: Iterable[StandardAclWithId]) -> Self:
        """An image of these rules.

        Raises:
            ReplayError: an id that stands twice, or one content under two ids.

        """
        try:
            return cls(state=State(build(rows_of_acls(acls))))
        except ReplayError as e:
            number = "" if e.position is None else f"rule {e.position + 1}: "
            raise ReplayError(number + e.what) from None

    @classmethod
    def from_columns(cls, columns: AclColumns) -> Self:
        """An image of records in bulk; `columns.buffer` is not kept.

        Raises:
            ReplayError: as `from_acls`; `position` is where the later record's value begins in the buffer.

        """
        try:
            return cls(state=State(build(rows_of_columns(columns))))
        except ReplayError as e:
            row = e.position
            raise ReplayError(e.what, position=None if row is None else int(columns.value_start[row])) from None

    def apply(self, changes: Iterable[Change]) -> Self:
        """The image after these records, in order; the whole of them or an error.

        Raises:
            ReplayError: an id that stands already, one content under two ids, a removal of an absent id.

        """
        base = self.state.base
        overlay = apply_changes(base, self.state.overlay, changes)
        return type(self)(State(base, overlay), self.documented, self.cidr)

    def __len__(self) -> int:
        overlay = self.state.overlay
        return len(self.state.base) + len(overlay.added) - len(overlay.removed)

    def subject(self, principal: str, host: str) -> Subject:
        """Who asks, resolved once. Raises InvalidRequestError for a principal that Kafka's authorizer throws on."""
        if self.cidr:
            return subjects.resolve_ranges(self.state, principal, host)
        found = self.state.base.memo.subjects.get((principal, host))
        return subjects.resolve(self.state, principal, host) if found is None else found

    def verdict(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Verdict:
        """What the rules say to one request.

        Raises:
            InvalidRequestError: the principal has no colon or is `User:*`, or a rule was looked at that has no colon.

        """
        subject = self.subject(principal, host)
        bits = self.state.mask(subject, resource_type, name, self.documented) >> known_operation(operation)
        if self.state.throws:
            self.check_principals(subject, operation, resource_type, name)
        if bits & DENIED:
            return Verdict.DENY
        if bits & ALLOWED:
            return Verdict.ALLOW
        return Verdict.NO_MATCH if self.has_candidate(resource_type, name) else Verdict.NO_CANDIDATE

    def check_principals(self, subject: Subject, operation: int, resource_type: int, name: str) -> None:
        """Where a rule's principal may lack its colon (`state.throws`): fail if Kafka would look at such a rule.

        Raises:
            InvalidRequestError: it would, and throw.

        """
        operation, resource_type = known_operation(operation), known_type(resource_type)
        rules.check_principals(self.state, subject, operation, resource_type, name, star_always=self.documented)

    def has_candidate(self, resource_type: int, name: str) -> bool:
        """Whether any rule is on this name, whomever it is for."""
        levels = self.state.levels(known_type(resource_type), name, star_always=self.documented)
        return bool(levels.others or levels.star or levels.empty)

    def rule(
        self, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> StandardAclWithId | None:
        """The rule that Kafka names for the answer; None where no rule matches. Raises as `verdict`."""
        subject = self.subject(principal, host)
        return rules.determining(
            self.state,
            subject,
            known_operation(operation),
            known_type(resource_type),
            name,
            star_always=self.documented,
        )

    def candidates(self, resource_type: int, name: str) -> Iterator[StandardAclWithId]:
        """Every rule on a name in the order Kafka looks at them, whomever they are for."""
        return rules.candidates(self.state, known_type(resource_type), name, star_always=self.documented)

    def get(self, id: UUID) -> StandardAcl | None:  # noqa: A002
        """The rule with this id."""
        overlay = self.state.overlay
        record = overlay.added.get(id.int)
        if record is not None:
            return acl_of(record)
        row = self.state.base.ids.find(id.int) if self.state.base.has_ids else -1
        return None if row < 0 or row in overlay.removed else self.state.base.rule(row).acl

    def find(self, acl: StandardAcl) -> UUID | None:
        """The id of a rule that says exactly this."""
        kind, name, literal = key_of(acl)
        resource = self.state.named(kind, name)[0 if literal else 1]
        subject = self.state.base.subject(((acl.principal, acl.host),))
        return next((rule.id for rule in rules.rules_of(self.state, resource, subject) if rule.acl == acl), None)

    def __iter__(self) -> Iterator[StandardAclWithId]:
        for _, resource in self.state.resources():
            yield from rules.rules_of(self.state, resource)

    def ids(self, low: int = 0, high: int = 1 << 128) -> Iterator[UUID]:
        """The ids of the rules from `low` to below `high` (as integers), ascending, lazily."""
        return listing.ids(self.state, low, high)

    def resource_patterns(self) -> Iterator[ResourcePattern]:
        """Every resource pattern that a rule is about, once, in no order; the codes are those of the records."""
        return listing.resource_patterns(self.state)

    def principals(self) -> set[str]:
        """Every principal that a rule is for."""
        return listing.principals(self.state)

    def matching(self, wanted: AclBindingFilter) -> Iterator[StandardAclWithId]:
        """The rules that a filter takes, lazily, in no order."""
        return filters.matching(self.state, wanted)

    def by_resource_type(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether the operation is allowed on at least one resource of the type (authorizeByResourceType).

        Raises:
            InvalidRequestError: as `verdict`; an operation or a type that is ANY or UNKNOWN; a rule that holds what
                only a filter may.

        """
        check_kinds(operation, resource_type)
        if self.verdict(principal, host, operation, resource_type, PROBE) is Verdict.ALLOW:
            return True
        return by_type.some_resource_allowed(self.state, self.subject(principal, host), operation, resource_type)

    def merged(self, pause: Pause = go_on) -> Self:
        """The same rules with all changes folded into a new base; for a background thread.

        `pause` is called every millisecond or so: it may let other threads have the interpreter.
        """
        state = self.state
        base = build(merged_rows(state.base, state.overlay, pause), pause)
        return type(self)(State(base), self.documented, self.cidr)

    @property
    def overlay_size(self) -> int:
        """How many changes stand beside the base: what `merged` would fold in."""
        return self.state.overlay.changes

    def allows_some(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether a rule allows the operation on a resource that no other rule takes away; without a probe first.

        Raises:
            InvalidRequestError: as `by_resource_type`.

        """
        check_kinds(operation, resource_type)
        return by_type.some_resource_allowed(self.state, self.subject(principal, host), operation, resource_type)

    def records(self) -> Iterator[bytes]:
        """Every rule as the value of an AccessControlEntryRecord, as it was read, in no order."""
        return encoded_records(self.state)

    def digest(self) -> bytes:
        """16 bytes that are the same for the same records, however they came to be; for comparing images."""
        total = sum(int.from_bytes(blake2b(value, digest_size=16).digest()) for value in self.records())
        return (total & (1 << 128) - 1).to_bytes(16)
