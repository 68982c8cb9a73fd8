"""What `aclog migrate` does: ACLs, SCRAM credentials and tokens from ZooKeeper to a metadata log, or back.

A migration copies, follows the changes, switches over, and compares both sides. Its targets are in
migration_targets.py.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from attrs import evolve, field

from aclog.authorizer.acl import StandardAcl, StandardAclWithId, code_name, object_of_rule
from aclog.authorizer.acls_image import AclsImage, Verdict
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import InvalidRequestError
from aclog.config.properties import read_properties
from aclog.metalog.errors import ConfigError, plural
from aclog.metalog.values import define, frozen
from aclog.ops.migration_targets import LogTarget, Target, TargetContents, TargetWriter
from aclog.ops.removal_limit import RemovalLimit
from aclog.sources.live import opened_zookeeper
from aclog.terminal.columns import Row
from aclog.terminal.notices import progress
from aclog.terminal.output import note, warn
from aclog.zookeeper.client import ZkSettings, zk_settings
from aclog.zookeeper.connect import check_not_owned, kraft_controller
from aclog.zookeeper.migration import (
    AccessState,
    Comparison,
    Decide,
    LeftOut,
    Request,
    StateChange,
    StoreState,
    StoreWatch,
    compare,
    difference,
    execute_plan,
    storable,
    store_plan,
)

if TYPE_CHECKING:
    from aclog.zookeeper.session import ZkClient

# The documents of `--format jsonl`: what a migration would do, and how both sides differ.


@frozen(kw_only=True)
class Preview:
    """What a migration would do; nothing is written."""

    store_state: StoreState
    """Of ZooKeeper."""
    goal: AccessState
    """What the written side would hold."""
    left_out: Sequence[LeftOut]
    change: StateChange
    obstacles: Sequence[str]
    """What blocks it, if anything does."""

    def objects(self) -> Iterator[Row]:
        """Yield the counts, what is left out, the ACLs that would be removed, and what blocks the migration."""
        change = self.change
        yield {
            "kind": "plan",
            "aclsAdded": len(change.added_acls),
            "aclsRemoved": len(change.removed_acls),
            "credentialsChanged": len(change.credentials),
            "tokensChanged": len(change.tokens),
        }
        yield from ({"kind": "leftOut", "path": each.path, "reason": each.reason} for each in self.left_out)
        yield from ({"kind": "remove", **object_of_rule(acl)} for acl in change.removed_acls)
        yield from ({"kind": "obstacle", "reason": text} for text in self.obstacles)


def comparison_objects(comparison: Comparison) -> Iterator[Row]:
    """Yield the counts, what only one side has, what differs, and the requests that are decided differently."""
    change, expected = comparison.difference, sum(each.is_known for each in comparison.disagreements)
    yield {
        "kind": "compared",
        "contents": len(change),
        "decisions": comparison.requests,
        "differing": len(comparison.disagreements) - expected,
        "known": expected,
    }
    yield from ({"kind": "onlyInZooKeeper", **object_of_rule(acl)} for acl in change.added_acls)
    yield from ({"kind": "notInZooKeeper", **object_of_rule(acl)} for acl in change.removed_acls)
    yield from ({"kind": "credential", "name": each.name, "mechanism": each.mechanism} for each in change.credentials)
    yield from ({"kind": "token", "tokenId": each.token_id} for each in change.tokens)
    for each in comparison.disagreements:
        request = each.request
        yield {
            "kind": "decision",
            "principal": request.principal,
            "host": request.host,
            "operation": code_name(AclOperation, request.operation),
            "resourceType": code_name(ResourceType, request.resource_type),
            "resourceName": request.name,
            "allowedByZooKeeper": each.store_allows,
            "known": each.is_known,
        }


# Warnings of what a migration leaves out, or what the other side cannot hold.


def warn_of_left_out(left_out: Iterable[LeftOut]) -> None:
    """Warn about every entry that is not migrated."""
    for each in left_out:
        warn(f"left out: {each}")


def warn_of_limitation(target: Target, store_state: StoreState) -> None:
    """Warn if the target cannot hold all of the state that was found."""
    omitted = len(store_state.state.credentials) + len(store_state.state.tokens)
    if target.limitation and omitted:
        warn(
            f"{len(store_state.state.credentials)} SCRAM credentials and {len(store_state.state.tokens)} "
            f"delegation tokens are not migrated: {target.limitation}"
        )


def warn_of_downgrade(acls: Iterable[StandardAcl]) -> None:
    """Warn of ACLs that ZooKeeper holds and brokers before Kafka 2.0 ignore (KIP-290)."""
    prefixed = [acl for acl in acls if acl.pattern_type == PatternType.PREFIXED]
    denied = sum(acl.permission_type == AclPermissionType.DENY for acl in prefixed)
    if prefixed:
        warn(
            f"{len(prefixed)} ACLs are prefixed, {denied} of them DENY: a Kafka before 2.0 ignores them, and allows "
            "what only such a DENY forbids. Do not downgrade that far while they are needed"
        )


# What `--replace` may remove: more than a share of what the target holds is confirmed first.


@frozen(kw_only=True)
class LargeRemoval:
    """More removals at once than the limit admits; prints as the error that refuses them."""

    name: str
    removed: int
    total: int

    def __str__(self) -> str:
        what = f"{self.removed} of {self.total} entries would go"
        return f"{self.name}: {what}: if that is right, accept it with --accept-removal {self.removed}"


Confirm: TypeAlias = Callable[[LargeRemoval], None]
"""Returns if a large removal is accepted; otherwise it raises ConfigError."""


def refuse_removal(removal: LargeRemoval) -> None:
    """Accept none. Raises ConfigError."""
    raise ConfigError(str(removal))


def large_removal(name: str, current: AccessState, goal: AccessState, limit: RemovalLimit) -> LargeRemoval | None:
    """Return the removal that the changes to the wanted state need to have accepted; None if they need not."""
    removed = difference(current, goal).removals
    if not limit.is_exceeded(removed, len(current)) or limit.is_accepted(removed):
        return None
    return LargeRemoval(name=name, removed=removed, total=len(current))


def _confirmed(removal: LargeRemoval | None, limit: RemovalLimit, confirm: Confirm) -> RemovalLimit:
    """Return the limit, with a large removal that is now accepted. Raises ConfigError: it is not."""
    if removal is None:
        return limit
    confirm(removal)
    return evolve(limit, accepted=removal.removed)


# The ZooKeeper of a migration: its settings, a connected client, and a watched copy of its contents.


_IN_FLIGHT = 256
"""Pipelined requests while everything is read; Kafka's default of 10 would take minutes for large stores."""


def store_settings(connect: str, tls_config: Path | None, *, is_written: bool) -> ZkSettings:
    """Return the settings of the client; only a store that is written gets a missing chroot. Raises ConfigError."""
    properties = {} if tls_config is None else read_properties(tls_config)[0]
    settings = zk_settings({**properties, "zookeeper.connect": connect})
    return evolve(settings, in_flight=max(settings.in_flight, _IN_FLIGHT), make_chroot=is_written)


@contextmanager
def connected(settings: ZkSettings) -> Iterator["ZkClient"]:
    """Connect for the duration of a migration; warn if a KRaft controller owns the ZooKeeper.

    Raises ConfigError, StoreError; DecodeError: as aclog.zookeeper.connect.kraft_controller.
    """
    with closing(opened_zookeeper(settings)) as client:
        owner = kraft_controller(client)
        if owner is not None:
            warn(owner.warning)
        yield client


def patience(settings: ZkSettings) -> float:
    """Return how many seconds to wait for a lost connection."""
    return settings.session_timeout + settings.connection_timeout


def read_store(client: "ZkClient", *, may_be_new: bool = False) -> StoreWatch:
    """Read everything in a store, and watch it from then on.

    Raises:
        ConfigError: it has none of Kafka's directories, and is not allowed to be new.
        StoreError: ZooKeeper is unavailable.

    """
    with progress("reading ZooKeeper", "znodes") as advance:
        watch = StoreWatch(client, lambda count: advance(count, None))
        watch.catch_up(patience(client.settings))
    if not watch.has_directories() and not may_be_new:
        raise ConfigError(
            f"{client.settings.where}: no /kafka-acl, /config/users or /delegation_token: is the chroot correct?"
        )
    return watch


def decide_by(acls: AclsImage) -> Decide:
    """Return the decisions of an image of ACLs, without super users."""

    def decide(request: Request) -> bool:
        """Decide one request."""
        arguments = (request.principal, request.host, request.operation, request.resource_type, request.name)
        try:
            return acls.verdict(*arguments) is Verdict.ALLOW
        except InvalidRequestError:  # Kafka throws for such a principal, and denies the request
            return False

    return decide


def store_decides(watch: StoreWatch) -> Decide:
    """Return the decisions of Kafka 3.9's AclAuthorizer with the ACLs of a store."""
    image = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in watch.state().state.acls)
    return decide_by(image.with_options(documented=True, cidr=False))


# From ZooKeeper to a log, a new Kafka or a running quorum: copy, follow changes, switch over.


_POLL_S = 0.2
"""Interval of the checks for changes and for the switchover."""
_MAX_LATE_CHANGES = 10
"""Rounds of changes after the switchover before the command fails."""


class SwitchRequest(Protocol):
    """The operator's request to switch over."""

    def wait(self, seconds: float) -> None:
        """Wait for it, at most this long."""

    def is_set(self) -> bool:
        """Return whether it was made. Raises ConfigError: it can no longer be made."""


class NoRequest:
    """No operator: the time without changes decides, if there is one."""

    def wait(self, seconds: float) -> None:
        """Wait this long."""
        threading.Event().wait(seconds)

    def is_set(self) -> bool:
        """Return False."""
        return False


@frozen(kw_only=True)
class Migration:
    """A ZooKeeper, the target, and what is accepted; `until_quiet` in seconds."""

    store: ZkSettings
    target: Target
    follow: bool = False
    """Whether a SwitchRequest ends it."""
    until_quiet: float | None = None
    """It also ends after so long without a change."""
    replace: bool = False
    """Whether what only the target has is removed."""
    skip_unreadable: bool = False
    limit: RemovalLimit = field(factory=RemovalLimit)

    def preview(self) -> Preview:
        """Return what it would do. Raises as `compare`."""
        with connected(self.store) as client:
            store_state, current = read_store(client).state(), self.target.contents().state
        goal = self.target.supported(store_state.state)
        obstacles = [*_unreadable(self, store_state), *_own_entries(self, current, goal)]
        if self.replace and (removal := large_removal(self.target.name, current, goal, self.limit)):
            obstacles.append(str(removal))
        return Preview(
            store_state=store_state,
            goal=goal,
            left_out=store_state.left_out,
            change=difference(current, goal),
            obstacles=obstacles,
        )

    def compare(self) -> Comparison:
        """Return how ZooKeeper and the target differ, in contents and decisions.

        Raises:
            StoreError: ZooKeeper is unavailable.
            MetadataError: the target cannot be read.

        """
        with connected(self.store) as client:
            return self._compared(read_store(client))

    def run(
        self, confirm: Confirm = refuse_removal, begin_switch: Callable[[], SwitchRequest] = NoRequest
    ) -> Comparison:
        """Migrate; return how both sides differ afterwards. `begin_switch` is called once everything is copied.

        Raises:
            ConfigError: entries that cannot be read, a target with entries of its own, or too many of these to remove.
            StoreError: ZooKeeper is unavailable.
            MetadataError: the target cannot be read or written.

        """
        with connected(self.store) as client:
            watch = read_store(client)
            store_state = watch.state()
            warn_of_left_out(store_state.left_out)
            _refuse(_unreadable(self, store_state))
            # Nothing is written before all obstacles are known to be absent.
            with self.target.open() as writer:
                goal = self.target.supported(store_state.state)
                _refuse(_own_entries(self, writer.state, goal))
                removal = large_removal(self.target.name, writer.state, goal, self.limit)
                # What is confirmed here is accepted until the end: removals are counted from the state at the start.
                accepted = evolve(self, limit=_confirmed(removal, self.limit, confirm))
                run = _Run(accepted, watch, writer)
                run.follow(begin_switch)
                run.switch_over()
            # Read again, so that the comparison does not depend on the copy that was migrated.
            return self._compared(read_store(client))

    def _compared(self, watch: StoreWatch) -> Comparison:
        contents, store_state = self.target.contents(), watch.state()
        comparison = compare(
            self.target.supported(store_state.state),
            contents.state,
            store_decides=store_decides(watch),
            target_decides=decide_by(contents.acls),
        )
        warn_of_limitation(self.target, store_state)
        return comparison


def _unreadable(migration: Migration, store_state: StoreState) -> Iterator[str]:
    if store_state.unreadable and not migration.skip_unreadable:
        yield (
            f"{len(store_state.unreadable)} entries in ZooKeeper cannot be read, and may be DENY ACLs (the first: "
            f"{store_state.unreadable[0]}): repair or delete them, or leave them out with --skip-unreadable"
        )


def _own_entries(migration: Migration, current: AccessState, goal: AccessState) -> Iterator[str]:
    change = difference(current, goal)
    if change.removals and not migration.replace:
        yield (
            f"{migration.target.name}: {change.removals} entries are not in ZooKeeper: remove them first, or let "
            "--replace remove them"
        )


def _refuse(obstacles: Iterator[str]) -> None:
    for obstacle in obstacles:
        raise ConfigError(obstacle)


@define
class _Run:
    """A running migration, owned by one thread."""

    _migration: Migration
    _watch: StoreWatch
    _writer: TargetWriter
    _reported: frozenset[LeftOut] = field(init=False)
    _begun: AccessState = field(init=False)
    """What the target held at the start."""
    _quiet_since: float = field(factory=time.monotonic, init=False)

    def __attrs_post_init__(self) -> None:
        self._begun = self._writer.state
        # Reported by Migration.run already.
        self._reported = frozenset(self._watch.state().left_out)

    def follow(self, begin_switch: Callable[[], SwitchRequest]) -> None:
        """Copy everything, then follow changes until it is time to switch over."""
        migration = self._migration
        copied = self._writer.write(migration.target.supported(self._watch.state().state))
        note(f"copied into {migration.target.name}, not switched over yet: {copied.counts()}")
        request = begin_switch()
        while not self._is_time(request):
            request.wait(_POLL_S)
            self.catch_up()

    def _is_time(self, request: SwitchRequest) -> bool:
        quiet, follow = self._migration.until_quiet, self._migration.follow
        if quiet is not None and time.monotonic() - self._quiet_since >= quiet:
            return True
        return request.is_set() or (not follow and quiet is None)

    def catch_up(self) -> int:
        """Write what has changed since the last call; return the number of changes.

        Raises:
            ConfigError: it would remove too much of what the target held at the start.
            StoreError: ZooKeeper is unavailable.

        """
        if not self._watch.catch_up(patience(self._migration.store)):
            return 0
        store_state = self._watch.state()
        warn_of_left_out(each for each in store_state.left_out if each not in self._reported)
        self._reported |= frozenset(store_state.left_out)
        goal = self._migration.target.supported(store_state.state)
        if removal := large_removal(self._migration.target.name, self._begun, goal, self._migration.limit):
            refuse_removal(removal)
        change = self._writer.write(goal)
        if len(change):
            # Only migrated entries count: quotas, for example, may keep changing.
            self._quiet_since = time.monotonic()
            note(f"followed: {change.counts()}")
        return len(change)

    def switch_over(self) -> None:
        """Make everything visible, with the last changes, and copy changes that are made during the switchover."""
        self.catch_up()
        # Entries that have become unreadable since the copy.
        _refuse(_unreadable(self._migration, self._watch.state()))
        self._writer.commit()
        note(f"switched over: {self._migration.target.name} holds {self._writer.state.counts()}")
        # A writer that was not stopped may have changed ZooKeeper after the last catch-up and before the commit.
        for _ in range(_MAX_LATE_CHANGES):
            count = self.catch_up()
            if not count:
                return
            self._writer.commit()
            warn(
                f"ZooKeeper was modified during the switchover: {plural(count, 'change')} copied too; stop all writers"
            )
        raise ConfigError(
            "ZooKeeper is still being modified after the switchover; stop all writers, then run the command again"
        )


# Back to ZooKeeper: the newest state of a log is written there.


@frozen(kw_only=True)
class ReverseMigration:
    """A log, the ZooKeeper that is written, and what is accepted."""

    store: ZkSettings
    log: Path
    replace: bool = False
    """Whether what only ZooKeeper has is removed."""
    skip_unreadable: bool = False
    limit: RemovalLimit = field(factory=RemovalLimit)

    def preview(self) -> Preview:
        """Return what it would do; entries that are left out are warned of. Raises as `run`."""
        _, goal, left_out = self._goal()
        with connected(self.store) as client:
            watch = read_store(client, may_be_new=True)
            check_not_owned(client)
            return self._preview(watch, goal, left_out, with_large=True)

    def compare(self) -> Comparison:
        """Return how ZooKeeper and the log differ, in contents and decisions. Raises StoreError, MetadataError."""
        contents, goal, _ = self._goal()
        with connected(self.store) as client:
            return self._compared(read_store(client, may_be_new=True), contents, goal)

    def run(self, confirm: Confirm = refuse_removal) -> Comparison:
        """Write the state of the log to ZooKeeper; return how both sides differ afterwards.

        Raises:
            ConfigError: entries that ZooKeeper cannot hold, or that only ZooKeeper has, and that are not accepted; or
                too many of these to remove.
            AclRequestError: a KRaft controller owns the ZooKeeper.
            StoreError: ZooKeeper is unavailable.
            MetadataError: the log cannot be read.

        """
        contents, goal, left_out = self._goal()
        with connected(self.store) as client:
            watch = read_store(client, may_be_new=True)
            # A KRaft controller that owns it would overwrite what is written.
            check_not_owned(client)
            _refuse(iter(self._preview(watch, goal, left_out, with_large=False).obstacles))
            current = watch.state().state
            _confirmed(large_removal(self.store.where, current, goal, self.limit), self.limit, confirm)
            change = difference(current, goal)
            execute_plan(store_plan(goal, change), client)
            note(f"written into {client.settings.where}: {change.counts()}")
            # Read again, so that the comparison is with what was really written.
            return self._compared(read_store(client, may_be_new=True), contents, goal)

    def _goal(self) -> tuple[TargetContents, AccessState, tuple[LeftOut, ...]]:
        contents = LogTarget(directory=self.log, force=False).existing()
        return (contents, *storable(contents.state))

    def _preview(
        self, watch: StoreWatch, goal: AccessState, left_out: tuple[LeftOut, ...], *, with_large: bool
    ) -> Preview:
        """Return what would change; `with_large`: a large removal is an obstacle, and not confirmed later."""
        store_state = watch.state()
        change = difference(store_state.state, goal)
        warn_of_left_out((*left_out, *store_state.left_out))
        warn_of_downgrade(goal.acls)
        obstacles = []
        if (left_out or store_state.unreadable) and not self.skip_unreadable:
            obstacles.append(
                f"{len(left_out)} entries that ZooKeeper cannot hold, and {len(store_state.unreadable)} entries in it "
                "that cannot be read: repair or remove them, or leave them out with --skip-unreadable"
            )
        if change.removals and not self.replace:
            obstacles.append(
                f"{self.store.where}: {change.removals} entries are not in the log: remove them first, or let "
                "--replace remove them"
            )
        elif with_large and (removal := large_removal(self.store.where, store_state.state, goal, self.limit)):
            obstacles.append(str(removal))
        return Preview(
            store_state=store_state,
            goal=goal,
            left_out=(*left_out, *store_state.left_out),
            change=change,
            obstacles=obstacles,
        )

    def _compared(self, watch: StoreWatch, contents: TargetContents, goal: AccessState) -> Comparison:
        # Contents are compared with what ZooKeeper can hold, decisions with the whole log: an ACL that was left out
        # shows up if it makes a difference.
        return compare(
            watch.state().state,
            goal,
            store_decides=store_decides(watch),
            target_decides=decide_by(contents.acls),
        )
