"""The readable part of a damaged topic, for `aclog log copy --until-damage`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aclog.metalog.errors import ConfigError
from aclog.metalog.log import LogReader
from aclog.terminal.output import say

if TYPE_CHECKING:
    from aclog.metalog.topiclog import TopicSettings


@contextmanager
def opened_until_damage(place: "Path | TopicSettings") -> Iterator[LogReader]:
    """Open what can be read of a topic.

    Raises:
        ConfigError: it is a directory.
        LogError: no broker responds, or one refuses.

    """
    if isinstance(place, Path):
        what = "--until-damage: only for a log in a topic: `aclog log verify` shows where a directory is damaged"
        raise ConfigError(f"{place}: {what}")
    from aclog.metalog.topiclog.salvage import salvage

    with salvage(place) as log:
        yield log


def describe_damage(reader: LogReader) -> bool:
    """Print why such a log ends, and what stands after it; return whether it is whole."""
    from aclog.metalog.topiclog.salvage import SalvagedLog

    damage = reader.damage if isinstance(reader, SalvagedLog) else None
    if damage is None:
        return True
    say(f"damage: {damage.error}")
    what = "none of them has the headers of a record"
    if damage.offsets is not None:
        first, last = damage.offsets
        what = f"{damage.records} of them have the headers of records, offsets {first} to {last}"
    say(f"not copied: {damage.messages} messages, from Kafka's offset {damage.position} on; {what}")
    return False
