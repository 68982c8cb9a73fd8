"""The listeners of a node, built from its configuration."""

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from functools import partial

from attrs import define, evolve, field

from aclog.authorizer.principals import KafkaPrincipal
from aclog.metalog.errors import ConfigError
from aclog.nodes.config.node_config import HostPort, Listener, NodeConfig
from aclog.nodes.config.principal_mapping import SslPrincipalMapper
from aclog.nodes.security.certificate_watcher import CertificateWatcher
from aclog.nodes.security.login_credentials import Credentials
from aclog.nodes.security.peer_principal import peer_principal
from aclog.nodes.security.tls import ServerContext, client_context, server_context
from aclog.nodes.server.admission import Admission
from aclog.nodes.server.dispatch import Dispatcher
from aclog.nodes.server.listeners import ListenerServer
from aclog.nodes.session import ANONYMOUS

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class NodeListeners:
    """Opens listeners in two phases: early-start listeners first, the others once the node is ready (KIP-801).

    `advertised` receives the advertised address of each listener as it opens; port 0 is replaced by the bound port.
    """

    config: NodeConfig
    controller: Dispatcher | None
    broker: Dispatcher | None
    admission: Admission
    credentials: Credentials
    advertised: dict[str, HostPort]
    _open: list[ListenerServer] = field(factory=list, init=False)
    _contexts: dict[str, ServerContext] = field(factory=dict, init=False)
    """TLS contexts by listener name."""
    _watchers: list["asyncio.Task[None]"] = field(factory=list, init=False)

    async def open(self, *, early: bool) -> None:
        """Open the early-start listeners of this node, or all others.

        Raises:
            ConfigError: An address cannot be bound, or a certificate is unusable.

        """
        # All contexts are built before the first socket opens: a bad certificate must not leave a node half open.
        self._contexts = self._contexts or listener_contexts(self.config)
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
        settings, context = listener.tls, self._contexts.get(listener.name)
        if settings is None or context is None:
            return None, lambda _: ANONYMOUS
        watcher = CertificateWatcher(context=context, settings=settings)
        self._watchers.append(asyncio.create_task(watcher.run(partial(_report, listener.name))))
        rules = SslPrincipalMapper.parse(settings.principal_mapping_rules)
        return context, lambda connection: peer_principal(connection, rules)

    async def close(self, grace: float) -> None:
        """Stop accepting, give in-flight requests `grace` seconds to complete, then close."""
        for watcher in self._watchers:
            watcher.cancel()
        servers, self._open = self._open, []
        await asyncio.gather(*(server.stop(grace) for server in servers))

    @property
    def ports(self) -> Mapping[str, int]:
        """The bound port of each open listener, by name."""
        return {server.listener.name: server.port for server in self._open}


def listener_contexts(config: NodeConfig) -> dict[str, ServerContext]:
    """Read the key and trust stores of all TLS listeners; return their contexts by listener name.

    Raises:
        ConfigError: A certificate or key is unusable; the text names the listener.

    """
    contexts = {}
    for listener in config.listeners:
        if listener.tls is not None and listener.security_protocol.tls:
            try:
                contexts[listener.name] = server_context(listener.tls)
            except ConfigError as error:
                raise ConfigError(f"listener {listener.name}: {error}") from error
    return contexts


def check_certificates(config: NodeConfig) -> None:
    """Read every certificate that the node uses, including its client certificate, before it starts.

    Raises:
        ConfigError: A certificate or key is unusable.

    """
    listener_contexts(config)
    client = config.controller_client
    if client.security_protocol.tls and client.tls is not None:
        try:
            client_context(client.tls)
        except ConfigError as error:
            raise ConfigError(f"controller client: {error}") from error


def _report(name: str, error: ConfigError | None) -> None:
    if error is None:
        _log.info("listener %s: certificates reloaded", name)
    else:
        _log.error("listener %s: cannot reload certificates, keeping the previous ones: %s", name, error)
