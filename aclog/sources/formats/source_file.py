"""A file of a tree, read when it is asked for."""

import re
import zlib
from functools import cached_property

from attrs import define

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.file_tree import LARGEST, FileTree
from aclog.sources.formats.node import Node
from aclog.sources.formats.yaml_nodes import parse_documents

_GZIP = b"\x1f\x8b"
_GZIP_HEADER = 31
"""What zlib expects: a window of 2^15 bytes, with the header and the trailer of gzip."""

_ESCAPE = re.compile(rb"\\(?:x([0-7][0-9a-fA-F])|[uU](?:0000)?00([0-7][0-9a-fA-F])|\r?\n[ \t]*)")


@define(eq=False, slots=False)
class SourceFile:
    """A file by its path in a tree. Gzip is detected."""

    tree: FileTree
    path: str

    @property
    def name(self) -> str:
        """The path as messages name it."""
        return self.tree.display(self.path)

    @property
    def base_name(self) -> str:
        """The last part of the path, without `.gz`."""
        return self.path.rsplit("/", 1)[-1].removesuffix(".gz")

    @cached_property
    def content(self) -> bytes:
        """What it holds. Raises OSError, ConfigError: it cannot be read, is damaged, or is larger than 64 MiB."""
        found = unzipped(self.tree.read(self.path), self.name)
        if len(found) > LARGEST:
            raise ConfigError(f"{self.name}: larger than {LARGEST >> 20} MiB")
        return found

    @cached_property
    def text(self) -> str:
        """What it holds, without a byte order mark. Raises as `content`; ConfigError: not UTF-8."""
        try:
            return self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.content.count(b"\n", 0, error.start) + 1
            raise ConfigError(f"{self.name}:{line}: byte {error.start} is not UTF-8") from error

    @cached_property
    def documents(self) -> list[Node]:
        """Its YAML documents (JSON is YAML). Raises as `content`; ConfigError: not YAML."""
        return parse_documents(self.content, self.name)

    def mentions(self, *words: bytes) -> bool:
        """Return whether one of some words of ASCII may be in a YAML or JSON file, as it is or with escapes."""
        return any(word in self.content or word in self._unescaped for word in words)

    @cached_property
    def _unescaped(self) -> bytes:
        """The content without the escapes of characters of ASCII and of line ends; empty if there is none."""
        if b"\\" not in self.content:
            return b""
        return _ESCAPE.sub(lambda found: bytes.fromhex((found[1] or found[2] or b"").decode()), self.content)

    def has_suffix(self, *suffixes: str) -> bool:
        """Return whether the name ends in one of them, whatever the case."""
        return self.base_name.lower().endswith(suffixes)

    def error(self, line: int, what: str) -> ConfigError:
        """Return an error about a line."""
        return ConfigError(f"{self.name}:{line}: {what}")


def unzipped(content: bytes, name: str) -> bytes:
    """Return what a file holds, decompressed if it is gzip; of several members in a row, all.

    What is decompressed ends soon after LARGEST bytes.

    Raises:
        ConfigError: damaged or truncated, or something else follows.

    """
    if content[:2] != _GZIP:
        return content
    members, size, rest = list[bytes](), 0, content
    while rest and size <= LARGEST:
        found = zlib.decompressobj(wbits=_GZIP_HEADER)
        try:
            members.append(found.decompress(rest, LARGEST + 1 - size))
        except zlib.error as error:
            raise ConfigError(f"{name}: damaged gzip file: {error}") from error
        size += len(members[-1])
        if size <= LARGEST and not found.eof:
            raise ConfigError(f"{name}: truncated gzip file")
        rest = found.unused_data.lstrip(b"\0")  # padding, as gzip itself skips
    return b"".join(members)
