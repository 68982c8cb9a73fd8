"""Accesses in tables of a catalog, and those that a query returns; Delta and Iceberg are checked beside (Makefile)."""

import json

import pytest

from aclog.cli.spark.flags import RequestFlags, SessionFlags
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses.catalogs import CatalogTable, SqlQuery, catalog_rows, table_named
from aclog.pipeline.accesses.files import pinned_accesses
from aclog.pipeline.usage import rejected_lines
from aclog.usage.accesses.table_formats import TableMoment
from tests.pipeline.test_authorize_command import BOB, LOG
from tests.support.cli.command import aclog

ROWS = [BOB | {"host": f"10.0.0.{n}", "timestamp": "2026-11-21T10:00:00Z"} for n in range(20)]


@pytest.fixture
def table(spark, tmp_path):
    """A table of the session's own catalog, whose files are below `tmp_path`."""
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    spark.sql("CREATE DATABASE lake")
    rows = spark.read.json(str(tmp_path / "rows.jsonl"))
    rows.write.option("path", str(tmp_path / "table")).saveAsTable("lake.of_bob_accesses")
    yield "lake.of_bob"
    spark.sql("DROP DATABASE lake CASCADE")


def hosts(frame):
    return sorted(row["host"] for row in frame.collect())


def test_a_table_and_a_query_have_the_rows_of_files(spark, table, tmp_path):
    expected, _ = pinned_accesses(spark, str(tmp_path / "rows.jsonl"))
    query = "SELECT * FROM lake.of_bob_accesses -- all\n;"
    for source in (table_named(spark, table), table_named(spark, f"{table}_accesses"), SqlQuery(query)):
        rows, files = pinned_accesses(spark, source)
        assert sorted(map(str, rows.select(expected.columns).collect())) == sorted(map(str, expected.collect()))
        files.check()


def test_all_jobs_read_the_same_rows(spark, table):
    for source in (table_named(spark, table), SqlQuery("SELECT * FROM lake.of_bob_accesses WHERE rand() < 0.5")):
        rows, _ = pinned_accesses(spark, source)
        before = hosts(rows)
        spark.sql("INSERT INTO lake.of_bob_accesses SELECT * FROM lake.of_bob_accesses LIMIT 1")
        assert hosts(rows) == before


def test_rejects_of_a_table_are_counted(spark, table):
    rejects = "SELECT 'x' AS line, 'TOO_LONG' AS reason, 'f' AS file"
    spark.sql(f"CREATE TABLE lake.of_bob_rejects USING parquet AS {rejects}")
    assert rejected_lines(spark, table_named(spark, table)).by_reason() == {"TOO_LONG": 1}
    assert not rejected_lines(spark, SqlQuery("SELECT 1"))


def test_a_file_goes_before_a_table(spark, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert RequestFlags(requests=table).source(spark) == CatalogTable(f"{table}_accesses")
    (tmp_path / table).touch()
    assert RequestFlags(requests=table).source(spark) == table
    assert RequestFlags(requests="lake.none").source(spark) == "lake.none"
    assert RequestFlags(requests="no-catalog.lake.none").source(spark) == "no-catalog.lake.none"


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("DROP DATABASE lake CASCADE", "--query: .*PARSE_SYNTAX_ERROR"),
        ("SELECT * FROM lake.none", "--query: .*TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT 1 AS principal", "--query: no column 'host'"),
    ],
)
def test_what_is_no_query_of_accesses(spark, table, query, complaint):
    with pytest.raises(ConfigError, match=complaint):
        pinned_accesses(spark, SqlQuery(query))
    assert table_named(spark, table) is not None


def test_what_has_no_versions(spark, table):
    for source in (SqlQuery(f"SELECT * FROM {table}_accesses"), table_named(spark, table)):
        with pytest.raises(ConfigError, match="expected a Delta or Iceberg table"):
            catalog_rows(spark, source, TableMoment(version=1))


def test_one_source_of_requests(tmp_path):
    for flags in ({}, {"requests": "a", "query": "b"}):
        with pytest.raises(ConfigError, match=r"expected --requests PATH\|TABLE or --query SQL"):
            RequestFlags(**flags).check(SessionFlags())
    refused = aclog("spark", "usage", "--log", LOG, "--out", tmp_path / "out")
    assert refused.code == 2
    assert "expected --requests PATH|TABLE or --query SQL" in refused.complaint
