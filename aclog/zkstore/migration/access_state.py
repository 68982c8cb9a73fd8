"""Rules, SCRAM credentials and tokens of one moment, wherever they stand, and what makes one such state of another.

Pure. A state out of ZooKeeper and one out of a log are compared as such.
"""

from collections.abc import Iterator, Mapping
from uuid import UUID

from attrs import field, frozen

from aclog.authorizer.acl import AclPermissionType, StandardAcl
from aclog.authorizer.acl_records import record_of
from aclog.credentials.scram import ScramChange
from aclog.credentials.tokens import TokenChange
from aclog.metalog.codec import encode_record
from aclog.metalog.records import (
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from aclog.snapshots.image import Image

CredentialKey = tuple[str, int]
"""A user and a mechanism's code."""


@frozen(kw_only=True)
class AccessState:
    """What is carried over. The repr leaves out what is secret."""

    acls: frozenset[StandardAcl] = frozenset()
    credentials: Mapping[CredentialKey, UserScramCredentialRecord] = field(factory=dict, repr=False)
    tokens: Mapping[str, DelegationTokenRecord] = field(factory=dict, repr=False)

    def counts(self) -> str:
        """How much it is, in words."""
        return f"{len(self.acls)} ACLs, {len(self.credentials)} SCRAM credentials, {len(self.tokens)} delegation tokens"


def state_of_image(image: Image) -> AccessState:
    """What an image holds of it."""
    return AccessState(
        acls=frozenset(rule.acl for rule in image.acls),
        credentials={(record.name, record.mechanism): record for record in image.scram.records()},
        tokens={record.token_id: record for record in image.tokens.records()},
    )


@frozen(kw_only=True)
class StateChange:
    """What makes one state of another, in an order that does not depend on where it was read."""

    removed_acls: tuple[StandardAcl, ...] = ()
    added_acls: tuple[StandardAcl, ...] = ()
    credentials: tuple[ScramChange, ...] = field(default=(), repr=False)
    tokens: tuple[TokenChange, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.removed_acls) + len(self.added_acls) + len(self.credentials) + len(self.tokens)

    @property
    def removals(self) -> int:
        """How much of what stands is taken away, credentials and tokens that are replaced not counted."""
        gone = (RemoveUserScramCredentialRecord, RemoveDelegationTokenRecord)
        others = sum(isinstance(each, gone) for each in (*self.credentials, *self.tokens))
        return len(self.removed_acls) + others

    def counts(self) -> str:
        """How much it is, in words."""
        return (
            f"{len(self.added_acls)} ACLs added, {len(self.removed_acls)} removed; "
            f"{len(self.credentials)} SCRAM credentials and {len(self.tokens)} delegation tokens changed"
        )


def difference(standing: AccessState, wanted: AccessState) -> StateChange:
    """What makes `wanted` of what stands."""
    return StateChange(
        removed_acls=tuple(sorted(standing.acls - wanted.acls, key=listing_key)),
        added_acls=tuple(sorted(wanted.acls - standing.acls, key=listing_key)),
        credentials=tuple(_credential_changes(standing, wanted)),
        tokens=tuple(_token_changes(standing, wanted)),
    )


def listing_key(acl: StandardAcl) -> tuple[object, ...]:
    """Rules by resource, those that deny first: who adds them one after the other never allows too much."""
    resource = (acl.resource_type, acl.pattern_type, acl.resource_name)
    return acl.permission_type != AclPermissionType.DENY, resource, acl.principal, acl.host, acl.operation


def _credential_changes(standing: AccessState, wanted: AccessState) -> Iterator[ScramChange]:
    for name, mechanism in sorted(standing.credentials.keys() - wanted.credentials.keys()):
        yield RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)
    for key, record in sorted(wanted.credentials.items()):
        if standing.credentials.get(key) != record:
            yield record


def _token_changes(standing: AccessState, wanted: AccessState) -> Iterator[TokenChange]:
    for token_id in sorted(standing.tokens.keys() - wanted.tokens.keys()):
        yield RemoveDelegationTokenRecord(token_id=token_id)
    for token_id, record in sorted(wanted.tokens.items()):
        if standing.tokens.get(token_id) != record:
            yield record


def record_values(change: StateChange, ids: Mapping[StandardAcl, UUID]) -> Iterator[bytes]:
    """The records of a change as values for a log, removals first. `ids` knows each rule that comes or goes.

    Raises:
        EncodeError: a string that no record holds.

    """
    for acl in change.removed_acls:
        yield encode_record(RemoveAccessControlEntryRecord(id=ids[acl]))
    yield from (encode_record(record_of(acl, ids[acl])) for acl in change.added_acls)
    yield from map(encode_record, change.credentials)
    yield from map(encode_record, change.tokens)
