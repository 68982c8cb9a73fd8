"""Reads of many znodes in one request: ZooKeeper's multiRead (opcode 22, since 3.6), which kazoo does not support."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, TypeAlias

from attrs import frozen
from kazoo.exceptions import EXCEPTIONS, KazooException
from kazoo.protocol.serialization import read_buffer, stat_struct, write_string
from kazoo.protocol.states import ZnodeStat

ReadResult: TypeAlias = "tuple[bytes, ZnodeStat] | KazooException"
"""A znode's data and stat, or the error of its read."""

# Per request: far below the limit of jute.maxbuffer, 1 MiB by default, even for large ACL znodes.
MAX_PATHS, MAX_CHARACTERS = 64, 1 << 17

_GET_DATA, _ERROR = 4, -1
_HEADER = struct.Struct("!iBi")
"""MultiHeader: operation type, whether it is the end marker, error code."""
_CODE = struct.Struct("!i")


@frozen
class MultiRead:
    """A multiRead request, which kazoo sends and dispatches like its own request types."""

    type: ClassVar[int] = 22
    paths: Sequence[str]
    """With the chroot."""

    def serialize(self) -> bytearray:
        """Return the bytes after the request header: a getData without a watch for each path, then the end marker."""
        data = bytearray()
        for path in self.paths:
            data += _HEADER.pack(_GET_DATA, 0, -1) + write_string(path) + b"\0"
        return data + _HEADER.pack(_ERROR, 1, -1)

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[ReadResult]:
        """Return the results in the order of the paths."""
        results: list[ReadResult] = []
        while True:
            kind, done, _ = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            if done:
                return results
            if kind == _ERROR:
                results.append(EXCEPTIONS[_CODE.unpack_from(data, offset)[0]]())
                offset += _CODE.size
            else:
                value, offset = read_buffer(data, offset)
                results.append((value or b"", ZnodeStat._make(stat_struct.unpack_from(data, offset))))
                offset += stat_struct.size


def portions(paths: Iterable[str]) -> Iterator[list[str]]:
    """Split paths, in order, into the portions of single requests; the paths are consumed lazily."""
    portion: list[str] = []
    characters = 0
    for path in paths:
        if portion and (len(portion) == MAX_PATHS or characters + len(path) > MAX_CHARACTERS):
            yield portion
            portion, characters = [], 0
        portion.append(path)
        characters += len(path)
    if portion:
        yield portion
