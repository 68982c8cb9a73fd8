"""What happens to the active controller, and to the Kafka that has its log: one thing after the other, under load."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from random import Random

from attrs import define, field

from aclog.metalog.errors import MetadataError
from tests.scenarios.failover.cut_kafka import CutKafka
from tests.support.builders.acls import acl
from tests.support.kafka.quorum import QuorumNode
from tests.support.models.ledger import Ledger
from tests.support.nodes.acl_client import AclClient
from tests.support.nodes.topic_cluster import CONTROLLERS, TopicCluster
from tests.support.processes.waiting import SECONDS

KINDS = ("killed", "paused", "cut off")
"""How long anything may take that must come true."""
_GHOSTS = 4


@define(eq=False, repr=False)
class Faults:
    """One round: the active controller is killed, paused, or cut off, until another is active and it has come back."""

    cluster: TopicCluster
    kafka: CutKafka
    ledger: Ledger
    chance: Random
    tool_runs: Callable[[], int]
    """How many runs of kafka-acls have ended, all with 0."""
    takeovers: dict[str, list[float]] = field(factory=lambda: {kind: [] for kind in KINDS})
    """Seconds from the fault until another controller said that it is active, by kind."""
    with_kafka: list[float] = field(factory=list)
    """The same, where one of Kafka's brokers was killed at the same moment."""
    noticed: list[float] = field(factory=list)
    """Seconds from the wake, or the end of a cut, until a replaced controller said that it is not active."""
    done: Counter[str] = field(factory=Counter)
    _ghosts: int = 0

    async def run(self, rounds: int, *, broker_kills: bool = False) -> None:
        """So many rounds; in every fifth one a broker of Kafka's is killed as well, with `broker_kills` after each."""
        for number in range(rounds):
            await asyncio.sleep(self.chance.uniform(0.3, 2.0))
            active = await asyncio.to_thread(self.cluster.wait_active, CONTROLLERS, SECONDS)
            kind = KINDS[number % len(KINDS)]
            broker = self.chance.choice(self.kafka.nodes) if number % 5 == 4 else None
            print(f"round {number + 1}: controller {active} {kind}{', a broker killed' if broker else ''}", flush=True)
            if broker is not None:
                await asyncio.to_thread(self.kafka.wait_in_sync, SECONDS)
                await asyncio.to_thread(broker.kill)
                self.done["broker of Kafka's killed"] += 1
            await {"killed": self._kill, "paused": self._pause, "cut off": self._cut}[kind](active, broker)
            if broker is not None:
                await asyncio.to_thread(broker.start)
            self.done[f"controller {kind}"] += 1
            await self._go_on()
            if broker_kills:
                await self._kill_broker()

    async def _kill_broker(self) -> None:
        """One of Kafka's, while the writers go on."""
        broker = self.chance.choice(self.kafka.nodes)
        await asyncio.to_thread(self.kafka.wait_in_sync, SECONDS)
        print(f"  broker {broker.node_id} killed", flush=True)
        await asyncio.to_thread(broker.kill)
        self.done["broker of Kafka's killed, in between"] += 1
        await asyncio.sleep(self.chance.uniform(0, 4))
        await asyncio.to_thread(broker.start)
        await self._go_on()

    async def _kill(self, active: int, broker: QuorumNode | None) -> None:
        node = self.cluster.controllers[active]
        await asyncio.to_thread(node.kill)
        await self._takeover("killed", active, broker)
        await asyncio.to_thread(node.spawn)
        await asyncio.to_thread(node.wait_until_ready, SECONDS)

    async def _pause(self, active: int, broker: QuorumNode | None) -> None:
        """Requests lie in its sockets as it wakes: whatever it makes of them must never be in the log."""
        node = self.cluster.controllers[active]
        async with self._open(node.ports.controller) as clients:
            await asyncio.to_thread(node.suspend)
            begun = time.monotonic()
            try:
                asking = [asyncio.ensure_future(self._ask_ghost(client)) for client in clients]
                await self._takeover("paused", active, broker)
                await asyncio.sleep(max(0.0, begun + self.chance.uniform(10, 20) - time.monotonic()))
            finally:
                await asyncio.to_thread(node.resume)
            await self._notice(active)
            await asyncio.gather(*asking)

    async def _cut(self, active: int, broker: QuorumNode | None) -> None:
        """From Kafka: its connections are reset and refused, or silent; clients still reach it."""
        proxies, silent = self.kafka.proxies_of[active], self.chance.random() < 0.5
        for proxy in proxies:
            if silent:
                proxy.hold()
            else:
                proxy.refusing = True
                await asyncio.to_thread(proxy.cut)
        try:
            await self._takeover("cut off", active, broker)
            await asyncio.sleep(self.chance.uniform(0, 4))
        finally:
            for proxy in proxies:
                proxy.refusing = False
                proxy.release()
        await self._notice(active)

    @asynccontextmanager
    async def _open(self, port: int):
        clients = [await AclClient.open(port, timeout=SECONDS) for _ in range(_GHOSTS)]
        try:
            yield clients
        finally:
            for client in clients:
                await client.close()

    async def _ask_ghost(self, client: AclClient) -> None:
        self._ghosts += 1
        ghost = acl(f"ghost-{self._ghosts}")
        self.ledger.ghosts.add(ghost)
        with suppress(MetadataError):
            ((code, _),) = await client.create([ghost])
            assert code != 0, f"{ghost.resource_name} was acknowledged by a controller that was replaced"

    async def _takeover(self, kind: str, active: int, broker: QuorumNode | None) -> None:
        begun, others = time.monotonic(), [each for each in CONTROLLERS if each != active]
        await asyncio.to_thread(self.cluster.wait_active, others, SECONDS)
        (self.takeovers[kind] if broker is None else self.with_kafka).append(time.monotonic() - begun)

    async def _notice(self, replaced: int) -> None:
        begun = time.monotonic()
        async with asyncio.timeout(SECONDS):
            while await asyncio.to_thread(self.cluster.active, [replaced]) is not None:
                leader = await asyncio.to_thread(
                    self.cluster.active, [each for each in CONTROLLERS if each != replaced]
                )
                if leader is None and time.monotonic() - begun > 1:
                    break  # it was elected again since, and rightly
                await asyncio.sleep(0.02)
        self.noticed.append(time.monotonic() - begun)

    async def _go_on(self) -> None:
        """Until changes are acknowledged again, and kafka-acls has ended at brokers and at controllers.

        A run has a minute by default, and Kafka's clients wait half of it for one node that is paused: each is to meet
        one fault.
        """
        before, runs = self.ledger.acknowledged, self.tool_runs()
        async with asyncio.timeout(SECONDS):
            while self.ledger.acknowledged < before + 20 or self.tool_runs() < runs + 2:
                await asyncio.sleep(0.05)
