"""Authorizer with ACLs in ZooKeeper (kafka.security.authorizer.AclAuthorizer)."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import attrs
from attrs import define, field

from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    StandardAcl,
    StandardAclWithId,
)
from aclog.authorizer.acls_image import check_by_resource_type
from aclog.authorizer.audit_hook import AuditHook
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.interface import (
    AclCreateResult,
    AclDeleteResult,
    AclMutator,
    Action,
    AuthorizationResult,
    Authorizer,
    RequestContext,
)
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.errors import ConfigError
from aclog.zkstore.acl_store import AclStore, ResourceAcls, StoreContents
from aclog.zkstore.authorizer.acl_cache import AclCache
from aclog.zkstore.authorizer.changes import StoreChanges
from aclog.zkstore.authorizer.settings import acl_authorizer_settings
from aclog.zkstore.client.connect import open_client
from aclog.zkstore.client.settings import ZkSettings
from aclog.zkstore.store_follower import StoreFollower

_WILDCARD_SESSION = "User:\0*"
"""Replaces the principal of a session named `User:*`.

In ACLs, `User:*` means everyone, so no ACL can name such a session: it gets what the ACLs for everyone give, like any
principal without ACLs of its own. No real principal can have the replacement's name.
"""

_Result = TypeVar("_Result")


@define(eq=False, repr=False)
class AclAuthorizer(Authorizer, AclMutator):
    """Authorizes with an image of the ACLs in ZooKeeper, which a thread keeps up to date.

    Its own changes are visible as soon as they are acknowledged. The caller configures it once and closes it. It does
    not start without ZooKeeper; if the connection is lost later, it authorizes with the last known ACLs, and `stale`
    says why.
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
        wanted = AclBindingFilter(
            resource_type=resource_type,
            resource_name=WILDCARD,
            pattern_type=PatternType.LITERAL,
            permission_type=AclPermissionType.DENY,
        )
        return any(
            found.acl.principal in {context.principal, WILDCARD_PRINCIPAL}
            and found.acl.host in {context.host, WILDCARD}
            and found.acl.operation in {operation, AclOperation.ALL}
            for found in self._cache.image.matching(wanted)
        )

    def acls(self, acl_filter: AclBindingFilter) -> Iterable[StandardAclWithId]:
        """Yield the ACLs that match the filter, from one image and unordered; they have no ids."""
        return (StandardAclWithId(id=None, acl=found.acl) for found in self._cache.image.matching(acl_filter))

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
