"""Serves a decision point."""

import ssl
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

from attrs import frozen

from aclog.authorizer.codes import ResourceType
from aclog.cli.flags.commands import PdpFlags
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.serving import (
    Endpoint,
    followed,
    health_of,
    listen_address,
    live_premises,
    read_certificate_again,
    serve,
)
from aclog.console.http import Hosts
from aclog.console.live import LiveState
from aclog.console.pdp.app import DecisionPoint, Measures, Tokens, read_tokens
from aclog.console.pdp.authzen import AuthZen
from aclog.console.pdp.deciding import Deciders
from aclog.console.pdp.mapping import NotReadyError, read_mapping
from aclog.console.pdp.opa import Audit, DecisionLog
from aclog.console.shared import LineFile
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.ops.policies import settings_of
from aclog.snapshots.image import StateSource
from aclog.terminal.notices import FewNotices
from aclog.terminal.output import note, warn

# What a decision point reads again at SIGHUP.


@frozen(kw_only=True, eq=False)
class Reload:
    """Reads the files of its flags again, and reopens files; an invalid file is reported, and then nothing changes."""

    point: DecisionPoint
    endpoint: Endpoint
    files: Iterable[LineFile]
    """What is appended to."""
    source: SourceFlags
    flags: PdpFlags

    def __call__(self, tls: ssl.SSLContext | None) -> None:
        """Read all; `tls` is that of new connections."""
        try:
            mapping, tokens, rules = read_mapping(self.flags.mapping), tokens_of(self.flags), self._rules()
            for file in self.files:
                file.reopen()
            read_certificate_again(tls, self.endpoint)
        except (MetadataError, OSError) as error:
            warn(f"not read again: {error}")
            return
        if rules is not None:
            self.point.deciders.live.replace(rules)
        self.point.deciders.replace_mapping(mapping)
        self.point.tokens = tokens
        note("rules in files, mapping, tokens and certificate were read again, and files opened again")

    def _rules(self) -> StateSource | None:
        """Return the rules in files, read whole; None without any. Raises MetadataError: they cannot be read."""
        if self.source.acls is None:
            return None
        rules = self.source.choose(note).source
        rules.image()
        return rules


def tokens_of(flags: PdpFlags) -> Tokens | None:
    """Return the tokens of the permitted clients; None if no client needs one. Raises ConfigError, OSError."""
    return None if flags.tokens is None else read_tokens(flags.tokens)


# Serves a decision point.


_FOLLOWED_S = 0.1
"""Between two looks at a log, each of 0.5 ms."""


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
    mapping, tokens = read_mapping(flags.mapping), tokens_of(flags)
    endpoint.check(secrets=None if tokens is None else "tokens", ways="--tokens FILE or --tls-client-ca FILE")
    if endpoint.address.port == 0:
        raise ConfigError(f"--listen {flags.listen}: expected a port above 0: the metadata has the address")
    if not flags.max_age > 0:
        raise ConfigError(f"--max-age {flags.max_age}: expected seconds, more than 0")
    choice = source.choose(FewNotices(tell=note))
    if choice.moment is not None:
        raise ConfigError("--as-of: a decision point decides from the newest state: use context.as_of of a request")
    live = followed(choice, _FOLLOWED_S)
    deciders = Deciders(
        live=live,
        settings=settings_of(authorizer),
        mapping=mapping,
        max_age=flags.max_age,
        premises=live_premises(live, authorizer.configs()),
        warn=warn,
    )
    measures = Measures()
    measures.age.set_function(lambda: live.age() or 0.0)
    with ExitStack() as stack:
        audit, decision_log = (_line_file(path, stack) for path in (flags.audit, flags.decision_log))
        point = DecisionPoint(
            authzen=AuthZen(state=deciders.at, existing=lambda: _existing(source, live)),
            deciders=deciders,
            base_url=flags.base_url or endpoint.url,
            tokens=tokens,
            audit=None if audit is None else Audit(audit),
            decision_log=None if decision_log is None else DecisionLog(file=decision_log, version=version("aclog")),
            measures=measures,
            tell=FewNotices(tell=warn),
            hosts=Hosts.of(
                listen=endpoint.address.host,
                is_local=endpoint.is_local and tokens is None and flags.tls_client_ca is None,
                base_url=flags.base_url,
            ),
        )
        files = [file for file in (audit, decision_log) if file is not None]
        live.start()
        stack.callback(live.stop)
        message = f"decision point at {point.base_url}; stop with Ctrl-C"
        reload = Reload(point=point, endpoint=endpoint, files=files, source=source, flags=flags)
        serve(
            point.app(),
            endpoint,
            message,
            hangup=reload,
            is_timed=True,
            refusals=measures.refusals,
            health=health_of(flags.health_listen, deciders.why_not_ready),
            answering=point,
        )


def _line_file(path: Path | None, stack: ExitStack) -> LineFile | None:
    """Return a file to append to, which is closed with the stack. Raises OSError: it cannot be opened."""
    if path is None:
        return None
    file = LineFile(path)
    stack.callback(file.close)
    return file


def _existing(source: SourceFlags, live: LiveState) -> Mapping[int, Iterable[str]]:
    """Return the names that exist, by type of resource. Raises NotReadyError: they cannot be read."""
    names = source.topics()
    if names is not None:
        try:
            return {int(ResourceType.TOPIC): names.names()}
        except (MetadataError, OSError) as error:
            raise NotReadyError(f"--topics: {error}") from error
    newest = live.newest
    return {} if newest is None else {int(ResourceType.TOPIC): newest.image.opaque.topic_names()}
