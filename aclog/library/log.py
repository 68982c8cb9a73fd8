"""A source of images."""

from collections.abc import Iterator
from datetime import UTC, datetime

from attrs import define, field

from aclog.authorizer.origin import NO_ORIGINS
from aclog.library.image import Image
from aclog.metalog.closeable import Closeable
from aclog.metalog.errors import ConfigError, LogError
from aclog.snapshots import rule_history as history
from aclog.snapshots.moments import Moment, moment_text
from aclog.snapshots.state_source import StateSource
from aclog.sources.acls_source import AclsSource
from aclog.sources.paths import LogSource


@define(eq=False)
class Log(Closeable):
    """A source of images, returned by open_log; not thread-safe. `notes` are the notes of its recovery.

    Once it is closed, all but `name`, `notes` and `close` raise a LogError; images that it returned remain valid.
    """

    _source: StateSource
    notes: list[str] = field(factory=list)
    _end_offset: int = field(default=0, init=False)
    """That of the newest state returned."""
    _closed: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """The path or the servers that were opened."""
        return self._source.name

    def image(self, as_of: Moment | None = None) -> Image:
        """Return the newest state, or the state at an end offset or a time (UTC if it has no zone).

        A running cluster that no longer answers is no error: `age` tells how old the state may be, and with `max_age`
        an older one is refused.

        Raises:
            StaleError: the state is older than `max_age`; says how old, since when, and from whom.
            MetadataError: the source is damaged or closed, does not cover the moment, or can never be followed again.

        """
        source = self._open_source()
        if as_of is None:
            newest = source.image()
            self._end_offset = newest.end_offset
            origins = source.origins if isinstance(source, AclsSource) else NO_ORIGINS
            return Image(newest, place=source.change_place, origins=origins)
        if isinstance(as_of, datetime) and as_of.tzinfo is None:
            as_of = as_of.replace(tzinfo=UTC)
        return Image(source.image_at(as_of), as_of=moment_text(as_of), place=source.change_place)

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
        log = self._open_source().log
        return None if log is None else max(log.high_watermark() - self._end_offset, 0)

    def history(self) -> Iterator[history.Change]:
        """Yield every change of an ACL, in the order of the log.

        Raises:
            ConfigError: the source is not a log directory.
            MetadataError: the log is damaged or closed.

        """
        source = self._open_source()
        if not isinstance(source, LogSource):
            raise ConfigError(f"{self.name}: only a log directory has a history")
        return history.history(source.directory)

    def close(self) -> None:
        """Close open files and connections; images remain valid. Idempotent."""
        self._closed = True
        self._source.close()

    def _open_source(self) -> StateSource:
        if self._closed:
            raise LogError(f"{self.name}: closed")
        return self._source
