"""Serves a decision point."""

from collections.abc import Iterable, Mapping

from aclog.authorizer.acl import ResourceType
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.pdp.flags import PdpFlags
from aclog.cli.policies import settings_of
from aclog.cli.serving import Endpoint, at_hangup, followed, listen_address, serve
from aclog.console.line_file import LineFile
from aclog.console.live_state import LiveState
from aclog.console.pdp.app import DecisionPoint
from aclog.console.pdp.audit import Audit
from aclog.console.pdp.authzen import AuthZen
from aclog.console.pdp.deciders import Deciders
from aclog.console.pdp.mapping_file import read_mapping
from aclog.console.pdp.measures import Measures
from aclog.console.pdp.tokens import Tokens, read_tokens
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.terminal.notices import note, warn


def run_pdp(source: SourceFlags, flags: PdpFlags, authorizer: AuthorizerFlags) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        ConfigError: flags that do not go together, or a mapping, a token file or a certificate that cannot be used.
        OSError: a file cannot be read, or the address cannot be listened on.

    """
    endpoint = Endpoint(
        address=listen_address(flags.listen),
        tls_cert=flags.tls_cert,
        tls_key=flags.tls_key,
        tls_client_ca=flags.tls_client_ca,
    )
    mapping, tokens = read_mapping(flags.mapping), _tokens(flags)
    endpoint.check(secrets=None if tokens is None else "tokens", ways="--tokens FILE")
    chosen = source.choose(note)
    if chosen.moment is not None:
        raise ConfigError("--as-of: a decision point decides from the newest state: ask it with context.as_of")
    live = followed(chosen)
    deciders = Deciders(live=live, settings=settings_of(authorizer), mapping=mapping, max_age=flags.max_age)
    measures = Measures()
    measures.age.set_function(lambda: live.age() or 0.0)
    audit = None if flags.audit is None else Audit(LineFile(flags.audit))
    point = DecisionPoint(
        authzen=AuthZen(state=deciders.at, existing=lambda: _existing(source, live)),
        deciders=deciders,
        base_url=flags.base_url or endpoint.url,
        tokens=tokens,
        audit=audit,
        measures=measures,
    )
    live.start()
    try:
        with at_hangup(lambda: _reload(point, deciders, flags)):
            serve(point.app(), endpoint, f"decision point at {point.base_url}; stop with Ctrl-C")
    finally:
        live.stop()
        if audit is not None:
            audit.close()


def _reload(point: DecisionPoint, deciders: Deciders, flags: PdpFlags) -> None:
    """Read mapping and tokens again; what cannot be used is told, and the old ones stay."""
    try:
        mapping, tokens = read_mapping(flags.mapping), _tokens(flags)
    except (MetadataError, OSError) as error:
        warn(f"not read again: {error}")
        return
    deciders.mapping, point.tokens = mapping, tokens
    note("mapping and tokens were read again")


def _tokens(flags: PdpFlags) -> Tokens | None:
    return None if flags.tokens is None else read_tokens(flags.tokens)


def _existing(source: SourceFlags, live: LiveState) -> Mapping[int, Iterable[str]]:
    names = source.topics()
    if names is not None:
        return {int(ResourceType.TOPIC): names.names()}
    seen = live.newest
    return {} if seen is None else {int(ResourceType.TOPIC): seen.image.opaque.topic_names()}
