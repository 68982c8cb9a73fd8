"""The ZooKeeper of a Kafka up to 3.9 as a target: all changes on one resource become visible at once."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from itertools import groupby

from attrs import field

from aclog.authorizer.acl import ResourcePattern, StandardAcl, acl_text, resource_of
from aclog.authorizer.acls_image import content_of
from aclog.authorizer.codes import PatternType
from aclog.authorizer.settings import Generation, Settings
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.machine import clock
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define
from aclog.planning.plan import ApplyNote, Batching, Completion, PlaceState, Stage, Step, overlapping
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.sources.zookeeper import open_store, read_everything
from aclog.zookeeper import znodes
from aclog.zookeeper.acl_store import AclStore
from aclog.zookeeper.authorizer import prefixed_error, takes_prefixed
from aclog.zookeeper.connect import KraftController, kraft_controller

_SETTLE_S = 1.0
"""How long, in seconds, to wait for the brokers to read one stage before the next one is made.

Each broker has a copy of its own. It is notified of LITERAL and of PREFIXED patterns by two streams of events, in two
threads, and reads the current content of a resource: so it may see a later stage before an earlier one. ZooKeeper does
not record which changes a broker has read."""
_CLUSTER_ID = "/cluster/id"
"""Where Kafka keeps the id of the cluster (ClusterIdZNode)."""
_MOST_OF_ID = 255


@contextmanager
def open_zookeeper_place(properties: Mapping[str, str], notify: Callable[[str], None]) -> Iterator["ZooKeeperPlace"]:
    """Open the ZooKeeper that the properties of AclAuthorizer name. Raises as aclog.sources.zookeeper.open_store."""
    with open_store(properties) as store:
        yield ZooKeeperPlace(store=store, notify=notify, takes_prefixed=takes_prefixed(properties))


@define(eq=False, kw_only=True)
class ZooKeeperPlace:
    """An open ZooKeeper, owned by one command (aclog.planning.plan.WritablePlace)."""

    store: AclStore
    notify: Callable[[str], None]
    takes_prefixed: bool
    """Whether prefixed ACLs may be added: brokers before Kafka 2.0 do not look where they are."""
    _owner: KraftController | None = field(default=None, init=False)
    """The KRaft controller that overwrites other writers' changes, if any, when it was last read."""
    _has_paths: bool = field(default=False, init=False)
    _shared: Collection[ResourcePattern] = field(default=(), init=False)
    """Patterns that change and overlap another one that changes: the order of their stages can be seen."""
    _stage: Stage = field(default=Stage.ADD_DENY, init=False)
    """The newest stage that was made of one of them, and when."""
    _at: float = field(default=0.0, init=False)

    batching: Batching = field(default=Batching.RESOURCE, init=False)

    @property
    def name(self) -> str:
        """The servers that were given."""
        return self.store.client.settings.where

    def identity(self) -> str | None:
        """Return the cluster id; None before a broker has started on this ZooKeeper, or if the ACLs are elsewhere.

        Raises:
            DecodeError: the znode holds something else. StoreError: ZooKeeper does not respond.

        """
        node = self.store.client.get(_CLUSTER_ID)
        if node is None:
            return None
        cluster_id = znodes.text_field(znodes.json_object(node.data, path=_CLUSTER_ID), "id")
        if not 0 < len(cluster_id) <= _MOST_OF_ID:
            raise DecodeError(f"expected the id of the cluster, at most {_MOST_OF_ID} characters", path=_CLUSTER_ID)
        return cluster_id

    def fingerprint(self, end_offset: int) -> str | None:  # noqa: ARG002  # as the protocol has it
        """Return when the root of its ACLs was created, in ms; None if it has none yet.

        An identity may come later, with the first broker, and never does where only ACLs are. Raises StoreError.
        """
        node = self.store.client.get(znodes.LITERAL_TREE.root)
        return None if node is None else str(node.created_ms)

    def premises(self, properties: AbstractSet[str]) -> Premises:  # noqa: ARG002  # as the protocol has it
        """Return no premises: a ZooKeeper has no broker settings, and the flags decide."""
        return ALL_KNOWN

    def settings(self) -> Settings | None:
        """Return None: ZooKeeper does not hold the settings of the brokers."""
        return None

    def kafka(self, ranges: Collection[StandardAcl]) -> DecidingKafka:  # noqa: ARG002  # as the protocol has it
        """Return that of a Kafka up to 3.9: no other one has its ACLs in a ZooKeeper."""
        return DecidingKafka(generations=(Generation.V4_3,), stated=Generation.V4_3)

    def read(self) -> PlaceState:
        """Return the current ACLs of the leader: a server that lags behind is not used.

        Raises:
            StoreError: ZooKeeper does not respond.
            DecodeError: a znode cannot be decoded.
            ConfigError: a group has ACLs where Kafka 3.9 does not read them: their intent is unclear.

        """
        self.store.client.sync()
        self._owner = kraft_controller(self.store.client)
        if self._owner is not None:
            self.notify(self._owner.warning)
        contents = read_everything(self.store)
        for problem in contents.unknown:
            self.notify(str(problem))
        for node in contents.resources.values():
            if node.entries and node.path != znodes.resource_path(node.pattern):
                raise ConfigError(
                    f"{node.path}: ACLs of a group in a legacy directory, which Kafka 3.9 does not read: a "
                    "desired one would seem to be present. Move them to the directory Group if they are to apply, or "
                    "delete the node"
                )
        acls = {entry.on(node.pattern) for node in contents.resources.values() for entry in node.entries}
        return PlaceState(contents={content_of(acl) for acl in acls})

    def note_begin(self, note: ApplyNote) -> None:
        """Do nothing: ZooKeeper keeps no record of applies."""

    def note_done(self, note: ApplyNote) -> None:
        """Do nothing."""

    def noted(self, plan: str) -> ApplyNote | None:  # noqa: ARG002  # as the protocol has it
        """Return None: ZooKeeper keeps no record of applies."""
        return None

    def was_noted(self, apply: str) -> bool:  # noqa: ARG002  # as the protocol has it
        """Return False."""
        return False

    def completion(self, apply: str) -> Completion | None:  # noqa: ARG002  # as the protocol has it
        """Return None: ZooKeeper keeps no record of applies."""
        return None

    def check(self, steps: Sequence[Step]) -> None:
        """Check that Kafka 3.9 can read each ACL to add, and that no KRaft controller would overwrite it.

        Raises ConfigError: one of them fails, by the last read.
        """
        for step in steps:
            self._check(step)
        if steps and self._owner is not None:
            raise ConfigError(str(self._owner.error))

    def pieces(self, steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
        """Yield the batches. Raises ConfigError, before the first one: as `check`."""
        self.check(steps)
        self._shared = overlapping({resource_of(step.acl) for step in steps})
        self._stage = Stage.ADD_DENY
        return (list(batch) for _, batch in groupby(steps, key=lambda step: step.batch))

    def write(self, piece: Sequence[Step]) -> None:
        """Change one resource: in one transaction with the event that notifies the brokers.

        Before a later stage of overlapping patterns it waits until the brokers have read the earlier ones.

        Raises:
            DecodeError: its znode cannot be decoded, and is left unchanged.
            StoreError: ZooKeeper does not respond: it may be changed, or not.

        """
        if not self._has_paths:
            self.store.create_paths()  # a ZooKeeper that no AclAuthorizer has used has no root nodes yet
            self._has_paths = True
        pattern = resource_of(piece[0].acl)
        added = frozenset(znodes.entry_of(step.acl) for step in piece if step.adds)
        removed = frozenset(znodes.entry_of(step.acl) for step in piece if not step.adds)
        if pattern in self._shared and piece[0].stage > self._stage:
            clock.sleep(max(0.0, self._at + _SETTLE_S - elapsed_seconds()))
        self.store.update(znodes.resource_path(pattern), lambda current: current - removed | added)
        if pattern in self._shared:
            self._stage, self._at = piece[0].stage, elapsed_seconds()

    def read_back(self, acls: Sequence[StandardAcl]) -> set[StandardAcl]:
        """Return which of these ACLs are there now. Raises as `read`."""
        patterns = {resource_of(acl) for acl in acls}
        self.store.client.sync()
        there = {entry.on(pattern) for pattern in patterns for entry in self.store.read(pattern).entries}
        return there & set(acls)

    def _check(self, step: Step) -> None:
        acl = step.acl
        problem = znodes.name_problem(acl.resource_name)
        if step.adds:
            problem = problem or znodes.entry_problem(znodes.entry_of(acl))
            if acl.pattern_type == PatternType.PREFIXED and not self.takes_prefixed:
                problem = problem or str(prefixed_error())
        if problem is not None:
            raise ConfigError(f"{acl_text(acl)}: Kafka 3.9 cannot hold it: {problem}")
