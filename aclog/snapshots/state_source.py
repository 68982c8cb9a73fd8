"""The StateSource protocol: where commands and the shell get their states from."""

from typing import Protocol

from aclog.authorizer.change_place import ChangePlace
from aclog.metalog.log import LogReader
from aclog.snapshots.freshness import Freshness
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment


class StateSource(Protocol):
    """An open source of states: a log directory, a checkpoint, a file of ACLs, a live log."""

    @property
    def name(self) -> str:
        """What was opened, for `/local/source` and messages."""
        ...

    @property
    def log(self) -> LogReader | None:
        """The log that can be followed, or None if there is none."""
        ...

    @property
    def change_place(self) -> ChangePlace:
        """Where its ACLs can be changed: a log that `aclog acls` may write, or the cluster that was read."""
        ...

    def image(self) -> Image:
        """Return the newest committed state.

        Raises:
            MetadataError: the source is damaged or missing.

        """
        ...

    def image_at(self, moment: Moment) -> Image:
        """Return the state at a moment in the past. A thread may call it while another one calls `image`.

        Raises:
            MetadataError: the moment is out of reach, or the source has a single state.

        """
        ...

    def freshness(self) -> Freshness | None:
        """Return how old the newest state may be; None if no running cluster tells it, or none has answered yet."""
        ...

    def close(self) -> None:
        """Close files and connections, if any; closing twice is allowed."""
        ...
