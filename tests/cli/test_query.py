"""`aclog query`: the tables of a source, their types, and what a statement cannot reach."""

import json
import sys
from pathlib import Path

import pytest

import aclog as library
from tests.support.builders.week import WEEK
from tests.support.cli.command import aclog

LOG = WEEK / "log"


def query(sql, *words):
    """The rows of a statement."""
    return [json.loads(line) for line in aclog("query", sql, *words, "--format", "jsonl").ok().lines]


def test_the_tables_are_those_of_the_library():
    log = library.open_log(LOG)
    acls = query("SELECT * FROM acls", LOG)
    assert sorted(acls, key=str) == sorted(log.image().acls().to_dicts(), key=str)
    changes = query("SELECT *, epoch_ms(timestamp) AS ms FROM changes ORDER BY changes.offset", "--log", LOG)
    assert [(row["offset"], row["ms"], row["change"], row["id"]) for row in changes] == [
        (each.offset, each.timestamp, each.kind.value, each.rule.to_dict()["id"]) for each in log.history()
    ]
    findings = query("SELECT DISTINCT finding, lint FROM findings ORDER BY finding", LOG)
    assert [row["lint"] for row in findings] == [each["lint"] for each in library.lint(log)]
    accesses = query(
        "SELECT principal, epoch_ms(timestamp) ms FROM accesses", LOG, "--accesses", WEEK / "accesses.jsonl"
    )
    lines = map(json.loads, (WEEK / "accesses.jsonl").read_text().splitlines())
    assert [(row["principal"], row["ms"]) for row in accesses] == [
        (each["principal"], each["timestamp"]) for each in lines
    ]


def test_a_table_may_be_read_twice_and_as_of_a_moment():
    assert query("SELECT (SELECT count(*) FROM acls) a, (SELECT count(*) FROM acls b) b", LOG) == [{"a": 17, "b": 17}]
    twice = "SELECT (SELECT count(*) FROM accesses) a, (SELECT count(*) FROM accesses) b"
    assert query(twice, LOG, "--accesses", WEEK / "accesses.jsonl") == [{"a": 27, "b": 27}]
    past = query("SELECT max(endOffset) AS last FROM changes", LOG, "--as-of", "38")
    assert past[0]["last"] <= 38


def test_a_source_by_its_place(tmp_path):
    count = "SELECT count(*) AS n FROM acls"
    assert query(count, WEEK / "rules.jsonl") == query(count, "--acls", WEEK / "rules.jsonl")
    (tmp_path / "rules.jsonl").write_bytes((WEEK / "rules.jsonl").read_bytes())
    assert query(count, tmp_path) == query(count, WEEK / "rules.jsonl")
    [checkpoint] = [*Path("tests/data/kafka-4.3.1-small/__cluster_metadata-0").glob("*.checkpoint")][-1:]
    assert query(count, checkpoint) == query(count, "--snapshot", checkpoint)
    for words, text in (
        (("nowhere",), "'nowhere' is no source"),
        ((LOG, "--log", LOG), "the source is named twice"),
        (("main:nowhere/at/all",), "nowhere/at/all"),
        (("127.0.0.1:1",), "127.0.0.1:1"),
    ):
        assert text in aclog("query", count, *words).complaint


def test_values_of_all_types_are_json():
    sql = (
        "SELECT 2::HUGEINT h, 1.5 d, 0.1::DOUBLE f, 'nan'::DOUBLE n, [1, NULL] l, {'a': DATE '2026-11-20'} s, NULL z, "
        "TIMESTAMPTZ '2026-11-20 10:00:00+02' t, INTERVAL 1 DAY i, 'ab'::BLOB b, true y, MAP {'k': 1} m, TIME '10:00' c"
    )
    [row] = query(sql, LOG)
    assert {key: row[key] for key in "hdfnlsztby"} == {
        "h": 2, "d": 1.5, "f": 0.1, "n": "nan", "l": [1, None], "s": {"a": "2026-11-20"}, "z": None,
        "t": "2026-11-20T08:00:00Z", "b": "6162", "y": True,
    }  # fmt: skip
    assert row["c"] == "10:00:00"
    for form in ("table", "json", "csv", "markdown"):
        assert "2026-11-20T08:00:00Z" in aclog("query", sql, LOG, "--format", form).ok().out


@pytest.mark.parametrize(
    "sql",
    [
        "COPY acls TO '{place}/x'",
        "CREATE TABLE t AS SELECT 1",
        "INSERT INTO acls SELECT * FROM acls",
        "DELETE FROM acls",
        "ATTACH '{place}/x'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "PRAGMA database_list",
        "EXPORT DATABASE '{place}/x'",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY acls TO '{place}/x'",
        "",
        "SELECT * FROM '{place}/seen.csv'",
        "SELECT * FROM read_csv('{place}/seen.csv')",
        "SELECT * FROM read_text('{place}/seen.csv')",
        "SELECT * FROM read_blob('{place}/*')",
        "SELECT * FROM read_json('{place}/seen.csv')",
        "SELECT * FROM read_parquet('http://127.0.0.1:1/x.parquet')",
        "SELECT * FROM glob('{place}/*')",
        "SELECT * FROM sniff_csv('{place}/seen.csv')",
        "SELECT * FROM query('SELECT * FROM read_text(''{place}/seen.csv'')')",
        "SELECT * FROM query('COPY acls TO ''{place}/x''')",
        "SELECT * FROM connection",
        "SELECT * FROM arrow_rows",
        "SELECT getenv('HOME')",
        "FROM 'http://127.0.0.1:1/x.parquet'",
        "SELECT nothing FROM acls",
        "SELEC",
        "SELECT 1 AS a, 2 AS A",
        "SELECT * FROM accesses",
        "SELECT CAST(principal AS INT) FROM acls",
        "SELECT error('planted \x1b[31m') FROM acls",
    ],
)
@pytest.mark.sample(40)
def test_what_a_statement_cannot_do_is_one_line(sql, tmp_path):
    (tmp_path / "seen.csv").write_text("a,b\nplanted-secret,2\n")
    result = aclog("query", sql.replace("{place}", str(tmp_path)), LOG)
    assert (result.code, result.out.count("planted-secret")) == (2, 0), result
    assert len([line for line in result.err.splitlines() if line.startswith("aclog: ")]) == len(result.err.splitlines())
    assert "planted-secret" not in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["seen.csv"]


def test_memory_is_limited_and_nothing_is_spilled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = aclog("query", "SELECT r FROM range(9000000) t(r) ORDER BY hash(r)", LOG, "--memory-limit", "40MB")
    assert "more memory than the limit of 40MB: expected a larger --memory-limit" in result.complaint
    assert list(tmp_path.iterdir()) == []
    assert "expected a size" in aclog("query", "SELECT 1", LOG, "--memory-limit", "much").complaint


def test_accesses_that_cannot_be_read_are_a_warning(tmp_path):
    lines = (WEEK / "kafka-authorizer.log").read_text().splitlines()
    (tmp_path / "a.log").write_text("\n".join((lines[0], lines[0][:-10], lines[1])) + "\n")
    result = aclog("query", "SELECT count(*) AS n FROM accesses", LOG, "--accesses", tmp_path / "a.log").ok()
    assert result.lines == ["n", "2"]
    assert "1 access could not be read or decided" in result.err
    assert "they are not in the table" in result.err


def test_a_source_without_a_log_has_no_changes():
    assert "history" in aclog("query", "SELECT * FROM changes", WEEK / "rules.jsonl").complaint


def test_without_duckdb_one_line_names_the_extra(monkeypatch):
    monkeypatch.setattr("aclog.ops.extras.find_spec", lambda name: None if name == "duckdb" else sys)
    assert aclog("query", "SELECT 1", LOG).complaint.startswith("no module duckdb: it runs SQL: ")


def test_values_that_python_has_not_are_text_or_one_line():
    sql = (
        "SELECT MAP {'a': [1, NULL]} m, 340282366920938463463374607431768211455::UHUGEINT u, '101'::BIT b, "
        "TIMETZ '10:00:00+01' z, INTERVAL 1 MONTH i, [INTERVAL 2 DAY] l"
    )
    assert query(sql, LOG) == [
        {"m": [["a", [1, None]]], "u": "340282366920938463463374607431768211455", "b": "101", "z": "10:00:00+01",
         "i": "1 month", "l": "[2 days]"}
    ]  # fmt: skip
    for value in (
        "'infinity'::TIMESTAMP",
        "'-infinity'::DATE",
        "'0044-03-15 (BC)'::DATE",
        "'20000-01-01'::TIMESTAMPTZ",
    ):
        complaint = aclog("query", f'SELECT 1 AS a, {value} AS "x"', LOG).complaint
        assert "x: a time before the year 1, after 9999 or infinite: expected CAST(x AS VARCHAR)" in complaint
        assert len(query(f"SELECT CAST({value} AS VARCHAR) AS x", LOG)) == 1
