"""Access state: the ACLs, SCRAM credentials and delegation tokens of ZooKeeper or of a log, and their differences."""

from collections.abc import Iterator, Mapping
from uuid import UUID

from attrs import field, frozen

from aclog.authorizer.acl import AclPermissionType, StandardAcl
from aclog.credentials.scram import ScramChange
from aclog.credentials.tokens import TokenChange
from aclog.metalog.codec import encode_acl, encode_record
from aclog.metalog.records import (
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from aclog.snapshots.image import Image

CredentialKey = tuple[str, int]
"""User name and mechanism code."""


@frozen(kw_only=True)
class AccessState:
    """What is migrated. The repr omits secrets."""

    acls: frozenset[StandardAcl] = frozenset()
    credentials: Mapping[CredentialKey, UserScramCredentialRecord] = field(factory=dict, repr=False)
    tokens: Mapping[str, DelegationTokenRecord] = field(factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.acls) + len(self.credentials) + len(self.tokens)

    def counts(self) -> str:
        """Return the numbers of entries as text."""
        return f"{len(self.acls)} ACLs, {len(self.credentials)} SCRAM credentials, {len(self.tokens)} delegation tokens"


def state_of_image(image: Image) -> AccessState:
    """Return the access state of an image."""
    return AccessState(
        acls=frozenset(each.acl for each in image.acls),
        credentials={(record.name, record.mechanism): record for record in image.scram.records()},
        tokens={record.token_id: record for record in image.tokens.records()},
    )


@frozen(kw_only=True)
class StateChange:
    """Changes from one state to another, in an order that does not depend on where the states were read."""

    removed_acls: tuple[StandardAcl, ...] = ()
    added_acls: tuple[StandardAcl, ...] = ()
    credentials: tuple[ScramChange, ...] = field(default=(), repr=False)
    tokens: tuple[TokenChange, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.removed_acls) + len(self.added_acls) + len(self.credentials) + len(self.tokens)

    @property
    def removals(self) -> int:
        """How many entries are removed, without credentials and tokens that are replaced."""
        removals = (RemoveUserScramCredentialRecord, RemoveDelegationTokenRecord)
        others = sum(isinstance(each, removals) for each in (*self.credentials, *self.tokens))
        return len(self.removed_acls) + others

    def counts(self) -> str:
        """Return the numbers of entries as text."""
        return (
            f"{len(self.added_acls)} ACLs added, {len(self.removed_acls)} removed; "
            f"{len(self.credentials)} SCRAM credentials and {len(self.tokens)} delegation tokens changed"
        )


def difference(current: AccessState, wanted: AccessState) -> StateChange:
    """Return the changes that turn the current state into the wanted one."""
    return StateChange(
        removed_acls=tuple(sorted(current.acls - wanted.acls, key=listing_key)),
        added_acls=tuple(sorted(wanted.acls - current.acls, key=listing_key)),
        credentials=tuple(_credential_changes(current, wanted)),
        tokens=tuple(_token_changes(current, wanted)),
    )


def listing_key(acl: StandardAcl) -> tuple[object, ...]:
    """Sort key: DENY before ALLOW, then by resource. ACLs created in this order never allow too much in between."""
    resource = (acl.resource_type, acl.pattern_type, acl.resource_name)
    return acl.permission_type != AclPermissionType.DENY, resource, acl.principal, acl.host, acl.operation


def _credential_changes(current: AccessState, wanted: AccessState) -> Iterator[ScramChange]:
    for name, mechanism in sorted(current.credentials.keys() - wanted.credentials.keys()):
        yield RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)
    for key, record in sorted(wanted.credentials.items()):
        if current.credentials.get(key) != record:
            yield record


def _token_changes(current: AccessState, wanted: AccessState) -> Iterator[TokenChange]:
    for token_id in sorted(current.tokens.keys() - wanted.tokens.keys()):
        yield RemoveDelegationTokenRecord(token_id=token_id)
    for token_id, record in sorted(wanted.tokens.items()):
        if current.tokens.get(token_id) != record:
            yield record


def record_values(change: StateChange, ids: Mapping[StandardAcl, UUID]) -> Iterator[bytes]:
    """Encode a change as record values, removals first. `ids` has the id of each added and removed ACL.

    Raises:
        EncodeError: a string that is too long for a record.

    """
    for acl in change.removed_acls:
        yield encode_record(RemoveAccessControlEntryRecord(id=ids[acl]))
    yield from (encode_acl(acl, ids[acl]) for acl in change.added_acls)
    yield from map(encode_record, change.credentials)
    yield from map(encode_record, change.tokens)
