"""Reading all ACLs of a cluster from every node that serves, so that nobody takes a stale answer for the state."""

import asyncio
from collections.abc import Sequence

from attrs import define, field, frozen

from aclog.authorizer.acl import AclBindingFilter, acl_text
from aclog.authorizer.rule_content import acl_of_content
from aclog.metalog.clock import elapsed_seconds
from aclog.metalog.errors import StaleError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.acl_requests import acl_contents
from aclog.nodes.client.cluster_requests import ClusterNode, describe_features
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import UnreachableError
from aclog.nodes.client.peer import Role
from aclog.nodes.wire.api_keys import API_VERSIONS
from aclog.places.cluster_nodes import ClusterNodes, explained

PATIENCE_S = 20.0
"""How long nodes may take to agree: longer than a cluster needs to fence a broker that died (9 s by default)."""
RESPONSE_S = 120.0
"""How long a response with all ACLs may take: a broker needs a second or two for a hundred thousand."""
_PAUSE_S = 0.1
_AT_ONCE = 4
"""Nodes that are asked at the same time: a hundred brokers with a hundred thousand rules each must not fill memory."""
_UNKNOWN_OFFSET = -1
_WITH_FEATURES = 3
"""The first version of ApiVersions that tells a broker's offset (KIP-584)."""


@frozen(kw_only=True)
class ClusterState:
    """What all serving nodes answered."""

    contents: set[bytes]
    end_offset: int | None
    """The quorum's high-water mark when they were asked; None if there is no quorum."""


@define(eq=False)
class ReplicaComparison:
    """One reading: rounds of asking all nodes, until they agree or time is up.

    While somebody else writes, no two nodes may ever answer alike. So what differs in one round must be alike in a
    later one, be it that something else differs there: a rule that differs in all rounds is one that a node misses.
    """

    nodes: ClusterNodes
    patience: float = PATIENCE_S
    _disputed: set[bytes] | None = field(default=None, init=False)

    async def read(self) -> ClusterState:
        """Return what the cluster holds.

        Raises:
            StaleError: a node is behind the quorum's high-water mark, or nodes answer differently, for too long.
            UnreachableError: a serving node does not respond.
            RequestError: one refuses; with the right that is missing.
            MetadataError: as aclog.nodes.client.login.connect and acl_contents.

        """
        until = elapsed_seconds() + self.patience
        while True:
            try:
                return await self._round(until)
            except (StaleError, UnreachableError):
                if elapsed_seconds() > until:
                    raise
            await asyncio.sleep(_PAUSE_S)

    async def _round(self, until: float) -> ClusterState:
        quorum = await self.nodes.quorum()
        mark = None if quorum is None else quorum.high_watermark
        if mark is not None and mark < 0:
            raise StaleError(
                f"{self.nodes.name}: the quorum has a new leader, which does not know yet what is committed: try again"
            )
        serving = await self.nodes.serving()
        slots, distinct = asyncio.Semaphore(_AT_ONCE), list[set[bytes]]()

        async def asked(node: ClusterNode, connection: Connection) -> set[bytes]:
            """Return what a node answers: the very set that another one answered, if it is alike."""
            async with slots:
                answer = await self._answer(node, connection, mark, until)
                if answer not in distinct:
                    distinct.append(answer)
                return distinct[distinct.index(answer)]

        answers = await asyncio.gather(*(asked(*each) for each in serving), return_exceptions=True)
        found: list[set[bytes]] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            found.append(answer)
        self._compare([node for node, _ in serving], found)
        return ClusterState(contents=found[0], end_offset=mark)

    async def _answer(self, node: ClusterNode, connection: Connection, mark: int | None, until: float) -> set[bytes]:
        if mark is not None and self.nodes.role is Role.BROKER:
            await caught_up(connection, mark, until, f"broker {node.node_id}")
        try:
            return await acl_contents(connection, AclBindingFilter(), RESPONSE_S)
        except RequestError as error:
            raise explained(connection, "DescribeAcls", error, "DESCRIBE") from None

    def _compare(self, nodes: Sequence[ClusterNode], answers: Sequence[set[bytes]]) -> None:
        first = answers[0]
        differing = set().union(*(first ^ other for other in answers[1:] if other is not first))
        self._disputed = differing if self._disputed is None else self._disputed & differing
        if self._disputed:
            raise StaleError(f"{self.nodes.name}: {_difference(nodes, answers, self._disputed)}")


async def caught_up(connection: Connection, mark: int, until: float, name: str = "the broker") -> None:
    """Wait until a broker has applied what is below the high-water mark; its finalized features tell how far it is.

    A controller tells only when its features changed, and a broker before 2.7 nothing: for those this returns at once.

    Raises:
        StaleError: it is behind at the moment `until`; with the `name` of the broker.
        UnreachableError, DecodeError: as Connection.ask.

    """
    served = connection.apis.get(API_VERSIONS)
    if served is None or served.max_version < _WITH_FEATURES:
        return
    while True:
        applied = (await describe_features(connection)).finalized_epoch
        if applied == _UNKNOWN_OFFSET or applied >= mark - 1:
            return
        if elapsed_seconds() > until:
            raise StaleError(
                f"{connection.address}: {name} is behind: it has applied the metadata log up to offset "
                f"{applied}, and {mark - 1} is committed: is it healthy, and does it reach the controllers?"
            )
        await asyncio.sleep(_PAUSE_S / 2)


def _difference(nodes: Sequence[ClusterNode], answers: Sequence[set[bytes]], disputed: set[bytes]) -> str:
    """Return who answers how much, and one rule that only some have."""
    counts = ", ".join(
        f"node {node.node_id} at {node.address} {len(answer):,}" for node, answer in zip(nodes, answers, strict=True)
    )
    example = min(disputed)
    having = [str(node.node_id) for node, answer in zip(nodes, answers, strict=True) if example in answer]
    return (
        f"the nodes answer with different rules, and one of them may be behind or just started: rules: {counts}; "
        f"{len(disputed):,} differ, such as {acl_text(acl_of_content(example))}, which only node "
        f"{', '.join(having)} has: wait until they agree"
    )
