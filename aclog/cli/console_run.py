"""Serves the console, and starts what looks for findings."""

import os
import socket
import ssl
import sys
import threading
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

from attrs import evolve
from prometheus_client import Gauge, PlatformCollector, ProcessCollector

from aclog.authorizer.acl import ChangePlace, Origin, Origins, StandardAcl
from aclog.authorizer.index.layout import Pause, no_pause
from aclog.authorizer.settings import Settings
from aclog.cli.finders import DraftTests, DriftFinder, LintFinder, PlacedFinder, TestsFinder
from aclog.cli.flags.accesses import gap_us, given_accesses
from aclog.cli.flags.commands import ConsoleFlags, FindingsFlags
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags, parse_modules
from aclog.cli.flags.target import TargetFlags, given_address, place_address
from aclog.cli.serving import (
    Endpoint,
    bound_to,
    followed,
    health_of,
    is_loopback,
    listen_address,
    live_premises,
    read_certificate_again,
    serve,
)
from aclog.config.node_config import HostPort
from aclog.console.connections import Refusals
from aclog.console.draft import Drafts, Editing
from aclog.console.findings import Finder, Kind, Lookout, SuppressionsFile
from aclog.console.http import Hosts
from aclog.console.live import FollowedApplies, LiveHistory, LiveState
from aclog.console.login.forms import Cookies
from aclog.console.login.guard import Guard, Sights, way_of
from aclog.console.login.sessions import Way
from aclog.console.pages.page import CommandLine
from aclog.console.pages.states import Console, History, NotReadyError, State, States, warm
from aclog.console.shared import LineFile, Precedence
from aclog.console.web.app import WebConsole
from aclog.console.web.rendering import asset_version
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.values import define, frozen
from aclog.ops.extras import need_usage_extra
from aclog.ops.plan import DesiredRules, place_settings
from aclog.ops.policies import settings_of
from aclog.snapshots.image import Image
from aclog.sources.acl_lines import STDIN, NameFile
from aclog.sources.choice import AclsSource, ChosenSource, parse_accepted
from aclog.sources.formats.format import AclsFormat
from aclog.sources.logs import LogSource, cluster_of
from aclog.sources.repository import load_repository_settings
from aclog.terminal.notices import FewNotices
from aclog.terminal.output import note, warn
from aclog.usage.window import check_days

# What `aclog console --edit` writes to.


def editing_of(source: SourceFlags, findings: FindingsFlags, authorizer: AuthorizerFlags) -> Editing:
    """Return what makes and applies plans. Raises ConfigError: the source is no place, or there is no journal."""
    if findings.journal is None:
        raise ConfigError("--edit: expected --journal FILE, the state file of managed rules")
    target = TargetFlags(
        log=source.log_directory(),
        bootstrap_server=source.bootstrap_server,
        bootstrap_controller=source.bootstrap_controller,
        command_config=source.command_config if source.log is None else None,
    )
    address = given_address(target)
    if address is None:
        raise ConfigError("--edit: expected a place: --log DIR, --bootstrap-server or --bootstrap-controller HOST:PORT")
    return Editing(
        address=address,
        stated=place_settings(authorizer, is_warned=True),
        journal=findings.journal.absolute(),
        others=findings.other_journals,
        notify=note,
    )


# The finders of the console, as its flags select them, and the thread that runs them.


_LACKING = {
    Kind.UNUSED: "no access log and no index: pass --index DIR or --accesses PATH",
    Kind.DRIFT: "no desired rules: pass --want PATH and --journal FILE",
    Kind.TESTS: "no tests: pass --tests FILE",
}


@frozen(eq=False)
class SourceOrigins:
    """Where the rules of a source stand, once it is read."""

    choice: ChosenSource

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return every place that states a rule."""
        return self.choice.origins.of(acl)


@define(eq=False, kw_only=True)
class Finding:
    """What finders are made of."""

    source: SourceFlags
    flags: FindingsFlags
    authorizer: AuthorizerFlags
    choice: ChosenSource
    """What the console shows."""
    topics: NameFile | None = None
    """Those of --topics."""
    pause: Pause = no_pause
    """Called again and again by what looks, in its thread."""

    @contextmanager
    def lookout(self, states: States) -> Iterator[Lookout]:
        """Look for findings during the `with`, once it is started.

        Raises:
            ConfigError: flags that do not go together. OSError: a file of settings cannot be read.

        """
        self._check_files()
        read_alone, stopping = self._read_alone(), threading.Event()
        try:
            finders: dict[Kind, Finder] = {Kind.LINT: self._lint(read_alone, stopping)}
            others = {Kind.UNUSED: self._unused(), Kind.DRIFT: self._drift(), Kind.TESTS: self._tests()}
            for kind, finder in others.items():
                if finder is not None:
                    has_log = read_alone.source.log is not None
                    finders[kind] = PlacedFinder(finder=finder, choice=read_alone) if has_log else finder
            lacking = {kind: why for kind, why in _LACKING.items() if kind not in finders}
            lookout = Lookout(
                finders=finders,
                lacking=lacking,
                commands=self._commands(),
                suppressions=self._suppressions(),
                now=lambda: _newest(states),
            )
            try:
                yield lookout
            finally:
                stopping.set()
                lookout.stop()
        finally:
            if read_alone is not self.choice:
                read_alone.source.close()

    def _check_files(self) -> None:
        """Raise ConfigError if something is to come from stdin: it is read again and again."""
        flags = self.flags
        files = [*(("--accesses", path) for path in flags.accesses), *(("--tests", path) for path in flags.tests)]
        for flag, path in (*files, ("--want", flags.want), ("--ignore", flags.ignore)):
            if str(path) == STDIN:
                raise ConfigError(f"{flag} -: expected a file: it is read again and again")

    def _commands(self) -> dict[Kind, tuple[str, ...]]:
        """Return the equivalent command of each kind, and its flags besides those of the source."""
        flags, commands = self.flags, dict[Kind, tuple[str, ...]]()
        days = _words({"--days": flags.days})
        settings = _words({"--config": flags.config, "--ignore": flags.ignore})
        accesses = [word for path in flags.accesses for word in ("--accesses", path)]
        commands[Kind.LINT] = ("lint", *settings, *accesses)
        if flags.index is not None:
            brokers = [word for broker in flags.ignore_broker for word in ("--ignore-broker", broker)]
            gap = ("--gap", flags.gap)
            commands[Kind.UNUSED] = ("accesses unused", "--index", str(flags.index), *days, *gap, *brokers, *accesses)
        elif accesses:
            commands[Kind.UNUSED] = ("accesses usage", *accesses, *days, "--format", "table")
        if flags.want is not None:
            others = [word for path in flags.other_journals for word in ("--other-journal", str(path))]
            words = _words({"--want": flags.want, "--want-format": flags.want_format, "--journal": flags.journal})
            commands[Kind.DRIFT] = ("drift", *words, *others)
        if flags.tests:
            commands[Kind.TESTS] = ("test", *flags.tests)
        return commands

    def _suppressions(self) -> SuppressionsFile:
        """Return the file that `--ignore` or `--config` names."""
        if self.flags.ignore is not None:
            return SuppressionsFile(str(self.flags.ignore), "ignore")
        return SuppressionsFile() if self.flags.config is None else SuppressionsFile(str(self.flags.config))

    def _read_alone(self) -> ChosenSource:
        """Return the source to be read beside the thread that follows it: a log by a reader of its own."""
        if isinstance(self.choice.source, LogSource):
            return ChosenSource(LogSource(self.choice.source.directory, lambda _notes: None), None)
        return self.choice

    def _lint(self, choice: ChosenSource, stopping: threading.Event) -> LintFinder:
        return LintFinder(
            stopping=stopping,
            pause=self.pause,
            choice=choice,
            settings=load_repository_settings(self.flags.config),
            ignore=self.flags.ignore,
            topics=self.topics,
            accesses=self.flags.accesses,
        )

    def _unused(self) -> Finder | None:
        flags, log = self.flags, given_accesses(self.flags)
        if flags.index is None and log is None:
            return None
        need_usage_extra()
        from aclog.cli.unused_finder import IndexFinder, LogFinder
        from aclog.ops.usage import DEFAULT_DAYS
        from aclog.usage.unused_report import UnusedQuestion

        check_days(flags.days or DEFAULT_DAYS)
        origins, directory = SourceOrigins(self.choice), self._directory()
        if flags.index is None:
            if log is None:
                return None
            named = self.authorizer.generation is not None
            return LogFinder(accesses=log, days=flags.days, log=directory, is_kafka_named=named, origins=origins)
        question = UnusedQuestion(days=flags.days or DEFAULT_DAYS, gap=gap_us(flags.gap), ignored=flags.ignore_broker)
        return IndexFinder(index=flags.index, question=question, log=directory, proof=log, origins=origins)

    def _directory(self) -> Path | None:
        source = self.choice.source
        return source.directory if isinstance(source, LogSource) and source.log is not None else None

    def _drift(self) -> Finder | None:
        flags, source = self.flags, self.source
        if flags.want is None:
            return None
        if flags.journal is None:
            raise ConfigError("--want: expected --journal FILE, the state file of managed rules")
        target = TargetFlags(
            log=source.log_directory(),
            bootstrap_server=source.bootstrap_server,
            bootstrap_controller=source.bootstrap_controller,
            command_config=source.command_config,
        )
        want = DesiredRules(
            path=flags.want,
            form=flags.want_format or AclsFormat.AUTO,
            modules=parse_modules(source.modules),
            inputs=source.inputs(),
            exclude=tuple(source.exclude),
            accept_unread=parse_accepted(source.accept_unread),
            topics=source.topics_file,
        )
        return DriftFinder(address=place_address(target), want=want, journal=flags.journal, others=flags.other_journals)

    def drafts(self) -> Drafts:
        """Return what drafts share: the tests that they may turn."""
        finder = self._tests()
        return Drafts(tests=None if finder is None else DraftTests(finder))

    def _tests(self) -> TestsFinder | None:
        if not self.flags.tests:
            return None
        place: ChangePlace = self.choice.source.change_place
        origins: Origins = SourceOrigins(self.choice)
        return TestsFinder(files=self.flags.tests, authorizer=self.authorizer, origins=origins, place=place)


def _words(flags: Mapping[str, object]) -> list[str]:
    return [word for flag, value in flags.items() if value is not None for word in (flag, str(value))]


def _newest(states: States) -> State | None:
    try:
        return states.now()
    except NotReadyError:
        return None


# Serves the console.


_FOLLOWED_S, _BUSY_S = 0.1, 0.25
"""Between two looks at a log, each of 0.5 ms, and while it changes, as all open pages are made anew for each state:
with the half second between requests of a page, a change is seen within one second."""
_SWITCH_S = 0.0003
"""For how long a thread keeps the interpreter from others that wait (CPython: 5 ms). The event loop waits for it once
for each socket that is ready, in line with the threads of pages, of the state and of its history."""


def run_console(source: SourceFlags, flags: ConsoleFlags, findings: FindingsFlags, authorizer: AuthorizerFlags) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        ConfigError: flags that do not go together, or the address cannot be listened on.

    """
    sys.setswitchinterval(_SWITCH_S)
    endpoint = _endpoint(flags)
    _check_base_url(flags)
    with bound_to(endpoint.address) as bound:  # port 0 is a free one, which the address has from here on
        address = HostPort(host=endpoint.address.host, port=bound.getsockname()[1])
        _run(evolve(endpoint, address=address), bound, source, flags, findings, authorizer)


def _run(
    endpoint: Endpoint,
    bound: socket.socket,
    source: SourceFlags,
    flags: ConsoleFlags,
    findings: FindingsFlags,
    authorizer: AuthorizerFlags,
) -> None:
    """Serve on a socket that is bound to the address of the endpoint. Raises as run_console."""
    url = flags.base_url or endpoint.url
    tell = FewNotices(tell=warn)
    way = None if flags.login is None else way_of(flags.login, base_url=url, environment=os.environ, tell=tell)
    editing = editing_of(source, findings, authorizer) if flags.edit else None
    topics = source.topics()
    choice = source.choose(FewNotices(tell=note), topics=topics)
    if choice.moment is not None:
        raise ConfigError("--as-of: the console shows the newest state, and others in its pages")
    audit = None if flags.audit is None else LineFile(flags.audit)
    live, settings = followed(choice, _FOLLOWED_S, _BUSY_S), settings_of(authorizer)
    precedence = Precedence()
    history = _history(live, settings, precedence)
    premises = live_premises(live, authorizer.configs())
    states = States(live=live, settings=settings, premises=premises, pause=precedence.give_way())
    refusals, health = _refusals(live), health_of(flags.health_listen, lambda: _unready(states))
    finding = Finding(
        source=source,
        flags=findings,
        authorizer=authorizer,
        choice=choice,
        topics=topics,
        pause=precedence.give_way(),
    )
    guard = _guard(endpoint, flags.base_url, way, Sights(newest=partial(_newest_state, live), settings=settings), audit)
    try:
        with finding.lookout(states) as lookout:
            console = Console(
                name=choice.source.name,
                cluster_id=_cluster_id(choice),
                states=states,
                command=CommandLine(source=tuple(chain(*source.named())), settings=tuple(authorizer.words())),
                place=choice.source.change_place,
                origins=SourceOrigins(choice),
                files=choice.source if isinstance(choice.source, AclsSource) else None,
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
                bound=bound,
                begun=partial(_open_browser, url, is_off=flags.no_open),
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


def _open_browser(url: str, *, is_off: bool) -> None:
    """Open the console in a browser with windows, if a user looks at the terminal."""
    has_windows = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if is_off or not sys.stdout.isatty() or not has_windows:
        return
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is not webbrowser.GenericBrowser:  # that one would take over the terminal
        threading.Thread(target=browser.open, args=(url,), name="browser", daemon=True).start()


def _cluster_id(choice: ChosenSource) -> str:
    """Return the id of the cluster whose log is read; empty if no file beside the log has it, or can be read."""
    try:
        return cluster_of(choice.source) or ""
    except (MetadataError, OSError):
        return ""


def _endpoint(flags: ConsoleFlags) -> Endpoint:
    """Return where the console listens. Raises ConfigError: flags that do not go together."""
    endpoint = Endpoint(
        address=listen_address(flags.listen),
        tls_cert=flags.tls_cert,
        tls_key=flags.tls_key,
        trusted_proxy=flags.trusted_proxy,
    )
    endpoint.check(secrets=None if flags.login is None else "logins", ways="--login FILE")
    return endpoint


def _guard(endpoint: Endpoint, base_url: str | None, way: Way | None, sights: Sights, audit: LineFile | None) -> Guard:
    """Return what stands before the pages."""
    url = base_url or endpoint.url
    return Guard(
        way=way,
        sights=sights,
        hosts=Hosts.of(listen=endpoint.address.host, is_local=endpoint.is_local, base_url=base_url),
        cookies=Cookies(secure=url.lower().startswith("https:"), port=endpoint.address.port),
        audit=audit,
        report=FewNotices(tell=warn),
        stylesheet=f"/static/console.css?v={asset_version()}",
        icon=f"/static/icon.svg?v={asset_version()}",
    )


def _refusals(live: LiveState) -> Refusals:
    """Return the metrics of a console."""
    refusals = Refusals()
    ProcessCollector(registry=refusals.registry)
    PlatformCollector(registry=refusals.registry)
    age = Gauge("aclog_age_seconds", "Time since the state was confirmed.", registry=refusals.registry)
    age.set_function(lambda: live.age() or 0.0)
    return refusals


def _unready(states: States) -> str | None:
    """Return why nothing can be shown; None if it can."""
    try:
        states.now()
    except NotReadyError as error:
        return str(error)
    return None


def _newest_state(live: LiveState) -> Image | None:
    return None if live.newest is None else live.newest.image


def _check_base_url(flags: ConsoleFlags) -> None:
    """Warn of a proxy that serves the console without a login. Raises ConfigError: not the URL of a whole host."""
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
            raise ConfigError(
                f"--edit: every client that reaches {flags.base_url} could change rules: expected --login"
            )
        warn(f"every client that reaches {flags.base_url} sees all, unless a proxy authenticates it: expected --login")


def _reload(guard: Guard, endpoint: Endpoint, context: ssl.SSLContext | None) -> None:
    """Read the login's file and the certificate again; one that is invalid is reported, and the old ones stay."""
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
    live_history = LiveHistory(live=live, log=log, warm=lambda acls: warm(acls, settings), pause=precedence.give_way())
    return History(live=live_history, settings=settings, applies=applies)
