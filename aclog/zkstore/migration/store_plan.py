"""Plan of the changes that bring ZooKeeper to a wanted access state without allowing too much in between.

ACLs change in two steps, since a transaction covers one resource only. The first adds DENY and removes ALLOW, the
second removes DENY and adds ALLOW. During the first step a request is allowed only if it was allowed before the
migration, and during the second only if it is allowed afterwards.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from attrs import field, frozen

from aclog.authorizer.acl import AclOperation, AclPermissionType, ResourcePattern, StandardAcl, code_name, resource_of
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.errors import EncodeError
from aclog.metalog.records import DelegationTokenRecord, UserScramCredentialRecord
from aclog.zkstore.acl_store import MAX_NODE_BYTES
from aclog.zkstore.migration.access_state import AccessState, StateChange
from aclog.zkstore.migration.node_content import LeftOut
from aclog.zkstore.znodes.acl_json import AclEntry, encode_acls, entry_of
from aclog.zkstore.znodes.paths import resource_path
from aclog.zkstore.znodes.scram_config import user_path
from aclog.zkstore.znodes.token_json import encode_token

_OPERATIONS = frozenset(range(AclOperation.ALL, AclOperation.TWO_PHASE_COMMIT))
"""Operations of Kafka 3.9."""


@frozen(kw_only=True)
class EntryChange:
    """ACLs that are added to and removed from a resource."""

    added: frozenset[AclEntry] = frozenset()
    removed: frozenset[AclEntry] = frozenset()

    def apply(self, entries: frozenset[AclEntry]) -> frozenset[AclEntry]:
        """Return the ACLs after this change."""
        return entries - self.removed | self.added


@frozen(kw_only=True)
class StorePlan:
    """ACL changes by resource, in two steps; all credentials of each user with a change; and token changes."""

    first: Mapping[ResourcePattern, EntryChange]
    second: Mapping[ResourcePattern, EntryChange]
    users: Mapping[str, tuple[UserScramCredentialRecord, ...]] = field(repr=False)
    tokens: tuple[DelegationTokenRecord, ...]
    removed_tokens: tuple[str, ...]


def storable(state: AccessState) -> tuple[AccessState, tuple[LeftOut, ...]]:
    """Split a state into what ZooKeeper can hold and Kafka 3.9 can read, and the rest with reasons."""
    left_out: list[LeftOut] = []
    acls = frozenset(acl for acl in state.acls if _fits(str(acl), _acl_problem(acl), left_out))
    acls -= _oversized(acls, left_out)
    credentials = {
        key: record
        for key, record in state.credentials.items()
        if _fits(f"SCRAM credential of {record.name!r}", _credential_problem(record), left_out)
    }
    tokens = {
        token_id: token
        for token_id, token in state.tokens.items()
        if _fits(f"delegation token {token_id!r}", _token_problem(token), left_out)
    }
    return AccessState(acls=acls, credentials=credentials, tokens=tokens), tuple(sorted(left_out, key=str))


def _fits(what: str, problem: str | None, left_out: list[LeftOut]) -> bool:
    if problem is not None:
        left_out.append(LeftOut(path=what, reason=problem, unreadable=True))
    return problem is None


def _acl_problem(acl: StandardAcl) -> str | None:
    try:
        resource_path(resource_of(acl))
    except EncodeError as error:
        return str(error)
    if acl.operation not in _OPERATIONS:
        return f"operation {code_name(AclOperation, acl.operation)}: not supported by Kafka 3.9"
    if acl.permission_type not in {AclPermissionType.DENY, AclPermissionType.ALLOW}:
        return f"permission {code_name(AclPermissionType, acl.permission_type)}: expected ALLOW or DENY"
    return None if ":" in acl.principal else "the principal has no colon: expected Type:name"


def _oversized(acls: Iterable[StandardAcl], left_out: list[LeftOut]) -> frozenset[StandardAcl]:
    """Return the ACLs of resources that have too many for one znode."""
    found: set[StandardAcl] = set()
    for pattern, entries in _by_resource(acls).items():
        size = len(encode_acls(entries))
        if size > MAX_NODE_BYTES:
            found |= {entry.on(pattern) for entry in entries}
            reason = f"{len(entries)} ACLs of {size} bytes: expected at most {MAX_NODE_BYTES}, the limit of one node"
            left_out.append(LeftOut(path=resource_path(pattern), reason=reason, unreadable=True))
    return frozenset(found)


def _by_resource(acls: Iterable[StandardAcl]) -> dict[ResourcePattern, frozenset[AclEntry]]:
    found = defaultdict(set)
    for acl in acls:
        found[resource_of(acl)].add(entry_of(acl))
    return {pattern: frozenset(entries) for pattern, entries in found.items()}


def _credential_problem(record: UserScramCredentialRecord) -> str | None:
    if record.mechanism not in set(ScramMechanism):
        return f"mechanism {record.mechanism}: not supported by Kafka 3.9"
    try:
        user_path(record.name)
    except EncodeError as error:
        return str(error)
    return None


def _token_problem(token: DelegationTokenRecord) -> str | None:
    try:
        encode_token(token)
    except EncodeError as error:
        return str(error)
    return None


def store_plan(wanted: AccessState, change: StateChange) -> StorePlan:
    """Plan the writes of `change`, which leads to `wanted`."""
    deny = AclPermissionType.DENY
    first = _changes(
        (acl for acl in change.added_acls if acl.permission_type == deny),
        (acl for acl in change.removed_acls if acl.permission_type != deny),
    )
    second = _changes(
        (acl for acl in change.added_acls if acl.permission_type != deny),
        (acl for acl in change.removed_acls if acl.permission_type == deny),
    )
    # A user's znode is written as a whole, so a user with one changed credential needs all of them.
    users: dict[str, list[UserScramCredentialRecord]] = {each.name: [] for each in change.credentials}
    for record in wanted.credentials.values():
        if record.name in users:
            users[record.name].append(record)
    return StorePlan(
        first=first,
        second=second,
        users={name: tuple(records) for name, records in users.items()},
        tokens=tuple(each for each in change.tokens if isinstance(each, DelegationTokenRecord)),
        removed_tokens=tuple(each.token_id for each in change.tokens if not isinstance(each, DelegationTokenRecord)),
    )


def _changes(added: Iterable[StandardAcl], removed: Iterable[StandardAcl]) -> dict[ResourcePattern, EntryChange]:
    adds, removes = _by_resource(added), _by_resource(removed)
    none: frozenset[AclEntry] = frozenset()
    return {
        pattern: EntryChange(added=adds.get(pattern, none), removed=removes.get(pattern, none))
        for pattern in {**adds, **removes}
    }
