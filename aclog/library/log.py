"""A source of images."""

from collections.abc import AsyncIterator, Iterator
from html import escape
from threading import Lock

from attrs import define, field

from aclog.authorizer.cluster_settings import ClusterSettings
from aclog.authorizer.origin import NO_ORIGINS
from aclog.library.arguments import AsOf, moment_of, shown, told_as_log_errors
from aclog.library.defaults import LogOptions
from aclog.library.image import Image
from aclog.library.rows import CHANGES, Rows
from aclog.metalog.closeable import Closeable
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.log import LogReader
from aclog.metalog.printable import printable
from aclog.snapshots.image import Image as State
from aclog.snapshots.moments import moment_text
from aclog.snapshots.rule_history import Change
from aclog.snapshots.rule_watch import RuleWatch
from aclog.snapshots.state_source import StateSource
from aclog.sources.acls_source import AclsSource
from aclog.sources.choice import LiveSource, gaps_of, settings_of
from aclog.sources.log_history import history_of
from aclog.sources.max_age import check_age

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
    """That of the newest state returned."""
    _closed: bool = field(default=False, init=False)
    _cluster: ClusterSettings | None = field(default=None, init=False)
    """What decides in a running cluster besides the ACLs, as far as its nodes answered when it was first read."""
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

        What has no zone is in UTC, or in that of open_log's `timezone` (docs/commands.md, Times). A running cluster
        that no longer answers is no error: `age` tells how old the state may be, and with `max_age` an older one is
        refused.

        Raises:
            StaleError: the state is older than `max_age`; says how old, since when, and from whom.
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
        """Return what the nodes of a running cluster answer, asked once; None for another source."""
        if isinstance(source, LiveSource) and self._cluster is None:
            self._cluster = settings_of(source)
        return self._cluster

    @property
    def age(self) -> float | None:
        """How many seconds ago a running cluster last confirmed that no more than is known here was committed.

        Counted from the request that it answered, so an upper bound. Of a quorum: the leader's last answer to a Fetch,
        which follows the log all the time, usually below 1. Of `bootstrap_server`: the newest image(). None for a path,
        which is read as it is, and before the first image().

        Raises:
            LogError: closed.

        """
        found = self._open_source().freshness()
        return None if found is None else found.seconds

    @property
    def lag(self) -> int | None:
        """How many offsets the newest image() is behind the high-water mark as last known; None if there is no log.

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

        `after` is an image of this log, or what `image` takes: no change after it is left out. By default it is the
        newest state of now. Changes with the same `end_offset` became visible together. If a snapshot has replaced the
        records of some changes, what they changed as a whole is yielded, with `gap`, and `notes` says so.

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
        from aclog.library.async_watch import watched  # noqa: PLC0415  # asyncio, which few need

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
            raise ConfigError(f"{self.name}: after {shown(after)}: expected an image of this log")
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

    def _open_source(self) -> StateSource:
        if self._closed:
            raise LogError(f"{self.name}: closed")
        return self._source
