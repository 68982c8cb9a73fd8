"""The rules of a ZooKeeper into a quorum that runs, by CreateAcls: each batch is seen as soon as it is committed."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from attrs import define, field, frozen

from aclog.authorizer.acl import AclBindingFilter, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.cli.migrate.log_target import Held, MigrationTarget
from aclog.nodes.client import acl_requests
from aclog.nodes.client.connection import Connection
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.sources.bootstrap import connect_to_first
from aclog.terminal.notices import warn
from aclog.zkstore.migration.access_state import AccessState, StateChange, difference

_CREATED_AT_ONCE = 1000
_DELETED_AT_ONCE = 100
"""Deleting costs a controller as many steps as there are rules, for each filter."""


@frozen(kw_only=True)
class QuorumPlace:
    """The controllers of a running quorum, ours or Kafka's, and how to log in there."""

    controllers: tuple[HostPort, ...]
    security: ClientSecurity

    @property
    def name(self) -> str:
        """The controllers."""
        return f"the quorum at {','.join(map(str, self.controllers))}"

    @property
    def limit(self) -> str:
        """Why it takes rules only."""
        return (
            "a running quorum takes ACLs only, in batches that are seen one by one: no request carries the keys of a "
            "SCRAM credential, or a token with its id"
        )

    def takes(self, state: AccessState) -> AccessState:
        """Its rules."""
        return AccessState(acls=state.acls)

    def held(self) -> Held:
        """The rules that stand there."""
        with asyncio.Runner() as runner:
            connection = runner.run(connect_to_first(self.controllers, self.security))
            try:
                acls = runner.run(acl_requests.describe_acls(connection, AclBindingFilter()))
            finally:
                runner.run(connection.close())
        image = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in acls)
        return Held(state=AccessState(acls=frozenset(acls)), acls=image)

    @contextmanager
    def open(self) -> Iterator[MigrationTarget]:
        """A connection for the time of a migration."""
        standing = self.held().state
        with asyncio.Runner() as runner:
            connection = runner.run(connect_to_first(self.controllers, self.security))
            try:
                yield QuorumTarget(standing=standing, runner=runner, connection=connection)
            finally:
                runner.run(connection.close())


@define(kw_only=True)
class QuorumTarget:
    """A running quorum. Rules that deny are created first and deleted last, so that it never allows too much."""

    standing: AccessState
    _runner: asyncio.Runner
    _connection: Connection
    _refused: set[StandardAcl] = field(factory=set, init=False)
    """Not asked for again; the comparison lists them as missing."""

    def write(self, wanted: AccessState) -> StateChange:
        """Create and delete rules, seen at once; each one that the controller refuses is said, and the rest goes on.

        Raises:
            UnreachableError: the controller is out of reach.

        """
        change = difference(self.standing, AccessState(acls=wanted.acls - self._refused))
        for acls in _pieces(change.added_acls, _CREATED_AT_ONCE):
            created = self._runner.run(acl_requests.create_acls(self._connection, acls))
            self._note_refusals(acls, created, "not created")
        for acls in _pieces(reversed(change.removed_acls), _DELETED_AT_ONCE):
            filters = [_exactly(acl) for acl in acls]
            deleted = self._runner.run(acl_requests.delete_acls(self._connection, filters))
            self._note_refusals(acls, deleted, "not deleted")
        self.standing = AccessState(acls=wanted.acls - self._refused)
        return change

    def _note_refusals(
        self, acls: Sequence[StandardAcl], results: Sequence[AclCreateResult | AclDeleteResult], what: str
    ) -> None:
        for acl, result in zip(acls, results, strict=True):
            if result.error is not None:
                self._refused.add(acl)
                warn(f"{what}: {acl}: {result.error}")

    def switch(self) -> None:
        """All has been seen already."""

    def give_up(self) -> None:
        """What was created stays: it is what the ZooKeeper holds."""


def _pieces(acls: Iterable[StandardAcl], size: int) -> Iterator[Sequence[StandardAcl]]:
    """The rules, so many at a time."""
    left = iter(acls)
    while piece := tuple(islice(left, size)):
        yield piece


def _exactly(acl: StandardAcl) -> AclBindingFilter:
    return AclBindingFilter(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
