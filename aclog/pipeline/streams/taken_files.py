"""The files that a stream has taken, and which of these have changed since: Spark reads each name once, and only then.

A file that grows after Spark has read it would lose its further lines without a notice.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from attrs import field
from pyspark.sql import SparkSession

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define
from aclog.pipeline import storage

_RECENT: Final = 1000
"""The newest files that are looked at: a log that is written to changes soon."""
_RECENT_REMOTE: Final = 100
"""The same in another store, where each takes a request."""


@define
class TakenFiles:
    """The newest files of the sources of a stream, by Spark's record of them in the checkpoint."""

    spark: SparkSession
    checkpoint: str
    _read: set[str] = field(factory=set, init=False)
    _times: dict[str, int] = field(factory=dict, init=False)
    """By URI: the time of the file when Spark listed it, in ms since 1970; the newest last."""
    _reported: set[str] = field(factory=set, init=False)
    _batch: dict[str, int] = field(factory=dict, init=False)
    """By source: the last batch that was read. A record that Spark has compacted repeats all earlier ones."""

    def changed(self) -> list[str]:
        """Return the files that have changed since they were listed, each once. Raises ConfigError: as storage."""
        self._look_for_new()
        changed = [name for name in self._recent() if self._is_other(name)]
        self._reported.update(changed)
        return changed

    def _recent(self) -> Iterator[str]:
        newest = [name for name in self._times if name not in self._reported][-_RECENT:]
        yield from (name for name in newest if _local(name) is not None)
        yield from [name for name in newest if _local(name) is None][-_RECENT_REMOTE:]

    def _is_other(self, name: str) -> bool:
        local = _local(name)
        try:
            if local is not None:
                now = local.stat().st_mtime_ns // 1_000_000
            else:
                now = storage.modified(self.spark, unquote(name))
        except (FileNotFoundError, ConfigError):
            return False  # deleted: all of it may have been read
        return now != self._times[name]

    def _look_for_new(self) -> None:
        sources = storage.joined(self.checkpoint, "sources")
        for number in storage.children(self.spark, sources):
            directory = storage.joined(sources, number)
            names = {name for name in storage.children(self.spark, directory) if name.split(".")[0].isdigit()}
            for name in sorted(names - self._read, key=lambda name: int(name.split(".")[0])):
                try:
                    self._add(number, storage.read_bytes(self.spark, storage.joined(directory, name)).splitlines()[1:])
                except (ConfigError, OSError):  # compacted meanwhile, into one that is read next
                    continue
                self._read.add(name)

    def _add(self, source: str, lines: Iterable[bytes]) -> None:
        entries = [entry for entry in map(json.loads, lines) if int(entry["batchId"]) > self._batch.get(source, -1)]
        for entry in sorted(entries, key=lambda entry: int(entry["batchId"])):
            name = str(entry["path"])
            self._times.pop(name, None)
            self._times[name] = int(entry["timestamp"])
            self._batch[source] = int(entry["batchId"])
        for name in list(self._times)[: -2 * _RECENT]:
            del self._times[name]


def _local(name: str) -> Path | None:
    return Path(unquote(urlsplit(name).path)) if name.startswith("file:") else None
