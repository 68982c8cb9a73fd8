"""Planted mutations of `aclog sync`, `aclog apply`, and the index of last use that a node keeps."""

from contextlib import suppress
from typing import Any

from attrs import evolve

from aclog.authorizer.acl import AclBindingFilter
from aclog.client.errors import UnreachableError
from aclog.ops import sync
from aclog.ops.sync import ClusterPoller, RemovalTrust, SyncLog
from aclog.planning import applying
from aclog.planning.applying import Applying, Remaining
from aclog.server import usage_index as keeping
from aclog.server.usage_index import UsageKeeper
from aclog.targets import cluster
from aclog.targets.removal_filters import RemovalFilter
from aclog.usage.index import database, usage_index
from tests.simulation.planting import Patch, mutation_of

of_admin_world, of_usage_world = mutation_of("admin"), mutation_of("usage")


@of_admin_world
def the_first_poll_of_a_broker_is_trusted(patch: Patch) -> None:
    """A broker that has just been connected to may be behind the one before."""
    real = ClusterPoller._describe

    async def describe(self: ClusterPoller, connection: Any) -> Any:
        return evolve(await real(self, connection), is_settled=True)

    patch(ClusterPoller, "_describe", describe)


@of_admin_world
def a_broker_out_of_reach_is_trusted(patch: Patch) -> None:
    """A broker that does not reach its controller has an old state."""

    async def reaches(_connection: Any) -> None:
        pass

    patch(sync, "_check_reaches_controller", reaches)


@of_admin_world
def every_removal_is_plausible(patch: Patch) -> None:
    """A broker without its metadata shows no ACLs."""
    patch(RemovalTrust, "_is_plausible", lambda *_: True)


@of_admin_world
def another_cluster_is_recorded(patch: Patch) -> None:
    """The cluster of a poll is not compared with the recorded one."""
    real = ClusterPoller._check_cluster

    async def check(self: ClusterPoller, connection: Any) -> str:
        self.cluster_id = None
        return await real(self, connection)

    patch(ClusterPoller, "_check_cluster", check)


@of_admin_world
def a_poll_is_recorded_in_parts(patch: Patch) -> None:
    """Removals and additions of a poll are two batches."""
    real = SyncLog.append

    def append(self: SyncLog, changes: Any, timestamp: int) -> Any:
        removed = real(self, evolve(changes, added=()), timestamp) if changes.removed else []
        return [*removed, *(real(self, evolve(changes, removed=()), timestamp) if changes.added else [])]

    patch(SyncLog, "append", append)


@of_admin_world
def an_apply_does_not_read_back(patch: Patch) -> None:
    """A lost answer counts as success."""
    real = cluster.ServerPlace.write

    def write(self: Any, piece: Any) -> None:
        with suppress(UnreachableError):
            real(self, piece)

    patch(cluster.ServerPlace, "write", write)
    patch(Applying, "_check_written", lambda *_: None)


@of_admin_world
def results_of_a_request_are_not_read(patch: Patch) -> None:
    """Rules that the cluster refuses count as changed."""
    patch(cluster, "_check_results", lambda *_: None)
    patch(Applying, "_check_written", lambda *_: None)


@of_admin_world
def the_target_is_not_compared_with_the_plan(patch: Patch) -> None:
    """Every step is made, whatever the target has."""
    patch(applying, "check_base", lambda plan, *_: Remaining(steps=plan.steps, completed=0))
    patch(applying.Applying, "_check_identity", lambda *_: None)


@of_admin_world
def a_filter_is_too_wide(patch: Patch) -> None:
    """One filter removes all ACLs of a principal on a resource."""

    def filters(acls: Any, _present: Any) -> list[RemovalFilter]:
        by_resource = {
            AclBindingFilter(resource_type=acl.resource_type, resource_name=acl.resource_name): acl for acl in acls
        }
        groups = {key: tuple(acl for acl in acls if acl.resource_name == key.resource_name) for key in by_resource}
        return [RemovalFilter(key, group) for key, group in groups.items()]

    patch(cluster, "removal_filters", filters)


@of_usage_world
def an_interval_is_added_twice(patch: Patch) -> None:
    """A transaction whose outcome is unknown is repeated."""
    patch(usage_index, "is_taken", lambda *_: False)


@of_usage_world
def an_interval_that_failed_is_dropped(patch: Patch) -> None:
    """After an error the drained decisions are forgotten."""
    real = UsageKeeper._trouble

    def trouble(self: UsageKeeper, error: Exception) -> None:
        real(self, error)
        self._waiting = None

    patch(UsageKeeper, "_trouble", trouble)


def _executes(patch: Patch, before: str, after: str) -> None:
    """Replace a part of statements of the index."""
    real = database._connected

    def connected(*arguments: Any, **options: Any) -> Any:
        connection = real(*arguments, **options)
        execute = connection.execute
        connection.execute = lambda text, *more: execute(text.replace(before, after), *more)
        return connection

    patch(database, "_connected", connected)


@of_usage_world
def transactions_are_not_synced(patch: Patch) -> None:
    """A power loss takes intervals that were reported as written."""
    _executes(patch, "synchronous = FULL", "synchronous = OFF")


@of_usage_world
def a_recovered_transaction_is_not_copied(patch: Patch) -> None:
    """A power loss takes every interval after one whose fsync had failed, and that was there after a restart."""
    _executes(patch, "PRAGMA wal_checkpoint(PASSIVE)", "SELECT 0")


@of_usage_world
def the_name_of_the_index_is_not_durable(patch: Patch) -> None:
    """A power loss takes the directory."""
    patch(database, "fsync_directory", lambda _: None)


@of_usage_world
def dropped_decisions_are_covered(patch: Patch) -> None:
    """An interval without memory for all decisions counts as whole."""
    real = UsageKeeper._judged

    def judged(self: UsageKeeper) -> Any:
        result = real(self)
        if result is None or not result.drained.uncounted.dropped:
            return result
        decisions = sum(each.times for image in result.drained.images for each in image.counts)
        coverage = keeping.hourly_coverage(self.broker, result.until - 1, result.until, decisions)
        return result._replace(run=evolve(result.run, coverage=coverage))

    patch(UsageKeeper, "_judged", judged)


@of_usage_world
def a_jump_of_the_clock_is_covered(patch: Patch) -> None:
    """The hours that a clock was set forward by count as covered."""
    patch(keeping, "_CLOCK_JUMP_US", 1 << 60)


@of_usage_world
def the_last_interval_is_not_written(patch: Patch) -> None:
    """A node that stops forgets its newest decisions."""
    real = UsageKeeper._keep_once

    def keep_once(self: UsageKeeper) -> bool:
        if self._stopping.is_set():
            return False
        return real(self)

    patch(UsageKeeper, "_keep_once", keep_once)
