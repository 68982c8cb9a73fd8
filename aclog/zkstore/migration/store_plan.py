"""What makes a store hold what a log holds: pure, in two steps of which neither allows more than both ends do."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from attrs import field, frozen

from aclog.authorizer.acl import AclOperation, AclPermissionType, ResourcePattern, StandardAcl, code_name
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.errors import EncodeError
from aclog.metalog.records import DelegationTokenRecord, UserScramCredentialRecord
from aclog.zkstore.acl_json import AclEntry, encode_acls, entry_of
from aclog.zkstore.migration.access_state import AccessState, StateChange
from aclog.zkstore.migration.node_content import LeftOut
from aclog.zkstore.paths import resource_path
from aclog.zkstore.scram_config import user_path
from aclog.zkstore.token_json import encode_token

_OPERATIONS = frozenset(range(AclOperation.ALL, AclOperation.TWO_PHASE_COMMIT))
"""Those of Kafka 3.9."""
_LONGEST_NODE = (1 << 20) - (1 << 14)
"""What ZooKeeper takes in one request (jute.maxbuffer), less what stands around it."""


@frozen(kw_only=True)
class EntryChange:
    """What comes to a resource's rules, and what goes."""

    added: frozenset[AclEntry] = frozenset()
    removed: frozenset[AclEntry] = frozenset()

    def apply(self, entries: frozenset[AclEntry]) -> frozenset[AclEntry]:
        """The rules after it."""
        return entries - self.removed | self.added


@frozen(kw_only=True)
class StorePlan:
    """Changes by resource: first what takes away, then what gives. Credentials are all those of a user that changes."""

    first: Mapping[ResourcePattern, EntryChange]
    second: Mapping[ResourcePattern, EntryChange]
    users: Mapping[str, tuple[UserScramCredentialRecord, ...]] = field(repr=False)
    tokens: tuple[DelegationTokenRecord, ...]
    removed_tokens: tuple[str, ...]


def storable(state: AccessState) -> tuple[AccessState, tuple[LeftOut, ...]]:
    """What of a state a ZooKeeper can hold and a Kafka 3.9 reads, and what not."""
    left_out: list[LeftOut] = []
    acls = frozenset(acl for acl in state.acls if _fits(str(acl), _acl_problem(acl), left_out))
    acls -= _crowded(acls, left_out)
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
        resource_path(_pattern(acl))
    except EncodeError as error:
        return str(error)
    if acl.operation not in _OPERATIONS:
        return f"operation {code_name(AclOperation, acl.operation)}: Kafka 3.9 does not know it"
    if acl.permission_type not in {AclPermissionType.DENY, AclPermissionType.ALLOW}:
        return f"permission {code_name(AclPermissionType, acl.permission_type)}: expected ALLOW or DENY"
    return None if ":" in acl.principal else "the principal has no colon: expected Type:name"


def _pattern(acl: StandardAcl) -> ResourcePattern:
    return ResourcePattern(resource_type=acl.resource_type, name=acl.resource_name, pattern_type=acl.pattern_type)


def _crowded(acls: Iterable[StandardAcl], left_out: list[LeftOut]) -> frozenset[StandardAcl]:
    """Rules of resources with more of them than a node holds."""
    found: set[StandardAcl] = set()
    for pattern, entries in _by_resource(acls).items():
        size = len(encode_acls(entries))
        if size > _LONGEST_NODE:
            found |= {entry.on(pattern) for entry in entries}
            reason = f"{len(entries)} rules of {size} bytes: expected {_LONGEST_NODE} at most, which a node holds"
            left_out.append(LeftOut(path=resource_path(pattern), reason=reason, unreadable=True))
    return frozenset(found)


def _by_resource(acls: Iterable[StandardAcl]) -> dict[ResourcePattern, frozenset[AclEntry]]:
    found = defaultdict(set)
    for acl in acls:
        found[_pattern(acl)].add(entry_of(acl))
    return {pattern: frozenset(entries) for pattern, entries in found.items()}


def _credential_problem(record: UserScramCredentialRecord) -> str | None:
    if record.mechanism not in set(ScramMechanism):
        return f"mechanism {record.mechanism}: Kafka 3.9 does not know it"
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
    """What makes a store `wanted`, which `change` leads to. Rules that deny come first, and rules that allow last."""
    deny = AclPermissionType.DENY
    first = _changes(
        (acl for acl in change.added_acls if acl.permission_type == deny),
        (acl for acl in change.removed_acls if acl.permission_type != deny),
    )
    second = _changes(
        (acl for acl in change.added_acls if acl.permission_type != deny),
        (acl for acl in change.removed_acls if acl.permission_type == deny),
    )
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
    come, go = _by_resource(added), _by_resource(removed)
    none: frozenset[AclEntry] = frozenset()
    return {
        pattern: EntryChange(added=come.get(pattern, none), removed=go.get(pattern, none)) for pattern in {**come, **go}
    }
