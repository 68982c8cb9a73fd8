"""ACLs and changes as JSON lines, and other text files by lines."""

import os
import sys
import zlib
from array import array
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from attrs import evolve, field

from aclog.authorizer.acl import FileOrigin, Origin, StandardAcl, StandardAclWithId, rule_of_object
from aclog.authorizer.acls_image import Action, RuleChange
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import parse_object, text_field
from aclog.metalog.native import np
from aclog.metalog.values import define
from aclog.sources.rule_line import parse_rule_line
from aclog.terminal.columns import json_text
from aclog.terminal.notices import Advance

if TYPE_CHECKING:
    import gzip

# Lines of a file or of stdin (`-`), gzipped or not.


_Reader: TypeAlias = "BufferedReader | gzip.GzipFile"

STDIN = "-"
_BLOCK = 1 << 20
_LONGEST = 1 << 22
"""A line of JSON with the longest names Kafka accepts (32,767 bytes each, escaped) is far shorter."""


def display_name(path: str) -> str:
    """Return the name of the file for messages."""
    return "stdin" if path == STDIN else path


def blocks(path: str, advance: Advance | None = None, *, long_line: bytes | None = None) -> Iterator[list[bytes]]:
    """Yield whole lines without line ends, in blocks as they arrive; gzip is detected by its first bytes.

    `advance` is called with the bytes that have been read of the file, and with its size if it is a regular one.
    `long_line` is yielded in place of each line longer than 4 MiB, if there is such a text.

    Raises:
        ConfigError: a line longer than 4 MiB without `long_line`, or a damaged or truncated gzip file.
        OSError: the file cannot be read.

    """
    name, number = display_name(path), 0
    with _naming(name), _opened(path) as (file, raw):
        rest, is_long = b"", False
        report = None if advance is None else _reporter(raw, advance)
        while block := _read(file, name):
            if report is not None:
                report()
            *lines, rest = (rest + block).split(b"\n")
            if is_long and lines:
                lines[0], is_long = long_line or b"", False
            if is_long or len(rest) > _LONGEST:
                if long_line is None:
                    raise ConfigError(f"{name}: line {number + len(lines) + 1} is longer than {_LONGEST} bytes")
                rest, is_long = b"", True
            number += len(lines)
            yield lines
        if rest or is_long:
            yield [long_line or b"" if is_long else rest]


def numbered(
    path: str, advance: Advance | None = None, *, long_line: bytes | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank with its number, from 1; the other arguments and errors are of `blocks`."""
    return numbered_lines(blocks(path, advance, long_line=long_line))


def numbered_lines(chunks: Iterable[list[bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield each line of some blocks that is not blank with its number, from 1; without a byte order mark."""
    number = 0
    for lines in without_mark(chunks):
        for line in lines:
            number += 1
            if line and not line.isspace():
                yield number, line


def without_mark(chunks: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """Yield blocks of lines, without a byte order mark at the beginning of the first line."""
    blocks_left = iter(chunks)
    for lines in blocks_left:
        yield [lines[0].removeprefix(BOM_UTF8), *lines[1:]] if lines else lines
        if lines:
            break
    yield from blocks_left


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Add the file name to errors of read(), which do not have one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, error.filename or name) from error


@contextmanager
def _opened(path: str) -> Iterator[tuple[_Reader, BufferedReader]]:
    """Open a file, both decompressed and raw."""
    if path == STDIN:
        file = cast("BufferedReader", sys.stdin.buffer)
        yield _unzipped(file), file
        return
    with Path(path).open("rb") as file:
        yield _unzipped(file), file


def _reporter(raw: BufferedReader, advance: Advance) -> Callable[[], None]:
    """Return a function that reports how far a file is read; a pipe has no known end."""
    try:
        size = os.fstat(raw.fileno()).st_size if raw.seekable() else 0
    except OSError:  # no file of the system's
        size = 0
    return (lambda: advance(raw.tell(), size)) if size else lambda: None


def _unzipped(file: BufferedReader) -> _Reader:
    import gzip

    return gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == b"\x1f\x8b" else file


def _read(file: _Reader, name: str) -> bytes:
    import gzip

    try:
        return file.read1(_BLOCK)  # read1: return what is available, so that a line piped in is processed at once
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigError(f"{name}: damaged or truncated gzip file: {error}") from error


# ACLs as JSON lines: the output of `acls list --format jsonl`, the input of `--acls FILE`.


def accept(acl: StandardAcl) -> None:
    """Accept every ACL, those that Kafka would refuse to create as well: a log can contain them."""


def read_acls(path: str, check: Callable[[StandardAcl], None] = accept) -> Iterator[StandardAclWithId]:
    """Yield the ACLs of a file of JSON lines (`-` is stdin, gzip is detected); `id` may be missing or null.

    `check` raises ConfigError on an ACL that the command refuses.

    Raises:
        ConfigError: a line that is not an ACL, or refused, with its number; or a damaged file.
        OSError: the file cannot be read.

    """
    return (rule for _, rule in parse_acls(numbered(path), display_name(path), check))


def parse_acls(
    lines: Iterable[tuple[int, bytes]], name: str, check: Callable[[StandardAcl], None] = accept
) -> Iterator[tuple[int, StandardAclWithId]]:
    """Yield the number and the ACL of each line. Raises as read_acls; `name` is that of the file, for errors."""
    for number, line in lines:
        try:
            rule = parse_acl(line)
            check(rule.acl)
        except ConfigError as error:
            what = (
                "a line of kafka-authorizer.log, not an ACL: pass it with --accesses"
                if _is_access(line)
                else str(error)
            )
            raise ConfigError(f"{name}: line {number}: {what}") from error
        yield number, rule


def _is_access(line: bytes) -> bool:
    """Return whether a line that is no ACL is a decision of Kafka's authorizer."""
    return any(verb in line for verb in (b" is Allowed operation ", b" is Denied operation "))


def parse_acl(line: bytes) -> StandardAclWithId:
    """Return the ACL in one line.

    Raises:
        ConfigError: a key is missing, an enum name is unknown, or the id is not a UUID in Kafka's base64 form.

    """
    return rule_of_object(parse_object(line))


# The lines of a large file of rules, in twelve bytes a rule.


@define(eq=False, slots=False, repr=False)
class LineTable:
    """The line of each rule of one file (aclog.authorizer.acl.Origins); filled by one reader, then queried.

    Rules are identified by hashes of 64 bits: that two of a million share one is less likely than one in ten million.
    """

    file: str
    _hashes: "array[int]" = field(factory=lambda: array("q"), init=False)
    _lines: "array[int]" = field(factory=lambda: array("I"), init=False)

    def parsed(
        self, chunks: Iterable[list[bytes]], check: Callable[[StandardAcl], None] = accept
    ) -> Iterator[StandardAclWithId]:
        """Yield the rules of the file, whose lines arrive in blocks. Raises as parse_acls."""
        return self.filled_by(parse_acls(numbered_lines(chunks), self.file, check))

    def filled_by(self, rules: Iterable[tuple[int, StandardAclWithId]]) -> Iterator[StandardAclWithId]:
        """Yield rules and take note of their lines."""
        add_hash, add_line = self._hashes.append, self._lines.append  # a million times
        for line, rule in rules:
            add_hash(hash(rule.acl))
            add_line(line)
            yield rule

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return the line that states a rule; none if the file does not have it."""
        key = hash(acl)
        at = int(np.searchsorted(self._sorted[0], key))
        if at == len(self._hashes) or self._sorted[0][at] != key:
            return ()
        return (FileOrigin(file=self.file, line=int(self._lines[int(self._sorted[1][at])])),)

    @cached_property
    def _sorted(self) -> tuple[Int64s, Int64s]:
        hashes = np.asarray(self._hashes, np.int64)
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order


# A file of names, one per line, such as that of `--topics`.


@define(eq=False, repr=False)
class NameFile:
    """Names in a file or in stdin (`-`), read once, on first use; gzip is detected."""

    path: str
    of: str = "a topic"
    """The source of the names, for errors."""
    _names: tuple[str, ...] | None = field(default=None, init=False)

    def names(self) -> tuple[str, ...]:
        """Return the names. Raises ConfigError: a line is not UTF-8; OSError: the file cannot be read."""
        if self._names is None:
            self._names = tuple(self._name(number, line) for number, line in numbered(self.path))
        return self._names

    def _name(self, number: int, line: bytes) -> str:
        try:
            return line.decode().strip("\r")
        except UnicodeDecodeError as error:
            where = f"{display_name(self.path)}: line {number}"
            raise ConfigError(f"{where}: byte {error.start} is not UTF-8: expected the name of {self.of}") from error


# Changes of rules as JSON lines: `{"action":"ADD"|"REMOVE","rule":RULE}`, RULE as in `acls list --format jsonl`.


def read_changes(path: str) -> Iterator[RuleChange]:
    """Yield the changes of a file of JSON lines (`-` is stdin, gzip is detected) in order; ids are ignored.

    Raises:
        ConfigError: a line that is not a change, with its number; or a damaged file.
        OSError: the file cannot be read.

    """
    for number, line in numbered(path):
        name = display_name(path)
        where = f"{name}: line {number}"
        try:
            yield evolve(parse_change(parse_object(line), where), origin=FileOrigin(file=name, line=number))
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error


def read_change_of_each(path: str, flag: str, *, added: bool) -> Iterator[RuleChange]:
    """Yield the change that adds, or removes, each ACL of a file of ACLs, or one ACL. Raises as `read_acls`."""
    if is_rule_line(path):
        try:
            yield RuleChange(added=added, acl=parse_rule_line(path).acl, where=flag)
        except ConfigError as error:
            raise ConfigError(f"{flag}: {error}") from error
        return
    name = display_name(path)
    for line, rule in parse_acls(numbered(path), name):
        origin = FileOrigin(file=name, line=line)
        yield RuleChange(added=added, acl=rule.acl, where=f"{flag} {path}", origin=origin)


def is_rule_line(text: str) -> bool:
    """Return whether a text is a rule in a line (aclog.sources.rule_line), and no file has this name."""
    return text.upper().startswith(("ALLOW ", "DENY ")) and not Path(text).exists()


def parse_change(value: dict[str, object], where: str) -> RuleChange:
    """Return the change in the JSON object of a line. Raises ConfigError: not a change."""
    action, rule = text_field(value, "action"), value.get("rule")
    if action not in set(Action):
        raise ConfigError(f"action {action[:40]!r} is not one of {', '.join(Action)}")
    if not isinstance(rule, dict):
        raise ConfigError("expected the key rule with an ACL, as `acls list --format jsonl` prints it")
    return RuleChange(added=action == Action.ADD, acl=rule_of_object(rule).acl, where=where)


def change_line(action: Action, rule: Mapping[str, Any]) -> str:
    """Return a line without its end: the rule with the keys of `acls list --format jsonl`."""
    return json_text({"action": action.value, "rule": rule})
