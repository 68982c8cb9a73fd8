"""The history of the log that a source reads: what it begins with, and every change of an ACL."""

from collections.abc import Iterator

from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.file_names import list_checkpoints
from aclog.metalog.log import LogReader
from aclog.snapshots.image import Image
from aclog.snapshots.rule_history import Change, history_from, start_of_history
from aclog.snapshots.state_source import StateSource
from aclog.sources.paths import LogSource


@frozen(eq=False, kw_only=True)
class LogHistory:
    """The state with which a history begins, and its rules and every later change, in order (rule_history)."""

    begin: Image
    changes: Iterator[Change]


def history_of(source: StateSource) -> LogHistory:
    """Return the history of a source's log, up to the high-water mark.

    Raises:
        ConfigError: the source is a single state.
        MetadataError: the log is damaged, or no checkpoint reaches its start; also while the changes are read.

    """
    log = log_of(source)
    begin = start_of(source)
    return LogHistory(begin=begin, changes=history_from(begin, log))


def start_of(source: StateSource) -> Image:
    """Return the state with which the history of a source's log begins. Raises as history_of."""
    log = log_of(source)
    if isinstance(source, LogSource):
        checkpoints = list_checkpoints(source.directory)
    else:
        # Slow to import, and only needed here: a command on a log starts without it.
        from aclog.nodes.observer.quorum_log import QuorumLog

        checkpoints = tuple(log.checkpoints()) if isinstance(log, QuorumLog) else ()
    return start_of_history(log, checkpoints)


def log_of(source: StateSource) -> LogReader:
    """Return the log of a source. Raises ConfigError: the source is a single state."""
    log = source.log
    if log is None:
        raise ConfigError(
            f"{source.name}: a single state has no history: use --log DIR or --bootstrap-controller HOST:PORT"
        )
    return log
