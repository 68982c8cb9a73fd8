"""Where the shell's states come from."""

from typing import Protocol

from aclog.metalog.log import LogReader
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
        """The log that can be followed, or None where there is nothing to follow."""
        ...

    @property
    def writable_log(self) -> str | None:
        """The directory of a log that `aclog acls` changes as it is; None where there is none, or it is a Kafka's."""
        ...

    def image(self) -> Image:
        """The newest committed state.

        Raises:
            MetadataError: the source is damaged, or gone.

        """
        ...

    def image_at(self, moment: Moment) -> Image:
        """The state at a moment in the past.

        Raises:
            MetadataError: the source does not reach there, or holds one state only.

        """
        ...

    def close(self) -> None:
        """Let go of files and connections, if any are held; a second close is nothing."""
        ...
