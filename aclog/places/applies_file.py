"""The file `applies.jsonl` beside a log of ours: which apply made which of its changes, and the log's own identity.

JSON lines, append-only. The first is `{"kind":"LOG","version":1,"id":ID}`. BEGIN is durable before the records of an
apply are, with the offset at which they can begin, and how many changes they are; DONE once they are committed. So the
changes of an apply are the first `steps` ones from the offset of its newest BEGIN on.
"""

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from attrs import evolve, frozen

from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.filelog.filesystem import FILE_MODE, fsync_directory, log_error, read_small, write_all
from aclog.metalog.json_object import parse_object
from aclog.planning.place import ApplyNote
from aclog.terminal.json_text import json_text

APPLIES_FILE = "applies.jsonl"
_VERSION = 1
_MOST_BYTES = 256 << 20


@frozen(kw_only=True)
class AppliedChange:
    """An apply of a log: what is known of it, and which changes it made."""

    note: ApplyNote
    offset: int
    """Where its records can begin."""
    steps: int
    done: bool
    """Whether it is known to have ended; if not, it was killed, or is still at work."""
    digest: str | None = None
    """Of its records, as `records_digest` has it; None: an earlier version kept none."""


@frozen(kw_only=True)
class Applies:
    """What the file says."""

    id: str
    """The identity of the log, if it belongs to no cluster."""
    applied: tuple[AppliedChange, ...]
    """In the order in which they began."""


def read_applies(directory: Path) -> Applies | None:
    """Return what the file beside a log says; None if there is none, or nothing whole in it of an apply.

    An identity alone is none yet: no journal and no plan can know of it.

    Raises:
        DecodeError: it is damaged, or of another version.
        LogError: it cannot be read.

    """
    path = directory / APPLIES_FILE
    data = read_small(path, _MOST_BYTES)
    lines = [] if data is None else data[: data.rfind(b"\n") + 1].splitlines()
    if not lines:
        return None
    head = _object(lines[0], path, 1)
    if head.get("kind") != "LOG" or head.get("version") != _VERSION or not isinstance(head.get("id"), str):
        raise DecodeError("line 1: not the record of applies of this version", path=str(path))
    return Applies(id=str(head["id"]), applied=tuple(_folded(lines[1:], path))) if lines[1:] else None


def append_applies(directory: Path, log_id: str, lines: list[dict[str, object]]) -> None:
    """Append lines durably; a new file gets its first line before them. A torn end is cut. Raises LogError."""
    path = directory / APPLIES_FILE
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, FILE_MODE)
        try:
            data = read_small(path, _MOST_BYTES) or b""
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                os.ftruncate(fd, whole)
            head: list[dict[str, object]] = [] if whole else [{"kind": "LOG", "version": _VERSION, "id": log_id}]
            write_all(fd, b"".join(json_text(line).encode() + b"\n" for line in [*head, *lines]))
            os.fsync(fd)
        finally:
            os.close(fd)
        fsync_directory(directory)
    except OSError as error:
        raise log_error(error, path, "cannot write") from error


def records_digest(values: Iterable[bytes]) -> str:
    """Return the SHA-256 of the values of records, in hexadecimal: ids are random, so no others have it."""
    digest = sha256()
    for value in values:
        digest.update(len(value).to_bytes(4) + value)
    return digest.hexdigest()


def applied_line(note: ApplyNote, *, offset: int, steps: int, digest: str | None = None) -> dict[str, object]:
    """Return the BEGIN line of an apply."""
    return {
        "kind": "BEGIN",
        "apply": note.apply,
        "at": note.at,
        "who": note.who,
        "plan": note.plan,
        "journal": note.journal,
        "git": note.git,
        "offset": offset,
        "steps": steps,
        "records": digest,
    }


def done_line(note: ApplyNote) -> dict[str, object]:
    """Return the DONE line of an apply."""
    return {"kind": "DONE", "apply": note.apply, "at": note.at}


def _folded(lines: list[bytes], path: Path) -> Iterator[AppliedChange]:
    begun: dict[str, AppliedChange] = {}
    done: set[str] = set()
    for number, line in enumerate(lines, 2):
        value = _object(line, path, number)
        apply = value.get("apply")
        if not isinstance(apply, str) or value.get("kind") not in {"BEGIN", "DONE"}:
            raise DecodeError(f"line {number}: expected BEGIN or DONE of an apply", path=str(path))
        if value["kind"] == "DONE":
            done.add(apply)
        else:
            begun[apply] = _begun(value, path, number)
    for apply, each in begun.items():
        yield evolve(each, done=apply in done)


def _begun(value: dict[str, object], path: Path, number: int) -> AppliedChange:
    offset, steps = value.get("offset"), value.get("steps")
    texts = {key: value.get(key) for key in ("apply", "at", "who", "plan")}
    if type(offset) is not int or type(steps) is not int or not all(isinstance(each, str) for each in texts.values()):
        raise DecodeError(f"line {number}: an apply lacks something", path=str(path))
    journal, git = value.get("journal"), value.get("git")
    note = ApplyNote(
        apply=str(texts["apply"]),
        at=str(texts["at"]),
        who=str(texts["who"]),
        plan=str(texts["plan"]),
        journal=None if journal is None else str(journal),
        git=None if git is None else str(git),
    )
    digest = value.get("records")
    return AppliedChange(
        note=note, offset=offset, steps=steps, done=False, digest=None if digest is None else str(digest)
    )


def _object(line: bytes, path: Path, number: int) -> dict[str, object]:
    try:
        return parse_object(line)
    except ConfigError as error:
        raise DecodeError(f"line {number}: {error}", path=str(path)) from error
