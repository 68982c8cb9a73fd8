"""Lines that are too long are passed over in bounded memory, and count as unread accesses with their places."""

import bz2
import gzip
import json
import tarfile
import tracemalloc
import zipfile
from collections import Counter
from datetime import UTC
from io import BytesIO

import pyarrow as pa
import pytest

from aclog.authorizer.audit import Reason
from aclog.sources import acl_lines
from aclog.sources.accesses import read_accesses, read_seen_accesses
from aclog.usage.accesses import lines as lines_module
from aclog.usage.accesses.access_log import explain_unread, find_accesses, read_part
from aclog.usage.accesses.followed import FollowedLog
from aclog.usage.accesses.lines import LongLine, _whole_lines
from tests.support.cli.command import aclog
from tests.support.spark.access_logs import audit_text

LONGEST = 1000
RULE = {
    "resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": "User:a", "host": "*",
    "operation": "READ", "permissionType": "ALLOW",
}  # fmt: skip


def text_line(name: str, size: int = 0) -> bytes:
    return audit_text(name=name + "x" * size).replace("is Denied", "is Allowed").encode()


def json_line(name: str, size: int = 0) -> bytes:
    return json.dumps({
        "principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": name,
        "timestamp": "2026-11-21T10:00:00Z", "comment": "x" * size,
    }).encode()  # fmt: skip


FORMS = {"text": text_line, "JSON": json_line}


def zipped(data: bytes) -> bytes:
    """An archive with a packed member."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("log.gz", gzip.compress(data))
    return file.getvalue()


def tarred(data: bytes) -> bytes:
    """An archive with a packed member."""
    file = BytesIO()
    with tarfile.open(fileobj=file, mode="w:xz") as archive:
        member = tarfile.TarInfo("log.bz2")
        content = bz2.compress(data)
        member.size = len(content)
        archive.addfile(member, BytesIO(content))
    return file.getvalue()


PACKINGS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": lambda data: pa.compress(data, codec="zstd", asbytes=True),
    "zip": zipped,
    "tar": tarred,
}


@pytest.fixture(autouse=True)
def longest(monkeypatch):
    """A limit that a test reaches soon; as in earnest, no block is longer than that."""
    monkeypatch.setattr(lines_module, "LONGEST_LINE", LONGEST)
    monkeypatch.setattr(lines_module, "_BLOCK", LONGEST // 2)
    monkeypatch.setattr(acl_lines, "_LONGEST", LONGEST)
    monkeypatch.setattr(acl_lines, "_BLOCK", 64)


def log_of(line) -> tuple[bytes, list[int], list[str]]:
    """A log with the places of its long lines, and the names in the others."""
    sizes = [0, 1500, 0, 0, 9000, 5000, 0, 0, 1001, 3000]
    lines = [line(f"t{number}", size) for number, size in enumerate(sizes)]
    places = [sum(len(each) + 1 for each in lines[:number]) for number in range(len(lines))]
    return (
        b"\n".join(lines),
        [place for place, size in zip(places, sizes, strict=True) if size],
        [f"t{number}" for number, size in enumerate(sizes) if not size],
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("ends", [False, True])
def test_all_other_lines_are_read(monkeypatch, tmp_path, form, packing, ends):
    data, places, names = log_of(FORMS[form])
    data += b"\n" * ends
    path = tmp_path / "log"
    path.write_bytes(PACKINGS[packing](data))
    for part, block in ((1, 1), (300, 700), (4000, 64), (1 << 20, 999), (9000, 1000)):
        monkeypatch.setattr(lines_module, "_PART", part)
        monkeypatch.setattr(lines_module, "_BLOCK", block)
        found, rejects, long_lines, unread = [], Counter(), [], []
        log = find_accesses([str(path)], UTC)
        for batch in (batch for each in log.parts for batch in read_part(each)):
            found += batch.rows.column("resourceName").to_pylist()
            rejects += batch.rejects
            long_lines += batch.long_lines
            unread += batch.unread.spans.items()
        assert (found, rejects) == (names, {Reason.TOO_LONG: len(places)}), (part, block)
        assert long_lines == [LongLine(str(path), place) for place in places]
        assert sum(span.accesses for _, span in unread) == len(places)
        assert {(key.principal, key.decision, key.reason) for key, _ in unread} == {(None, None, "TOO_LONG")}
    lines = explain_unread(log, 99)
    assert [(each.line, each.text) for each in lines] == [
        (number + 1, f"at offset {place:,}") for number, place in zip((1, 4, 5, 8, 9), places, strict=True)
    ]


def test_a_long_line_has_the_hour_of_its_neighbours(tmp_path):
    lines = [text_line("a"), text_line("b", 2000), text_line("c").replace(b"10:00:00", b"10:59:00")]
    (tmp_path / "log").write_bytes(b"\n".join(lines))
    (part,) = find_accesses([str(tmp_path / "log")], UTC).parts
    ((key, span),) = ((key, span) for batch in read_part(part) for key, span in batch.unread.spans.items())
    assert (key.hour, span.last - span.first) == (span.first // 3_600_000_000, 59 * 60_000_000)


def test_memory_is_bounded():
    def chunks():
        yield b"first\n"
        for _ in range(200):
            yield b"x" * (1 << 16)
        yield b"x\nlast\n"

    tracemalloc.start()
    try:
        found = list(_whole_lines(chunks(), "log", 0))
        assert tracemalloc.get_traced_memory()[1] < 1 << 19
    finally:
        tracemalloc.stop()
    assert found == [b"first\n", LongLine("log", 6), b"last\n"]


@pytest.mark.parametrize("form", FORMS)
def test_commands_go_on_and_name_the_line(tmp_path, form):
    data, places, names = log_of(FORMS[form])
    log, acls = tmp_path / "log", tmp_path / "acls.jsonl"
    log.write_bytes(data + b"\n")
    acls.write_text(json.dumps(RULE) + "\n")
    source = ("--accesses", log, "--acls", acls)
    warned = f"not read, each counts as an access that could not be read: {log} at offset {places[0]:,}"
    found = aclog("usage", *source, "--format", "jsonl").ok()
    assert found.err.count(warned) == 1
    (row,) = map(json.loads, found.lines)
    assert (row["answer"], row["unread"], row["removable"]) == ("NOT_JUDGED", 5, False)
    for command in (("denied", *source), ("simulate", *source, "--to-acls", acls), ("coverage", "--accesses", log)):
        assert warned in aclog(*command).err, command
    index = ("--index", tmp_path / "index")
    added = aclog("usage-index", *source, *index, "--format", "jsonl").ok()
    assert warned in added.err
    (taken,) = map(json.loads, added.lines)
    assert (taken["accesses"], taken["unread"]) == (len(names), 5)
    kept = map(json.loads, aclog("coverage", *index, "--format", "jsonl").lines)
    assert sum(row["lines"] for row in kept if row["kind"] == "UNREAD") == 5


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("with_pyarrow", [True, False])
def test_diff_and_lint_count_them(monkeypatch, tmp_path, form, with_pyarrow):
    data, places, names = log_of(FORMS[form])
    (tmp_path / "log").write_bytes(data)
    if not with_pyarrow:
        monkeypatch.setattr("aclog.sources.accesses.has_pyarrow", lambda: False)
    found, seen = read_accesses(str(tmp_path / "log")), read_seen_accesses(str(tmp_path / "log"))
    assert (found.counts.total(), found.unread, found.malformed) == (len(names), len(places), len(places))
    assert (len(seen.requests), seen.unread) == (len(names), len(places))


def test_a_followed_log_waits_for_the_end_of_a_long_line(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(text_line("a") + b"\n" + text_line("b", 5000))
    log, keys = FollowedLog(paths=[str(path)], zone=UTC), set()

    def look():
        new = log.look(lambda: keys, lambda *_: None)
        batches = [batch for part in new.input.parts for batch in read_part(part)]
        keys.update(part.content.key for part in new.contents)
        log.confirm()
        names = [name for batch in batches for name in batch.rows.column("resourceName").to_pylist()]
        return names, [line.offset for batch in batches for line in batch.long_lines]

    assert look() == (["a"], [])
    with path.open("ab") as file:
        file.write(b"x" * 5000)
    assert look() == ([], [])
    with path.open("ab") as file:
        file.write(b"\n" + text_line("c") + b"\n")
    assert look() == (["c"], [len(text_line("a")) + 1])
