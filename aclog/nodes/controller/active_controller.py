"""An active controller: its QuorumController and its periodic work (expired delegation tokens, silent brokers)."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from attrs import define, field

from aclog.authorizer.interface import Authorizer
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.errors import MetadataError
from aclog.metalog.log import Log
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.controller.apis.serving_state import ServingState
from aclog.nodes.controller.write_path.broker_writer import BrokerWriter
from aclog.nodes.controller.write_path.quorum_controller import QuorumController
from aclog.nodes.controller.write_path.token_writer import TokenWriter
from aclog.nodes.telemetry.metrics import Metrics
from aclog.snapshots.publisher import Publisher


@define(eq=False)
class ActiveController:
    """Created by `activate` on the event loop; ended once, by `stop` or `depose`."""

    controller: QuorumController
    _periodic: "tuple[asyncio.Task[None], ...]" = field(alias="periodic")

    async def stop(self) -> None:
        """Accept no more requests; commit and respond to the pending ones."""
        await self._stop_periodic()
        await self.controller.close()

    async def depose(self, why: MetadataError) -> None:
        """Fail all pending requests; returns once no thread works on the image."""
        await asyncio.gather(self._stop_periodic(), self.controller.depose(why))

    async def _stop_periodic(self) -> None:
        for task in self._periodic:
            task.cancel()
        for task in self._periodic:
            with suppress(asyncio.CancelledError):
                await task


def activate(
    serving: ServingState,
    log: Log,
    publisher: Publisher,
    config: NodeConfig,
    *,
    authorizer: Authorizer | None,
    metrics: Metrics | None,
    on_failure: Callable[[MetadataError], None],
    contested: bool = False,
) -> ActiveController:
    """Start deciding on requests. The publisher must have replayed the log to its end.

    `contested`: other nodes may take over the log (QuorumController).
    """
    serving.controller = controller = QuorumController(
        log=log,
        publisher=publisher,
        loop=asyncio.get_running_loop(),
        on_failure=on_failure,
        contested=contested,
        generation=config.generation,
        cidr=isinstance(authorizer, StandardAuthorizer) and authorizer.cidr,
        metrics=metrics,
    )
    controller.watch(serving.fetching.wake)
    serving.tokens = TokenWriter(settings=config.tokens, controller=controller)
    serving.brokers = BrokerWriter(settings=config.brokers, controller=controller)
    if isinstance(authorizer, StandardAuthorizer):
        authorizer.set_acl_mutator(controller)
    serving.fetching.wake()
    tokens = asyncio.create_task(serving.tokens.run(), name="expired tokens")
    return ActiveController(controller, (tokens, asyncio.create_task(serving.brokers.run(), name="silent brokers")))
