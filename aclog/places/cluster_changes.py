"""What a plan changes of a cluster, in requests that hold its controller for a short time each."""

from collections.abc import Sequence

from attrs import define, field

from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.metalog.clock import elapsed_seconds
from aclog.metalog.errors import MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.acl_requests import create_acls, delete_acls
from aclog.nodes.client.connection import Connection
from aclog.nodes.wire.api_keys import DESCRIBE_QUORUM
from aclog.places.cluster_nodes import ClusterNodes, explained
from aclog.places.exact_filters import exactly
from aclog.places.node_settings import allow_everyone_of, settings_of
from aclog.places.request_order import independent_runs

MOST_FILTERS = 250
"""Of a DeleteAcls request."""
_HELD_S = 0.5
"""How long one DeleteAcls request may hold a Kafka's controller, which compares each filter with every ACL, and serves
nobody meanwhile: brokers whose heartbeats wait for 9 s are fenced."""
_FIRST_COMPARISONS = 800_000
"""Filters times ACLs of the first request: half a second at the slowest controller that was measured."""
_CHANGE_S = 60.0
"""How long a change may take until it is committed: as long as brokers retry at the controllers."""


@define(eq=False)
class ClusterChanges:
    """Adds and removes ACLs of one stage; owned by a ServerPlace."""

    _nodes: ClusterNodes
    rules: int = field(default=0, init=False)
    """How many the cluster has, as far as is known."""
    _closed: bool | None = field(default=None, init=False)
    _removed_at_once: int = field(default=0, init=False)
    """How many filters the next DeleteAcls request has; 0 before the first."""

    async def add(self, acls: Sequence[StandardAcl]) -> None:
        """Add ACLs, and wait until they are committed. Raises as ServerPlace.write."""
        connection = await self._nodes.writing()
        in_order = DESCRIBE_QUORUM in connection.apis or await self._closed_by_default()
        for run in [acls] if in_order else independent_runs(acls):
            results = await create_acls(connection, run, _CHANGE_S)
            _check_results(connection, "CreateAcls", run, [each.error for each in results])

    async def remove(self, acls: Sequence[StandardAcl]) -> None:
        """Remove exactly these ACLs, and wait until that is committed. Raises as ServerPlace.write."""
        for run in [acls] if await self._closed_by_default() else independent_runs(acls):
            await self._remove_in_any_order(run)

    async def _closed_by_default(self) -> bool:
        """Return whether no state within a stage denies what both ends allow, in whatever order its ACLs come and go.

        That is so unless the first ACL on a resource closes it to everyone (allow.everyone.if.no.acl.found).
        """
        if self._closed is None:
            self._closed = allow_everyone_of(await settings_of(self._nodes)) is False
        return self._closed

    async def _remove_in_any_order(self, acls: Sequence[StandardAcl]) -> None:
        connection, done = await self._nodes.writing(), 0
        while done < len(acls):
            most = self._removed_at_once or max(1, _FIRST_COMPARISONS // max(self.rules, 1))
            some = acls[done : done + most]
            begin = elapsed_seconds()
            results = await delete_acls(connection, [exactly(acl) for acl in some], _CHANGE_S)
            seconds = elapsed_seconds() - begin
            _check_results(connection, "DeleteAcls", some, [each.error for each in results])
            # Never more than twice as many: the first ones may have been quick because nobody else was served.
            fitting = int(len(some) * _HELD_S / max(seconds, 0.001))
            self._removed_at_once = max(1, min(fitting, 2 * most, MOST_FILTERS))
            done += len(some)


def _check_results(
    connection: Connection, request: str, acls: Sequence[StandardAcl], errors: Sequence[MetadataError | None]
) -> None:
    """Raise the first error of a request's results, with its ACL."""
    if len(errors) != len(acls):
        raise RequestError(
            -1, f"{connection.address}: {request}: {len(errors):,} results for {len(acls):,} rules: expected one each"
        )
    refused = [(acl, error) for acl, error in zip(acls, errors, strict=True) if error is not None]
    if not refused:
        return
    acl, error = refused[0]
    found = explained(connection, request, error, "ALTER")
    others = f" ({len(refused):,} of the request's {len(acls):,} rules were refused)" if len(acls) > 1 else ""
    raise RequestError(found.code, f"{found}: {acl_text(acl)}{others}")
