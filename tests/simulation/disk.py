"""A simulated disk: a page cache above durable sectors, and every way in which the two may come apart.

What a process wrote is in the page cache, and durable only after an fsync: of the file for its bytes, of the directory
for its names. A power loss keeps a drawn part of the rest: of the bytes any sectors, of the names of each directory a
prefix of the changes. An fsync may fail once, after which the kernel takes the pages for clean (as Linux since 4.13).
"""

import errno
import fcntl
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

from tests.simulation.scheduler import ProcessDeathError

SECTOR = 512
ROOT = "/sim"


def _error(code: int, path: object) -> OSError:
    return OSError(code, os.strerror(code), str(path))


class Stat:
    """The fields of os.stat_result that are read."""

    def __init__(self, *, mode: int, inode: int, device: int, size: int, mtime: float) -> None:
        self.st_mode, self.st_ino, self.st_dev, self.st_size = mode, inode, device, size
        self.st_mtime, self.st_mtime_ns, self.st_ctime_ns = mtime, int(mtime * 1e9), int(mtime * 1e9)
        self.st_nlink, self.st_uid, self.st_gid = 1, os.getuid(), os.getgid()


class File:
    """The bytes of a file as processes see them, the durable ones, and the changes between the two."""

    def __init__(self, inode: int, mode: int) -> None:
        self.inode, self.mode, self.mtime = inode, mode, 0.0
        self.data, self.durable = bytearray(), bytearray()
        self.journal: list[tuple[int, bytes | None]] = []
        """(position, bytes) of writes; (size, None) of truncations."""
        self.locked_by: object = None

    def write(self, position: int, data: bytes) -> None:
        """Write into the page cache."""
        _put(self.data, position, data)
        self.journal.append((position, data))

    def truncate(self, size: int) -> None:
        """Truncate in the page cache."""
        _resize(self.data, size)
        self.journal.append((size, None))

    def sync(self) -> None:
        """Make everything durable."""
        for position, data in self.journal:
            if data is None:
                _resize(self.durable, position)
            else:
                _put(self.durable, position, data)
        self.journal.clear()

    def forget(self) -> None:
        """Take dirty pages for clean, without writing them."""
        self.journal.clear()

    def lose(self, random: Random) -> bool:
        """Lose what is not durable, or parts; return whether a write was torn."""
        kept = random.choice((0.0, 0.5, 1.0))
        torn = False
        for position, data in self.journal:
            if data is None:
                if random.random() < kept:
                    _resize(self.durable, position)
                continue
            start = 0
            while start < len(data):
                end = min(len(data), start + SECTOR - (position + start) % SECTOR)
                if random.random() < kept:
                    _put(self.durable, position + start, data[start:end])
                else:
                    torn = torn or kept > 0
                start = end
        self.journal.clear()
        self.data = bytearray(self.durable)
        return torn


def _put(target: bytearray, position: int, data: bytes) -> None:
    if position > len(target):
        target.extend(bytes(position - len(target)))
    target[position : position + len(data)] = data


def _resize(target: bytearray, size: int) -> None:
    if size < len(target):
        del target[size:]
    else:
        target.extend(bytes(size - len(target)))


class Directory:
    """The names of a directory as processes see them, the durable ones, and the changes between the two."""

    def __init__(self, inode: int) -> None:
        self.inode, self.mode, self.mtime = inode, 0o700, 0.0
        self.entries: dict[str, File | Directory] = {}
        self.durable: dict[str, File | Directory] = {}
        self.journal: list[dict[str, File | Directory | None]] = []
        """Changes of names; each happens whole (a rename changes two)."""

    def change(self, names: "dict[str, File | Directory | None]") -> None:
        """Change names, in the page cache."""
        _apply(self.entries, names)
        self.journal.append(names)

    def sync(self) -> None:
        """Make all names durable."""
        for names in self.journal:
            _apply(self.durable, names)
        self.journal.clear()

    def lose(self, random: Random) -> bool:
        """Lose a drawn suffix of the changes; return whether any was lost."""
        kept = random.randint(0, len(self.journal)) if random.random() < 0.7 else 0
        for names in self.journal[:kept]:
            _apply(self.durable, names)
        lost = kept < len(self.journal)
        self.journal.clear()
        self.entries = dict(self.durable)
        return lost


def _apply(entries: "dict[str, File | Directory]", names: "dict[str, File | Directory | None]") -> None:
    for name, node in names.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class SimDisk:
    """The disk of a host; survives its processes. `device` distinguishes it from those of other hosts."""

    def __init__(self, device: int) -> None:
        self.device, self._inodes = device, 0
        self.root = self._directory()
        self.is_full = False
        self.fail_fsyncs = 0
        """How many of the next fsyncs fail."""
        self.fail_suffix = ""
        """Of files whose names end so."""
        self.usual_slow = self.slow = 1.0
        """The factor of the time that an fsync takes: usually, and now."""
        self.on_rename: Callable[[str], object] = lambda _: None
        """Called with the new path of a file."""

    def _directory(self) -> Directory:
        self._inodes += 1
        return Directory(self._inodes)

    def _file(self, mode: int) -> File:
        self._inodes += 1
        return File(self._inodes, mode)

    # Names

    def find(self, path: str) -> File | Directory:
        """Return the node of a path. Raises FileNotFoundError, NotADirectoryError."""
        node: File | Directory = self.root
        for part in path.strip("/").split("/"):
            if part in ("", "."):
                continue
            if not isinstance(node, Directory):
                raise _error(errno.ENOTDIR, path)
            if part not in node.entries:
                raise _error(errno.ENOENT, path)
            node = node.entries[part]
        return node

    def parent(self, path: str) -> tuple[Directory, str]:
        """Return the directory of a path, and its name there."""
        head, _, name = path.rstrip("/").rpartition("/")
        node = self.find(head)
        if not isinstance(node, Directory):
            raise _error(errno.ENOTDIR, path)
        return node, name

    def create(self, path: str, mode: int, kind: type[File] = File) -> File:
        """Create a file."""
        if self.is_full:
            raise _error(errno.ENOSPC, path)
        directory, name = self.parent(path)
        self._inodes += 1
        file = kind(self._inodes, mode)
        directory.change({name: file})
        return file

    def mkdir(self, path: str, *, parents: bool, exist_ok: bool) -> None:
        """Create a directory."""
        try:
            directory, name = self.parent(path)
        except FileNotFoundError:
            if not parents:
                raise
            self.mkdir(path.rstrip("/").rpartition("/")[0], parents=True, exist_ok=True)
            directory, name = self.parent(path)
        if name in directory.entries:
            if exist_ok and isinstance(directory.entries[name], Directory):
                return
            raise _error(errno.EEXIST, path)
        directory.change({name: self._directory()})

    def unlink(self, path: str) -> None:
        """Remove a name."""
        directory, name = self.parent(path)
        if name not in directory.entries:
            raise _error(errno.ENOENT, path)
        directory.change({name: None})

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory, replacing what has the new name."""
        node = self.find(source)
        old, old_name = self.parent(source)
        new, new_name = self.parent(target)
        if old is new:
            old.change({old_name: None, new_name: node})
        else:
            new.change({new_name: node})
            old.change({old_name: None})
        self.on_rename(target)

    def stat(self, node: File | Directory) -> Stat:
        """Return what stat returns."""
        is_file = isinstance(node, File)
        mode = (stat.S_IFREG if is_file else stat.S_IFDIR) | node.mode
        size = len(node.data) if isinstance(node, File) else 4096
        return Stat(mode=mode, inode=node.inode, device=self.device, size=size, mtime=node.mtime)

    # Faults

    def _nodes(self) -> Iterator[File | Directory]:
        """Yield every node that is reachable, by its present or durable names."""
        seen, rest = set(), [self.root]
        while rest:
            node: File | Directory = rest.pop()
            if node.inode in seen:
                continue
            seen.add(node.inode)
            yield node
            if isinstance(node, Directory):
                rest += node.entries.values()  # type: ignore[arg-type]
                rest += node.durable.values()  # type: ignore[arg-type]
                for names in node.journal:
                    rest += [each for each in names.values() if each is not None]  # type: ignore[misc]

    def lose_power(self, random: Random, cover: Callable[[str], None]) -> None:
        """Lose what is not durable, or a drawn part."""
        for node in list(self._nodes()):
            if isinstance(node, File):
                node.locked_by = None
            if not node.journal:
                continue
            if node.lose(random):
                cover("torn write" if isinstance(node, File) else "lost names")

    def sync_all(self) -> None:
        """Make everything durable: for what happens before the world begins."""
        for node in list(self._nodes()):
            node.sync()

    def drop_clean_pages(self) -> None:
        """Read clean pages from the disk again, as after memory pressure: shows what a failed fsync left out."""
        for node in list(self._nodes()):
            if isinstance(node, File) and not node.journal:
                node.data = bytearray(node.durable)

    def walk(self, path: str) -> list[tuple[str, File]]:
        """Return the files below a directory, by path."""
        files: list[tuple[str, File]] = []
        rest = [(path, self.find(path))]
        while rest:
            at, node = rest.pop()
            if isinstance(node, File):
                files.append((at, node))
            else:
                rest += [(f"{at}/{name}", each) for name, each in node.entries.items()]
        return sorted(files, key=lambda each: each[0])

    def copy(self, node: File | Directory) -> File | Directory:
        """Return a durable copy, as a backup or a clone of a volume has it."""
        if isinstance(node, File):
            file = self._file(node.mode)
            file.data, file.durable, file.mtime = bytearray(node.data), bytearray(node.data), node.mtime
            return file
        directory = self._directory()
        directory.entries = {name: self.copy(each) for name, each in node.entries.items()}
        directory.durable = dict(directory.entries)
        return directory


class OpenFile:
    """An open file of a process; descriptors that were duplicated share it."""

    def __init__(self, node: File | Directory, flags: int, path: str) -> None:
        self.node, self.flags, self.path, self.position, self.count = node, flags, path, 0, 1
        self.holds_lock = False


class Files:
    """The descriptors of a process, and the calls of `os` on them: aclog.metalog.machine.Disk."""

    def __init__(self, process: Any) -> None:
        self.process, self.disk, self.scheduler = process, process.disk, process.scheduler
        self.open_files: dict[int, OpenFile] = {}
        self._temporary = 0

    def _call(self, name: str, path: object) -> None:
        """Every call: the process may crash here, or another thread may run."""
        self.process.system_call(name, path)

    def _of(self, fd: int) -> OpenFile:
        self.scheduler.fiber()
        if self.process.dead:
            raise ProcessDeathError
        if fd not in self.open_files:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self.open_files[fd]

    def _file(self, fd: int) -> tuple[OpenFile, File]:
        opened = self._of(fd)
        if not isinstance(opened.node, File):
            raise _error(errno.EISDIR, opened.path)
        return opened, opened.node

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        """See os."""
        path = str(path)
        self._call("open", path)
        try:
            node = self.disk.find(path)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            node = self.disk.create(path, mode)
            node.mtime = self.process.wall_clock()
        else:
            if flags & os.O_CREAT and flags & os.O_EXCL:
                raise _error(errno.EEXIST, path)
            if flags & os.O_DIRECTORY and not isinstance(node, Directory):
                raise _error(errno.ENOTDIR, path)
            if flags & os.O_TRUNC and isinstance(node, File):
                node.truncate(0)
        return self._new_fd(OpenFile(node, flags, path))

    def _new_fd(self, opened: OpenFile) -> int:
        # Unique among all processes: a descriptor of a dead one is never another one's.
        self.scheduler.descriptors += 1
        self.open_files[self.scheduler.descriptors] = opened
        return int(self.scheduler.descriptors)

    def close(self, fd: int) -> None:
        """See os."""
        opened = self._of(fd)
        del self.open_files[fd]
        opened.count -= 1
        if opened.holds_lock and not opened.count and isinstance(opened.node, File):
            opened.node.locked_by = None

    def dup(self, fd: int) -> int:
        """See os."""
        opened = self._of(fd)
        opened.count += 1
        return self._new_fd(opened)

    def fstat(self, fd: int) -> Stat:
        """See os."""
        return self.disk.stat(self._of(fd).node)  # type: ignore[no-any-return]

    def stat(self, path: Any) -> Stat:
        """See os."""
        self.scheduler.fiber()
        return self.disk.stat(self.disk.find(str(path)))  # type: ignore[no-any-return]

    def fchmod(self, fd: int, mode: int) -> None:
        """See os."""
        self._of(fd).node.mode = mode

    def listdir(self, path: Any) -> list[str]:
        """See os."""
        self.scheduler.fiber()
        node = self.disk.find(str(path))
        if not isinstance(node, Directory):
            raise _error(errno.ENOTDIR, path)
        return list(node.entries)

    def pread(self, fd: int, size: int, position: int) -> bytes:
        """See os."""
        _, file = self._file(fd)
        return bytes(file.data[position : position + size])

    def preadv(self, fd: int, buffers: Any, position: int) -> int:
        """See os."""
        total = 0
        for buffer in buffers:
            data = self.pread(fd, len(buffer), position + total)
            buffer[: len(data)] = data
            total += len(data)
        return total

    def read(self, fd: int, size: int) -> bytes:
        """See os."""
        opened, _ = self._file(fd)
        data = self.pread(fd, size, opened.position)
        opened.position += len(data)
        return data

    def write(self, fd: int, data: Any) -> int:
        """See os."""
        opened, file = self._file(fd)
        position = len(file.data) if opened.flags & os.O_APPEND else opened.position
        written = self.pwrite(fd, data, position)
        opened.position = position + written
        return written

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        """See os. A full disk takes a part; a process that crashes here has written a drawn part."""
        opened, file = self._file(fd)
        data, random = bytes(data), self.scheduler.random
        if self.disk.is_full and position + len(data) > len(file.data):
            room = random.choice((0, 0, len(data) // 2))
            if not room:
                raise _error(errno.ENOSPC, opened.path)
            data = data[:room]
        if self.process.crashes_now("write", opened.path):
            part = random.randint(0, len(data))
            if part:
                file.write(position, data[:part])
            self.process.crash()
        elif opened.flags & os.O_APPEND and len(data) > 1 and random.random() < 0.02:
            data = data[: random.randint(1, len(data) - 1)]  # a short write
        file.write(position, data)
        file.mtime = self.process.wall_clock()
        self.scheduler.step(0.05)
        return len(data)

    def ftruncate(self, fd: int, size: int) -> None:
        """See os."""
        opened, file = self._file(fd)
        self._call("truncate", opened.path)
        if len(file.data) != size:
            self.scheduler.cover("truncated file")
            file.truncate(size)

    def fsync(self, fd: int) -> None:
        """See os."""
        opened = self._of(fd)
        node, random = opened.node, self.scheduler.random
        self._call("fsync", opened.path)
        self.scheduler.sleep((0.001 + 0.004 * random.random()) * self.disk.slow)
        fails = self.disk.fail_fsyncs and opened.path.endswith(self.disk.fail_suffix)
        if fails and node.journal and isinstance(node, File):
            self.disk.fail_fsyncs -= 1
            node.forget()
            self.scheduler.cover("fsync EIO")
            self.scheduler.note(self.process, "fsync EIO", opened.path)
            raise _error(errno.EIO, opened.path)
        node.sync()
        self._call("synced", opened.path)

    def lockf(self, fd: int, _operation: int) -> None:
        """See fcntl: of a whole file, not waiting."""
        self._lock(fd)

    def flock(self, fd: int, _operation: int) -> None:
        """See fcntl: not waiting."""
        self._lock(fd)

    def fcntl(self, fd: int, operation: int, _argument: Any = 0) -> None:
        """See fcntl: a lock of an open file, not waiting."""
        if operation != fcntl.F_OFD_SETLK:
            raise _error(errno.EINVAL, fd)
        self._lock(fd)

    def access(self, path: Any, _mode: int) -> bool:
        """See os."""
        self.scheduler.fiber()
        self.disk.find(str(path))
        return True

    def _lock(self, fd: int) -> None:
        opened, file = self._file(fd)
        if file.locked_by not in (None, self.process) and not file.locked_by.dead:  # type: ignore[attr-defined]
            raise _error(errno.EAGAIN, opened.path)
        file.locked_by, opened.holds_lock = self.process, True

    def mkdtemp(self, prefix: str = "") -> str:
        """See tempfile."""
        self._temporary += 1
        path = f"{self.process.root}/tmp/{prefix}{self.process.boot}-{self._temporary}"
        self.disk.mkdir(path, parents=True, exist_ok=False)
        return path

    def rmtree(self, path: Any, ignore_errors: bool = False) -> None:
        """See shutil."""
        self._call("rmtree", path)
        with suppress(FileNotFoundError):
            self.disk.unlink(str(path))

    def fdopen(self, fd: int, mode: str = "r", *, closefd: bool = True) -> Any:
        """See os; binary files only."""
        raw = _Raw(self, fd, closefd=closefd, writable="r" not in mode)
        return io.BufferedReader(raw) if "r" in mode else io.BufferedWriter(raw)

    def open_path(self, path: Any, mode: str) -> Any:
        """See pathlib.Path.open."""
        made = os.O_WRONLY | os.O_CREAT
        flags = {"r": os.O_RDONLY, "w": made | os.O_TRUNC, "a": made | os.O_APPEND}
        return self.fdopen(self.open(path, flags[mode[0]], 0o600), mode)


class _Raw(io.RawIOBase):
    def __init__(self, files: Files, fd: int, *, closefd: bool, writable: bool) -> None:
        super().__init__()
        self._files, self._fd, self._closefd, self._writable = files, fd, closefd, writable

    def readable(self) -> bool:
        return not self._writable

    def writable(self) -> bool:
        return self._writable

    def seekable(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._fd

    def readinto(self, buffer: Any) -> int:
        data = self._files.read(self._fd, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        return self._files.write(self._fd, data)

    def close(self) -> None:
        if not self.closed and self._closefd and self._fd in self._files.open_files:
            self._files.close(self._fd)
        super().close()
