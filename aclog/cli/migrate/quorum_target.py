"""A running quorum as the target of a migration: ACLs only, by CreateAcls and DeleteAcls, visible batch by batch."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from attrs import define, field, frozen

from aclog.authorizer.acl import AclBindingFilter, ResourceType, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.cli.migrate.target import TargetContents, TargetWriter
from aclog.metalog.errors import ConfigError
from aclog.nodes.client import acl_requests
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.peer import Role
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.wire.api_keys import CREATE_ACLS
from aclog.sources.bootstrap import connect_to_first
from aclog.terminal.notices import warn
from aclog.terminal.progress import progress
from aclog.zkstore.migration.access_state import AccessState, StateChange, difference

_CREATIONS_PER_REQUEST = 1000
_DELETIONS_PER_REQUEST = 100
"""Fewer, because a controller compares each filter with every ACL."""


@frozen(kw_only=True)
class QuorumTarget:
    """The controllers of a running quorum (aclog or Kafka), and the security settings of its clients."""

    controllers: tuple[HostPort, ...]
    security: ClientSecurity

    @property
    def name(self) -> str:
        """The controllers."""
        return f"the quorum at {','.join(map(str, self.controllers))}"

    @property
    def limitation(self) -> str:
        """Why it can hold ACLs only."""
        return (
            "a running quorum takes ACLs only, in batches that become visible one by one: no request can carry the "
            "keys of a SCRAM credential or the id of a token"
        )

    def supported(self, state: AccessState) -> AccessState:
        """Return the ACLs."""
        return AccessState(acls=state.acls)

    def contents(self) -> TargetContents:
        """Read all ACLs by DescribeAcls."""
        with asyncio.Runner() as runner:
            connection = runner.run(connect_to_first(self.controllers, self.security, Role.CONTROLLER))
            try:
                acls = runner.run(acl_requests.describe_acls(connection, AclBindingFilter()))
            finally:
                runner.run(connection.close())
        image = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in acls)
        return TargetContents(state=AccessState(acls=frozenset(acls)), acls=image)

    @contextmanager
    def open(self) -> Iterator[TargetWriter]:
        """Connect for the duration of the migration."""
        state = self.contents().state
        with asyncio.Runner() as runner:
            connection = runner.run(connect_to_first(self.controllers, self.security, Role.CONTROLLER))
            try:
                yield QuorumTargetWriter(state=state, runner=runner, connection=connection)
            finally:
                runner.run(connection.close())


@define(kw_only=True)
class QuorumTargetWriter:
    """A connection to a running quorum. DENY ACLs are created first and deleted last, to never allow too much."""

    state: AccessState
    _runner: asyncio.Runner
    _connection: Connection
    _refused: set[StandardAcl] = field(factory=set, init=False)
    """ACLs that the controller rejects, or is too old for; not sent again: the comparison lists them as missing."""

    def write(self, wanted: AccessState) -> StateChange:
        """Create and delete ACLs, visible at once; report and skip one that the controller rejects, or is too old for.

        Raises:
            UnreachableError: the controller is unreachable.

        """
        self._refuse_unsupported(wanted.acls - self._refused)
        change = difference(self.state, AccessState(acls=wanted.acls - self._refused))
        # Creations before deletions, in the order of listing_key and in its reverse: DENY is created first, deleted
        # last.
        done, total = 0, len(change.added_acls) + len(change.removed_acls)
        with progress("writing to the quorum", "ACLs") as advance:
            try:
                for acls in _pieces(change.added_acls, _CREATIONS_PER_REQUEST):
                    created = self._runner.run(acl_requests.create_acls(self._connection, acls))
                    self._note_refusals(acls, created, "not created")
                    advance(done := done + len(acls), total)
                for acls in _pieces(reversed(change.removed_acls), _DELETIONS_PER_REQUEST):
                    filters = [AclBindingFilter.of(acl) for acl in acls]
                    deleted = self._runner.run(acl_requests.delete_acls(self._connection, filters))
                    self._note_refusals(acls, deleted, "not deleted")
                    advance(done := done + len(acls), total)
            except KeyboardInterrupt:
                what = f"{done:,} of {total:,} changes are made, perhaps a request more"
                warn(f"{what}: run the command again for the rest")
                raise
        self.state = AccessState(acls=wanted.acls - self._refused)
        return change

    def _refuse_unsupported(self, acls: Iterable[StandardAcl]) -> None:
        """Refuse ACLs on USER resources before a quorum that is too old for them is sent any."""
        users = [acl for acl in acls if acl.resource_type == ResourceType.USER]
        try:
            acl_requests.version_for(self._connection, CREATE_ACLS, [acl.resource_type for acl in users])
        except ConfigError as error:
            for acl in users:
                self._refuse(acl, "not created", error)

    def _note_refusals(
        self, acls: Sequence[StandardAcl], results: Sequence[AclCreateResult | AclDeleteResult], what: str
    ) -> None:
        for acl, result in zip(acls, results, strict=True):
            if result.error is not None:
                self._refuse(acl, what, result.error)

    def _refuse(self, acl: StandardAcl, what: str, error: Exception) -> None:
        self._refused.add(acl)
        warn(f"{what}: {acl}: {error}")

    def commit(self) -> None:
        """Do nothing: everything is visible already."""

    def abort(self) -> None:
        """Do nothing: what was created stays, as it is what ZooKeeper holds."""


def _pieces(acls: Iterable[StandardAcl], size: int) -> Iterator[Sequence[StandardAcl]]:
    """Split ACLs into pieces of at most `size`."""
    left = iter(acls)
    while piece := tuple(islice(left, size)):
        yield piece
