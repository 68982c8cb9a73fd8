"""A source of images: how it is opened, read and watched."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, tzinfo
from functools import partial
from html import escape
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from attrs import evolve, field

from aclog.authorizer.acl import NO_ORIGINS
from aclog.authorizer.standard import ClusterSettings
from aclog.library.authorizer import (
    CHANGES,
    AsOf,
    Defaults,
    LogOptions,
    Rows,
    moment_of,
    optional_text,
    path_of,
    text_of,
    texts_of,
    told_as_log_errors,
    value_text,
)
from aclog.library.image import Image
from aclog.metalog.committed_log import Closeable, LogReader
from aclog.metalog.errors import ConfigError, LogError, printable
from aclog.metalog.values import define
from aclog.snapshots.history import Change, RuleWatch
from aclog.snapshots.image import Image as State
from aclog.snapshots.image import StateSource
from aclog.snapshots.moments import moment_text, parse_zone
from aclog.sources.choice import (
    AclsSource,
    ChosenSource,
    LiveSource,
    SourceSelection,
    choose_source,
    gaps_of,
    open_path,
    settings_of,
)
from aclog.sources.formats.format import AclsFormat
from aclog.sources.git import parse_git_place
from aclog.sources.logs import history_of
from aclog.sources.read_options import ReadOptions
from aclog.sources.server_flags import check_age
from aclog.terminal.output import note

# A source of images.


_WAIT_S = 0.25
"""How long a watch waits for changes at once, in seconds; closing the log ends it within this time."""


@define(eq=False, repr=False)
class Log(Closeable):
    """A source of images, returned by open_log; for any number of threads.

    `notes` are the notes of its recovery. Once it is closed, all but `name`, `notes` and `close` raise a LogError;
    images that it returned remain valid.
    """

    _source: StateSource
    notes: list[str] = field(factory=list)
    _options: LogOptions = field(factory=LogOptions, kw_only=True)
    _end_offset: int = field(default=0, init=False)
    """The end offset of the newest state returned."""
    _closed: bool = field(default=False, init=False)
    _cluster: ClusterSettings | None = field(default=None, init=False)
    """Settings of a running cluster besides the ACLs, as far as its nodes returned them at the first read."""
    _guard: Lock = field(factory=Lock, init=False)
    """Held while the source makes a state: each continues from the one before."""

    def __repr__(self) -> str:
        return f"Log({self.name!r}{', closed' if self._closed else ''})"

    def _repr_html_(self) -> str:
        return f"<code>{escape(printable(repr(self)))}</code>"

    @property
    def name(self) -> str:
        """The path or the servers that were opened."""
        return self._source.name

    def image(self, as_of: AsOf | None = None) -> Image:
        """Return the newest state, or that as of an end offset, a datetime, or a text such as `yesterday 18:00`.

        A text without a zone is in UTC, or in that of open_log's `timezone` (docs/commands, Times). A running cluster
        that no longer responds is no error: `age` returns the age of the state, and with `max_age` an older one is
        refused.

        Raises:
            StaleError: the state is older than `max_age`; the text has its age, its time, and its server.
            MetadataError: the source is damaged or closed, does not cover the moment, or can never be followed again.

        """
        moment, defaults = moment_of(as_of, self._options.zone), self._options.defaults
        source = self._open_source()
        with told_as_log_errors(self.name), self._guard:
            if moment is not None:
                state = source.image_at(moment)
                return Image(
                    state,
                    as_of=moment_text(moment),
                    place=source.change_place,
                    defaults=defaults,
                    cluster=self._cluster_settings(source),
                    gaps=gaps_of(source),
                )
            newest = source.image()
            self._end_offset = newest.end_offset
            origins = source.origins if isinstance(source, AclsSource) else NO_ORIGINS
            return Image(
                newest,
                place=source.change_place,
                origins=origins,
                defaults=defaults,
                cluster=self._cluster_settings(source),
                gaps=gaps_of(source),
            )

    def _cluster_settings(self, source: StateSource) -> ClusterSettings | None:
        """Return the settings that the nodes of a running cluster return, read once; None for another source."""
        if isinstance(source, LiveSource) and self._cluster is None:
            self._cluster = settings_of(source)
        return self._cluster

    @property
    def age(self) -> float | None:
        """Return the age, in seconds, of a running cluster's last confirmation that this state is the newest.

        Counted from the request of that response, so an upper bound. Of a quorum: the leader's last answer to a Fetch,
        which follows the log all the time, usually below 1. Of `bootstrap_server`: the newest image(). None for a path,
        which is read as it is, and before the first image().

        Raises:
            LogError: closed.

        """
        freshness = self._open_source().freshness()
        return None if freshness is None else freshness.seconds

    @property
    def lag(self) -> int | None:
        """Return how many offsets the newest image() is behind the last known high-water mark; None if there is no log.

        Raises:
            MetadataError: the log cannot be opened or followed, or is closed.

        """
        with told_as_log_errors(self.name):
            with self._guard:
                log = self._open_source().log
            return None if log is None else max(log.high_watermark() - self._end_offset, 0)

    def history(self) -> Rows[Change]:
        """Yield every change of an ACL, in the order of the log, as far back as it reaches.

        Raises:
            ConfigError: the source is a single state, which has no history.
            MetadataError: the log is damaged or closed.

        """
        source = self._open_source()
        self._log_of(source, "has no history")
        return Rows(self.name, lambda: history_of(self._open_source()).changes, CHANGES)

    def watch(self, after: Image | AsOf | None = None) -> Iterator[Change]:
        """Yield each change of an ACL that is committed after a state, as it is committed; ends when the log is closed.

        `after` is an image of this log, or an argument of `image`: no change after it is left out. By default it is the
        current newest state. Changes with the same `end_offset` became visible together. If a snapshot has replaced the
        records of some changes, their net effect is yielded, with `gap`, and `notes` has a note.

        Raises:
            ConfigError: the source is a single state, which does not change.
            StaleError: the cluster has confirmed nothing for longer than `max_age`.
            MetadataError: the log is damaged or closed, or can never be followed again.

        """
        return self._watched(self._start(after))

    def watch_async(self, after: Image | AsOf | None = None) -> AsyncIterator[Change]:
        """Do the same for `async for`, from the first step on. May be cancelled at any time; leaves no thread behind.

        Raises:
            MetadataError: as `watch`.

        """
        self._log_of(self._open_source(), "does not change")
        return watched(lambda: self._start(after), self._step, lambda: self._closed)

    def close(self) -> None:
        """Close open files and connections; images remain valid. Idempotent."""
        self._closed = True
        with told_as_log_errors(self.name):
            self._source.close()

    def _start(self, after: Image | AsOf | None) -> RuleWatch:
        source = self._open_source()
        log = self._log_of(source, "does not change")
        if isinstance(after, Image):
            state = after.state
        else:
            state = self._newest() if after is None else self.image(after).state
        if state.end_offset > log.high_watermark():
            raise ConfigError(f"{self.name}: after {value_text(after)}: expected an image of this log")
        return RuleWatch.after(state, log, newest=self._newest, notify=self.notes.append)

    def _newest(self) -> State:
        with told_as_log_errors(self.name), self._guard:
            return self._open_source().image()

    def _watched(self, watch: RuleWatch) -> Iterator[Change]:
        while not self._closed:
            yield from self._step(watch, _WAIT_S)

    def _step(self, watch: RuleWatch, timeout: float) -> tuple[Change, ...]:
        with told_as_log_errors(self.name):
            try:
                changes = watch.step(timeout)
            except LogError:
                if self._closed:
                    return ()
                raise
            max_age = self._options.max_age
            if not changes and max_age is not None and not self._closed:
                check_age(self._source.freshness(), max_age)
            return changes

    def _log_of(self, source: StateSource, why: str) -> LogReader:
        with told_as_log_errors(self.name), self._guard:
            log = source.log
        if log is None:
            raise ConfigError(f"{self.name}: a single state {why}: expected the directory of a log, or a quorum")
        return log

    @property
    def source(self) -> StateSource:
        """What images are read from, for functions of this package. Raises LogError: closed."""
        return self._open_source()

    def _open_source(self) -> StateSource:
        if self._closed:
            raise LogError(f"{self.name}: closed")
        return self._source


# How a source is opened: by its path, by its servers, or by the files of rules.


def open_log(
    path: str | PathLike[str] | None = None,
    *,
    bootstrap_controller: str | None = None,
    bootstrap_server: str | None = None,
    command_config: str | PathLike[str] | None = None,
    max_age: float | None = None,
    context: str | None = None,
    timezone: str | None = None,
) -> Log:
    """Open a directory of segments and checkpoints, a checkpoint (`*.checkpoint`), or a file of ACLs as JSON lines.

    Instead of a path, `bootstrap_controller` ("host:port,...") follows the log of a running quorum (aclog or Kafka),
    and `bootstrap_server` reads a running cluster through its admin API; `command_config` is a client properties file
    for both. Nothing is locked or changed. A log that is being written is followed: each image() is the newest.

    Or `context` is the name of one of `aclog context list`; its settings decide where image.authorizer() is given none.
    `timezone` (Europe/Berlin, +02:00, local) is of times that name none: by default the context's, or UTC.

    With `max_age`, image() raises a StaleError rather than return a state that the cluster last confirmed more than so
    many seconds ago.

    Raises:
        ConfigError: not exactly one of the four, an unknown context or time zone, an invalid address,
            a bad properties file, or `max_age` with a path.
        LogError: the path does not exist.

    """
    notes: list[str] = []
    if context is not None:
        if (path, bootstrap_controller, bootstrap_server, command_config) != (None, None, None, None):
            raise ConfigError("expected either a context, or a path or a running cluster")
        return _open_context(text_of("context", context, "prod"), _zone_of(timezone), max_age)
    options = LogOptions(max_age=max_age, zone=_zone_of(timezone) or UTC)
    place = None if path is None else path_of("path", path)
    if max_age is not None:
        _check_max_age(max_age, place)
    if place is not None and bootstrap_controller is None and bootstrap_server is None:
        if command_config is not None:
            raise ConfigError(f"{place}: command_config: a path has no login: expected a running cluster")
        with told_as_log_errors(place):
            return Log(open_path(place, notes.append), notes, options=options)
    if place is not None:
        raise ConfigError(f"{place}: expected a path or a running cluster, not both")
    if (bootstrap_controller is None) is (bootstrap_server is None):
        raise ConfigError(
            "expected a path, bootstrap_controller='HOST:PORT', bootstrap_server='HOST:PORT' or context='NAME'"
        )
    selection = SourceSelection(
        bootstrap_controller=optional_text("bootstrap_controller", bootstrap_controller, "kafka1:9093"),
        bootstrap_server=optional_text("bootstrap_server", bootstrap_server, "kafka1:9092"),
        command_config=None if command_config is None else Path(path_of("command_config", command_config)),
        max_age=max_age,
    )
    with told_as_log_errors(str(command_config)):
        return Log(choose_source(selection, notes.append).source, notes, options=options)


def open_acls(
    path: str | PathLike[str] | None = None,
    *,
    ref: str | None = None,
    format: str = "auto",  # noqa: A002  # the flag's name is --acls-format
    modules: Mapping[str, str | PathLike[str]] | None = None,
    topics: Iterable[str] | None = None,
) -> Log:
    """Open a file or a directory of ACLs: JSON lines, or files of GitOps tools (docs/gitops.md).

    `image().origins` has the file and line of each ACL; `notes` has the files that were read and ignored, after the
    first image().

    Args:
        path: a file or a directory; `-` is stdin.
        ref: instead of a path, `GITREF:PATH`: the same as of a commit of the repository around the working directory.
        format: auto, or one of aclog.sources.formats.format.AclsFormat, such as jsonl or terraform.
        modules: the directory of each Terraform module that is not among the files, by its source.
        topics: the topics that exist, for patterns that are about those.

    Raises:
        ConfigError: not exactly one of path and ref, an unknown format, or no such path in the repository. image()
            raises it for input that cannot be parsed, with file and line.

    """
    if (path is None) is (ref is None):
        raise ConfigError("expected either a path or ref=GITREF:PATH")
    if format not in list(AclsFormat):
        raise ConfigError(f"format {value_text(format)} is not one of {', '.join(AclsFormat)}")
    if ref is not None:
        parse_git_place(text_of("ref", ref, "main:kafka"))
    names = None if topics is None else tuple(texts_of("topics", topics, "orders"))
    options = ReadOptions(
        form=AclsFormat(format),
        modules=_modules({} if modules is None else modules),
        topics=None if names is None else lambda: names,
    )
    notes: list[str] = []
    location = ref or "" if path is None else path_of("path", path)
    return Log(AclsSource(location, options=options, notify=notes.append, is_ref=ref is not None), notes)


Rules: TypeAlias = Log | str | PathLike[str]
"""What open_log and open_acls return; or the path of a log, a checkpoint, or a file or directory of rules."""


def chosen_source(what: str, rules: Rules) -> ChosenSource:
    """Return the source of rules that an argument names, to be read as it is now; notes of it are printed, or taken.

    Raises:
        ConfigError: neither a log nor a path; LogError: the log is closed, or there is no such path.

    """
    if isinstance(rules, Log):
        return ChosenSource(rules.source, None)
    place = path_of(what, rules)
    with told_as_log_errors(place):
        if Path(place).is_dir() and not any(each.suffix in {".log", ".checkpoint"} for each in Path(place).iterdir()):
            return ChosenSource(AclsSource(place, notify=note), None)
        return ChosenSource(open_path(place, note), None)


def _open_context(name: str, zone: tzinfo | None, max_age: float | None) -> Log:
    """Open the source of a context, with its settings."""
    # Contexts are in TOML, which a path does not need.
    from aclog.sources.contexts import choose_context  # noqa: PLC0415
    from aclog.sources.named_source import selection_of  # noqa: PLC0415

    with told_as_log_errors("the file of contexts"):
        choice = choose_context(name)
    if choice is None:
        raise ConfigError("context '': expected the name of a context, such as 'prod'")
    context = choice.context
    is_cluster = context.kind in ("bootstrap-controller", "bootstrap-server")
    if max_age is not None:
        _check_max_age(max_age, None if is_cluster else f"context {name}")
    notes: list[str] = []
    defaults = Defaults(
        super_users=context.super_users,
        allow_everyone=context.allow_everyone,
        semantics=context.semantics or "kafka",
        cidr=context.cidr,
    )
    if settings := ", ".join(context.decides().values()):
        notes.append(f"context {name}: decided with {settings}, unless image.authorizer() is given others")
    with told_as_log_errors(f"context {name}"):
        source = choose_source(evolve(selection_of(context), max_age=max_age), notes.append).source
    options = LogOptions(max_age=max_age, zone=zone or _zone_of(context.timezone) or UTC, defaults=defaults)
    return Log(source, notes, options=options)


def _zone_of(text: str | None) -> tzinfo | None:
    return None if text is None else parse_zone(text_of("timezone", text, "Europe/Berlin"))


def _check_max_age(max_age: object, path: str | None) -> None:
    if isinstance(max_age, bool) or not isinstance(max_age, (int, float)) or not max_age > 0:
        raise ConfigError(f"max_age {value_text(max_age)}: expected seconds, more than 0")
    if path is not None:
        raise ConfigError(f"{path}: max_age: the state of a path has no age: expected a running cluster")


def _modules(modules: object) -> dict[str, str]:
    if not isinstance(modules, Mapping):
        raise ConfigError(f"modules {value_text(modules)}: expected the directory of each module by its source")
    return {
        text_of("the source of a module", source, "acme/acl/kafka"): path_of("modules", place)
        for source, place in modules.items()
    }


# Watching from an event loop. The log is read in a separate thread, which ends with the watch.


_POLL_S = 0.05
"""The maximum delay, in seconds, between a change and its event in the loop."""


async def watched(
    start: Callable[[], RuleWatch], step: Callable[[RuleWatch, float], Sequence[Change]], is_closed: Callable[[], bool]
) -> AsyncGenerator[Change, None]:
    """Yield each change; ends when the log is closed.

    May be cancelled at any time: no change is lost, and a new watch after the last change continues with the next.
    """
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, thread_name_prefix="aclog-watch")
    try:
        watch = await loop.run_in_executor(thread, start)
        while not is_closed():
            changes = await loop.run_in_executor(thread, partial(step, watch, 0.0))
            for change in changes:
                yield change
            if not changes:
                await asyncio.sleep(_POLL_S)
    finally:
        # Not awaited: the current read completes, and then the thread ends.
        thread.shutdown(wait=False)
