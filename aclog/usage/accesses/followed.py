"""The files of an access log that grows and is rotated: what is new in them, without reading all of them each time."""

import errno
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import tzinfo
from glob import escape, has_magic
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias, cast

from attrs import evolve, field

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.usage.accesses.access_batch import BEGINNING, AccessForm
from aclog.usage.accesses.access_log import (
    OF_KAFKA,
    AccessInput,
    Advance,
    Content,
    ContentKey,
    NewAccesses,
    Part,
    TextPart,
    accesses_in,
    blocks_up_to,
    content_head,
    contents_of,
    is_irregular,
    last_line_end,
    listed,
    listing,
    new_accesses,
    profile_of,
    tables_of,
    whole_key,
)
from aclog.usage.accesses.layouts import Profile
from aclog.usage.accesses.lines import PinnedFile, has_marks, line_parts

# A file is read on from where it was added, as long as it is sure that its beginning is still the same: it has the same
# inode, the same first bytes, and the same bytes before that position, in which the times of a log's lines differ. All
# else is compared by the digests of whole contents: new files, and files that begin alike, one of which may be a copy
# of the other, complete or not.


Inode: TypeAlias = tuple[int, int]
"""Device and inode."""

_TAIL: Final = 1 << 12
"""The bytes that are compared before a position."""
_MISSING: Final = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP))
"""Of a path that was renamed or removed since the listing, or of a link to no file."""


@frozen(kw_only=True)
class _State:
    """What is known of a file: that its content up to `length` is in the index."""

    signature: tuple[int, int]
    """Its size, and when it was changed, in ns since 1970."""
    head: bytes
    """The first bytes of its content, unpacked."""
    is_log: bool
    """Whether it has accesses; other files are read again when they have a sign of one."""
    part: TextPart | None = None
    """The form of its lines; None if it is not a plain file of lines, which is only read as a whole."""
    length: int = 0
    digest: bytes = b""
    hasher: Any = None
    """The state of the digest at `length`; None: not computed yet."""
    tail: bytes = b""
    """The bytes before `length`."""
    is_alone: bool = True
    """Whether no other file began alike: the rest of a copy in progress is not new."""


@frozen(kw_only=True)
class _Entry:
    """A file that is there."""

    file: PinnedFile
    signature: tuple[int, int]


@define(eq=False, kw_only=True)
class FollowedLog:
    """The files of an access log, as of the last look; `confirm` must follow once the index has what is new."""

    paths: Sequence[str]
    """Files, directories and globs. Of a file, those beside it with names that begin with its name are its rotated
    ones.
    """
    zone: tzinfo
    form: AccessForm | None = None
    profile: Profile | None = None
    troubles: dict[str, str] = field(factory=dict, init=False)
    """Why a file is not read, by its path: until it is changed."""
    _states: dict[Inode, _State] = field(factory=dict, init=False)
    _pending: dict[Inode, _State] = field(factory=dict, init=False)
    _heads: dict[Inode, bytes] = field(factory=dict, init=False)
    """The beginnings of the files that this look has opened."""

    @property
    def logs(self) -> int:
        """The number of files with accesses."""
        return sum(state.is_log for state in (self._states | self._pending).values())

    def look(self, keys: Callable[[], AbstractSet[ContentKey]], advance: Advance) -> NewAccesses:
        """Return what is new; `keys` returns the contents of the index.

        Raises:
            ConfigError: a file was truncated or replaced meanwhile: the next look finds what is there.
            OSError: a file was removed.

        """
        paths, missed = self._listed()
        with listing(tables_of(paths)):
            entries = {(each.file.device, each.file.inode): each for each in _entries(paths)}
        there = {each.file.path for each in entries.values()}
        self.troubles = missed | {path: text for path, text in self.troubles.items() if path in there}
        self._states = {inode: state for inode, state in self._states.items() if inode in entries}
        self._pending = {}
        changes = {inode: each for inode, each in entries.items() if not self._is_unchanged(inode, each)}
        self._heads = {}
        heads = {inode: self._head(inode, each.file) for inode, each in changes.items()}
        others = {inode: state.head for inode, state in self._states.items() if inode not in changes}
        every = heads | others
        beside = set[Inode]()
        growth, whole = list[tuple[Inode, _Entry, _State]](), dict[Inode, _Entry]()
        for inode, each in changes.items():
            alike = [key for key, head in every.items() if key != inode and _are_alike(heads[inode], head)]
            state = None if alike else self._same_beginning(inode, each.file)
            if state is not None and state.is_log:
                growth.append((inode, each, state))
            elif state is not None and not _has_marks_from(each.file, state.length):
                self._pending[inode] = evolve(state, signature=each.signature, length=each.file.size)
            else:
                whole |= {inode: each} | {key: entries[key] for key in alike}
                beside |= {inode, *alike} if alike else set()
        parts = [self._read_on(*each) for each in growth]
        new = (
            self._compared(whole, keys, advance)
            if whole
            else NewAccesses(input=AccessInput(parts=(), files=()), contents=(), files=0, waiting=())
        )
        for inode in beside & self._pending.keys():
            self._pending[inode] = evolve(self._pending[inode], is_alone=False)
        further = [part for part in parts if part is not None]
        return NewAccesses(
            input=AccessInput(
                parts=(*new.input.parts, *(text for _, texts in further for text in texts)),
                files=(*new.input.files, *(each.file for _, each, _ in growth)),
            ),
            contents=(*new.contents, *(part for part, _ in further)),
            files=self.logs,
            waiting=new.waiting,
        )

    def confirm(self) -> None:
        """Note that the index has what the last look has returned."""
        self._states |= self._pending
        self._pending = {}

    def forget(self) -> None:
        """Compare all contents with those of the index at the next look: another run has added some."""
        self._states, self._pending = {}, {}

    def _listed(self) -> tuple[Collection[Path], dict[str, str]]:
        """Return the regular files, and why other files and directories are not read, by path."""
        paths, missed = dict[Path, None](), dict[str, str]()

        def miss(error: OSError) -> None:
            """Note what cannot be examined, unless it was removed meanwhile."""
            if error.errno not in _MISSING:
                missed[str(error.filename)] = f"{error.filename}: {error.strerror}"

        for pattern in self.paths:
            path = Path(pattern)
            is_one = path.is_file() or not (path.is_dir() or has_magic(pattern))
            # there may be no files until the log is rotated
            for each in listed(f"{escape(pattern)}*" if is_one else pattern, miss):
                if is_irregular(each):
                    missed[str(each)] = f"{each}: not a regular file"
                else:
                    paths[each] = None
        return paths.keys(), missed

    def _is_unchanged(self, inode: Inode, entry: _Entry) -> bool:
        state = self._states.get(inode)
        return state is not None and state.signature == entry.signature

    def _head(self, inode: Inode, file: PinnedFile) -> bytes:
        if inode not in self._heads:
            self._heads[inode] = content_head(file)
        return self._heads[inode]

    def _same_beginning(self, inode: Inode, file: PinnedFile) -> _State | None:
        """Return the state of a file that has only grown since; None if that is not sure."""
        state = self._states.get(inode)
        if state is None or file.size < state.length:
            return None
        if not state.is_log:
            is_plain = len(state.head) and state.length >= BEGINNING and file.packing is None
            return state if is_plain and self._head(inode, file) == state.head else None
        if state.part is None or not state.is_alone:
            return None
        with file.open() as opened:
            if state.hasher is None:
                hasher = _hash_on(hashlib.sha256(), cast("BinaryIO", opened), state.length)
                return evolve(state, hasher=hasher) if hasher.digest() == state.digest else None
            head = os.pread(opened.fileno(), len(state.head), 0)
            tail = os.pread(opened.fileno(), len(state.tail), state.length - len(state.tail))
        return state if (head, tail) == (state.head[: len(head)], state.tail) else None

    def _read_on(self, inode: Inode, entry: _Entry, state: _State) -> tuple[Part, list[TextPart]] | None:
        file, length = entry.file, state.length
        end = last_line_end(file.place, file.size)
        if end <= length or state.part is None:
            self._pending[inode] = evolve(state, signature=entry.signature)
            return None
        with file.open() as opened:
            opened.seek(length)
            hasher = _hash_on(state.hasher.copy(), cast("BinaryIO", opened), end - length)
            tail = os.pread(opened.fileno(), min(_TAIL, end), end - min(_TAIL, end))
            text = evolve(state.part, profile=self._layouts(state.part, opened.fileno(), length, end))
        digest = hasher.digest()
        content = Content(
            path=file.place, name=file.path, length=end, digest=digest, beginnings=frozenset(), head=state.head
        )
        self._pending[inode] = evolve(
            state,
            signature=entry.signature,
            head=self._head(inode, file),
            part=text,
            length=end,
            digest=digest,
            hasher=hasher,
            tail=tail,
        )
        lines = line_parts(file, start=length, end=end)
        return Part(content=content, start=length), [evolve(text, lines=each) for each in lines]

    def _layouts(self, part: TextPart, file: int, start: int, end: int) -> Profile:
        """Return the layouts of a file with those of its new lines: an upgrade may change them."""
        if self.profile is not None or part.form not in OF_KAFKA:
            return part.profile
        samples = [os.pread(file, min(BEGINNING, end - start), at) for at in {start, max(start, end - BEGINNING)}]
        more = profile_of(sample.partition(b"\n")[2] if len(sample) == BEGINNING else sample for sample in samples)
        layouts = [*part.profile.layouts, *(each for each in more.layouts if each not in part.profile.layouts)]
        return evolve(part.profile, layouts=tuple(layouts))

    def _accesses_in(self, file: PinnedFile) -> AccessInput:
        log = accesses_in([file], self.zone, self.form, self.profile)
        if log.files and file.packing is not None and whole_key(file) is None:
            raise ConfigError(f"{file.path}: not a complete {file.packing} file")
        return log

    def _compared(
        self, whole: dict[Inode, _Entry], keys: Callable[[], AbstractSet[ContentKey]], advance: Advance
    ) -> NewAccesses:
        """Return what is new in these files by their digests."""
        logs, inode_of = list[AccessInput](), dict[str, Inode]()
        for inode, entry in whole.items():
            try:
                log = self._accesses_in(entry.file)
            except (ConfigError, OSError) as error:
                if not _is_same(entry.file):  # renamed or truncated meanwhile: the next look finds it
                    continue
                self.troubles[entry.file.path] = str(error)
                log = AccessInput(parts=(), files=())
            else:
                self.troubles.pop(entry.file.path, None)
            if log.files:
                logs.append(log)
                inode_of[entry.file.place] = inode
            else:
                self._pending[inode] = _State(
                    signature=entry.signature,
                    head=self._head(inode, entry.file),
                    is_log=False,
                    length=0 if entry.file.path in self.troubles else entry.file.size,
                )
        together = AccessInput(
            parts=tuple(part for log in logs for part in log.parts), files=tuple(log.files[0] for log in logs)
        )
        of_lines, of_tables = contents_of(together, keys(), advance)
        texts = {part.lines.file.place: part for part in together.parts if isinstance(part, TextPart)}
        for each in (*of_lines, *of_tables):
            inode = inode_of[each.content.path]
            text = texts.get(each.content.path)
            is_plain = text is not None and not text.lines.compressed
            self._pending[inode] = _State(
                signature=whole[inode].signature,
                head=each.content.head,
                is_log=True,
                part=text if is_plain else None,
                length=each.content.length,
                digest=each.content.digest,
                tail=_bytes_before(whole[inode].file, each.content.length) if is_plain else b"",
            )
        return new_accesses(together, of_lines, of_tables)


def _entries(paths: Iterable[Path]) -> Iterator[_Entry]:
    for path in paths:
        try:
            status = path.stat()
        except OSError as error:
            if error.errno not in _MISSING:
                raise
            continue
        file = PinnedFile(path=str(path), device=status.st_dev, inode=status.st_ino, size=status.st_size)
        yield _Entry(file=file, signature=(status.st_size, status.st_mtime_ns))


def _are_alike(one: bytes, other: bytes) -> bool:
    """Return whether one file may be a copy of the other, or of its beginning, by their first bytes."""
    return bool(one and other) and (one.startswith(other) or other.startswith(one))


def _is_same(file: PinnedFile) -> bool:
    """Return whether a path still has the file."""
    with suppress(OSError):
        status = Path(file.place).stat()
        return (status.st_dev, status.st_ino) == (file.device, file.inode) and status.st_size >= file.size
    return False


def _has_marks_from(file: PinnedFile, start: int) -> bool:
    with file.open() as opened:
        opened.seek(max(0, start - _TAIL))
        return has_marks(opened)


def _bytes_before(file: PinnedFile, end: int) -> bytes:
    with file.open() as opened:
        return os.pread(opened.fileno(), min(_TAIL, end), end - min(_TAIL, end))


def _hash_on(digest: Any, opened: BinaryIO, size: int) -> Any:
    for block in blocks_up_to(opened, size):
        digest.update(block)
    return digest
