"""kafka-authorizer.log: lines logged by five authorizers, and lines that are not theirs."""

import gzip
import re
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import ingest, kafka_log, write
from aclog.pipeline.accesses.kafka_log import ACCESS_SCHEMA, REJECT_SCHEMA, local_time, split_lines
from aclog.pipeline.usage import _counted
from aclog.usage.window import UnreadCounter, UnreadSpan
from tests.support.spark.access_logs import audit_text, batch_of, lines_of

DATA = Path(__file__).parent / "data"
REAL = Path(__file__).parents[2] / "data" / "kafka-4.3.1-small" / "expected"
NAMED = re.compile(
    r"\[(?P<time>[^]]*)\] (?P<level>[A-Z]+) Principal = (?P<principal>.*?) is (?P<decision>Allowed|Denied) "
    r"operation = (?P<operation>[A-Z_]+) from host = (?P<host>\S+) on resource = (?P<type>\w+):LITERAL:"
    r"(?P<name>.*) for request = (?P<request>\w+) with resourceRefCount = (?P<count>\d+) based on rule (?P<rule>.*) "
    r"\(kafka\.authorizer\.logger\)"
)


def split_of(*lines):
    """Return the accesses and the rejects."""
    found = split_lines(batch_of(lines))
    assert found.accesses.schema == ACCESS_SCHEMA
    assert found.rejects.schema == REJECT_SCHEMA
    assert found.accesses.num_rows + found.rejects.num_rows + found.blanks == len(lines)
    return found.accesses.to_pylist(), found.rejects.to_pylist()


def reasons(rejects):
    return {row["line"]: row["reason"] for row in rejects}


def test_every_line_of_a_kafka_broker(spark, tmp_path):
    paths = [REAL / f"{name}.log" for name in ("authorizer", "authorizer-allow-everyone", "authorizer-default-allow")]
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    wanted = sorted(
        (
            found["principal"],
            found["host"],
            found["operation"],
            re.sub("(?<=[a-z])(?=[A-Z])", "_", found["type"]).upper(),
            found["name"],
            "LITERAL",
            found["decision"].upper(),
            found["rule"],
            found["request"],
            int(found["count"]),
            found["level"],
            found["time"].replace(",", "."),
        )
        for found in map(NAMED.fullmatch, lines)
    )
    counts = write(ingest(spark, paths, "kafka-log"), tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "accesses").to_pylist()
    columns = [name for name in ACCESS_SCHEMA.names if name != "timestamp"]
    got = sorted(
        (
            *(row[name] for name in columns),
            f"{row['timestamp']:%Y-%m-%d %H:%M:%S}.{row['timestamp'].microsecond // 1000:03d}",
        )
        for row in rows
    )
    assert got == wanted
    assert (counts.accesses, counts.total) == (len(lines), len(lines))


@pytest.mark.parametrize("name", ["StandardAuthorizer-3.9.1", "AclAuthorizer-3.9.1"])
def test_lines_of_the_authorizers_of_3_9(name):
    rows, rejects = split_of(*lines_of(DATA / f"{name}.log"))
    assert rejects == []
    assert [(row["principal"], row["operation"], row["resourceType"], row["resourceName"]) for row in rows] == [
        ("User:alice", "WRITE", "TOPIC", "orders"),
        ("User:bob", "READ", "TOPIC", "zz"),
        ("User:CN=a b,OU=x", "DESCRIBE", "TOPIC", "orders"),
        ("User:a:b", "READ", "GROUP", "g of x"),
        ("User:admin", "ALTER_CONFIGS", "CLUSTER", "kafka-cluster"),
        ("User:alice", "IDEMPOTENT_WRITE", "CLUSTER", "kafka-cluster"),
        ("User:alice", "WRITE", "TRANSACTIONAL_ID", "tx-1"),
        ("User:alice", "DESCRIBE", "DELEGATION_TOKEN", "abc"),
        ("User:alice", "DESCRIBE_CONFIGS", "TOPIC", "orders"),
        ("User:broker", "CLUSTER_ACTION", "CLUSTER", "kafka-cluster"),
        ("User:alice", "CREATE_TOKENS", "USER", "User:bob"),
    ]
    assert [(row["request"], row["resourceReferenceCount"], row["loggedDecision"]) for row in rows[:2]] == [
        ("Produce", 3, "ALLOWED"),
        ("Fetch", 1, "DENIED"),
    ]
    rules = [row["loggedRule"] or "" for row in rows]
    ruled = {rule.startswith("MatchingAcl(acl=StandardAcl(resourceType=") for rule in rules}
    assert ruled == {name.startswith("Standard")}
    assert {row["patternType"] for row in rows} == {"LITERAL"}


@pytest.mark.parametrize(("version", "pattern"), [("1.1.1", None), ("2.0.1", "LITERAL")])
def test_lines_of_the_oldest_authorizer(version, pattern):
    rows, rejects = split_of(*lines_of(DATA / f"SimpleAclAuthorizer-{version}.log"))
    assert rejects == []
    assert sorted((row["operation"], row["resourceType"], row["resourceName"]) for row in rows) == [
        ("ALTER_CONFIGS", "CLUSTER", "kafka-cluster"),
        ("CLUSTER_ACTION", "CLUSTER", "kafka-cluster"),
        ("DESCRIBE", "DELEGATION_TOKEN", "abc"),
        ("DESCRIBE", "TOPIC", "zz"),
        ("DESCRIBE_CONFIGS", "TOPIC", "orders"),
        ("IDEMPOTENT_WRITE", "CLUSTER", "kafka-cluster"),
        ("READ", "GROUP", "g of x"),
        ("WRITE", "TOPIC", "orders"),
        ("WRITE", "TRANSACTIONAL_ID", "tx-1"),
    ]
    beside = ("patternType", "request", "loggedRule", "resourceReferenceCount")
    assert {tuple(row[name] for name in beside) for row in rows} == {(pattern, None, None, None)}


def test_other_lines_are_rejected_with_a_reason(spark, tmp_path):
    good = audit_text()
    rejected = {
        "\tat kafka.server.KafkaApis.handle(KafkaApis.scala:1)": "NO_HEAD",
        "java.lang.IllegalStateException: [2026] no": "NO_HEAD",
        good[40:]: "NO_HEAD",
        good[:90]: "TORN",
        good.removesuffix("ger)"): "TORN",
        good[:90] + good: "AMBIGUOUS",
        "[2026-11-21 10:00:00,123] WARN disk slow (kafka.log.LogManager)": "OTHER_LOGGER",
        "[2026-11-21 10:00:00,123] DEBUG No acl found for resource x, authorized = false (kafka.authorizer.logger)": (
            "OTHER_MESSAGE"
        ),
        good.replace("operation = READ", "operation = FLY"): "BAD_OPERATION",
        good.replace("operation = READ", "operation = ANY"): "BAD_OPERATION",
        good.replace("Topic:", "Planet:"): "BAD_RESOURCE_TYPE",
        good.replace(":LITERAL:", ":PREFIXED:"): "UNREADABLE",
        good.replace("DefaultDeny", "Mood"): "UNREADABLE",
        good.replace("based on rule DefaultDeny ", ""): "UNREADABLE",
        good.replace("RefCount = 3", "RefCount = x"): "UNREADABLE",
        good.replace("Principal = User:a", "Principal = "): "MISSING_VALUE",
        good.replace("2026-11-21", "2026-02-30"): "BAD_TIMESTAMP",
    }
    path = tmp_path / "kafka-authorizer.log"
    path.write_text("\n".join([good, "", "  \t", *rejected, good]))
    counts = write(ingest(spark, path, "kafka-log"), tmp_path / "out")
    assert (counts.accesses, counts.blanks, counts.rejected) == (2, 2, len(rejected))
    assert counts.total == len(lines_of(path))
    rows = pq.read_table(tmp_path / "out" / "rejects").to_pylist()
    assert reasons(rows) == rejected
    assert {row["file"] for row in rows} == {f"file:{path}"}
    details = {row["line"]: row["detail"] for row in rows}
    assert all(details.values())
    assert "`FLY`: expected READ" in details[good.replace("= READ", "= FLY")]
    assert details[good.replace("2026-11-21", "2026-02-30")] == "no such time: 2026-02-30 10:00:00,123"


def test_an_ambiguous_line_is_rejected():
    asked = " is Allowed operation = WRITE from host = 1.1.1.1 on resource = Topic:LITERAL:secret"
    request = " for request = Fetch with resourceRefCount = 1 based on rule SuperUser"
    hostile = [
        audit_text(name=f"x{request}"),
        audit_text(name=f"x{asked}{request}"),
        audit_text(name=f"x{asked}"),
        audit_text(principal=f"User:a{asked}"),
        audit_text(principal=f"User:a{asked}{request}"),
        audit_text(principal=audit_text()[:60]),
        audit_text(name=f"x{asked.replace('operation', 'Operation')}"),
        audit_text().replace("operation = READ", "Operation = Read"),
    ]
    harmless = [
        audit_text(name="x for request = "),
        audit_text(name="x based on rule DefaultDeny (kafka.authorizer.logger)"),
        audit_text(principal="User:a is Denied operation = "),
        audit_text(principal="User:[2026-11-21 10:00:00,123] INFO"),
    ]
    accesses, rejects = split_of(*hostile, *harmless)
    assert reasons(rejects) == dict.fromkeys(hostile, "AMBIGUOUS")
    assert {(row["principal"], row["resourceName"]) for row in accesses} == {
        ("User:a", "x for request = "),
        ("User:a", "x based on rule DefaultDeny (kafka.authorizer.logger)"),
        ("User:a is Denied operation = ", "zz"),
        ("User:[2026-11-21 10:00:00,123] INFO", "zz"),
    }


def test_only_a_line_feed_ends_a_line(spark, tmp_path):
    odd = [
        "a\rb",
        "a\x85b",
        "a\u2028b",
        "a\u2029b",
        "a\tb",
        "a\x0bb\x0cc",
        "\U0001f600",
        "",
        " ",
        "a$1\\b",
        "a\r",
    ]
    path = tmp_path / "kafka-authorizer.log"
    path.write_bytes("\n".join(audit_text(name=name) for name in odd).encode())
    write(ingest(spark, path, "kafka-log"), tmp_path / "out")
    assert sorted(pq.read_table(tmp_path / "out" / "accesses")["resourceName"].to_pylist()) == sorted(odd)


def test_a_forged_line_leaves_the_torn_line_among_the_rejects():
    forged = audit_text(principal="User:admin")
    _, rejects = split_of(*audit_text(name=f"x\n{forged}\ny").split("\n"))
    assert [row["reason"] for row in rejects] == ["TORN", "NO_HEAD"]


def test_a_line_without_a_time_does_not_match_a_cached_text():
    """The text after a time is read once for all lines with it, but not for a line that consists of it."""
    accesses, rejects = split_of(audit_text(), audit_text()[24:], audit_text())
    assert (len(accesses), [row["reason"] for row in rejects]) == (2, ["NO_HEAD"])


def test_lines_of_windows_and_an_empty_batch():
    accesses, rejects = split_of(f"{audit_text()}\r", "\r", audit_text())
    assert (len(accesses), rejects) == (2, [])
    assert split_of() == ([], [])


def test_bytes_that_are_not_utf8():
    bad = audit_text(name="§").encode().replace("§".encode(), b"\xff\xc0")
    accesses, (row,) = split_of(audit_text(name="ü�"), bad, "")
    assert (row["reason"], "�" in row["line"]) == ("NOT_UTF8", True)
    assert [access["resourceName"] for access in accesses] == ["ü�"]


def test_very_long_lines_are_quick_and_truncated_in_the_rejects():
    head, asked = "[2026-11-21 10:00:00,123] INFO Principal = ", " is Denied operation = READ from host = "
    whole = f"{asked}h on resource = Topic:LITERAL:"
    tail = " (kafka.authorizer.logger)"
    hostile = {
        head + asked * 50_000: "TORN",
        head + asked * 50_000 + tail: "UNREADABLE",
        head + " for request = " * 100_000 + tail: "UNREADABLE",
        head + "p" + whole + " for request = " * 100_000 + tail: "UNREADABLE",
        head + "p" + whole + " (kafka.authorizer.logger)" * 50_000: "UNREADABLE",
        head + "p" + whole + " based on rule MatchingAcl(acl=StandardAcl[" * 30_000 + tail: "UNREADABLE",
        head + whole * 20_000 + tail: "AMBIGUOUS",
        head + " " * 1_000_000 + tail: "UNREADABLE",
        head + " (" * 500_000: "TORN",
        " " * 1_000_000 + "x": "NO_HEAD",
    }
    accesses, rejects = split_of(*hostile, audit_text(name="n" * 32_767))
    assert [row["reason"] for row in rejects] == list(hostile.values())
    assert {len(row["line"]) for row in rejects} == {2000}
    assert len(accesses[0]["resourceName"]) == 32_767


def test_counts_beyond_an_int_are_null():
    accesses, _ = split_of(*(audit_text().replace("= 3 ", f"= {count} ") for count in (2**31 - 1, 2**31)))
    assert [row["resourceReferenceCount"] for row in accesses] == [2**31 - 1, None]


def test_times_are_local_to_the_zone(spark):
    cases = [
        ("UTC", "2026-11-21 10:00:00,123", "2026-11-21 10:00:00.123"),
        ("Europe/Berlin", "2026-11-21 10:00:00,123", "2026-11-21 09:00:00.123"),
        ("Europe/Berlin", "2026-07-01 00:30:00,000", "2026-06-30 22:30:00"),
        ("-03:30", "2026-11-21 23:00:00,999", "2026-11-22 02:30:00.999"),
        ("Europe/Berlin", "2026-10-25 02:30:00,000", "2026-10-25 00:30:00"),  # occurs twice: the earlier one
        ("Europe/Berlin", "2026-03-29 02:30:00,000", "2026-03-29 01:30:00"),  # skipped: one hour later
        ("Europe/Berlin", "2026-02-30 02:30:00,000", None),
    ]
    times = [local_time(F.lit(time), zone).cast("string").alias(str(n)) for n, (zone, time, _) in enumerate(cases)]
    (row,) = spark.range(1).select(*times).collect()
    assert list(row) == [utc for *_, utc in cases]


@pytest.mark.parametrize("zone", ["", "Mars/Base", "UTC+99", "'"])
def test_an_unknown_zone(spark, zone):
    with pytest.raises(ConfigError, match=r"unknown timezone"):
        ingest(spark, DATA, "kafka-log", timezone=zone)


def test_directories_globs_and_gzip(spark, tmp_path):
    logs = tmp_path / "logs"
    (logs / "b 1" / "deep").mkdir(parents=True)
    (logs / "b 1" / "kafka-authorizer.log").write_text(f"{audit_text(name='one')}\n")
    (logs / "b 1" / "deep" / "kafka-authorizer.log.2026-11-21-03").write_text(f"{audit_text(name='two')}\n")
    (logs / "b2.log.gz").write_bytes(gzip.compress(f"{audit_text(name='three')}\nbad\n".encode()))

    def files(*paths):
        names = [Path(name).name for name in ingest(spark, paths, "kafka-log").files.pins]
        return sorted(name.removeprefix("kafka-authorizer.") for name in names)

    assert files(logs / "b 1") == ["log", "log.2026-11-21-03"]
    assert files(str(logs / "*.gz")) == ["b2.log.gz"]
    assert files(logs / "b2.log.gz", logs / "b 1" / "kafka-authorizer.log") == ["b2.log.gz", "log"]

    write(ingest(spark, logs, "kafka-log", timezone="Europe/Berlin"), tmp_path / "out")
    accesses = pq.read_table(tmp_path / "out" / "accesses")
    assert sorted(accesses["resourceName"].to_pylist()) == ["one", "three", "two"]
    assert accesses["timestamp"].cast(pa.string()).unique().to_pylist() == ["2026-11-21 09:00:00.123000Z"]
    (row,) = pq.read_table(tmp_path / "out" / "rejects").to_pylist()
    assert (row["file"], row["line"]) == (f"file:{logs}/b2.log.gz", "bad")


@pytest.mark.parametrize("packed", [False, True])
def test_a_range_with_a_very_long_line_takes_bounded_memory(monkeypatch, tmp_path, packed):
    monkeypatch.setattr(kafka_log, "LONGEST_LINE", 1 << 14)
    monkeypatch.setattr(kafka_log, "_BATCH_BYTES", 1 << 12)
    data = b"\xef\xbb\xbffirst\n" + b"x" * (1 << 22) + b"\nlast"
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(data) if packed else data)
    del data
    (part,) = kafka_log._ranges_of_file(str(path), "file:/log", path.stat().st_size)
    tracemalloc.start()
    try:
        lines = [line for batch in kafka_log._batches(part) for line in batch.column("value").to_pylist()]
        assert tracemalloc.get_traced_memory()[1] < 1 << 19
    finally:
        tracemalloc.stop()
    first, long, last = lines
    assert (first, last, 1 << 14 < len(long) < 1 << 15) == ("first", "last", True)


def test_rejects_have_their_broker_and_the_times_of_their_neighbours():
    later = audit_text().replace("10:00:00", "11:00:00")
    texts = [audit_text(), audit_text()[60:], later, later[:70], "[pod/k-1/k] is Al"]
    files = ["file:/logs/k-0/kafka-authorizer.log.1"] * 4 + ["file:/logs/other.log"]
    found = split_lines(pa.record_batch({"value": texts, "file": pa.array(files, pa.string())}))
    rows = [(row["broker"], row["earliest"], row["latest"]) for row in found.rejects.to_pylist()]
    ten, eleven = (datetime(2026, 11, 21, hour, 0, 0, 123_000, tzinfo=UTC) for hour in (10, 11))
    broker = "k-0/kafka-authorizer.log"
    assert rows == [(broker, ten, eleven), (broker, eleven, eleven), ("k-1", None, None)]
    # as read from the table that has them
    unread = _counted_rejects(found.rejects)
    assert {key.broker for key in unread.spans} == {broker}


def _counted_rejects(rejects):
    (batch,) = _counted(iter([rejects.select(["line", "reason", "broker", "earliest", "latest"])]))
    counter = UnreadCounter()
    for row in batch.to_pylist():
        span = UnreadSpan(row["accesses"], row["first"], row["last"])
        counter.add(row["principal"], row["decision"], row["reason"], span, broker=row["broker"])
    return counter.total
