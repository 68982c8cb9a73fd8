"""Reading many nodes by one request (ZooKeeper's multiRead, since 3.6), which kazoo does not have."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, TypeAlias

from attrs import frozen
from kazoo.exceptions import EXCEPTIONS, KazooException
from kazoo.protocol.serialization import read_buffer, stat_struct, write_string
from kazoo.protocol.states import ZnodeStat

Answer: TypeAlias = "tuple[bytes, ZnodeStat] | KazooException"
"""A node's bytes and state, or why they are not told."""

MOST_PATHS, MOST_CHARACTERS = 64, 1 << 17
"""In one request: far below jute.maxbuffer, 1 MiB, which bounds it."""

_GET_DATA, _ERROR = 4, -1
_HEADER = struct.Struct("!iBi")
_CODE = struct.Struct("!i")


@frozen
class MultiRead:
    """The request; kazoo sends and answers it as any of its own."""

    type: ClassVar[int] = 22
    paths: Sequence[str]
    """With the chroot."""

    def serialize(self) -> bytearray:
        """The bytes after the request's header: a getData without watch for each path."""
        data = bytearray()
        for path in self.paths:
            data += _HEADER.pack(_GET_DATA, 0, -1) + write_string(path) + b"\0"
        return data + _HEADER.pack(_ERROR, 1, -1)

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[Answer]:
        """The answers, in the order of the paths."""
        answers: list[Answer] = []
        while True:
            kind, done, _ = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            if done:
                return answers
            if kind == _ERROR:
                answers.append(EXCEPTIONS[_CODE.unpack_from(data, offset)[0]]())
                offset += _CODE.size
            else:
                value, offset = read_buffer(data, offset)
                answers.append((value or b"", ZnodeStat._make(stat_struct.unpack_from(data, offset))))
                offset += stat_struct.size


def portions(paths: Iterable[str]) -> Iterator[list[str]]:
    """Paths in their order, as many at a time as one request takes; the next ones are asked for when they are due."""
    portion: list[str] = []
    characters = 0
    for path in paths:
        if portion and (len(portion) == MOST_PATHS or characters + len(path) > MOST_CHARACTERS):
            yield portion
            portion, characters = [], 0
        portion.append(path)
        characters += len(path)
    if portion:
        yield portion
