"""Access logs without Spark: every line once, and blocks say what their lines say one by one."""

import gzip
import json
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.audit import Reason
from aclog.metalog.errors import ConfigError
from aclog.usage.accesses import events
from aclog.usage.accesses import lines as lines_module
from aclog.usage.accesses.access_batch import AccessForm, read_kafka_lines
from aclog.usage.accesses.access_log import accesses_in, find_accesses, read_part
from aclog.usage.accesses.events import read_json
from aclog.usage.accesses.lines import PinnedFile, StreamCopy
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from tests.support.runs.profiles import examples
from tests.support.spark.access_logs import audit_text

FIVE = {"principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "t"}
TIMES = [
    "2026-11-21T10:00:00Z",
    "2026-11-21T10:00:00.123456Z",
    "2026-11-21 10:00:00,123+02:00",
    "2026-11-21T10:00:00",
    "2026-11-21T10:00:00.1234567Z",
    "2026-11-21",
    "2026-11-21T10Z",
    "0000-11-21T10:00:00Z",
    "soon",
    "1795255200123",
    None,
    1_795_255_200_123,
    1_795_255_200,
    1 << 60,
    -1,
    1.5,
    True,
]
ODD = [
    b"",
    b"  ",
    b"\r",
    b"not json",
    b"[]",
    b"{}",
    b"{}{}",
    b'{"a":{}\n}',
    b'{"principal":"x","principal":"y"}',
    b"\xff{}",
    b"{",
    json.dumps(FIVE).encode() + b" {}",
    json.dumps(FIVE | {"host": None}).encode(),
    json.dumps(FIVE | {"host": 5}).encode(),
    json.dumps(FIVE | {"resourceName": "\ud800"}).encode(),
    json.dumps(FIVE | {"note": float("nan")}).encode(),
    json.dumps(FIVE).encode().replace(b"{", b'{"host":"1.1.1.1",'),
    json.dumps(FIVE).encode().replace(b"{", b'{"x":1,"x":2,'),
    json.dumps(FIVE | {"broker": 7}).encode(),
    json.dumps(FIVE | {"loggedDecision": "MAYBE"}).encode(),
    json.dumps(FIVE | {"tags": [{}], "resourceName": '\u2028\\"'}).encode() + b"\r",
]
LINES = st.lists(
    st.one_of(
        st.sampled_from(TIMES).map(lambda time: json.dumps(FIVE | {"timestamp": time}).encode()),
        st.sampled_from(TIMES[:2]).map(lambda time: json.dumps(FIVE | {"timestamp": time, "broker": "1"}).encode()),
        st.sampled_from(ODD),
    ),
    max_size=6,
)


def told(batches) -> tuple[list, Counter]:
    rows, rejects = [], Counter()
    for batch in batches:
        rows += batch.rows.to_pylist()
        rejects += batch.rejects
    return rows, rejects


@settings(max_examples=examples(100))
@given(lines=LINES)
def test_a_block_of_json_says_what_its_lines_say(lines):
    lines = b"\n".join(lines).split(b"\n")
    one_by_one = told(events._line_by_line(line, UTC) for line in lines)
    assert told([read_json(b"\n".join(lines), UTC)]) == one_by_one
    assert told([read_json(b"".join(line + b"\n" for line in lines), UTC)]) == one_by_one


def test_plain_blocks_of_json_are_parsed_as_a_whole(monkeypatch):
    monkeypatch.setattr(events, "_line_by_line", None)
    for time in TIMES[:5] + TIMES[10:12]:
        block = json.dumps(FIVE | {"timestamp": time, "broker": 3, "more": {"x": [1]}}).encode() + b"\n"
        (first, second), rejects = told([read_json(block * 2, UTC)])
        assert first == second
        assert (first["broker"], not rejects) == ("3", True)


def test_times_of_json():
    wanted = datetime(2026, 11, 21, 10, tzinfo=UTC)
    for time, micros in (
        ("2026-11-21T10:00:00Z", 0),
        ("2026-11-21T10:00:00.123456Z", 123_456),
        (1_795_255_200_123, 123_000),
        (1_795_255_200, 0),
        ("1795255200", 0),
    ):
        (row,), _ = told([read_json(json.dumps(FIVE | {"timestamp": time}).encode(), UTC)])
        assert row["timestamp"] == wanted.replace(microsecond=micros)
    berlin = ZoneInfo("Europe/Berlin")
    (row,), _ = told([read_json(json.dumps(FIVE | {"timestamp": "2026-11-21T11:00:00"}).encode(), berlin)])
    assert row["timestamp"] == wanted
    _, rejects = told([read_json(json.dumps(FIVE | {"timestamp": "soon"}).encode(), UTC)])
    assert rejects == {Reason.BAD_TIMESTAMP: 1}


KAFKA = [
    audit_text().encode(),
    audit_text(time="2026-11-21 10:00:00,124", name="a b").encode(),
    audit_text(name="ä").encode(),
    audit_text(time="2026-13-21 10:00:00,123").encode(),
    audit_text()[:90].encode(),
    b"",
    b"java.lang.Error",
    b"\xff",
    audit_text(name="x").encode() + b"\r",
    audit_text(name="y").encode().replace(b"User:a", b"User:\xff"),
    audit_text(principal="User:x is Denied operation = READ from host = 1.1.1.1").encode(),
]


@settings(max_examples=examples(150))
@given(lines=st.lists(st.sampled_from(KAFKA), max_size=8))
def test_a_block_of_audit_lines_says_what_its_lines_say(lines):
    one_by_one = told(read_kafka_lines(line, UTC) for line in lines)
    assert told([read_kafka_lines(b"\n".join(lines), UTC)]) == one_by_one
    rows, rejects = one_by_one
    assert len(rows) + sum(rejects.values()) == sum(line != b"" for line in lines)


def test_an_audit_line():
    (row,), _ = told([read_kafka_lines(audit_text(name="orders").encode(), ZoneInfo("Europe/Berlin"))])
    assert row == {
        "principal": "User:a",
        "host": "10.0.0.1",
        "operation": "READ",
        "resourceType": "TOPIC",
        "resourceName": "orders",
        "timestamp": datetime(2026, 11, 21, 9, 0, 0, 123_000, tzinfo=UTC),
        "broker": None,
        "loggedDecision": "DENIED",
    }


@pytest.mark.parametrize("part", [1, 10, 400, 1 << 20])
@pytest.mark.parametrize("block", [1, 150, 1 << 20])
def test_every_line_is_in_one_part(monkeypatch, tmp_path, part, block):
    monkeypatch.setattr(lines_module, "_PART", part)
    monkeypatch.setattr(lines_module, "_BLOCK", block)
    lines = [json.dumps(FIVE | {"resourceName": "x" * n}).encode() for n in range(12)]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))  # the last has no line feed
    (tmp_path / "b.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    others = [line.replace(b"10.0.0.1", b"10.0.0.2") for line in lines]  # another log: copies count once
    assert others != lines
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(b"\n".join(others) + b"\n"))
    (tmp_path / "empty.jsonl").write_bytes(b"")
    found = find_accesses([str(tmp_path)], UTC)
    rows, rejects = told(batch for each in found.parts for batch in read_part(each))
    assert [len(row["resourceName"]) for row in rows] == [*range(12)] * 3
    assert not rejects
    plain = [each.lines for each in found.parts if each.lines.file.path.endswith("a.jsonl")]
    assert all(before.end == after.start for before, after in pairwise(plain))


def test_forms_are_recognised(tmp_path):
    (tmp_path / "kafka-authorizer.log.2026-11-21").write_text(audit_text() + "\n")
    (tmp_path / "old.log.gz").write_bytes(gzip.compress(audit_text().encode()))
    (tmp_path / "_SUCCESS").write_text("no access log")
    (tmp_path / "lines").write_text(json.dumps(FIVE))
    texts = {name: pa.array([FIVE[name]]).dictionary_encode() for name in REQUEST_COLUMNS}
    pq.write_table(pa.table({**texts, "timestamp": pa.array([1_795_255_200_123])}), tmp_path / "table.parquet")
    found = find_accesses([str(tmp_path)], UTC)
    rows, rejects = told(batch for each in found.parts for batch in read_part(each))
    assert (len(rows), sum(rejects.values()), len(found.files)) == (4, 0, 4)
    assert {row["principal"] for row in rows} == {"User:a"}
    assert len(find_accesses([str(tmp_path / "*.log*")], UTC).files) == 2
    assert len(find_accesses([str(tmp_path / "lines")], UTC, AccessForm.KAFKA_LOG).parts) == 1
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    assert find_accesses([str(tmp_path)], UTC).skipped == (str(tmp_path / "image.png"),)
    (tmp_path / "image.png").write_bytes(b"\x89PNG is Allowed")
    with pytest.raises(ConfigError, match=r"image\.png: not an access log"):
        find_accesses([str(tmp_path)], UTC)
    with pytest.raises(ConfigError, match="nowhere: no such file"):
        find_accesses([str(tmp_path / "nowhere")], UTC)


def test_an_append_is_read_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    out, day = tmp_path / "out", tmp_path / "out" / "accesses" / "day=2026-11-21"
    day.mkdir(parents=True)
    texts = {name: pa.array([FIVE[name]]) for name in REQUEST_COLUMNS}
    pq.write_table(pa.table({**texts, "timestamp": pa.array([1_795_255_200_123])}), day / "1.parquet")
    with closing(sqlite3.connect(out / "_ledger.db", isolation_level=None)) as ledger:
        ledger.execute("CREATE TABLE appends (number INTEGER PRIMARY KEY, placed INTEGER)")
        (tmp_path / "link").symlink_to(day.parent)
        named = (out, day.parent, day, day / "1.parquet", day / "*.parquet", tmp_path / "link")
        places = [str(place) for place in named]
        assert [len(find_accesses([place], UTC).files) for place in places] == [1] * len(places)
        ledger.execute("INSERT INTO appends VALUES (1, 0)")
        for place in places:
            with pytest.raises(ConfigError, match="out: an append is unfinished"):
                find_accesses([place], UTC)
        ledger.execute("UPDATE appends SET placed = 1")
        assert [len(find_accesses([place], UTC).files) for place in places] == [1] * len(places)

        def appended(path):
            ledger.execute("INSERT INTO appends VALUES (2, 1)")
            return lines_module.PinnedFile(path=path, size=0, device=0, inode=0)

        monkeypatch.setattr(lines_module.PinnedFile, "of", appended)
        with pytest.raises(ConfigError, match="out: was appended to while its files were being listed"):
            find_accesses([places[0]], UTC)


def test_a_file_that_changes_is_an_error(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(FIVE) + "\n")
    (part,) = find_accesses([str(path)], UTC).parts
    with path.open("a") as file:
        file.write(json.dumps(FIVE) + "\n")
    assert len(told(read_part(part))[0]) == 1  # what was there when it was found
    path.write_text("")
    with pytest.raises(ConfigError, match="truncated"):
        list(read_part(part))
    path.rename(tmp_path / "log.jsonl.1")
    (tmp_path / "other").write_text(json.dumps(FIVE) * 9)
    (tmp_path / "other").rename(path)
    with pytest.raises(ConfigError, match="replaced"):
        list(read_part(part))
    broken = tmp_path / "broken.jsonl.gz"
    broken.write_bytes(gzip.compress(json.dumps(FIVE).encode() * 50)[:-4])
    (part,) = find_accesses([str(broken)], UTC).parts
    with pytest.raises(ConfigError, match="not a complete gzip file"):
        list(read_part(part))


@pytest.mark.parametrize(
    ("times", "wanted"),
    [
        (pa.array([1_795_255_200_123, None, 1 << 60]), [123_000, None]),
        (pa.array([1_795_255_200_123, 1_795_255_200, None]), [123_000, 0, None]),
        (pa.array(["2026-11-21T10:00:00Z", None, "soon"]), [0, None]),
        (pa.array([datetime(2026, 11, 21, 10, tzinfo=UTC)] * 3, pa.timestamp("ns", tz="UTC")), [0, 0, 0]),
        (pa.array([datetime(2026, 11, 21, 10)] * 3, pa.timestamp("s")), [0, 0, 0]),  # noqa: DTZ001 - naive: UTC
    ],
)
def test_tables_of_any_types(tmp_path, times, wanted):
    texts = {name: pa.array([FIVE[name]] * 3) for name in REQUEST_COLUMNS}
    pq.write_table(pa.table({**texts, "timestamp": times}), tmp_path / "t.parquet")
    rows, rejects = told(batch for part in find_accesses([str(tmp_path)], UTC).parts for batch in read_part(part))
    at = datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert [row["timestamp"] for row in rows] == [None if n is None else at.replace(microsecond=n) for n in wanted]
    assert rejects == Counter({Reason.BAD_TIMESTAMP: 3 - len(wanted)} if len(wanted) < 3 else {})


def test_tables_that_cannot_be_read(tmp_path):
    texts = {name: pa.array([FIVE[name]]) for name in REQUEST_COLUMNS}
    pq.write_table(pa.table({**texts, "timestamp": pa.array([1.5])}), tmp_path / "t.parquet")
    with pytest.raises(ConfigError, match="column timestamp is of type double"):
        told(batch for part in find_accesses([str(tmp_path)], UTC).parts for batch in read_part(part))
    pq.write_table(pa.table(texts).drop_columns(["host"]), tmp_path / "t.parquet")
    with pytest.raises(ConfigError, match="no column 'host'"):
        told(batch for part in find_accesses([str(tmp_path)], UTC).parts for batch in read_part(part))


TAR = b"x" * 256 + b"ustar"
PACKED = [b"\x1f\x8bx", b"PK\x03\x04", b"BZh", b"PAR1", b"Obj\x01", b"ORC", b"\xff\xfe", b"x" + TAR, b"BZh" + TAR[3:]]


@pytest.mark.parametrize("first", PACKED)
def test_the_records_of_a_topic_are_text_whatever_they_begin_with(first):
    lines = [first + b"\n", audit_text().encode() + b"\n"]
    with StreamCopy.of_lines(iter(lines), "topic") as copy:
        file = PinnedFile.of("topic (records)", copy.place)
        assert file.packing is None
        assert Path(copy.place).read_bytes().lstrip(b"\n") == b"".join(lines)
        (part,) = accesses_in([file], UTC).parts
        assert sum(batch.rows.num_rows for batch in read_part(part)) == 1


def test_a_log_may_begin_with_any_number_of_nuls(tmp_path):
    path = tmp_path / "kafka-authorizer.log"
    with path.open("wb") as file:
        file.truncate(40 << 20)  # copytruncate, while Kafka continues to write at its position
        file.seek(0, 2)
        file.write(f"{audit_text()}\n{audit_text()}\n".encode())
    rows = [batch.rows.num_rows for part in find_accesses([str(path)], UTC).parts for batch in read_part(part)]
    assert sum(rows) == 2


@pytest.mark.parametrize("same", [True, False])
def test_a_record_of_very_many_texts_is_ambiguous(tmp_path, same):
    """Comparing each of its texts with all others would take time by their square."""
    message = audit_text(name="t")
    texts = {f"key{number}": message if same else f"{message} {number}" for number in range(3_000)}
    (tmp_path / "log").write_text(f"{json.dumps(texts)}\n{json.dumps({'message': message})}\n")
    (part,) = find_accesses([str(tmp_path / "log")], UTC).parts
    batches = list(read_part(part))
    assert sum(batch.rows.num_rows for batch in batches) == 1
    assert [reason for batch in batches for reason in batch.rejects.elements()] == [Reason.AMBIGUOUS]
    assert sum(batch.unread.total for batch in batches) == 1
