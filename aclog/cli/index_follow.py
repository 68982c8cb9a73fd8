"""`aclog accesses index --follow`: adds an access log to an index as it grows, each access once."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Protocol

from attrs import field

from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.common import Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.index_update import AddedRun, IndexRuns, NothingTakenError, note_waiting, taken_row
from aclog.cli.signals import Stop, on_signals
from aclog.metalog.errors import ConfigError, MetadataError, plural
from aclog.metalog.values import define
from aclog.ops.usage import SMALL, few, note_input, stated_format, workers_for, zone_of
from aclog.sources.acl_lines import STDIN
from aclog.sources.choice import ChosenSource
from aclog.targets.applies import time_now
from aclog.terminal.columns import OutputFormat, json_text
from aclog.terminal.notices import BYTES, progress
from aclog.terminal.output import emit, note, notices_to, time_text
from aclog.usage.accesses.access_log import check_no_tables, files_of, listed
from aclog.usage.accesses.addresses import Address, is_object_path, plain_name
from aclog.usage.accesses.followed import FollowedLog
from aclog.usage.accesses.lines import FileChangedError
from aclog.usage.accesses.table_formats import tables_among
from aclog.usage.index.stored import StoredIndex, index_place
from aclog.usage.window import UnreadAccesses

MOST_INTERVAL: Final = 86_400.0
"""Seconds between two looks."""
_MOST_NOTICES: Final = 1_000
"""Different notices that are printed once each."""


class Feed(Protocol):
    """What grows: an access log, or a topic of one."""

    def step(self, runs: IndexRuns, choose: Callable[[], ChosenSource]) -> AddedRun | None:
        """Add the next batch to the index; None if nothing is new.

        Raises:
            NothingTakenError: the batch waits for more: no access in it is understood, or all are denials.
            MetadataError, OSError: as IndexRuns.take.

        """

    @property
    def has_more(self) -> bool:
        """Whether another batch follows the last one at once."""

    @property
    def status(self) -> str:
        """What is followed, and what of it is not read."""


@define(eq=False, kw_only=True)
class FileFeed:
    """The files of an access log."""

    log: FollowedLog
    flags: AccessesFlags
    _deferred: int = field(default=0, init=False)
    """The size of the last batch that waits for more, in bytes."""
    _version: int | None = field(default=None, init=False)
    """UsageIndex.contents_version after the last batch."""
    _is_first: bool = field(default=True, init=False)

    def step(self, runs: IndexRuns, choose: Callable[[], ChosenSource]) -> AddedRun | None:
        """See Feed."""
        index = runs.index
        version = index.contents_version
        if version != self._version:
            self.log.forget()
        with progress("looking for what is new", BYTES) as advance:
            new = self.log.look(index.known_contents, advance)
        if self._is_first:
            note_input(new.input, self.flags.explain_unread)
            self._is_first = False
        if not new.contents:
            self.log.confirm()
            self._version = version
            return None
        size = sum(part.content.length - part.start for part in new.contents)
        # fewer bytes are read again as often as they grow
        if self._deferred and SMALL < size < 2 * self._deferred:
            raise NothingTakenError("nothing was taken", UnreadAccesses())
        try:
            run = runs.take(choose(), new, workers_for(size, self.flags.workers), contents_version=version)
        except NothingTakenError as error:
            self._deferred, self._version = size, version
            raise note_waiting(index, error, self.flags.accesses_format) from error
        self._deferred, self._version = 0, index.last_run
        self.log.confirm()
        return run

    @property
    def has_more(self) -> bool:
        """See Feed."""
        return False

    @property
    def status(self) -> str:
        """See Feed."""
        troubles = [f"not read: {few(list(self.log.troubles.values()))}"] if self.log.troubles else []
        return "; ".join([plural(self.log.logs, "file"), *troubles])


@contextmanager
def file_feed(flags: AccessesFlags) -> Iterator[FileFeed]:
    """Yield what follows files, directories and globs.

    Raises:
        ConfigError: stdin or a pipe, which do not grow; no such files; an unknown format or zone.

    """
    form, profile = stated_format(flags.accesses_format)
    paths = [plain_name(path) for path in flags.accesses]
    check_no_tables(tables_among(paths))
    for path in filter(is_object_path, paths):
        Address.of(path)
    flags.moment().check_used(flags.accesses, ())
    for path in paths:
        if is_object_path(path):
            raise ConfigError(f"--accesses {path}: expected files or a topic with --follow: objects do not grow")
        if path == STDIN:
            raise ConfigError("--accesses -: expected files or a topic with --follow: stdin ends")
        if not any(each.is_file() for each in listed(path, list[OSError]().append)):
            list(files_of(path))  # its error has the reason
    log = FollowedLog(paths=paths, zone=zone_of(flags), form=form, profile=profile)
    yield FileFeed(log=log, flags=flags)


def check_index(index: str) -> Path:
    """Return the directory of an index. Raises ConfigError: it is in a store."""
    place = index_place(index)
    if isinstance(place, StoredIndex):
        raise ConfigError(
            f"--index {place.address}: expected a directory of this machine: --follow adds a batch per interval, and "
            "each would be a new object with the whole index: run the command as a scheduled job without --follow"
        )
    return place


@define(eq=False, kw_only=True)
class IndexFollower:
    """Adds what is new at each look, until it is stopped; a look that fails is repeated."""

    feed: Feed
    runs: IndexRuns
    source: SourceFlags
    output: Output
    stop: Stop = field(factory=Stop)
    _accesses: int = field(default=0, init=False)
    """Those added since the start."""
    _printed: set[str] = field(factory=set, init=False)

    def run(self, interval: float) -> None:
        """Look every `interval` seconds, until SIGINT or SIGTERM, after which the batch at work is still added.

        Raises:
            MetadataError, OSError: the first look fails, except by a file that was rotated meanwhile.

        """
        with on_signals(self.stop.set):
            has_more = self._look(is_first=True)
            while not self.stop.wait(0 if has_more else interval):
                has_more = self._look()

    def _look(self, *, is_first: bool = False) -> bool:
        """Add one batch; return whether another one follows at once."""
        added, rejected, unread, last, trouble, run = 0, 0, 0, None, "", None
        try:
            run = self._step()
            if run is not None:
                added = run.totals.lines
                rejected = sum(run.totals.rejects.values())
                unread = run.totals.all_unread.total
                row = taken_row(run)
                last = row["last"]
                if self.output.form is OutputFormat.JSONL:
                    emit(json_text(row), flush=True)
        except NothingTakenError as error:
            trouble = f"waiting: {error}"
        except (MetadataError, OSError) as error:
            if is_first and not isinstance(error, FileChangedError):  # a log may rotate at any moment
                raise
            trouble = f"failed, and will be repeated: {error}"
        self._accesses += added
        parts = [
            self.feed.status,
            f"{added:,} accesses added{f', the latest at {time_text(last)}' if last is not None else ''}",
            f"{self._accesses:,} added since this command started",
            *([f"{rejected:,} lines are not accesses"] if rejected else []),
            *([f"{plural(unread, 'access')} could not be read or decided"] if unread else []),
            *([trouble] if trouble else []),
        ]
        note(f"{time_now()}: {'; '.join(parts)}")
        return run is not None and self.feed.has_more

    def _step(self) -> AddedRun | None:
        notices = list[str]()
        try:
            with notices_to(notices.append), ExitStack() as stack:

                def choose() -> ChosenSource:
                    """Return the source anew, until the batch ends: its rules may have changed since the last one."""
                    choice = self.source.choose()
                    stack.callback(choice.source.close)
                    return choice

                return self.feed.step(self.runs, choose)
        finally:
            for text in notices:
                self._notice(text)

    def _notice(self, text: str) -> None:
        """Print each notice once: every batch may repeat it."""
        if text in self._printed or len(self._printed) >= _MOST_NOTICES:
            return
        self._printed.add(text)
        note(text.removeprefix("note: "))


def check_following(output: Output, source: SourceFlags, interval: float) -> None:
    """Check the flags of --follow. Raises ConfigError: they do not go together."""
    if output.form not in {OutputFormat.TEXT, OutputFormat.JSONL}:
        raise ConfigError(f"--follow with --format {output.form}: expected text or jsonl")
    if not 0 < interval <= MOST_INTERVAL:
        raise ConfigError(f"--interval {interval:g}: expected seconds above 0, and at most {MOST_INTERVAL:g}")
    for flag, path in source.files().items():
        if path == STDIN:
            raise ConfigError(f"{flag} -: expected a file with --follow, which reads it again for each batch")
