"""The end offset of the state that a tool is asked about."""

from contextlib import closing
from datetime import datetime

from attrs import evolve, frozen

from aclog.cli.flags.source import SourceFlags
from aclog.metalog.filelog.file_names import list_checkpoints, parse_checkpoint_name
from aclog.metalog.log import LogReader
from aclog.snapshots.moments import Moment, end_offset_at
from aclog.sources.acls_source import AclsSource
from aclog.sources.choice import ChosenSource
from aclog.sources.paths import CheckpointSource, LogSource


@frozen(kw_only=True)
class AskedState:
    """A state of a source: its end offset, and how `--as-of` names it so that it stays the same."""

    source: str
    """The name of the source."""
    end_offset: int | None
    why_none: str | None
    """Why there is no end offset; None if there is one."""
    as_of: str | None
    """None for a source with a single state."""


def asked_state(source: SourceFlags, as_of: str | None) -> AskedState:
    """Return the state of a source at a moment, which `as_of` names; by default that of the flags, or the newest.

    A log is opened each time, so that another one in its place is not taken for it.

    Raises:
        ConfigError: the text names no moment. MetadataError, OSError: the source cannot be read, or not so far back.

    """
    chosen = evolve(source, as_of=source.as_of if as_of is None else as_of).choose(_no_notes)
    with closing(chosen.source):
        moment = chosen.moment
        log = chosen.source.log
        if log is not None:
            end = _end_in_log(log, moment)
            return AskedState(source=chosen.source.name, end_offset=end, why_none=None, as_of=str(end))
        return _of_single_state(chosen, moment)


def _end_in_log(log: LogReader, moment: Moment | None) -> int:
    if isinstance(moment, datetime):
        return end_offset_at(log, moment)
    return max(log.high_watermark(), 0) if moment is None else moment


def _of_single_state(chosen: ChosenSource, moment: Moment | None) -> AskedState:
    source, end, why = chosen.source, None, None
    if isinstance(source, AclsSource):
        why = "files of rules have no offsets"
    elif isinstance(source, CheckpointSource):
        named = parse_checkpoint_name(source.path.name)
        end = None if named is None else named[0]
    elif not isinstance(source, LogSource):
        why = "a cluster's admin API tells none: --bootstrap-controller does"
    elif isinstance(moment, datetime):
        why = "there is no log to find the time in"
    else:
        end = _newest_checkpoint(source) if moment is None else moment
    return AskedState(source=source.name, end_offset=end, why_none=why, as_of=chosen.as_of)


def _newest_checkpoint(source: LogSource) -> int | None:
    checkpoints = list_checkpoints(source.directory)
    return checkpoints[-1].end_offset if checkpoints else None


def _no_notes(_text: str) -> None:
    """Say nothing: the command that answers says the same."""
