"""Serves a decision point."""

import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from time import sleep

from attrs import evolve

from aclog.authorizer.codes import ResourceType
from aclog.cli.flags.commands import PdpFlags
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.pdp_workers import Work, Worker, Workers, check_workers
from aclog.cli.serving import (
    Endpoint,
    all_bound_to,
    check_certificate,
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
from aclog.console.pdp.mapping import Mapped, NotReadyError, read_mapping
from aclog.console.pdp.opa import Audit, DecisionLog
from aclog.console.pdp.workers import AnsweredOffsets
from aclog.console.shared import LineFile
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define, frozen
from aclog.ops.policies import settings_of
from aclog.snapshots.image import StateSource
from aclog.sources.checkpoint import CheckpointSource
from aclog.sources.choice import AclsSource, ChosenSource
from aclog.sources.logs import LogSource, log_digest
from aclog.terminal.notices import FewNotices
from aclog.terminal.output import note, warn

# What a decision point reads before it serves, and again at SIGHUP.


@define(eq=False, kw_only=True)
class Inputs:
    """What its flags name, as it was read last."""

    source: SourceFlags
    flags: PdpFlags
    endpoint: Endpoint
    mapping: Mapped
    tokens: Tokens | None
    choice: ChosenSource

    def read_again(self) -> StateSource | None:
        """Read mapping, tokens and rules in files again, all or nothing, and return these rules; None without any.

        Raises:
            MetadataError, OSError: one cannot be used.

        """
        mapping, tokens, choice = read_mapping(self.flags.mapping), tokens_of(self.flags), self.choice
        if self.source.acls is not None:
            choice = self.source.choose(note)
            choice.source.image()
        check_certificate(self.endpoint)
        self.mapping, self.tokens, self.choice = mapping, tokens, choice
        return None if self.source.acls is None else choice.source

    def try_again(self) -> bool:
        """Do the same for workers that are started later, which then read again what they have; return success."""
        try:
            self.read_again()
        except (MetadataError, OSError) as error:
            warn(f"not read again: {error}")
            return False
        note(_READ_AGAIN)
        return True


_READ_AGAIN = "rules in files, mapping, tokens and certificate were read again, and files opened again"


@frozen(kw_only=True, eq=False)
class Reload:
    """Reads the files of its flags again, and reopens files; an invalid file is reported, and then nothing changes."""

    point: DecisionPoint
    inputs: Inputs
    files: Iterable[LineFile]
    """What is appended to."""
    tell: Callable[[str], None] = note
    """Called once all is read."""

    def __call__(self, tls: ssl.SSLContext | None) -> None:
        """Read all; `tls` is that of new connections."""
        try:
            rules = self.inputs.read_again()
            for file in self.files:
                file.reopen()
            read_certificate_again(tls, self.inputs.endpoint)
        except (MetadataError, OSError) as error:
            warn(f"not read again: {error}")
            return
        if rules is not None:
            self.point.deciders.live.replace(rules)
        self.point.deciders.replace_mapping(self.inputs.mapping)
        self.point.tokens = self.inputs.tokens
        self.tell(_READ_AGAIN)


def tokens_of(flags: PdpFlags) -> Tokens | None:
    """Return the tokens of the permitted clients; None if no client needs one. Raises ConfigError, OSError."""
    return None if flags.tokens is None else read_tokens(flags.tokens)


# Serves a decision point.


_FOLLOWED_S = 0.1
"""Between two looks at a log, each of 0.5 ms."""
_UNREADY_S = 2.0
"""How long a worker that is started waits for its first state before it accepts connections, in seconds."""


def run_pdp(source: SourceFlags, flags: PdpFlags, authorizer: AuthorizerFlags) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        ConfigError: flags that do not go together, or a mapping, a token file or a certificate that cannot be used.
        OSError: a file cannot be read, or the address cannot be listened on.
        Exit: a worker process has refused something of this, and has printed what.

    """
    check_workers(flags.workers)
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
    inputs = Inputs(source=source, flags=flags, endpoint=endpoint, mapping=mapping, tokens=tokens, choice=choice)
    message = f"decision point at {flags.base_url or endpoint.url}"
    health = health_of(flags.health_listen, lambda: None)
    if flags.workers == 1:
        _serve(inputs, authorizer, f"{message}; stop with Ctrl-C")
        return
    _prepare_source(choice.source, flags.workers)
    work = Work(
        serve=lambda worker: _serve(inputs, authorizer, message, worker),
        read_again=inputs.try_again,
        message=f"{message}, with {flags.workers} workers; stop with Ctrl-C",
        health=health,
    )
    Workers(work=work, listening=all_bound_to(endpoint.address, flags.workers)).run()


def _prepare_source(source: StateSource, workers: int) -> None:
    """Read a source of a single state, for all workers.

    Raises:
        ConfigError: the source is polled, and has no offsets that order its states.

    """
    if isinstance(source, AclsSource | CheckpointSource):
        with suppress(MetadataError, OSError):  # every worker reports it
            source.image()
        return
    if not isinstance(source, LogSource):
        from aclog.sources.live import QuorumSource

        if not isinstance(source, QuorumSource):
            raise ConfigError(
                f"--workers {workers}: {source.name} is polled, and its states have no offsets, so a worker could "
                "answer from an older state than another one: expected --workers 1, --log DIR or "
                "--bootstrap-controller HOST:PORT"
            )


def _serve(inputs: Inputs, authorizer: AuthorizerFlags, message: str, worker: Worker | None = None) -> None:
    """Serve, in this process or in one of several. Raises as run_pdp."""
    source, flags, endpoint, tokens = inputs.source, inputs.flags, inputs.endpoint, inputs.tokens
    live = followed(inputs.choice, _FOLLOWED_S)
    deciders = Deciders(
        live=live,
        settings=settings_of(authorizer),
        mapping=inputs.mapping,
        max_age=flags.max_age,
        premises=live_premises(live, authorizer.configs()),
        warn=warn if worker is None or worker.number == 0 else _keep_quiet,
        answered=None if worker is None else _answered(worker, live),
    )
    measures = Measures()
    measures.age.set_function(lambda: live.age() or 0.0)
    with ExitStack() as stack:
        is_shared = worker is not None
        audit, decision_log = (_line_file(path, stack, is_shared) for path in (flags.audit, flags.decision_log))
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
        reload = Reload(point=point, inputs=inputs, files=files)
        if worker is not None:
            _serve_worker(worker, point, evolve(reload, tell=_keep_quiet), endpoint, flags.workers)
            return
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


def _serve_worker(worker: Worker, point: DecisionPoint, reload: Reload, endpoint: Endpoint, count: int) -> None:
    """Serve until the process that started this worker ends it. The limits on connections are those of all workers."""

    def metrics() -> bytes:
        return point.refusals.text()

    def summed(own: bytes) -> bytes:
        worker.board.publish(worker.number, point.deciders.why_not_ready(), own)
        return worker.board.metrics()

    def tick(tls: ssl.SSLContext | None) -> bool:
        if worker.has_new_files():
            reload(tls)
        return worker.tick(point.deciders.why_not_ready(), metrics)

    point.all_metrics = summed
    end = elapsed_seconds() + _UNREADY_S
    while point.deciders.why_not_ready() is not None and elapsed_seconds() < end:
        sleep(0.01)  # connections wait meanwhile, where they would get a 503
    try:
        serve(
            point.app(),
            endpoint,
            f"worker {worker.number + 1}",
            bound=worker.listening,
            begun=worker.begin,
            is_timed=True,
            refusals=point.refusals,
            answering=point,
            tick=tick,
            processes=count,
        )
    finally:
        worker.board.publish(worker.number, "it has ended", metrics())


def _answered(worker: Worker, live: LiveState) -> AnsweredOffsets:
    return AnsweredOffsets(
        board=worker.board, number=worker.number, digest=lambda offset: log_digest(live.source.log, offset)
    )


def _keep_quiet(_: str) -> None:
    """Print nothing: another process prints it."""


def _line_file(path: Path | None, stack: ExitStack, is_shared: bool) -> LineFile | None:
    """Return a file to append to, which is closed with the stack. Raises OSError: it cannot be opened."""
    if path is None:
        return None
    file = LineFile(path, is_shared=is_shared)
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
