"""A cluster as a place: any Kafka, or nodes of ours, by its brokers or its controllers."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from itertools import groupby
from typing import Any, TypeVar

from attrs import define, field

from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.cluster_settings import ClusterSettings
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.creation_checks import refusal
from aclog.authorizer.premises import Premises
from aclog.authorizer.rule_content import content_of
from aclog.authorizer.settings import Settings
from aclog.metalog.clock import elapsed_seconds
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.acl_requests import acl_contents
from aclog.nodes.client.errors import UnreachableError
from aclog.nodes.client.peer import Role
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.places.cluster_changes import ClusterChanges
from aclog.places.cluster_nodes import ClusterNodes, explained
from aclog.places.exact_filters import covering, exactly
from aclog.places.node_settings import allow_everyone_of, settings_of, super_users_of
from aclog.places.replica_comparison import PATIENCE_S, RESPONSE_S, ReplicaComparison, caught_up
from aclog.planning.batching import Batching
from aclog.planning.journal.sent import Made
from aclog.planning.place import ApplyNote, PlaceState
from aclog.planning.step import Step
from aclog.snapshots.deciding_kafka import DecidingKafka, kafka_of_image, kafka_of_levels
from aclog.snapshots.image import Image
from aclog.sources.live_kafka import live_levels
from aclog.sources.quorum import QuorumSource
from aclog.terminal.notices import warn

_T = TypeVar("_T")

MOST_ADDED = 2000
"""ACLs of one CreateAcls request: Kafka's controllers take 10,000."""
MOST_REMOVED = 250
"""ACLs that are removed before the cluster is asked whether they are gone."""
_PAUSE_S = 0.02


@contextmanager
def open_server_place(
    servers: Sequence[HostPort], security: ClientSecurity, role: Role, notify: Callable[[str], None]
) -> Iterator["ServerPlace"]:
    """Open a cluster by the addresses of some of its brokers or controllers; `notify` is told what they do not tell.

    Raises:
        MetadataError: no server responds, or one is of the other role.

    """
    with asyncio.Runner() as runner:
        nodes = ClusterNodes(tuple(servers), security, role, notify)
        try:
            runner.run(nodes.first())
            yield ServerPlace(runner, nodes)
        finally:
            runner.run(nodes.close())


@define(eq=False)
class ServerPlace:
    """An open cluster, owned by one command (aclog.planning.place.WritablePlace)."""

    _runner: asyncio.Runner
    _nodes: ClusterNodes
    patience: float = PATIENCE_S
    """How long, in seconds, its nodes may take to agree, and to show what was written."""
    _written: dict[StandardAcl, bool] = field(factory=dict, init=False)
    """What was written last, and whether it is there since."""
    _shown: ClusterSettings | None = field(default=None, init=False)
    """What the brokers showed when they were asked last."""
    _changes: ClusterChanges = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._changes = ClusterChanges(self._nodes)

    @property
    def name(self) -> str:
        """The servers that were given."""
        return self._nodes.name

    @property
    def batching(self) -> Batching:
        """One ACL: a Kafka publishes each record of a request by itself."""
        return Batching.RULE

    def identity(self) -> str | None:
        """Return the cluster id. Raises as WritablePlace.identity."""
        return self._run(self._nodes.description()).cluster_id or None

    def fingerprint(self, end_offset: int) -> str | None:  # noqa: ARG002  # as the protocol has it
        """Return None: a cluster has an identity."""
        return None

    def premises(self, given: AbstractSet[str]) -> Premises:
        """Return what brokers do not all show alike, as `settings` read it last. Raises as WritablePlace.settings."""
        found = self._shown or self._run(settings_of(self._nodes))
        shown = {SUPER_USERS_CONFIG: super_users_of(found), ALLOW_EVERYONE_CONFIG: allow_everyone_of(found)}
        return found.premises(given | {name for name, value in shown.items() if value is not None})

    def settings(self) -> Settings | None:
        """Return the settings if all brokers tell alike of allow.everyone.if.no.acl.found; None if that is unknown.

        Super users that are not told count as none. Raises as WritablePlace.settings.
        """
        found = self._shown = self._run(settings_of(self._nodes))
        allow_everyone = allow_everyone_of(found)
        if allow_everyone is None:
            return None
        return Settings(super_users=super_users_of(found) or frozenset(), allow_everyone=allow_everyone)

    def kafka(self, ranges: Iterable[str]) -> DecidingKafka:
        """Return what each broker answers, or what the controllers' log states; all may, if these do not tell.

        Raises as WritablePlace.kafka.
        """
        if self._nodes.role is not Role.BROKER:
            return kafka_of_image(self._registered(), ranges)
        live = self._run(live_levels(self._nodes.servers, self._nodes.security, controllers=False))
        return kafka_of_levels(live.brokers, ranges)

    def _registered(self) -> Image:
        """Return the state that the quorum's log has; an empty one if this login may not follow it."""
        quorum = QuorumSource(self._nodes.servers, self._nodes.security, self._nodes.notify)
        try:
            return quorum.image()
        except MetadataError as error:
            self._nodes.notify(f"what the brokers run is not known: {error}")
            return Image.EMPTY
        finally:
            quorum.close()

    def read(self) -> PlaceState:
        """Return what every serving node answers, once they agree and none is behind.

        Raises:
            StaleError: a node is behind what is committed, or the nodes answer differently, for longer than `patience`.
            MetadataError: one does not respond, or refuses.

        """
        found = self._run(ReplicaComparison(self._nodes, self.patience).read())
        self._changes.rules = len(found.contents)
        return PlaceState(contents=found.contents, end_offset=found.end_offset)

    def note_begin(self, note: ApplyNote) -> None:
        """Do nothing: a cluster keeps no record of applies."""

    def note_done(self, note: ApplyNote) -> None:
        """Do nothing."""

    def noted(self, plan: str) -> ApplyNote | None:  # noqa: ARG002  # as the protocol has it
        """Return None: a cluster keeps no record of applies."""
        return None

    def was_noted(self, apply: str) -> bool:  # noqa: ARG002  # as the protocol has it
        """Return False."""
        return False

    def made(self, apply: str) -> Made | None:  # noqa: ARG002  # as the protocol has it
        """Return None: a cluster keeps no record of applies."""
        return None

    def check(self, steps: Sequence[Step]) -> None:
        """Raise ConfigError: a step that the cluster would refuse, or that no filter names exactly."""
        for step in steps:
            _check(step)

    def pieces(self, steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
        """Yield runs of steps of one stage: no ALLOW is sent before every DENY is known to be there.

        Raises:
            ConfigError: as `check`, before the first run: nothing of such a plan is ever sent.

        """
        self.check(steps)
        return _pieces(steps)

    def write(self, piece: Sequence[Step]) -> None:
        """Make these steps, all adds or all removes, and wait until they are committed.

        Raises:
            RequestError: the cluster refuses one; those before it in the piece may be made, and some after it.
            UnreachableError: no answer: it may be made, or not. MetadataError: as aclog.nodes.client.login.connect.

        """
        self._written = {step.acl: step.adds for step in piece}
        acls = [step.acl for step in piece]
        try:
            self._run(self._changes.add(acls) if piece[0].adds else self._changes.remove(acls))
        except KeyboardInterrupt:
            warn(f"{self.name}: a request is under way, and may be carried out: a new plan begins from what is there")
            raise

    def read_back(self, acls: Sequence[StandardAcl]) -> set[StandardAcl]:
        """Return which of these the broker that was written to has, as soon as it shows what was written last.

        A broker answers for the controller at once, and applies the change itself a moment later. If it does not show
        it within `patience`, what it shows then is returned. Raises as `read`.
        """
        wanted = {acl: self._written[acl] for acl in acls if acl in self._written}
        return self._run(self._read_back(acls, wanted)) if acls else set()

    async def _read_back(self, acls: Sequence[StandardAcl], wanted: dict[StandardAcl, bool]) -> set[StandardAcl]:
        until = elapsed_seconds() + self.patience
        while True:
            try:
                there = await self._there(acls, until)
            except UnreachableError:  # another of the servers may respond
                if elapsed_seconds() > until:
                    raise
            else:
                if all((acl in there) is present for acl, present in wanted.items()) or elapsed_seconds() > until:
                    return there
            await asyncio.sleep(_PAUSE_S)

    async def _there(self, acls: Sequence[StandardAcl], until: float) -> set[StandardAcl]:
        connection = await self._nodes.first()
        quorum = await self._nodes.quorum() if self._nodes.role is Role.BROKER else None
        if quorum is not None:  # else many rules would be listed in vain
            await caught_up(connection, quorum.high_watermark, until)
        try:
            found = await acl_contents(connection, covering(acls), RESPONSE_S)
        except RequestError as error:
            raise explained(connection, "DescribeAcls", error, "DESCRIBE") from None
        return {acl for acl in acls if content_of(acl) in found}

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._runner.run(work)


def _pieces(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    for _, run in groupby(steps, key=lambda step: step.stage):
        staged = list(run)
        most = MOST_ADDED if staged[0].adds else MOST_REMOVED
        for begin in range(0, len(staged), most):
            yield staged[begin : begin + most]


def _check(step: Step) -> None:
    exactly(step.acl)
    why = refusal(step.acl) if step.adds else None
    if why is not None:
        raise ConfigError(f"{acl_text(step.acl)}: the cluster would refuse it: {why}")
