"""AclAuthorizer: ACLs in ZooKeeper (kafka.security.authorizer.AclAuthorizer), their changes and their cache."""

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import blake2b
from typing import TypeAlias, TypeVar
from uuid import UUID

import attrs
from attrs import field

from aclog.authorizer.acl import (
    AclBindingFilter,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    record_of,
    resource_of,
)
from aclog.authorizer.acls_image import AclsImage, check_by_resource_type
from aclog.authorizer.audit import AuditHook
from aclog.authorizer.codes import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.control import INVALID_REQUEST, creation_errors, filter_error
from aclog.authorizer.index.acl_index import Change
from aclog.authorizer.index.queries import filter_matches
from aclog.authorizer.interface import (
    AclCreateResult,
    AclDeleteResult,
    AclMutator,
    AclRequestError,
    Action,
    AuthorizationResult,
    Authorizer,
    RequestContext,
)
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.metalog.values import define, frozen
from aclog.zookeeper.acl_store import AclStore, ResourceAcls, StoreContents, StoreFollower, absent, acls_at
from aclog.zookeeper.acl_store import Change as AclChange
from aclog.zookeeper.client import ZkSettings, zk_settings
from aclog.zookeeper.connect import check_not_owned, open_client, retried
from aclog.zookeeper.znodes import AclEntry, entry_of, entry_problem, name_problem, paths_of, pattern_of, resource_path

# In-memory copy of a store's ACLs: the last read of each znode, and an image of all ACLs (AclAuthorizer.aclCache).


_MERGE_AT = 16_384
"""Size of an image's overlay at which it is merged into the base."""


@define(eq=False)
class AclCache:
    """ACLs by znode path, and their image. One thread at a time may change it; any thread may read `image`."""

    image: AclsImage = field(factory=AclsImage.empty, init=False)
    _resources: dict[str, ResourceAcls] = field(factory=dict, init=False)
    _complete: bool = field(default=False, init=False)
    """Whether a path that is not in the cache did not exist in the store either."""

    def get(self, path: str) -> ResourceAcls | None:
        """Return the last read of a znode; None if it did not exist or was never read."""
        return self._resources.get(path)

    def last_read(self, path: str) -> ResourceAcls | None:
        """Return the last read of a znode, empty if it did not exist; None if nothing is known about it."""
        acls = self._resources.get(path)
        return absent(path) if acls is None and self._complete else acls

    def replace(self, resources: Mapping[str, ResourceAcls], *, keep: Iterable[str] = ()) -> None:
        """Replace everything, except for the znodes in `keep`, which stay as they are."""
        unchanged = {path: self._resources[path] for path in keep if path in self._resources}
        resources = {**resources, **unchanged}
        patterns = {acls.pattern for acls in resources.values()}
        entries = ((pattern, entry) for pattern in patterns for entry in _union(pattern, resources))
        acls = (StandardAclWithId(id=_id(pattern, entry), acl=entry.on(pattern)) for pattern, entry in entries)
        self.image, self._resources, self._complete = AclsImage.from_acls(acls), resources, True

    def put(self, nodes: Iterable[ResourceAcls]) -> None:
        """Replace the ACLs of some znodes; a znode without ACLs is removed."""
        changes = [change for acls in nodes for change in self._changes(acls)]
        if not changes:
            return
        image = self.image.apply(changes)
        self.image = image.merged() if image.overlay_size > _MERGE_AT else image

    def _changes(self, acls: ResourceAcls) -> Iterator[Change]:
        """Replace a znode's ACLs; yield the records that change the image accordingly."""
        # An ACL may be in a legacy znode as well: it leaves the image only with its last copy.
        pattern = acls.pattern
        before = _union(pattern, self._resources)
        if acls.entries:
            self._resources[acls.path] = acls
        else:
            self._resources.pop(acls.path, None)
        after = _union(pattern, self._resources)
        for entry in before - after:
            yield RemoveAccessControlEntryRecord(id=_id(pattern, entry))
        for entry in after - before:
            yield record_of(entry.on(pattern), _id(pattern, entry))


def _union(pattern: ResourcePattern, resources: Mapping[str, ResourceAcls]) -> frozenset[AclEntry]:
    return frozenset().union(*(acls.entries for acls in acls_at(paths_of(pattern), resources)))


def _id(pattern: ResourcePattern, entry: AclEntry) -> UUID:
    """Return the id of an ACL inside an image, a hash of its fields: ACLs in ZooKeeper have no ids."""
    codes = pattern.resource_type, pattern.pattern_type, entry.operation, entry.permission_type
    texts = pattern.name, entry.principal, entry.host
    # Each text has its length in front, so that no two ACLs have the same hash input.
    key = "/".join((*(str(int(code)) for code in codes), *(f"{len(text)}:{text}" for text in texts)))
    return UUID(bytes=blake2b(key.encode(), digest_size=16).digest())


# The gate of prefixed ACLs: brokers before Kafka 2.0 do not look where they are (KIP-290).
#
# AclAuthorizer adds them only if `inter.broker.protocol.version` implies that no such broker is left.


PROTOCOL_VERSION = "inter.broker.protocol.version"

_CLOSED = re.compile(r"(0\.\d+\.\d+|1\.[01])(-IV\d+)?|2\.0-IV0")
"""Before 2.0-IV1, since which brokers support prefixed ACLs."""

_OPEN = re.compile(r"(2\.[0-8]|3\.\d|4\.0)(-IV\d+)?")
"""Later ones that Kafka 3.9 defines; 2.0 alone is 2.0-IV1."""


def takes_prefixed(properties: Mapping[str, str]) -> bool:
    """Return whether prefixed ACLs may be added, by a server's properties; the default is Kafka 3.9's own version.

    Raises:
        ConfigError: a version that Kafka does not have.

    """
    text = properties.get(PROTOCOL_VERSION, "3.9").strip()
    # As in Kafka, a release's name may be longer: 2.0.1 is 2.0 (MetadataVersion.fromVersionString).
    version = ".".join(text.split(".")[: 3 if text.startswith("0.") else 2])
    is_closed = _CLOSED.fullmatch(version) is not None
    if not is_closed and _OPEN.fullmatch(version) is None:
        raise ConfigError(f"{PROTOCOL_VERSION} {text!r}: expected a version of Kafka up to 3.9, such as 3.9 or 1.1-IV0")
    return not is_closed


def prefixed_error() -> AclRequestError:
    """Return the error of a prefixed ACL at a closed gate, in Kafka's words."""
    return AclRequestError(
        INVALID_REQUEST,
        "Failed to create ACL: Adding ACLs on prefixed resource patterns requires inter.broker.protocol.version of "
        "2.0-IV1 or greater",
    )


# Creation and deletion of ACLs in ZooKeeper, with a result per ACL or filter (AclAuthorizer.updateResourceAcls).


Updated: TypeAlias = Callable[[Sequence[ResourceAcls]], None]
"""Called with the new ACLs of znodes."""


@define(eq=False, kw_only=True)
class StoreChanges:
    """Changes ACLs in ZooKeeper and in the cache. One thread at a time may use it.

    `lock` keeps a concurrent read of a znode by the follower from overwriting a newer result in the cache. Unless
    `takes_prefixed`, prefixed ACLs can be removed only.
    """

    store: AclStore
    cache: AclCache
    updated: Updated
    lock: threading.RLock
    takes_prefixed: bool

    def create(self, acls: Sequence[StandardAcl]) -> list[AclCreateResult]:
        """Create ACLs, atomically per resource; return one result per ACL, in order."""
        owned = self._owned_error()
        errors: list[MetadataError | None] = [
            self._gate_error(acl) or error or _store_error(acl) or owned
            for acl, error in zip(acls, creation_errors(acls), strict=True)
        ]
        for pattern, numbers in _by_pattern(acls, errors).items():
            try:
                self._update(resource_path(pattern), _adding(entry_of(acls[number]) for number in numbers))
            except MetadataError as e:
                for number in numbers:
                    errors[number] = e
        return [AclCreateResult(error=error) for error in errors]

    def _gate_error(self, acl: StandardAcl) -> AclRequestError | None:
        return prefixed_error() if acl.pattern_type == PatternType.PREFIXED and not self.takes_prefixed else None

    def _owned_error(self) -> MetadataError | None:
        """Return why nothing can be written at all; it waits for a lost connection as AclStore.update does."""
        client = self.store.client
        try:
            retried(client, lambda: check_not_owned(client))
        except MetadataError as error:
            return error
        return None

    def delete(self, filters: Sequence[AclBindingFilter]) -> list[AclDeleteResult]:
        """Delete matching ACLs; return one result per filter, in order. Each ACL is reported for its first filter."""
        owned = self._owned_error()
        errors: list[MetadataError | None] = [filter_error(acl_filter) or owned for acl_filter in filters]
        deleted: list[list[StandardAclWithId]] = [[] for _ in filters]
        for path, numbers in self._affected(filters, errors).items():
            removal = _Removal(pattern=pattern_of(path), filters=[(number, filters[number]) for number in numbers])
            try:
                self._update(path, removal)
            except MetadataError as e:
                for number in numbers:
                    errors[number] = e
                continue
            for number, acl in removal.removed():
                deleted[number].append(StandardAclWithId(id=None, acl=acl))
        return [AclDeleteResult(deleted=tuple(acls), error=error) for acls, error in zip(deleted, errors, strict=True)]

    def _update(self, path: str, change: AclChange) -> None:
        with self.lock:
            self.updated([self.store.update(path, change, last_read=self.cache.last_read(path))])

    def _affected(
        self, filters: Sequence[AclBindingFilter], errors: Sequence[MetadataError | None]
    ) -> dict[str, list[int]]:
        """Return the paths at which filters may match, each with the indexes of its filters.

        These are the paths of all matching ACLs in the cache, and the paths that a filter names, since the cache may
        lag behind the store.
        """
        by_path: dict[str, dict[int, None]] = {}
        for number, acl_filter in enumerate(filters):
            if errors[number] is None:
                for path in (*self._cached_paths(acl_filter), *_named_paths(acl_filter)):
                    by_path.setdefault(path, {})[number] = None
        return {path: list(numbers) for path, numbers in by_path.items()}

    def _cached_paths(self, acl_filter: AclBindingFilter) -> Iterator[str]:
        patterns = {resource_of(rule.acl): None for rule in self.cache.image.matching(acl_filter)}
        for pattern in patterns:
            yield from (path for path in paths_of(pattern) if self.cache.get(path) is not None)


@define(eq=False, kw_only=True)
class _Removal:
    """The change that removes the ACLs of a resource that match filters; called again for each attempt."""

    pattern: ResourcePattern
    filters: Sequence[tuple[int, AclBindingFilter]]
    _removed: dict[AclEntry, int] | None = None

    def __call__(self, entries: frozenset[AclEntry]) -> frozenset[AclEntry]:
        # Collected over all attempts: if the response to one is lost, the next may find the ACLs already removed.
        removed = self._removed = {} if self._removed is None else self._removed
        matching = set()
        for entry in entries:
            acl = entry.on(self.pattern)
            number = next((number for number, acl_filter in self.filters if filter_matches(acl_filter, acl)), None)
            if number is not None:
                removed.setdefault(entry, number)
                matching.add(entry)
        return entries - matching

    def removed(self) -> Iterator[tuple[int, StandardAcl]]:
        """Yield each removed ACL with the index of its first matching filter."""
        for entry, number in sorted((self._removed or {}).items()):
            yield number, entry.on(self.pattern)


def _adding(entries: Iterable[AclEntry]) -> AclChange:
    more = frozenset(entries)
    return lambda current: current | more


def _by_pattern(
    acls: Sequence[StandardAcl], errors: Sequence[MetadataError | None]
) -> dict[ResourcePattern, list[int]]:
    """Return the indexes of the valid ACLs by resource."""
    indexes: dict[ResourcePattern, list[int]] = {}
    for number, (acl, error) in enumerate(zip(acls, errors, strict=True)):
        if error is None:
            indexes.setdefault(resource_of(acl), []).append(number)
    return indexes


def _named_paths(acl_filter: AclBindingFilter) -> Iterator[str]:
    """Yield the paths of the resources that a filter names (ResourcePatternFilter.matchesAtMostOne, and ANY)."""
    kinds = {PatternType.ANY: (PatternType.LITERAL, PatternType.PREFIXED)}.get(
        PatternType(acl_filter.pattern_type), (acl_filter.pattern_type,)
    )
    name = acl_filter.resource_name
    if acl_filter.resource_type == ResourceType.ANY or acl_filter.pattern_type == PatternType.MATCH or name is None:
        return
    if name_problem(name) is None:
        for kind in kinds:
            yield from paths_of(ResourcePattern(resource_type=acl_filter.resource_type, name=name, pattern_type=kind))


def _store_error(acl: StandardAcl) -> AclRequestError | None:
    """Return the error of an ACL that is valid, but cannot be stored in ZooKeeper."""
    problem = name_problem(acl.resource_name)
    if problem is not None:
        return AclRequestError(INVALID_REQUEST, f"Invalid resource name {acl.resource_name!r}: {problem}")
    problem = entry_problem(entry_of(acl))
    return None if problem is None else AclRequestError(INVALID_REQUEST, problem)


# Settings of AclAuthorizer in a server's properties, including names from KIP-11 (AclAuthorizer.configure).


PREFIX = "authorizer."
"""Prefix of zookeeper.* properties that apply to the ACLs only."""

LEGACY_SUPER_USERS, LEGACY_ALLOW_EVERYONE = "kafka.superusers", "allow.everyone"
"""Names of the two properties in KIP-11's text; read if the released names are not set."""


@frozen(kw_only=True)
class AclAuthorizerSettings:
    """The ZooKeeper of the ACLs, super users, the default without ACLs, and whether prefixed ACLs may be added."""

    store: ZkSettings
    super_users: frozenset[str]
    allow_everyone: bool
    takes_prefixed: bool


def acl_authorizer_settings(properties: Mapping[str, str]) -> AclAuthorizerSettings:
    """Parse a server's properties.

    `authorizer.zookeeper.url` and other zookeeper.* properties with that prefix take precedence over those without.

    Raises:
        ConfigError: no zookeeper.connect, or an invalid or unsupported value; as in Kafka, also an empty entry among
            the super users, and an allow.everyone.if.no.acl.found that is neither true nor false.

    """
    users = _value(properties, SUPER_USERS_CONFIG, LEGACY_SUPER_USERS)
    everyone = _value(properties, ALLOW_EVERYONE_CONFIG, LEGACY_ALLOW_EVERYONE)
    return AclAuthorizerSettings(
        store=zk_settings(properties, prefix=PREFIX),
        super_users=_super_users(*users),
        allow_everyone=_flag(*everyone),
        takes_prefixed=takes_prefixed(properties),
    )


def _value(properties: Mapping[str, str], name: str, legacy: str) -> tuple[str, str | None]:
    key = name if name in properties or legacy not in properties else legacy
    return key, properties.get(key)


def _super_users(key: str, text: str | None) -> frozenset[str]:
    if not text:
        return frozenset()
    parts = [part.strip() for part in text.rstrip(";").split(";")] if text.strip(";") else []
    for part in parts:
        if ":" not in part:
            raise ConfigError(f"{key} {text!r}: {part!r}: expected principalType:principalName")
    return frozenset(parts)


def _flag(key: str, text: str | None) -> bool:
    value = "false" if text is None else text.strip().lower()
    if value not in {"true", "false"}:
        raise ConfigError(f"{key} {text!r}: expected true or false")
    return value == "true"


# Authorizer with ACLs in ZooKeeper (kafka.security.authorizer.AclAuthorizer).


_WILDCARD_SESSION = "User:\0*"
"""Replaces the principal of a session named `User:*`.

In ACLs, `User:*` means everyone, so no ACL can name such a session: it gets the permissions of the ACLs for everyone,
like any principal without ACLs of its own. No real principal can have the replacement's name.
"""

_Result = TypeVar("_Result")


@define(eq=False, repr=False)
class AclAuthorizer(Authorizer, AclMutator):
    """Authorizes with an image of the ACLs in ZooKeeper, which a thread keeps up to date.

    Its own changes are visible as soon as they are acknowledged. The caller configures it once and closes it. It does
    not start without ZooKeeper; if the connection is lost later, it authorizes with the last known ACLs, and `stale`
    has the reason.
    """

    _engine: StandardAuthorizer = field(factory=lambda: StandardAuthorizer(documented=True), init=False)
    _cache: AclCache = field(factory=AclCache, init=False)
    _lock: threading.RLock = field(factory=threading.RLock, init=False)
    """Held from each read or write of a znode until the cache has its result, so that the cache never goes back."""
    _super_users: frozenset[str] = field(default=frozenset(), init=False)
    _allow_everyone: bool = field(default=False, init=False)
    _takes_prefixed: bool = field(default=True, init=False)
    _store: AclStore | None = field(default=None, init=False)
    _follower: StoreFollower | None = field(default=None, init=False)
    _writer: ThreadPoolExecutor | None = field(default=None, init=False)

    def configure(self, properties: Mapping[str, str]) -> None:
        """Connect, load all ACLs, and follow their changes.

        Raises:
            ConfigError: an unsupported value, kazoo is not installed, or the authorizer is already configured.
            StoreError: ZooKeeper is unavailable.
            DecodeError: a znode with ACLs cannot be decoded.

        """
        settings = acl_authorizer_settings(properties)
        if self._store is not None:
            raise ConfigError("this authorizer is already configured: expected one authorizer per ZooKeeper")
        self._super_users, self._allow_everyone = settings.super_users, settings.allow_everyone
        self._takes_prefixed = settings.takes_prefixed
        self._engine.configure(
            {
                SUPER_USERS_CONFIG: ";".join(sorted(settings.super_users)),
                ALLOW_EVERYONE_CONFIG: str(settings.allow_everyone).lower(),
            }
        )
        self._open(settings.store)
        self._engine.complete_initial_load()

    def _open(self, settings: ZkSettings) -> None:
        store = AclStore(client=open_client(settings))
        try:
            follower = StoreFollower(store=store, replaced=self._replaced, changed=self._changed, lock=self._lock)
            follower.start()
        except BaseException:
            store.client.close()
            raise
        self._store, self._follower = store, follower
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="zk-acl-writer")

    def close(self) -> None:
        """Wait for pending changes, then close the session."""
        # The writer first: it needs the session until its last change is acknowledged.
        if self._writer is not None:
            self._writer.shutdown()
        if self._follower is not None:
            self._follower.close()
        if self._store is not None:
            self._store.client.close()

    @property
    def stale(self) -> str | None:
        """Why the ACLs may be older than those in ZooKeeper; None if they are up to date."""
        return "not configured" if self._follower is None else self._follower.stale

    def set_audit(self, audit: AuditHook | None) -> None:
        """Report each decision of `authorize` to this hook; None reports to nothing."""
        self._engine.set_audit(audit)

    def _replaced(self, contents: StoreContents) -> None:
        # A znode that has become unreadable keeps its last known ACLs, among which may be a DENY.
        self._cache.replace(contents.resources, keep=[str(problem.path) for problem in contents.unreadable])
        self._engine.load(self._cache.image)

    def _changed(self, nodes: Sequence[ResourceAcls]) -> None:
        before = self._cache.image
        self._cache.put(nodes)
        # Unchanged for the event of a change made here: not loading it again keeps the decision cache warm.
        if self._cache.image is not before:
            self._engine.load(self._cache.image)

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[AuthorizationResult]:
        """Return one result per action, all from the same image.

        Raises:
            AuthorizerNotReadyError: the authorizer is not configured, and the principal is no super user.
            InvalidRequestError: a pattern that is not LITERAL, or a principal without a colon.

        """
        return self._engine.authorize(self._session(context), actions)

    def _session(self, context: RequestContext) -> RequestContext:
        if context.principal != WILDCARD_PRINCIPAL or WILDCARD_PRINCIPAL in self._super_users:
            return context
        return attrs.evolve(context, principal=_WILDCARD_SESSION)

    def authorize_by_resource_type(
        self, context: RequestContext, operation: int, resource_type: int
    ) -> AuthorizationResult:
        """Return whether the operation is allowed on at least one resource of the type.

        As in AclAuthorizer, other operations imply nothing here (READ does not imply DESCRIBE), and with
        allow.everyone.if.no.acl.found everything is allowed unless it is denied on all resources.

        Raises:
            InvalidRequestError: an operation or a type that is ANY or UNKNOWN, or a principal without a colon.

        """
        if operation == AclOperation.TWO_PHASE_COMMIT:
            operation = AclOperation.UNKNOWN  # Kafka 3.9 does not have it
        check_by_resource_type(operation, resource_type)
        context, image = self._session(context), self._cache.image
        allowed = context.principal in self._super_users
        if not allowed and self._allow_everyone:
            allowed = not self._denied_everywhere(context, operation, resource_type)
        elif not allowed:
            allowed = image.allows_some(context.principal, context.host, operation, resource_type)
        return AuthorizationResult.ALLOWED if allowed else AuthorizationResult.DENIED

    def _denied_everywhere(self, context: RequestContext, operation: int, resource_type: int) -> bool:
        """Return whether a DENY on LITERAL `*` matches the request."""
        acl_filter = AclBindingFilter(
            resource_type=resource_type,
            resource_name=WILDCARD,
            pattern_type=PatternType.LITERAL,
            permission_type=AclPermissionType.DENY,
        )
        return any(
            rule.acl.principal in {context.principal, WILDCARD_PRINCIPAL}
            and rule.acl.host in {context.host, WILDCARD}
            and rule.acl.operation in {operation, AclOperation.ALL}
            for rule in self._cache.image.matching(acl_filter)
        )

    def acls(self, acl_filter: AclBindingFilter) -> Iterable[StandardAclWithId]:
        """Yield the ACLs that match the filter, from one image and unordered; they have no ids."""
        return (StandardAclWithId(id=None, acl=rule.acl) for rule in self._cache.image.matching(acl_filter))

    def acl_count(self) -> int:
        """Return the number of ACLs."""
        return len(self._cache.image)

    def create_acls(
        self,
        context: RequestContext,  # noqa: ARG002  # the caller has authorized ALTER on the cluster
        acls: Sequence[StandardAcl],
    ) -> "Future[list[AclCreateResult]]":
        """Create ACLs, atomically per resource; creating one that exists succeeds.

        Raises:
            ConfigError: the authorizer is not configured, or closed.

        """
        return self._submit(lambda changes: changes.create(acls))

    def delete_acls(
        self,
        context: RequestContext,  # noqa: ARG002  # as in create_acls
        filters: Sequence[AclBindingFilter],
    ) -> "Future[list[AclDeleteResult]]":
        """Delete the ACLs that match the filters, atomically per resource; each is reported for its first filter.

        Raises:
            ConfigError: the authorizer is not configured, or closed.

        """
        return self._submit(lambda changes: changes.delete(filters))

    def _submit(self, change: Callable[[StoreChanges], _Result]) -> "Future[_Result]":
        if self._store is None or self._writer is None:
            raise ConfigError("ACLs cannot be changed: this authorizer is not configured: call configure() first")
        changes = StoreChanges(
            store=self._store,
            cache=self._cache,
            updated=self._changed,
            lock=self._lock,
            takes_prefixed=self._takes_prefixed,
        )
        try:
            return self._writer.submit(change, changes)
        except RuntimeError as e:
            raise ConfigError(f"ACLs cannot be changed: this authorizer is closed ({e})") from e
