"""How far each source of accesses goes: a source is the directory that log files came from, one broker's as a rule."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field


def source_of(name: str) -> str:
    """Return the source of a file, by its path or URI."""
    return str(PurePosixPath(unquote(urlsplit(name).path)).parent)


@define(kw_only=True)
class SourceTimes:
    """The latest time of each source that a task has seen, in us since 1970, and how many accesses came late."""

    before: Mapping[str, int | None]
    """The latest times that were known before: what is older came late."""
    until: int
    """The time of the append, in us since 1970: a later time is that of a wrong clock, and says nothing."""
    _latest: dict[str, int] = field(factory=dict, init=False)
    _late: dict[str, int] = field(factory=dict, init=False)

    def add(self, files: "pa.Array[Any]", times: "pa.Array[Any]") -> None:
        """Add accesses: the file and the time of each, in a column each."""
        names: list[Any] = pc.unique(files).to_pylist()
        for name in names:
            source = source_of(name)
            micros: Any = times.filter(pc.equal(files, pa.scalar(name))).cast(pa.int64())
            newest = pc.max(micros.filter(pc.less_equal(micros, pa.scalar(self.until)))).as_py()
            if newest is None:
                continue
            self._latest[source] = max(newest, self._latest.get(source, newest))
            mark = self.before.get(source)
            if mark is not None:
                late = pc.sum(pc.less(micros, pa.scalar(mark))).as_py() or 0
                self._late[source] = self._late.get(source, 0) + late

    def rows(self) -> list[dict[str, str | int | None]]:
        """Return a report: source, latest and late."""
        return [
            {"source": source, "latest": latest, "late": self._late.get(source, 0)}
            for source, latest in self._latest.items()
        ]
