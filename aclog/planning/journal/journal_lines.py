"""The lines of a journal: JSON, each with a checksum at the end of all lines so far.

So a line that was changed is known for what it is, and so is one that is missing before others.
"""

from collections.abc import Mapping
from typing import Any

from aclog.metalog.checksum import crc32c
from aclog.metalog.errors import ConfigError, EncodeError
from aclog.metalog.json_object import parse_object
from aclog.planning.errors import JournalError
from aclog.planning.journal.entry import Entry, EntryKind, entry_object, parse_entry, written_steps
from aclog.planning.journal.journal import Journal
from aclog.planning.journal.sent import Sent, parse_sent, sent_object
from aclog.terminal.json_text import json_text

_HEAD, _VERSION = "JOURNAL", 2
_HEAD_BEGIN = f'{{"kind":"{_HEAD}"'.encode()
_CHECKSUM = b',"crc":"'
_SENT = b'{"kind":"SENT"'
_BEGIN, _STEPS = f'{{"kind":"{EntryKind.BEGIN}"'.encode(), b',"steps":'
_TAIL = len(_CHECKSUM) + len('00000000"}')
_START = 0
"""The checksum of no lines at all."""


def head_line(journal_id: str) -> bytes:
    """Return the first line of a journal, with its line end."""
    return _line({"kind": _HEAD, "version": _VERSION, "id": journal_id}, _START)


def is_torn_head(data: bytes) -> bool:
    """Return whether a file is empty, or holds a part of the first line only: nothing was applied with it."""
    return b"\n" not in data and (data.startswith(_HEAD_BEGIN) or _HEAD_BEGIN.startswith(data))


def entry_line(entry: Entry, before: int) -> bytes:
    """Return the line of an entry, with its line end; `before` is the checksum of the line above."""
    return _line(entry_object(entry), before)


def sent_line(apply: str, sent: Sent, before: int) -> bytes:
    """Return the line that says how far an apply has come, with its line end; `before` as for `entry_line`."""
    return _line(sent_object(apply, sent), before)


def checksum_of(line: bytes) -> int:
    """Return the checksum that ends a whole line, with or without its line end."""
    return int(line.rstrip(b"\n")[-_TAIL + len(_CHECKSUM) : -len('"}')], 16)


def parse_journal(data: bytes, path: str) -> tuple[Journal, int]:
    """Return the journal in the bytes of a file, and how many of them are whole lines; what follows was torn.

    A last line that lacks but its line end is whole.

    Raises:
        JournalError: not a journal, one of another version, or a damaged line; with its number.

    """
    lines, end = _whole_lines(data)
    if not lines:
        raise JournalError(f"{path}: not a journal: its first line is not whole")
    if not lines[0].startswith(_HEAD_BEGIN):
        raise JournalError(f"{path}: not a journal: expected a file that `aclog apply` wrote")
    checksum = _check_line(lines[0], _START, path, 1)
    head = _parsed(lines[0], path, 1)
    if not isinstance(head.get("id"), str):
        raise JournalError(f"{path}: line 1: a journal without an id: expected a file that `aclog apply` wrote")
    if head.get("version") != _VERSION:
        raise JournalError(f"{path}: a journal of version {head.get('version')}: expected {_VERSION}")
    entries: list[Entry] = []
    begun: set[str] = set()
    sent, last = Sent(), max((number for number, line in enumerate(lines, 1) if not line.startswith(_SENT)), default=1)
    for number, line in enumerate(lines[1:], 2):
        checksum = _check_line(line, checksum, path, number)
        if line.startswith(_SENT):
            sent = _sent(line, entries, path, number) if number > last else sent
            continue
        value = _parsed(line, path, number, without_steps=number < last and line.startswith(_BEGIN))
        try:
            entries.append(parse_entry(value))
        except (ConfigError, EncodeError) as error:
            raise JournalError(f"{path}: line {number}: {error}") from error
        _check_order(entries, path, number)
        _check_once(entries[-1], begun, path, number)
    return Journal(path=path, id=head["id"], entries=tuple(entries), sent=sent, checksum=checksum), end


def _whole_lines(data: bytes) -> tuple[list[bytes], int]:
    """Return the whole lines, the last one with or without its line end; and where they end."""
    end = data.rfind(b"\n") + 1
    lines, rest = data[:end].splitlines(), data[end:]
    before = _START if not lines else _told_by(lines[-1])
    if rest and before is not None and _is_whole(rest, before):
        return [*lines, rest], len(data)
    return lines, end


def _sent(line: bytes, entries: list[Entry], path: str, number: int) -> Sent:
    """Return how far the apply has come that has not ended."""
    value = _parsed(line, path, number)
    entry = entries[-1] if entries else None
    if entry is None or entry.kind is not EntryKind.BEGIN or value.get("apply") != entry.apply:
        raise JournalError(f"{path}: line {number}: apply {value.get('apply')} sends what did not begin above")
    try:
        return parse_sent(value, written_steps(entry.steps))
    except ConfigError as error:
        raise JournalError(f"{path}: line {number}: {error}") from error


def _check_order(entries: list[Entry], path: str, number: int) -> None:
    """Check that each apply begins before it is done, and is done before the next one begins."""
    last, before = entries[-1], entries[-2] if len(entries) > 1 else None
    is_open = before is not None and before.kind is EntryKind.BEGIN
    if last.kind is EntryKind.DONE and not (is_open and before is not None and before.apply == last.apply):
        raise JournalError(f"{path}: line {number}: apply {last.apply} is done, and did not begin on the line before")
    if last.kind is EntryKind.BEGIN and is_open:
        raise JournalError(f"{path}: line {number}: apply {last.apply} begins before the one on the line above is done")


def _check_once(entry: Entry, begun: set[str], path: str, number: int) -> None:
    """Check that no apply begins twice: a merge of two copies would own again what was removed since."""
    if entry.kind is EntryKind.BEGIN:
        if entry.apply in begun:
            raise JournalError(f"{path}: line {number}: apply {entry.apply} begins a second time: was it merged?")
        begun.add(entry.apply)


def _line(value: Mapping[str, object], before: int) -> bytes:
    text = json_text(value).encode()[:-1]
    return text + _tail(text, before) + b"\n"


def _tail(text: bytes, before: int) -> bytes:
    return _CHECKSUM + f'{crc32c(text, before):08x}"}}'.encode()


def _check_line(line: bytes, before: int, path: str, number: int) -> int:
    """Return the checksum of a line that fits to that of the line above. Raises JournalError: it does not."""
    if not _is_whole(line, before):
        raise JournalError(
            f"{path}: line {number}: its checksum does not fit: it is damaged or was changed by hand, or lines before "
            "it are missing or were added; nobody knows what is owned"
        )
    return checksum_of(line)


def _is_whole(line: bytes, before: int) -> bool:
    return line[-_TAIL:] == _tail(line[:-_TAIL], before)


def _told_by(line: bytes) -> int | None:
    """Return the checksum that ends a line; None if none does."""
    try:
        return checksum_of(line)
    except ValueError:
        return None


def _parsed(line: bytes, path: str, number: int, *, without_steps: bool = False) -> dict[str, Any]:
    text = line[:-_TAIL]
    if without_steps:  # the next line, DONE, has those that count
        line = text[: text.find(_STEPS)] + _STEPS + b"[]}"
    try:
        return parse_object(line)
    except ConfigError as error:
        raise JournalError(f"{path}: line {number}: {error}") from error
