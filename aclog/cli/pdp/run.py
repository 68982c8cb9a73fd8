"""Serves a decision point."""

import signal
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address

import uvicorn

from aclog.authorizer.acl import ResourceType
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.pdp.flags import PdpFlags
from aclog.cli.policies import settings_of
from aclog.console.live_state import LiveState
from aclog.console.pdp.app import DecisionPoint
from aclog.console.pdp.audit import Audit
from aclog.console.pdp.authzen import AuthZen
from aclog.console.pdp.deciders import Deciders
from aclog.console.pdp.mapping_file import read_mapping
from aclog.console.pdp.measures import Measures
from aclog.console.pdp.tokens import Tokens, read_tokens
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.nodes.config.node_config import HostPort
from aclog.sources.bootstrap import parse_servers
from aclog.sources.choice import ChosenSource
from aclog.terminal.notices import note, warn
from aclog.terminal.output import say

_FOLLOWED_S, _POLLED_S = 0.2, 10.0
"""Between two reads: of a log that is followed, and of what is asked whole each time."""
_STOP_S = 5


def run_pdp(source: SourceFlags, flags: PdpFlags, authorizer: AuthorizerFlags) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        ConfigError: flags that do not go together, or a mapping, a token file or a certificate that cannot be used.
        OSError: a file cannot be read, or the address cannot be listened on.

    """
    address = _address(flags)
    mapping, tokens = read_mapping(flags.mapping), _tokens(flags)
    _check_reach(address, flags)
    chosen = source.choose(note)
    if chosen.moment is not None:
        raise ConfigError("--as-of: a decision point decides from the newest state: ask it with context.as_of")
    live = LiveState(source=chosen.source, seconds=_seconds(chosen), tell=_tell)
    deciders = Deciders(live=live, settings=settings_of(authorizer), mapping=mapping, max_age=flags.max_age)
    measures = Measures()
    measures.age.set_function(lambda: live.age() or 0.0)
    audit = None if flags.audit is None else Audit(flags.audit)
    point = DecisionPoint(
        authzen=AuthZen(state=deciders.at, existing=lambda: _existing(source, live)),
        deciders=deciders,
        base_url=flags.base_url or _url(address, flags),
        tokens=tokens,
        audit=audit,
        measures=measures,
    )
    live.start()
    try:
        with _reloading(point, deciders, flags):
            _serve(point, address, flags)
    finally:
        live.stop()
        if audit is not None:
            audit.close()


class _Server(uvicorn.Server):
    """uvicorn's server, which says so once it listens."""

    def __init__(self, config: uvicorn.Config, url: str) -> None:
        super().__init__(config)
        self._url = url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        if self.started:
            say(f"decision point at {self._url}; stop with Ctrl-C", flush=True)


def _serve(point: DecisionPoint, address: HostPort, flags: PdpFlags) -> None:
    config = uvicorn.Config(
        point.app(),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_STOP_S,
        limit_concurrency=1000,
        ssl_certfile=flags.tls_cert,
        ssl_keyfile=flags.tls_key,
        ssl_ca_certs=None if flags.tls_client_ca is None else str(flags.tls_client_ca),
        ssl_cert_reqs=ssl.CERT_NONE if flags.tls_client_ca is None else ssl.CERT_REQUIRED,
    )
    try:
        config.load()
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"--tls-cert, --tls-key, --tls-client-ca: cannot be used: {error}") from error
    with _listening(address) as bound:
        _Server(config, point.base_url).run(sockets=[bound])


def _listening(address: HostPort) -> socket.socket:
    """Return a socket that is bound to an address. Raises ConfigError: it is in use, or none of this machine."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise ConfigError(f"--listen {address}: {error.strerror or error}") from error
    return bound


@contextmanager
def _reloading(point: DecisionPoint, deciders: Deciders, flags: PdpFlags) -> Iterator[None]:
    """Read mapping and tokens again at SIGHUP; what cannot be used is told, and the old ones stay."""

    def reload(_number: int, _frame: object) -> None:
        """Read them again."""
        try:
            mapping, tokens = read_mapping(flags.mapping), _tokens(flags)
        except (MetadataError, OSError) as error:
            warn(f"not read again: {error}")
            return
        deciders.mapping, point.tokens = mapping, tokens
        note("mapping and tokens were read again")

    before = signal.signal(signal.SIGHUP, reload)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def _address(flags: PdpFlags) -> HostPort:
    found = parse_servers("--listen", flags.listen)
    if len(found) != 1:
        raise ConfigError(f"--listen {flags.listen}: expected one HOST:PORT")
    return found[0]


def _tokens(flags: PdpFlags) -> Tokens | None:
    return None if flags.tokens is None else read_tokens(flags.tokens)


def _check_reach(address: HostPort, flags: PdpFlags) -> None:
    """Refuse to answer strangers. Raises ConfigError: others can reach it, and need neither token nor certificate."""
    if (flags.tls_cert is None) is not (flags.tls_key is None):
        raise ConfigError("expected --tls-cert and --tls-key together")
    if flags.tls_client_ca is not None and flags.tls_cert is None:
        raise ConfigError("--tls-client-ca: expected --tls-cert and --tls-key")
    if flags.tokens is None and flags.tls_client_ca is None and not _is_loopback(address.host):
        raise ConfigError(
            f"--listen {flags.listen}: others can reach it, and everybody could ask: expected --tokens FILE or "
            "--tls-client-ca FILE, or an address of this machine such as 127.0.0.1:8180"
        )
    if flags.tokens is not None and flags.tls_cert is None and not _is_loopback(address.host):
        warn("tokens go over the network as they are: expected --tls-cert and --tls-key, or a proxy that has them")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _url(address: HostPort, flags: PdpFlags) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'http' if flags.tls_cert is None else 'https'}://{host}:{address.port}"


def _seconds(chosen: ChosenSource) -> float:
    return _POLLED_S if chosen.source.log is None else _FOLLOWED_S


def _existing(source: SourceFlags, live: LiveState) -> Mapping[int, Iterable[str]]:
    names = source.topics()
    if names is not None:
        return {int(ResourceType.TOPIC): names.names()}
    seen = live.newest
    return {} if seen is None else {int(ResourceType.TOPIC): seen.image.opaque.topic_names()}


def _tell(why: str) -> None:
    warn(f"the state cannot be read: {why}")
