"""The objects of a git repository, from one `git cat-file --batch`."""

import subprocess
from contextlib import suppress
from typing import IO, cast

from attrs import define, field, frozen

from aclog.metalog.errors import ConfigError
from aclog.sources.git.git_command import git_arguments, git_environment, is_partial_clone

LARGEST = 1 << 30
"""In bytes, of a file: git keeps larger ones elsewhere (LFS), and so do people."""

_MODE_TREE, _MODE_LINK, _MODE_SUBMODULE = "40000", "120000", "160000"
_HEADER_FIELDS = 3


@frozen(kw_only=True)
class TreeEntry:
    """What stands under a name in a directory: a file, a directory, a symbolic link or a submodule."""

    mode: str
    """Octal, as in a tree object."""
    id: str
    """Of the object, in hexadecimal; of a directory of the index, its path."""

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return self.mode == _MODE_TREE

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return self.mode == _MODE_LINK

    @property
    def is_submodule(self) -> bool:
        """Whether it is a commit of another repository."""
        return self.mode == _MODE_SUBMODULE


def directory_entry(id_: str) -> TreeEntry:
    """Return the entry of a directory."""
    return TreeEntry(mode=_MODE_TREE, id=id_)


class MissingObjectError(Exception):
    """An object is not in this clone; raised and caught in this package only."""


@define(eq=False)
class GitObjects:
    """Reads objects by their ids. Owned by whoever reads a tree; close it: a process runs until then."""

    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    def tree(self, id_: str) -> dict[str, TreeEntry]:
        """Return what a tree object holds, by name. Raises MissingObjectError, ConfigError: it cannot be read."""
        return _parsed(self._read(id_, b"tree"), len(id_) // 2)

    def blob(self, id_: str) -> bytes:
        """Return what a blob holds. Raises MissingObjectError, ConfigError: it cannot be read."""
        return self._read(id_, b"blob")

    def close(self) -> None:
        """End the process; idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                cast("IO[bytes]", stream).close()
        process.kill()
        process.wait()

    def _read(self, id_: str, kind: bytes) -> bytes:
        source, target = self._streams()
        try:
            target.write(id_.encode() + b"\n")
            target.flush()
        except OSError as error:
            raise _ended(id_) from error
        header = source.readline().split()
        if header[1:] == [b"missing"]:
            raise MissingObjectError
        if len(header) != _HEADER_FIELDS or header[1] != kind or int(header[2]) > LARGEST:
            self.close()  # what follows is not read
            raise _unexpected(id_, kind, header) if header else _ended(id_)
        content = source.read(int(header[2]))
        if len(content) < int(header[2]) or source.read(1) != b"\n":
            raise _ended(id_)
        return content

    def _streams(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603  # no shell, and fixed arguments
                git_arguments("cat-file", "--batch"),
                env=git_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return cast("IO[bytes]", self._process.stdout), cast("IO[bytes]", self._process.stdin)


def _ended(id_: str) -> Exception:
    if is_partial_clone():
        return (
            MissingObjectError()
        )  # git before 2.44 does not ask whether to fetch what a partial clone lacks, and ends
    return ConfigError(f"git cat-file --batch ended at object {id_}: is the repository damaged? try git fsck")


def _unexpected(id_: str, kind: bytes, header: list[bytes]) -> ConfigError:
    if header[1:2] == [kind]:
        return ConfigError(f"git object {id_}: {int(header[2]):,} bytes: expected at most {LARGEST:,}")
    found = b" ".join(header[1:2]).decode(errors="replace")
    return ConfigError(f"git object {id_}: expected a {kind.decode()}, found {found or 'nothing'}")


def _parsed(content: bytes, id_size: int) -> dict[str, TreeEntry]:
    """Return the entries of a tree object: mode, blank, name, zero byte, id in binary."""
    entries, at = {}, 0
    while at < len(content):
        blank = content.find(b" ", at)
        end = content.find(b"\0", blank)
        begin, after = end + 1, end + 1 + id_size
        if blank < 0 or end < 0 or len(content) < after:
            raise ConfigError(f"a git tree object is damaged at byte {at}: try git fsck")
        name = content[blank + 1 : end].decode("utf-8", "surrogateescape")
        entries[name] = TreeEntry(mode=content[at:blank].decode("ascii"), id=content[begin:after].hex())
        at = after
    return entries
