"""Migration between ZooKeeper and a log: access states, their comparison, plans and writers."""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv6Address
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from uuid import UUID

from attrs import Factory, field

from aclog.authorizer.acl import ResourcePattern, StandardAcl, code_name, parse_cidr, record_of, resource_of
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.credentials.scram import ScramChange, ScramMechanism
from aclog.credentials.tokens import TokenChange
from aclog.metalog.codec import encode_acl, encode_record
from aclog.metalog.errors import ConfigError, DecodeError, EncodeError, plural
from aclog.metalog.records import (
    DelegationTokenRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from aclog.metalog.values import define, frozen
from aclog.snapshots.image import Image
from aclog.zookeeper import znodes
from aclog.zookeeper.acl_store import MAX_NODE_BYTES, AclStore
from aclog.zookeeper.client import DisconnectedError, StoreError
from aclog.zookeeper.stores import ScramStore, TokenStore

if TYPE_CHECKING:
    from aclog.zookeeper.session import ZkClient


# Access state: the ACLs, SCRAM credentials and delegation tokens of ZooKeeper or of a log, and their differences.


CredentialKey = tuple[str, int]
"""User name and mechanism code."""


@frozen(kw_only=True)
class AccessState:
    """The records to migrate. The repr omits secrets."""

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
            f"{plural(len(self.added_acls), 'ACL')} added, {len(self.removed_acls)} removed; "
            f"{len(self.credentials)} SCRAM credentials and {len(self.tokens)} delegation tokens changed"
        )


def difference(current: AccessState, target: AccessState) -> StateChange:
    """Return the changes that turn the current state into the wanted one."""
    return StateChange(
        removed_acls=tuple(sorted(current.acls - target.acls, key=listing_key)),
        added_acls=tuple(sorted(target.acls - current.acls, key=listing_key)),
        credentials=tuple(_credential_changes(current, target)),
        tokens=tuple(_token_changes(current, target)),
    )


def listing_key(acl: StandardAcl) -> tuple[object, ...]:
    """Sort key: DENY before ALLOW, then by resource. ACLs created in this order never allow too much in between."""
    resource = (acl.resource_type, acl.pattern_type, acl.resource_name)
    return acl.permission_type != AclPermissionType.DENY, resource, acl.principal, acl.host, acl.operation


def _credential_changes(current: AccessState, target: AccessState) -> Iterator[ScramChange]:
    for name, mechanism in sorted(current.credentials.keys() - target.credentials.keys()):
        yield RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)
    for key, record in sorted(target.credentials.items()):
        if current.credentials.get(key) != record:
            yield record


def _token_changes(current: AccessState, target: AccessState) -> Iterator[TokenChange]:
    for token_id in sorted(current.tokens.keys() - target.tokens.keys()):
        yield RemoveDelegationTokenRecord(token_id=token_id)
    for token_id, record in sorted(target.tokens.items()):
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


# Comparison of two access states: their contents, and their decisions on requests generated from the ACLs of both.


REQUESTS = 20_000
"""Default number of generated requests."""
_UNKNOWN_PRINCIPALS = ("User:unknown-principal",)
_ADDRESSES = ("127.0.0.1", "10.9.8.7")
_ENDINGS = ("", "x", "-1", ".a")
_STARRED = ("**", "*x")
_IPV6 = 6


@frozen(kw_only=True)
class Request:
    """A request by a principal from a host for an operation on one resource."""

    principal: str
    host: str
    operation: int
    resource_type: int
    name: str

    def __str__(self) -> str:
        kind, operation = code_name(ResourceType, self.resource_type), code_name(AclOperation, self.operation)
        return f"{self.principal} from {self.host}: {operation} on {kind} {self.name}"


Decide: TypeAlias = Callable[[Request], bool]
"""Whether a request is allowed, without super users and without allow.everyone.if.no.acl.found."""


@frozen(kw_only=True)
class Disagreement:
    """A request that one side allows and the other denies."""

    request: Request
    store_allows: bool

    @property
    def is_known(self) -> bool:
        """Whether it is a known difference: to StandardAuthorizer, LITERAL `*` does not match names such as `*x`."""
        return self.request.name.startswith("*") and len(self.request.name) > 1

    def __str__(self) -> str:
        store, log = ("ALLOWED", "DENIED") if self.store_allows else ("DENIED", "ALLOWED")
        return f"{self.request}: {store} by the store, {log} by the target"


@frozen(kw_only=True)
class Comparison:
    """The changes that would make the target equal to ZooKeeper, and the requests on which they disagree."""

    difference: StateChange
    requests: int
    disagreements: tuple[Disagreement, ...] = field(default=())

    @property
    def is_equal(self) -> bool:
        """Whether contents and decisions are equal, except for known differences of Kafka 4.3.1."""
        return not len(self.difference) and all(each.is_known for each in self.disagreements)


def compare(
    store: AccessState, target: AccessState, *, store_decides: Decide, target_decides: Decide, requests: int = REQUESTS
) -> Comparison:
    """Compare contents, and decisions on up to `requests` generated requests, the same ones every time."""
    unique = dict.fromkeys(generated_requests(sorted(store.acls | target.acls, key=listing_key), requests))
    disagreements = []
    for request in unique:
        store_allows = store_decides(request)
        if store_allows is not target_decides(request):
            disagreements.append(Disagreement(request=request, store_allows=store_allows))
    return Comparison(difference=difference(target, store), requests=len(unique), disagreements=tuple(disagreements))


def generated_requests(acls: Sequence[StandardAcl], count: int, seed: int = 0) -> Iterator[Request]:
    """Generate requests close to the ACLs: their principals and resources, mixed with those of others; some repeat."""
    if not acls:
        return
    rng = random.Random(seed)  # noqa: S311  # reproducible, and not a secret
    operations = [code for code in AclOperation if code > AclOperation.ALL]
    for number in range(count):
        acl, other = acls[number % len(acls)], rng.choice(acls)
        who = rng.choice((acl, acl, other))
        yield Request(
            principal=_principal(who, other, rng),
            host=_host(who, rng),
            operation=acl.operation if acl.operation in operations and rng.random() < 0.6 else rng.choice(operations),
            resource_type=acl.resource_type,
            name=_name(acl, rng),
        )


def _principal(who: StandardAcl, other: StandardAcl, rng: random.Random) -> str:
    if who.principal != "User:*":
        return who.principal
    return other.principal if other.principal != "User:*" else rng.choice(_UNKNOWN_PRINCIPALS)


def _host(acl: StandardAcl, rng: random.Random) -> str:
    if acl.host == "*":
        return rng.choice(_ADDRESSES)
    try:
        cidr = parse_cidr(acl.host) if "/" in acl.host else None
    except ConfigError:
        cidr = None
    if cidr is None:
        return acl.host
    # A client inside the range, for which no Kafka before 4.4 lets the rule decide. No IPv4 range contains 0.0.0.0.
    return str(IPv6Address(cidr.first) if cidr.version == _IPV6 else IPv4Address(cidr.first or 1))


def _name(acl: StandardAcl, rng: random.Random) -> str:
    name = acl.resource_name
    if acl.pattern_type == PatternType.LITERAL:
        return rng.choice(_STARRED) if name == "*" and rng.random() < 0.05 else name + rng.choice(("", "", "", "x"))
    return name + rng.choice(_ENDINGS)


# The records of single znodes, and of all of them together, with a reason for each omission.


_ANY_ID = UUID(int=2)
_LEGACY = (
    "ACLs of a group in a legacy directory, which Kafka 3.9 does not read: move them to the directory Group if they "
    "are to apply, or delete the node"
)


@frozen(kw_only=True)
class LeftOut:
    """An entry that is not migrated, and why. `unreadable` ones may be ACLs or credentials that are in use."""

    path: str
    reason: str
    unreadable: bool

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@frozen(kw_only=True)
class NodeContent:
    """The records of a znode in the access state."""

    acls: frozenset[StandardAcl] = frozenset()
    credentials: tuple[UserScramCredentialRecord, ...] = ()
    token: DelegationTokenRecord | None = None
    left_out: tuple[LeftOut, ...] = ()


@frozen(kw_only=True)
class StoreState:
    """The access state of a whole store, and the entries left out."""

    state: AccessState
    left_out: tuple[LeftOut, ...]

    @property
    def unreadable(self) -> tuple[LeftOut, ...]:
        """Omitted entries that may be ACLs or credentials that are in use."""
        return tuple(each for each in self.left_out if each.unreadable)


def node_content(path: str, data: bytes, *, has_children: bool = False) -> NodeContent:
    """Decode the znode of a resource, a user or a token; entries that cannot be decoded are left out, with a reason."""
    try:
        if path.startswith(f"{znodes.USERS_PATH}/"):
            return _user(path, data, has_children=has_children)
        if path.startswith((f"{znodes.TOKENS_PATH}/", f"{znodes.KIP_TOKENS_PATH}/")):
            token = znodes.decode_token(data, path)
            _check([token])
            return NodeContent(token=token)
        return _acls(path, data, has_children=has_children)
    except (DecodeError, EncodeError) as error:
        return NodeContent(left_out=(_unreadable(path, error),))


def _acls(path: str, data: bytes, *, has_children: bool) -> NodeContent:
    pattern = znodes.pattern_of(path)
    acls = frozenset(entry.on(pattern) for entry in znodes.decode_acls(data, path=path))
    _check([record_of(acl, _ANY_ID) for acl in acls])
    # Kafka 3.9 ignores these: migrating them could allow requests that are denied today, dropping them a wanted DENY.
    if acls and path.split("/")[-2] in znodes.LEGACY_GROUP_DIRECTORIES:
        return NodeContent(left_out=(LeftOut(path=path, reason=_LEGACY, unreadable=True),))
    if not has_children:
        return NodeContent(acls=acls)
    reason = "child nodes, of a resource with / in its name, which Kafka 3.9 does not read"
    return NodeContent(acls=acls, left_out=(LeftOut(path=f"{path}/*", reason=reason, unreadable=False),))


def _check(records: Sequence[MetadataRecord]) -> None:
    """Check that records can be encoded. Raises EncodeError."""
    for record in records:
        encode_record(record)


def _user(path: str, data: bytes, *, has_children: bool) -> NodeContent:
    user = znodes.user_of_node(path.removeprefix(f"{znodes.USERS_PATH}/"))
    config = znodes.decode_user_config(data, path)
    left_out = list(_quotas(path, config.others, has_children=has_children))
    credentials = []
    for mechanism, text in config.credentials():
        try:
            credential = znodes.decode_credential(_checked_user(user), mechanism, text)
            _check([credential])
        except (DecodeError, EncodeError) as error:
            left_out.append(_unreadable(path, error))
        else:
            credentials.append(credential)
    return NodeContent(credentials=tuple(credentials), left_out=tuple(left_out))


def _checked_user(user: str | None) -> str:
    if user is None:
        raise DecodeError("a SCRAM credential in the default entity: expected it in the node of a user")
    return user


def _quotas(path: str, names: Sequence[str], *, has_children: bool) -> Iterator[LeftOut]:
    if names:
        reason = f"{', '.join(names)}: client quotas are not migrated"
        yield LeftOut(path=path, reason=reason, unreadable=False)
    if has_children:
        reason = "quotas of the user's client ids are not migrated"
        yield LeftOut(path=f"{path}/clients", reason=reason, unreadable=False)


def _unreadable(path: str, error: DecodeError | EncodeError) -> LeftOut:
    if isinstance(error, DecodeError):  # without its path, which LeftOut has
        error = DecodeError(error.what, position=error.position)
    return LeftOut(path=path, reason=str(error), unreadable=True)


def unknown_directory(path: str) -> LeftOut:
    """Return the omission of a directory below the ACL roots that Kafka 3.9 ignores too."""
    return LeftOut(path=path, reason="not a resource type or pattern type of Kafka 3.9", unreadable=False)


def store_state(contents: Mapping[str, NodeContent], directories: Sequence[str]) -> StoreState:
    """Combine the contents of all znodes. `directories` are those of no known resource type.

    If two znodes hold the same credential or token, the one with the name that Kafka would give it wins, and the other
    is left out.
    """
    acls: set[StandardAcl] = set()
    left_out = [*map(unknown_directory, directories)]
    for content in contents.values():
        acls |= content.acls
        left_out += content.left_out
    state = AccessState(
        acls=frozenset(acls), credentials=_credentials(contents, left_out), tokens=_tokens(contents, left_out)
    )
    return StoreState(state=state, left_out=tuple(sorted(left_out, key=str)))


def _credentials(
    contents: Mapping[str, NodeContent], left_out: list[LeftOut]
) -> dict[CredentialKey, UserScramCredentialRecord]:
    by_key: dict[CredentialKey, tuple[str, UserScramCredentialRecord]] = {}
    every = [(path, record) for path, content in contents.items() for record in content.credentials]
    for path, record in sorted(every, key=lambda pair: (pair[0] != znodes.user_path(pair[1].name), pair[0])):
        first, _ = by_key.setdefault((record.name, record.mechanism), (path, record))
        if first != path:
            reason = f"a credential of user {record.name!r}, which also has one in {first}"
            left_out.append(LeftOut(path=path, reason=reason, unreadable=True))
    return {key: record for key, (_, record) in by_key.items()}


def _tokens(contents: Mapping[str, NodeContent], left_out: list[LeftOut]) -> dict[str, DelegationTokenRecord]:
    by_id: dict[str, tuple[str, DelegationTokenRecord]] = {}
    every = [(path, content.token) for path, content in contents.items() if content.token is not None]
    for path, token in sorted(every, key=lambda pair: (pair[0] != znodes.token_path(pair[1].token_id), pair[0])):
        first, _ = by_id.setdefault(token.token_id, (path, token))
        if first != path:
            reason = f"token {token.token_id!r}, which is also in {first}"
            left_out.append(LeftOut(path=path, reason=reason, unreadable=True))
    return {token_id: token for token_id, (_, token) in by_id.items()}


# Plan of the changes that bring ZooKeeper to a wanted access state without allowing too much in between.
#
# ACLs change in two steps, since a transaction covers one resource only. The first adds DENY and removes ALLOW, the
# second removes DENY and adds ALLOW. During the first step a request is allowed only if it was allowed before the
# migration, and during the second only if it is allowed afterwards.


_OPERATIONS = frozenset(range(AclOperation.ALL, AclOperation.TWO_PHASE_COMMIT))
"""Operations of Kafka 3.9."""


@frozen(kw_only=True)
class EntryChange:
    """ACLs that are added to and removed from a resource."""

    added: frozenset[znodes.AclEntry] = frozenset()
    removed: frozenset[znodes.AclEntry] = frozenset()

    def apply(self, entries: frozenset[znodes.AclEntry]) -> frozenset[znodes.AclEntry]:
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
    """Split a state into the part that ZooKeeper can hold and Kafka 3.9 can read, and the rest with reasons."""
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
        znodes.resource_path(resource_of(acl))
    except EncodeError as error:
        return str(error)
    if acl.operation not in _OPERATIONS:
        return f"operation {code_name(AclOperation, acl.operation)}: not supported by Kafka 3.9"
    if acl.permission_type not in {AclPermissionType.DENY, AclPermissionType.ALLOW}:
        return f"permission {code_name(AclPermissionType, acl.permission_type)}: expected ALLOW or DENY"
    return None if ":" in acl.principal else "the principal has no colon: expected Type:name"


def _oversized(acls: Iterable[StandardAcl], left_out: list[LeftOut]) -> frozenset[StandardAcl]:
    """Return the ACLs of resources that have too many for one znode."""
    oversized: set[StandardAcl] = set()
    for pattern, entries in _by_resource(acls).items():
        size = len(znodes.encode_acls(entries))
        if size > MAX_NODE_BYTES:
            oversized |= {entry.on(pattern) for entry in entries}
            reason = f"{len(entries)} ACLs of {size} bytes: expected at most {MAX_NODE_BYTES}, the limit of one node"
            left_out.append(LeftOut(path=znodes.resource_path(pattern), reason=reason, unreadable=True))
    return frozenset(oversized)


def _by_resource(acls: Iterable[StandardAcl]) -> dict[ResourcePattern, frozenset[znodes.AclEntry]]:
    by_resource = defaultdict(set)
    for acl in acls:
        by_resource[resource_of(acl)].add(znodes.entry_of(acl))
    return {pattern: frozenset(entries) for pattern, entries in by_resource.items()}


def _credential_problem(record: UserScramCredentialRecord) -> str | None:
    if record.mechanism not in set(ScramMechanism):
        return f"mechanism {record.mechanism}: not supported by Kafka 3.9"
    try:
        znodes.user_path(record.name)
    except EncodeError as error:
        return str(error)
    return None


def _token_problem(token: DelegationTokenRecord) -> str | None:
    try:
        znodes.encode_token(token)
    except EncodeError as error:
        return str(error)
    return None


def store_plan(target: AccessState, change: StateChange) -> StorePlan:
    """Plan the writes of `change`, which leads to `target`."""
    deny = AclPermissionType.DENY
    first = _changes(
        (acl for acl in change.added_acls if acl.permission_type == deny),
        (acl for acl in change.removed_acls if acl.permission_type != deny),
    )
    second = _changes(
        (acl for acl in change.added_acls if acl.permission_type != deny),
        (acl for acl in change.removed_acls if acl.permission_type == deny),
    )
    # A user's znode is written as a whole, so a user with one changed credential needs all credentials.
    users: dict[str, list[UserScramCredentialRecord]] = {each.name: [] for each in change.credentials}
    for record in target.credentials.values():
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
    none: frozenset[znodes.AclEntry] = frozenset()
    return {
        pattern: EntryChange(added=adds.get(pattern, none), removed=removes.get(pattern, none))
        for pattern in {**adds, **removes}
    }


# Copy of a whole store, kept up to date by a ZooKeeper watch on every znode.
#
# Brokers follow change events instead, and miss a change whose writer dies between the change and its event; a watch
# misses nothing. `catch_up` ends at a consistent state: nothing changed while it was read.


_DISCONNECTED = ""
"""Queued in place of a path when the connection is lost, since all watches may be lost with it."""
_EXTENDED = znodes.PREFIXED_TREE.root.rpartition("/")[0]
_ROOTS = tuple(tree.root for tree in znodes.TREES)
_DIRECTORIES = (*_ROOTS, _EXTENDED)
"""Parents of directories, one for each resource type or pattern type."""
_LISTS = (*_DIRECTORIES, znodes.USERS_PATH, znodes.TOKENS_PATH, znodes.KIP_TOKENS_PATH)
_MAX_MALFORMED = 5
"""Connections that end with a malformed response, after which a server is given up; others may belong to a proxy."""
_MAX_ROUNDS = 1000
_SETTLING_S = 300.0
"""How long a store may change while it is read, after the first reading."""
_PAUSE_S = 0.05


def _is_list(path: str) -> bool:
    """Return whether a znode is read for its children, not for its data."""
    parent, _, name = path.rpartition("/")
    return path in _LISTS or (parent in _ROOTS and znodes.type_of_directory(name) is not None)


def _no_progress(_count: int) -> None:
    """Report nothing."""


@define(eq=False)
class StoreWatch:
    """Contents of a store by path. One thread owns it; the client's threads queue the paths of changed znodes.

    `progress` is called with the number of znodes read so far.
    """

    _client: "ZkClient"
    _progress: Callable[[int], None] = _no_progress
    _changed: SimpleQueue[str] = Factory(SimpleQueue)
    _contents: dict[str, NodeContent] = field(factory=dict, init=False)
    _children: dict[str, frozenset[str]] = field(factory=dict, init=False)
    _unknown: set[str] = field(factory=set, init=False)
    _stale: set[str] = field(factory=lambda: {_DISCONNECTED}, init=False)

    def __attrs_post_init__(self) -> None:
        self._client.listen(lambda connected: None if connected else self._changed.put(_DISCONNECTED))

    def state(self) -> StoreState:
        """Return the state of the store as of the last `catch_up`."""
        return store_state(self._contents, sorted(self._unknown))

    def has_directories(self) -> bool:
        """Return whether any of Kafka's directories exists."""
        return any(path in self._children for path in _LISTS)

    def catch_up(self, patience: float) -> int:
        """Read changed znodes until no change is left; return how many were read.

        After a lost connection, which may last `patience` seconds, everything is read again.

        Raises:
            StoreError: the connection stays lost, responses are malformed, a znode is not readable with this client's
                identity, or the store changes faster than it can be read.

        """
        count, deadline = 0, time.monotonic() + patience
        settled = None
        for _ in range(_MAX_ROUNDS):
            if settled is not None and time.monotonic() > settled:
                break
            try:
                # After sync, all watches that have fired are in the queue: an empty queue then means a consistent
                # state.
                self._client.sync()
                self._take_changes()
                self._stale |= {path for path in _LISTS if path not in self._children}
                read = self._read_stale()
            except DisconnectedError:
                self._stale.add(_DISCONNECTED)
                if time.monotonic() > deadline or self._client.malformed > _MAX_MALFORMED:
                    raise
                time.sleep(_PAUSE_S)
                continue
            deadline = time.monotonic() + patience
            settled = settled or time.monotonic() + _SETTLING_S
            count += read
            if not read and self._changed.empty():
                return count
        raise StoreError(
            "ZooKeeper is modified faster than it can be read: pause all writers, then run the command again"
        )

    def _take_changes(self) -> None:
        while True:
            try:
                self._stale.add(self._changed.get_nowait())
            except Empty:
                return

    def _read_stale(self) -> int:
        if _DISCONNECTED in self._stale:
            self._children.clear()
            self._unknown.clear()
            self._contents.clear()
            self._stale = set(_LISTS)
        # A watch fires once, and each read below sets a new one, so a change during the read is queued again.
        nodes = {path for path in self._stale if not _is_list(path)}
        listed = sum(self._list(path, nodes) for path in sorted(self._stale - nodes))
        self._read(sorted(nodes))
        self._stale.clear()
        return listed + len(nodes)

    def _list(self, path: str, nodes: set[str]) -> int:
        """Read a znode's children, and add new ones to `nodes`; return how many lists were read."""
        children = self._client.children(path, lambda: self._changed.put(path))
        previous = self._children.pop(path, None)
        names = frozenset(children.names if children is not None else ())
        for name in (previous or frozenset()) - names:
            self._forget(f"{path}/{name}")
        if children is None:
            return int(previous is not None)
        self._children[path] = names
        return 1 + sum(self._discover(f"{path}/{name}", nodes) for name in sorted(names - (previous or frozenset())))

    def _discover(self, path: str, nodes: set[str]) -> int:
        """Handle a new znode: a list, a znode with data, or an unknown directory."""
        if _is_list(path):
            return 0 if path in _LISTS else self._list(path, nodes)
        if path.rpartition("/")[0] in _DIRECTORIES:
            self._unknown.add(path)
        else:
            nodes.add(path)
        return 0

    def _forget(self, path: str) -> None:
        self._contents.pop(path, None)
        self._unknown.discard(path)
        for name in self._children.pop(path, ()):
            self._forget(f"{path}/{name}")

    def _read(self, paths: Sequence[str]) -> None:
        for count, (path, node) in enumerate(self._client.get_many(paths, self._changed.put), 1):
            if node is None:
                self._vanished(path)
            else:
                self._contents[path] = node_content(path, node.data, has_children=node.child_count > 0)
            self._progress(count)

    def _vanished(self, path: str) -> None:
        # The znode was deleted after it was listed, or a server lists what it does not have. Nothing watches it, so it
        # must count as new when its parent is listed again: until it is gone there as well, what was read is not whole.
        self._contents.pop(path, None)
        parent, _, name = path.rpartition("/")
        if name in self._children.get(parent, ()):
            self._children[parent] -= {name}
            self._changed.put(parent)


# Executes a StorePlan: writes ACLs, credentials and tokens to ZooKeeper, several znodes in parallel.


_PARALLEL_WRITES = 16
_T = TypeVar("_T")


def execute_plan(plan: StorePlan, client: "ZkClient") -> None:
    """Execute a plan. Each znode changes atomically, the whole does not.

    Raises:
        DecodeError: a znode cannot be decoded; it is left unchanged.
        StoreError: ZooKeeper is unavailable. Completed writes stay; running the command again does the rest.

    """
    store, users, tokens = AclStore(client=client), ScramStore(client), TokenStore(client)
    if plan.first or plan.second:
        store.create_paths()
    with ThreadPoolExecutor(_PARALLEL_WRITES, thread_name_prefix="store") as pool:

        def each(work: Callable[[_T], object], items: Iterable[_T]) -> None:
            for _ in pool.map(work, items):  # waits for all, and raises the first error
                pass

        def change(changes: Mapping[ResourcePattern, EntryChange]) -> None:
            each(lambda item: store.update(znodes.resource_path(item[0]), item[1].apply), changes.items())

        # Each step ends before the next begins: after an interruption at any point, no request is allowed before the
        # DENY is written.
        change(plan.first)
        each(tokens.remove, plan.removed_tokens)
        each(lambda item: users.put(*item), plan.users.items())
        each(tokens.put, plan.tokens)
        change(plan.second)
