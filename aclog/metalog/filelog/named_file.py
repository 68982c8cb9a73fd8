"""An open file and the name it was opened by: whether the two still belong together."""

import os
from pathlib import Path
from typing import Self

from attrs import frozen

from aclog.metalog.errors import LogError


@frozen(kw_only=True)
class NamedFile:
    """The identity of an open file, and its absolute path.

    What is written to a file that was removed, replaced, or is below a directory that was renamed, replaced or mounted
    over, is durable, and gone for whoever opens the path next.
    """

    path: str
    device: int
    inode: int

    @classmethod
    def of(cls, fd: int, path: Path) -> Self:
        """Return the identity of an open file. Raises OSError."""
        status = os.fstat(fd)
        # Absolute: a relative path would follow the working directory if that were renamed.
        return cls(path=os.path.abspath(path), device=status.st_dev, inode=status.st_ino)  # noqa: PTH100

    @property
    def identity(self) -> tuple[int, int]:
        """The device and the inode."""
        return self.device, self.inode

    def check(self) -> None:
        """Check that the path still leads to the file; costs a microsecond or two.

        Raises:
            LogError: it leads to another file, or nowhere.

        """
        try:
            there = os.stat(self.path)  # noqa: PTH116 - done for every commit
        except OSError as error:
            raise self._gone(error.strerror or str(error)) from error
        if (there.st_dev, there.st_ino) != (self.device, self.inode):
            raise self._gone("another file has its name")

    def _gone(self, why: str) -> LogError:
        return LogError(
            f"{self.path}: removed, renamed or replaced while it was open ({why}); nothing more is acknowledged. "
            "Put the file or its directory back before you start again"
        )
