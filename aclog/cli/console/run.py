"""Serves the console."""

import os
import ssl
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

from prometheus_client import Gauge, PlatformCollector, ProcessCollector

from aclog.authorizer.settings import Settings
from aclog.cli.console.editing import editing_of
from aclog.cli.console.finding import Finding, SourceOrigins
from aclog.cli.console.flags import ConsoleFlags, FindingsFlags
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.policies import settings_of
from aclog.cli.serving import Endpoint, followed, health_of, is_loopback, listen_address, read_certificate_again, serve
from aclog.console.followed_applies import FollowedApplies
from aclog.console.hosts import Hosts
from aclog.console.line_file import LineFile
from aclog.console.live_history import LiveHistory
from aclog.console.live_premises import LivePremises
from aclog.console.live_state import LiveState
from aclog.console.login.cookies import Cookies
from aclog.console.login.guard import Guard
from aclog.console.login.sights import Sights
from aclog.console.login.way import Way
from aclog.console.login.ways import way_of
from aclog.console.pages.command_line import CommandLine
from aclog.console.pages.console import Console
from aclog.console.pages.history import History, warm
from aclog.console.pages.states import NotReadyError, States
from aclog.console.precedence import Precedence
from aclog.console.refusals import Refusals
from aclog.console.web.app import WebConsole
from aclog.console.web.rendering import asset_version
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.snapshots.image import Image
from aclog.sources.choice import premises_of
from aclog.sources.paths import LogSource
from aclog.terminal.few_notices import FewNotices
from aclog.terminal.notices import note, warn

_FOLLOWED_S = 0.4
"""Between two looks at a log: with the half second in which a page asks, a change is seen within one."""


def run_console(source: SourceFlags, flags: ConsoleFlags, findings: FindingsFlags, authorizer: AuthorizerFlags) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        ConfigError: flags that do not go together, or the address cannot be listened on.

    """
    endpoint = _endpoint(flags)
    _check_base_url(flags)
    url = flags.base_url or endpoint.url
    tell = FewNotices(tell=warn)
    way = None if flags.login is None else way_of(flags.login, base_url=url, environment=os.environ, tell=tell)
    editing = editing_of(source, findings, authorizer) if flags.edit else None
    topics = source.topics()
    chosen = source.choose(FewNotices(tell=note), topics=topics)
    if chosen.moment is not None:
        raise ConfigError("--as-of: the console shows the newest state, and others in its pages")
    audit = None if flags.audit is None else LineFile(flags.audit)
    live, settings = followed(chosen, _FOLLOWED_S), settings_of(authorizer)
    precedence = Precedence()
    history = _history(live, settings, precedence)
    premises = LivePremises(read=lambda: premises_of(chosen.source, authorizer.given()), tell=note)
    states = States(live=live, settings=settings, premises=premises, pause=precedence.give_way())
    refusals, health = _refusals(live), health_of(flags.health_listen, lambda: _unready(states))
    finding = Finding(
        source=source,
        flags=findings,
        authorizer=authorizer,
        chosen=chosen,
        topics=topics,
        pause=precedence.give_way(),
    )
    guard = _guard(endpoint, flags.base_url, way, Sights(newest=partial(_newest, live), settings=settings), audit)
    try:
        with finding.lookout(states) as lookout:
            console = Console(
                name=chosen.source.name,
                states=states,
                command=CommandLine(source=tuple(source_words(source)), settings=tuple(settings_words(authorizer))),
                place=chosen.source.change_place,
                origins=SourceOrigins(chosen),
                lookout=lookout,
                history=history,
                drafts=finding.drafts(),
                editing=editing,
            )
            app = WebConsole(console=console, guard=guard, precedence=precedence, refusals=refusals).app()
            live.start()
            if history is not None:
                history.live.start()
            lookout.start()
            serve(
                app,
                endpoint,
                f"console at {url}; stop with Ctrl-C",
                hangup=partial(_reload, guard, endpoint),
                refusals=refusals,
                health=health,
            )
    finally:
        if history is not None:  # it reads the source that the live state closes
            history.live.stop()
        live.stop()
        if audit is not None:
            audit.close()


def _endpoint(flags: ConsoleFlags) -> Endpoint:
    """Return where the console listens. Raises ConfigError: flags that do not go together."""
    found = Endpoint(
        address=listen_address(flags.listen),
        tls_cert=flags.tls_cert,
        tls_key=flags.tls_key,
        trusted_proxy=flags.trusted_proxy,
    )
    found.check(secrets=None if flags.login is None else "logins", ways="--login FILE")
    return found


def _guard(endpoint: Endpoint, base_url: str | None, way: Way | None, sights: Sights, audit: LineFile | None) -> Guard:
    """Return what stands before the pages."""
    url = base_url or endpoint.url
    return Guard(
        way=way,
        sights=sights,
        hosts=Hosts.of(listen=endpoint.address.host, is_local=endpoint.is_local, base_url=base_url),
        cookies=Cookies(secure=url.lower().startswith("https:"), port=endpoint.address.port),
        audit=audit,
        stylesheet=f"/static/console.css?v={asset_version()}",
        icon=f"/static/icon.svg?v={asset_version()}",
    )


def _refusals(live: LiveState) -> Refusals:
    """Return the metrics of a console."""
    found = Refusals()
    ProcessCollector(registry=found.registry)
    PlatformCollector(registry=found.registry)
    age = Gauge("aclog_age_seconds", "Time since the state was confirmed.", registry=found.registry)
    age.set_function(lambda: live.age() or 0.0)
    return found


def _unready(states: States) -> str | None:
    """Return why nothing can be shown; None if it can."""
    try:
        states.now()
    except NotReadyError as error:
        return str(error)
    return None


def _newest(live: LiveState) -> Image | None:
    return None if live.newest is None else live.newest.image


def _check_base_url(flags: ConsoleFlags) -> None:
    """Warn of a proxy that shows all to everybody. Raises ConfigError: not the URL of a whole host."""
    if flags.base_url is None:
        return
    try:
        parts = urlsplit(flags.base_url)
        host = parts.hostname
    except ValueError:
        host = None
    if (
        not host
        or parts.scheme not in {"http", "https"}
        or parts.path not in {"", "/"}
        or parts.query
        or parts.fragment
    ):
        raise ConfigError(f"--base-url {flags.base_url[:200]}: expected https://HOST, without a path")
    if flags.login is None and not is_loopback(host):
        if flags.edit:
            raise ConfigError(f"--edit: everybody who reaches {flags.base_url} could change rules: expected --login")
        warn(
            f"everybody who reaches {flags.base_url} sees all, unless what is there asks who they are: expected --login"
        )


def _reload(guard: Guard, endpoint: Endpoint, context: ssl.SSLContext | None) -> None:
    """Read the login's file and the certificate again; what cannot be used is told, and the old ones stay."""
    try:
        guard.reload()
        read_certificate_again(context, endpoint)
    except (MetadataError, OSError) as error:
        warn(f"not read again: {error}")
        return
    note("login and certificate were read again")


def _history(live: LiveState, settings: Settings, precedence: Precedence) -> History | None:
    """Return the history of a source, to be started; None if it is a single state."""
    log = live.source.log
    if log is None:
        return None
    source = live.source
    applies = FollowedApplies(source.directory) if isinstance(source, LogSource) else None
    found = LiveHistory(live=live, log=log, warm=lambda acls: warm(acls, settings), pause=precedence.give_way())
    return History(live=found, settings=settings, applies=applies)


def source_words(source: SourceFlags) -> Iterator[str]:
    """Yield the flags that name a source."""
    given = {
        "--log": source.log,
        "--snapshot": source.snapshot,
        "--acls": source.acls,
        "--ref": source.ref,
        "--acls-format": source.acls_format,
        "--topics": source.topics_file,
        "--bootstrap-controller": source.bootstrap_controller,
        "--bootstrap-server": source.bootstrap_server,
        "--command-config": source.command_config,
    }
    for flag, value in given.items():
        if value is not None:
            yield from (flag, str(value))
    for module in source.modules:
        yield from ("--module", module)


def settings_words(flags: AuthorizerFlags) -> Iterator[str]:
    """Yield the flags that set an authorizer."""
    if flags.super_users is not None:
        yield from ("--super-users", flags.super_users)
    if flags.allow_everyone:
        yield "--allow-everyone-if-no-acl-found"
    if flags.no_allow_everyone:
        yield "--no-allow-everyone-if-no-acl-found"
    if flags.documented:
        yield from ("--semantics", "documented")
    if flags.generation is not None:
        yield from ("--kafka-version", flags.generation.value)
