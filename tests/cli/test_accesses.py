"""`--accesses` as diff, lint, review and tests of rules read it: what usage reads, in every form."""

import bz2
import gzip
import json
import os
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC
from io import BytesIO
from pathlib import Path
from threading import Thread

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses.kafka_log import event_schema
from aclog.sources.accesses import COLUMNS, access_of_row, read_accesses, read_seen_accesses
from aclog.usage.accesses import lines
from aclog.usage.accesses.access_log import find_accesses, read_part
from tests.support.cli.command import aclog
from tests.support.cli.shell_sources import SMALL
from tests.usage.accesses.test_events import CLOUD, EVENT, OCSF, confluent, redpanda

OLDER = Path(__file__).parents[1] / "pipeline/accesses/data"
LOGGED = SMALL / "expected/authorizer.log"


@pytest.mark.parametrize("path", [LOGGED, *sorted(OLDER.glob("*.log"))], ids=lambda path: path.name)
def test_every_line_that_a_kafka_logged_is_an_access(path):
    lines = path.read_text().splitlines()
    found = read_accesses(str(path))
    assert (sum(found.counts.values()), found.malformed) == (len(lines), 0)
    seen = read_seen_accesses(str(path))
    assert seen.requests == set(found.counts)
    assert seen.principals == {request.principal for request in found.counts}
    assert all(f"Principal = {principal} is " in path.read_text() for principal in seen.principals)


def test_what_else_is_in_such_a_file_is_counted_and_no_access(tmp_path):
    [first, second, *_] = LOGGED.read_bytes().splitlines()
    request = {
        "principal": "User:json", "host": "::1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "t",
    }  # fmt: skip
    lines = [first, b"java.lang.Exception", first, b"\tat kafka.Kafka", second[:60], b"[]", b"[", second + b"\xff"]
    (tmp_path / "log").write_bytes(b"\r\n".join([*lines, json.dumps(request).encode(), b""]))
    found = read_accesses(str(tmp_path / "log"))
    assert sorted(found.counts.values()) == [1, 2]
    assert found.malformed == 6
    assert read_seen_accesses(str(tmp_path / "log")).principals == {"User:admin", "User:json"}


def test_a_file_of_nothing_but_other_lines_is_refused(tmp_path):
    (tmp_path / "log").write_text("[2026-11-21 10:00:00,123] INFO something (kafka.server)\n")
    with pytest.raises(ConfigError, match=r"no line is an access: expected lines as of .* or of kafka-authorizer\.log"):
        read_accesses(str(tmp_path / "log"))
    with pytest.raises(ConfigError, match="no line has a principal"):
        read_seen_accesses(str(tmp_path / "log"))


def test_a_difference_counts_them():
    result = aclog(
        "diff", "--log", SMALL / "__cluster_metadata-0", "--to-super-users", "User:alice;User:bob", "--accesses", LOGGED
    )
    assert result.code == 1
    assert result.lines[-1].endswith((" of the accesses flip", " of the accesses flips"))
    assert not result.lines[-1].startswith("0 ")


PLAIN = {"principal": "User:j", "host": "::1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "t"}
JUNK = [{"class_uid": 3002, "actor": {"user": {"uid": "User:x"}}}, {"log": "Principal = User:y is Allowed"}, "{", "[]"]
FORMS = {
    "audit lines": LOGGED.read_text,
    "JSON lines": lambda: texts(PLAIN, PLAIN | {"timestamp": 1}, PLAIN | {"host": "app1"}, PLAIN | {"operation": "x"}),
    "audit events": lambda: texts(EVENT, {"logger": "audit", "audit": EVENT}, {"logger": "other"}),
    "OCSF": lambda: texts(OCSF, redpanda("fetch", 2, ("topic", "t"), ("topic", "u")), redpanda("brew", 2)),
    "CloudEvents": lambda: texts(CLOUD, confluent(), confluent({"operation": "Fly"})),
    "all in one": lambda: "".join(FORMS[each]() for each in list(FORMS)[:5]) + texts(*JUNK),
    "all in one, backwards": lambda: "".join(FORMS[each]() for each in reversed(list(FORMS)[:5])) + texts(*JUNK),
}


def texts(*values):
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in values)


def read_by_usage(path):
    """What usage reads of a log: accesses that can be decided, and how many others there are that cannot."""
    counts, unread = Counter(), 0
    for part in find_accesses([str(path)], UTC).parts:
        for batch in read_part(part):
            unread += batch.unread.total
            for row in batch.rows.select(COLUMNS).to_pylist():
                request = access_of_row(tuple(row.values()))
                unread += request is None
                counts.update([] if request is None else [request])
    return counts, unread


@pytest.mark.parametrize("name", FORMS)
def test_diff_reads_what_usage_reads(tmp_path, name):
    text = FORMS[name]()
    for path, data in (
        (tmp_path / "log", text.encode()),
        (tmp_path / "log.gz", gzip.compress(text.encode())),
        (tmp_path / "dir" / "log", text.encode()),
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    expected = read_by_usage(tmp_path / "log")
    assert sum(expected[0].values()) > 1
    for path in ("log", "log.gz", "dir", "d*/l*"):
        found = read_accesses(str(tmp_path / path))
        assert (found.counts, found.unread) == expected, path
    rules = tmp_path / "rules"
    rules.write_text("")
    changed = aclog(
        *("diff", "--acls", rules, "--to-acls", rules, "--to-super-users", "User:j;User:a;User:alice;User:sa-1"),
        *("--accesses", "-"),
        stdin=text.encode(),
    )
    assert not changed.lines[-1].startswith("0 of the accesses flip")
    assert ("could not be read or decided may" in changed.lines[-1]) is bool(expected[1])


def test_lines_of_another_form_are_read_by_their_own(tmp_path):
    (tmp_path / "log").write_text(FORMS["all in one"]())
    counts, unread = read_by_usage(tmp_path / "log")
    alone = Counter()
    for at, name in enumerate(list(FORMS)[:5]):
        (tmp_path / f"{at}").write_text(FORMS[name]())
        alone += read_by_usage(tmp_path / f"{at}")[0]
    assert counts == alone
    assert unread >= 5


def test_tables_and_avro_are_read_as_well(tmp_path):
    with (tmp_path / "log.avro").open("wb") as file:
        fastavro.writer(file, json.loads(event_schema()), [EVENT])
    found = read_accesses(str(tmp_path / "log.avro"))
    assert (sum(found.counts.values()), found.unread) == (1, 0)
    pq.write_table(pa.Table.from_pylist([PLAIN, PLAIN, PLAIN | {"host": "app1"}]), tmp_path / "t.parquet")
    found = read_accesses(str(tmp_path / "t.parquet"))
    assert (list(found.counts.values()), found.malformed, found.unread) == ([2], 1, 1)


def test_without_pyarrow_lines_are_read_one_by_one(tmp_path, monkeypatch):
    expected = {}
    for name in ("audit lines", "JSON lines"):
        (tmp_path / name).write_text(FORMS[name]())
        expected[name] = read_accesses(str(tmp_path / name))
    (tmp_path / "events").write_text(FORMS["OCSF"]())
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr("aclog.sources.accesses.has_pyarrow", lambda: False)
    monkeypatch.setattr("aclog.sources.accesses.has_pyarrow", lambda: False)
    assert {name: read_accesses(str(tmp_path / name)) for name in expected} == expected
    with pytest.raises(ConfigError, match="no line is an access"):
        read_accesses(str(tmp_path / "events"))
    with pytest.raises(ConfigError, match=r" install .*\[parquet\]'"):
        read_accesses(str(tmp_path / "t.parquet"))


@contextmanager
def piped(path: Path, data: bytes) -> Iterator[str]:
    """A pipe, out of which the data comes once."""
    os.mkfifo(path)
    writer = Thread(target=path.write_bytes, args=(data,))
    writer.start()
    try:
        yield str(path)
    finally:
        end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # else the writer of a pipe that was not read never ends
        while writer.is_alive():
            with suppress(BlockingIOError):
                os.read(end, 1 << 16)
        os.close(end)
        path.unlink()


@pytest.mark.parametrize("with_pyarrow", [True, False])
@pytest.mark.parametrize("name", ["audit lines", "JSON lines"])
def test_a_pipe_is_read_as_a_file_is(tmp_path, monkeypatch, name, with_pyarrow):
    (tmp_path / "log").write_text(FORMS[name]())
    expected, seen = read_accesses(str(tmp_path / "log")), read_seen_accesses(str(tmp_path / "log"))
    assert expected.counts
    assert seen.principals
    if not with_pyarrow:
        monkeypatch.setattr("aclog.sources.accesses.has_pyarrow", lambda: False)
    for data in ((tmp_path / "log").read_bytes(), gzip.compress((tmp_path / "log").read_bytes())):
        with piped(tmp_path / "pipe", data) as path:
            assert read_accesses(path) == expected
        with piped(tmp_path / "pipe", data) as path:
            assert read_seen_accesses(path) == seen


def test_events_from_a_pipe_are_accesses(tmp_path):
    (tmp_path / "log").write_text(FORMS["OCSF"]())
    with piped(tmp_path / "pipe", (tmp_path / "log").read_bytes()) as path:
        assert read_accesses(path) == read_accesses(str(tmp_path / "log"))


@pytest.mark.parametrize("form", ["Parquet", "Avro", "ORC"])
def test_a_damaged_binary_form_in_a_pipe_is_refused_by_its_name(tmp_path, form):
    data = {"Parquet": b"PAR1", "Avro": b"Obj\x01", "ORC": b"ORC"}[form] + bytes(60)
    for read in (read_accesses, read_seen_accesses):
        with piped(tmp_path / "pipe", data) as path, pytest.raises(ConfigError, match=f"^{path}: "):
            read(path)


def test_commands_that_read_accesses_more_than_once_refuse_a_pipe(tmp_path):
    log = ("--log", SMALL / "__cluster_metadata-0")
    for args in (
        ("usage", *log),
        ("denied", *log),
        ("suggest", *log),
        ("usage-index", *log, "--index", tmp_path / "index"),
        ("simulate", *log, "--to-super-users", "User:a"),
    ):
        with piped(tmp_path / "pipe", LOGGED.read_bytes()) as path:
            result = aclog(*args, "--accesses", path)
        assert result.code == 2
        assert f"{path}: not a regular file: an access log is read several times" in result.err
    assert not (tmp_path / "index").exists()


def archived(data: bytes) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("kafka-authorizer.log", data)
    return file.getvalue()


STREAMS = {"plain": bytes, "gzip": gzip.compress, "bz2": bz2.compress, "zip": archived}


@pytest.mark.parametrize("packing", STREAMS)
def test_stdin_is_read_as_a_file_is_by_every_command(tmp_path, packing):
    """In the layout of `kubectl logs` over one of log4j 2, and packed."""
    log, layout = tmp_path / "log", re.compile(r"^\[(.*?)\] (\w+) (.*) \(.*\)$", re.MULTILINE)
    log.write_text(layout.sub(r"[pod/kafka-0] \1 [main] \2 kafka.authorizer.logger - \3", LOGGED.read_text()))
    assert "[pod/kafka-0]" in log.read_text()
    source = ("--log", SMALL / "__cluster_metadata-0")
    for args in (
        ("usage", *source),
        ("denied", *source),
        ("suggest", *source),
        ("simulate", *source, "--to-super-users", "User:a"),
        ("coverage",),
        ("diff", *source, "--to-super-users", "User:a"),
        ("lint", *source),
    ):
        of_file = aclog(*args, "--accesses", log)
        of_stdin = aclog(*args, "--accesses", "-", stdin=STREAMS[packing](log.read_bytes()))
        assert (of_stdin.code, of_stdin.out) == (of_file.code, of_file.out), args
        assert of_stdin.err == of_file.err.replace(str(log), "stdin"), args
    for at, words in enumerate(([log], ["-"])):
        index = ("--index", tmp_path / f"index-{at}")
        read = aclog(
            "usage-index", *source, *index, "--accesses", *words, stdin=STREAMS[packing](log.read_bytes())
        ).ok()
        assert "1 of them new" in read.lines[0]
    again = aclog("usage-index", *source, *index, "--accesses", log).ok()
    assert again.lines == ["1 file, 0 of them new, 0 grown", "nothing new"]


def test_the_last_line_of_stdin_needs_no_line_feed(tmp_path):
    args = ("usage-index", "--log", SMALL / "__cluster_metadata-0", "--index", tmp_path / "index", "--accesses", "-")
    text = LOGGED.read_bytes().rstrip(b"\n")
    first = aclog(*args, "--format", "jsonl", stdin=text).ok()
    assert json.loads(first.out)["accesses"] == text.count(b"Principal = ")
    assert "not whole" not in first.err
    again = aclog(*args, stdin=text + b"\n").ok()
    assert again.lines[-1] == "nothing new"


@pytest.mark.parametrize("has_proc", [True, False])
def test_the_copy_of_stdin_ends_with_the_command(tmp_path, monkeypatch, has_proc):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    if not has_proc:
        monkeypatch.setattr(lines, "_can_reopen", lambda _: False)
    read = aclog("usage", "--log", SMALL / "__cluster_metadata-0", "--accesses", "-", stdin=LOGGED.read_bytes())
    assert read.code == 0
    assert not list(temporary.iterdir())
    wrong = aclog("usage", "--log", SMALL / "__cluster_metadata-0", "--accesses", "-", stdin=b"no log\n")
    assert wrong.code == 2
    assert "stdin: not an access log" in wrong.err
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("command", ["usage", "denied", "suggest", "simulate", "usage-index", "unused"])
def test_only_one_reader_of_stdin(tmp_path, command):
    more = {"simulate": ["--to-super-users", "User:a"]}.get(command, [])
    index = ["--index", tmp_path] if command in {"usage-index", "unused"} else []
    refused = aclog(command, "--acls", "-", *more, *index, "--accesses", "-", stdin=b"")
    assert (refused.code, "only one of them can be stdin" in refused.err) == (2, True)


def test_orc(tmp_path, monkeypatch):
    """An ORC file is a table for every reader: in a pipe, on stdin, for lint, and without pyarrow."""
    orc.write_table(pa.Table.from_pylist([PLAIN] * 3), tmp_path / "t.orc")
    expected = read_accesses(str(tmp_path / "t.orc"))
    assert sum(expected.counts.values()) == 3
    data = (tmp_path / "t.orc").read_bytes()
    with piped(tmp_path / "pipe", data) as path:
        assert read_accesses(path) == expected
    with piped(tmp_path / "pipe", data) as path:
        assert read_seen_accesses(path).requests == set(expected.counts)
    assert read_seen_accesses(str(tmp_path / "t.orc")).requests == set(expected.counts)
    rules = tmp_path / "rules"
    rules.write_text("")
    found = aclog(
        "diff", "--acls", rules, "--to-acls", rules, "--to-super-users", "User:j", "--accesses", "-", stdin=data
    )
    assert found.lines[-1].startswith("3 of the accesses flip"), found
    monkeypatch.setattr("aclog.sources.accesses.has_pyarrow", lambda: False)
    with pytest.raises(ConfigError, match=r" install .*\[parquet\]'"):
        read_accesses(str(tmp_path / "t.orc"))


def test_lint_counts_events_after_other_accesses_as_unread(tmp_path):
    (tmp_path / "log").write_text(texts(PLAIN, OCSF))
    assert read_seen_accesses(str(tmp_path / "log")).unread == 1


def test_lint_sees_who_made_the_accesses_of_a_nodes_json_log(tmp_path):
    (tmp_path / "log").write_text('{"logger": "aclog", "message": "started"}\n' + FORMS["audit events"]())
    found = read_accesses(str(tmp_path / "log"))
    assert found.counts
    assert read_seen_accesses(str(tmp_path / "log")).requests == set(found.counts)


def test_lint_sees_who_made_the_accesses_of_events(tmp_path):
    (tmp_path / "events").write_text(FORMS["OCSF"]())
    assert read_seen_accesses(str(tmp_path / "events")).principals == {"User:a"}
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "log").write_bytes(LOGGED.read_bytes())
    assert read_seen_accesses(str(tmp_path / "dir")) == read_seen_accesses(str(LOGGED))


def test_lint_reads_a_directory_with_text_and_parquet(tmp_path):
    table = pa.table(
        {name: [value] for name, value in zip(COLUMNS, ("User:p", "::1", "READ", "TOPIC", "x"), strict=True)}
    )
    (tmp_path / "logs").mkdir()
    pq.write_table(table, tmp_path / "logs" / "part.parquet")
    (tmp_path / "logs" / "kafka-authorizer.log").write_bytes(LOGGED.read_bytes())
    seen = read_seen_accesses(str(tmp_path / "logs"))
    assert seen.requests == set(read_accesses(str(tmp_path / "logs")).counts)
    assert seen.principals == read_seen_accesses(str(LOGGED)).principals | {"User:p"}
