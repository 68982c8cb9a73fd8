"""What a campaign does to a controller's log: it goes away, or comes back older; and how far its mark was behind."""

import shutil
from collections import Counter
from pathlib import Path

from attrs import define, field

from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.committed_mark import read_committed
from tests.support.nodes.cluster import ClusterNode

REMOVED = "removed, renamed or replaced while it was open"


@define(eq=False)
class LostLogs:
    """The log of one controller, and what the campaign has seen of it."""

    node: ClusterNode
    done: Counter[str] = field(factory=Counter)
    behind: int = 0
    """By how many records the mark was behind after a kill, at most."""
    looks: int = 0

    @property
    def log(self) -> Path:
        """The log's directory."""
        return self.node.log_directory

    def look(self) -> None:
        """After a kill: the mark is there, and never ahead of what readers were shown."""
        mark = read_committed(self.log)
        assert mark is not None
        with open_reader(self.log) as reader:
            committed = reader.high_watermark()
        assert mark.end_offset <= committed, f"the mark says {mark.end_offset}, the log is committed up to {committed}"
        self.behind, self.looks = max(self.behind, committed - mark.end_offset), self.looks + 1

    def start_without(self) -> None:
        """The directory of the log is gone: a start is refused, and leaves nothing."""
        aside = self.log.rename(self.node.home / "aside")
        self._refused("no log, but ")
        assert not self.log.exists()
        aside.rename(self.log)
        self.done["started without its log, and refused"] += 1

    def start_older(self) -> None:
        """A copy from an earlier call is in the log's place: refused. Then the log is copied for the next call."""
        older = self.node.home / "older"
        if older.exists():
            aside = self.log.rename(self.node.home / "aside")
            older.rename(self.log)
            self._refused("records are missing, as in an older copy")
            shutil.rmtree(self.log)
            aside.rename(self.log)
            self.done["started on an older copy, and refused"] += 1
        shutil.copytree(self.log, older)

    def take_away(self) -> None:
        """Rename the directory under the running controller: it ends by itself. Then put it back."""
        aside = self.log.rename(self.node.home / "aside")
        assert self.node.wait() == 1
        last = self.node.output.splitlines()[-1]
        assert REMOVED in last, last
        aside.rename(self.log)
        self.done["log taken away from the running controller"] += 1

    def _refused(self, why: str) -> None:
        self.node.spawn()
        assert self.node.wait() == 1
        assert why in self.node.output.splitlines()[-1], self.node.output.splitlines()[-1]
