"""A node's listeners, put together from what its configuration says of them."""

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from functools import partial

from attrs import define, evolve, field

from authorizer.principals import KafkaPrincipal
from metalog.errors import ConfigError
from nodes.config.node_config import HostPort, Listener, NodeConfig
from nodes.security.certificate_watcher import CertificateWatcher
from nodes.security.login_credentials import Credentials
from nodes.security.peer_principal import peer_principal
from nodes.security.principal_mapping import SslPrincipalMapper
from nodes.security.tls import server_context
from nodes.server.admission import Admission
from nodes.server.dispatch import Dispatcher
from nodes.server.listeners import ListenerServer
from nodes.session import ANONYMOUS

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class Listening:
    """Opens listeners in two goes: those that start early, and the others once the node is ready (KIP-801).

    `advertised` gets each listener's address for clients as it is opened: a port 0 becomes the one that was had.
    """

    config: NodeConfig
    controller: Dispatcher | None
    broker: Dispatcher | None
    admission: Admission
    credentials: Credentials
    advertised: dict[str, HostPort]
    _open: list[ListenerServer] = field(factory=list, init=False)
    _watchers: list["asyncio.Task[None]"] = field(factory=list, init=False)

    async def open(self, *, early: bool) -> None:
        """Open the listeners of this node that start early, or those that do not.

        Raises:
            ConfigError: an address that cannot be had, a certificate that cannot be used.

        """
        for listener in self.config.listeners:
            dispatcher = self.controller if listener.controller else self.broker
            if dispatcher is not None and listener.early_start is early:
                await self._start(listener, dispatcher)

    async def _start(self, listener: Listener, dispatcher: Dispatcher) -> None:
        context, principal_of = self._tls(listener)
        server = ListenerServer(
            listener=listener,
            dispatcher=dispatcher,
            admission=self.admission,
            credentials=self.credentials,
            tls=context,
            certificate_principal=principal_of,
        )
        await server.start()
        self._open.append(server)
        at = listener.advertised
        self.advertised[listener.name] = at = at if at.port else evolve(at, port=server.port)
        early = " (early start: super users only until the log is replayed)" if listener.early_start else ""
        protocol = listener.security_protocol.value
        _log.info("listener %s: %s on port %d, advertised as %s%s", listener.name, protocol, server.port, at, early)

    def _tls(self, listener: Listener) -> "tuple[ssl.SSLContext | None, Callable[[object], KafkaPrincipal]]":
        settings = listener.tls
        if settings is None or not listener.security_protocol.tls:
            return None, lambda _: ANONYMOUS
        context = server_context(settings)
        watcher = CertificateWatcher(context=context, settings=settings)
        self._watchers.append(asyncio.create_task(watcher.run(partial(_report, listener.name))))
        rules = SslPrincipalMapper.parse(settings.principal_mapping_rules)
        return context, lambda connection: peer_principal(connection, rules)

    async def close(self, grace: float) -> None:
        """Accept no more, let requests that are under way be answered for `grace` seconds, and close."""
        for watcher in self._watchers:
            watcher.cancel()
        servers, self._open = self._open, []
        for server in servers:
            await server.stop(grace)

    @property
    def ports(self) -> Mapping[str, int]:
        """The port of each open listener, by name."""
        return {server.listener.name: server.port for server in self._open}


def _report(name: str, error: ConfigError | None) -> None:
    if error is None:
        _log.info("listener %s: its certificates were read anew", name)
    else:
        _log.error("listener %s: goes on with the certificates that it had: %s", name, error)
