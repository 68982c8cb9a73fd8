"""The authorizer of Kafka up to 3.9 (kafka.security.authorizer.AclAuthorizer): its rules are in ZooKeeper."""

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
from aclog.authorizer.acls_image import check_kinds
from aclog.authorizer.interface import (
    AclCreateResult,
    AclDeleteResult,
    AclMutator,
    Action,
    AuthorizationResult,
    Authorizer,
    RequestContext,
)
from aclog.authorizer.standard import AuditHook, StandardAuthorizer
from aclog.authorizer.super_users import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.metalog.errors import ConfigError
from aclog.zkstore.authorizer.changes import StoreChanges
from aclog.zkstore.authorizer.rules import StoredRules
from aclog.zkstore.authorizer.settings import acl_authorizer_settings
from aclog.zkstore.client.connect import ZkSettings, open_client
from aclog.zkstore.store import ResourceRules, StoreContents, ZkStore
from aclog.zkstore.store_follower import StoreFollower

_NOBODY = "User:\0*"
"""Stands for a session of `User:*`, which is a plain one here: in rules that is everyone, so none is for it alone."""


Changed = TypeVar("Changed")


@define(eq=False, repr=False)
class AclAuthorizer(Authorizer, AclMutator):
    """Decides by an image of the rules in ZooKeeper, which a thread keeps current; its own changes show at once.

    Whoever makes it configures it once, and closes it. Without the store at the start it does not come up; when the
    store is lost later, it decides by what it read last, and `stale` says so.
    """

    _engine: StandardAuthorizer = field(factory=lambda: StandardAuthorizer(documented=True), init=False)
    _rules: StoredRules = field(factory=StoredRules, init=False)
    _lock: threading.RLock = field(factory=threading.RLock, init=False)
    """Held from the reading of a node to the taking in of what it held, and from a write to the same."""
    _super_users: frozenset[str] = field(default=frozenset(), init=False)
    _allow_everyone: bool = field(default=False, init=False)
    _store: ZkStore | None = field(default=None, init=False)
    _follower: StoreFollower | None = field(default=None, init=False)
    _writer: ThreadPoolExecutor | None = field(default=None, init=False)

    def configure(self, properties: Mapping[str, str]) -> None:
        """Connect, read all rules, and follow what changes.

        Raises:
            ConfigError: a value that cannot be honoured; kazoo is not installed; configured already.
            StoreError: ZooKeeper did not answer in time.
            DecodeError: a node whose rules are not clear.

        """
        settings = acl_authorizer_settings(properties)
        if self._store is not None:
            raise ConfigError("this authorizer follows a store already: expected one for each store")
        self._super_users, self._allow_everyone = settings.super_users, settings.allow_everyone
        self._engine.configure(
            {
                SUPER_USERS_CONFIG: ";".join(sorted(settings.super_users)),
                ALLOW_EVERYONE_CONFIG: str(settings.allow_everyone).lower(),
            }
        )
        self._open(settings.store)
        self._engine.complete_initial_load()

    def _open(self, settings: ZkSettings) -> None:
        store = ZkStore(client=open_client(settings))
        try:
            follower = StoreFollower(store=store, replaced=self._replaced, changed=self._changed, lock=self._lock)
            follower.start()
        except BaseException:
            store.client.close()
            raise
        self._store, self._follower = store, follower
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="zk-acl-writer")

    def close(self) -> None:
        """End the session; what is being changed is waited for."""
        if self._writer is not None:
            self._writer.shutdown()
        if self._follower is not None:
            self._follower.close()
        if self._store is not None:
            self._store.client.close()

    @property
    def stale(self) -> str | None:
        """Why the rules may be older than the store's; None while every change is followed."""
        return "not configured" if self._follower is None else self._follower.stale

    def set_audit(self, audit: AuditHook | None) -> None:
        """Report every decision of `authorize` to this hook, or to none."""
        self._engine.set_audit(audit)

    def _replaced(self, contents: StoreContents) -> None:
        self._rules.replace(contents.resources, keep=[str(problem.path) for problem in contents.unreadable])
        self._engine.load(self._rules.image)

    def _changed(self, nodes: Sequence[ResourceRules]) -> None:
        before = self._rules.image
        self._rules.put(nodes)
        if self._rules.image is not before:  # the event of a change of its own brings nothing new
            self._engine.load(self._rules.image)

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[AuthorizationResult]:
        """One answer an action, all from the same image.

        Raises:
            AuthorizerNotReadyError: not configured, and not a super user.
            InvalidRequestError: a pattern that is not LITERAL, a principal without a colon.

        """
        return self._engine.authorize(self._session(context), actions)

    def _session(self, context: RequestContext) -> RequestContext:
        if context.principal != WILDCARD_PRINCIPAL or WILDCARD_PRINCIPAL in self._super_users:
            return context
        return attrs.evolve(context, principal=_NOBODY)

    def authorize_by_resource_type(
        self, context: RequestContext, operation: int, resource_type: int
    ) -> AuthorizationResult:
        """Whether the operation is allowed on at least one resource of the type, as this authorizer has it.

        It asks about no resource first, so no implied operation counts; with allow.everyone.if.no.acl.found, all is
        allowed that is not denied on every resource.

        Raises:
            InvalidRequestError: an operation or a type that is ANY or UNKNOWN; a principal without a colon.

        """
        if operation == AclOperation.TWO_PHASE_COMMIT:
            operation = AclOperation.UNKNOWN  # what it is to Kafka 3.9
        check_kinds(operation, resource_type)
        context, image = self._session(context), self._rules.image
        allowed = context.principal in self._super_users
        if not allowed and self._allow_everyone:
            allowed = not self._denied_everywhere(context, operation, resource_type)
        elif not allowed:
            allowed = image.allows_some(context.principal, context.host, operation, resource_type)
        return AuthorizationResult.ALLOWED if allowed else AuthorizationResult.DENIED

    def _denied_everywhere(self, context: RequestContext, operation: int, resource_type: int) -> bool:
        """Whether a DENY on LITERAL `*` is for this request."""
        wanted = AclBindingFilter(
            resource_type=resource_type,
            resource_name=WILDCARD,
            pattern_type=PatternType.LITERAL,
            permission_type=AclPermissionType.DENY,
        )
        return any(
            rule.acl.principal in {context.principal, WILDCARD_PRINCIPAL}
            and rule.acl.host in {context.host, WILDCARD}
            and rule.acl.operation in {operation, AclOperation.ALL}
            for rule in self._rules.image.matching(wanted)
        )

    def acls(self, acl_filter: AclBindingFilter) -> Iterable[StandardAclWithId]:
        """The rules that the filter takes, lazily, from one image, in no order; they have no ids."""
        return (StandardAclWithId(id=None, acl=rule.acl) for rule in self._rules.image.matching(acl_filter))

    def acl_count(self) -> int:
        """The number of rules."""
        return len(self._rules.image)

    def create_acls(
        self,
        context: RequestContext,  # noqa: ARG002  # whoever may change rules was asked about before
        acls: Sequence[StandardAcl],
    ) -> "Future[list[AclCreateResult]]":
        """Add rules to the store, each resource's in one step; those that stand already are a success too.

        Raises:
            ConfigError: not configured, or closed.

        """
        return self._submit(lambda changes: changes.create(acls))

    def delete_acls(
        self,
        context: RequestContext,  # noqa: ARG002  # as above
        filters: Sequence[AclBindingFilter],
    ) -> "Future[list[AclDeleteResult]]":
        """Remove what the filters take, each resource's in one step; a rule is told under the first that took it.

        Raises:
            ConfigError: not configured, or closed.

        """
        return self._submit(lambda changes: changes.delete(filters))

    def _submit(self, change: Callable[[StoreChanges], Changed]) -> "Future[Changed]":
        if self._store is None or self._writer is None:
            raise ConfigError("rules cannot be changed: this authorizer follows no store: expected configure() before")
        changes = StoreChanges(store=self._store, rules=self._rules, shown=self._changed, lock=self._lock)
        try:
            return self._writer.submit(change, changes)
        except RuntimeError as e:
            raise ConfigError(f"rules cannot be changed: this authorizer is closed ({e})") from e
