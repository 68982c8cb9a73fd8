"""Every result of the library in Polars, DuckDB, Arrow and pandas: typed columns, one value per cell."""

from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import aclog
from aclog.ops import tables
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/kafka-4.3.1-small/__cluster_metadata-0"
WEEK = ROOT / "tests/data/week"


def results():
    log = aclog.open_log(LOG)
    image, old = log.image(), log.image(as_of=60)
    authorizer = image.authorizer(super_users="User:root")
    return {
        "image": image,
        "acls": image.acls(),
        "some acls": image.acls(principal="User:bob"),
        "history": log.history(),
        "diff of images": old.diff(image),
        "who_can": authorizer.who_can("READ", "orders"),
        "who_can of a prefix": authorizer.who_can("READ", "pay*"),
        "what_can": authorizer.what_can("User:bob"),
        "lint": aclog.lint(log),
        "diff": aclog.diff(log, WEEK / "rules.jsonl"),
        "check": aclog.check("no-public", log),
        "usage": aclog.acl_usage(WEEK / "log", WEEK / "accesses.jsonl", days=3),
        "denied": aclog.denied(WEEK / "log", WEEK / "accesses.jsonl"),
        "suggest": aclog.suggest(WEEK / "log", WEEK / "accesses.jsonl", days=3),
        "nothing granted": image.authorizer().who_can("READ", "no-such-topic", host="10.9.9.9"),
    }


@pytest.fixture(scope="module")
def found():
    return results()


NAMES = [
    "image", "acls", "some acls", "history", "diff of images", "who_can", "who_can of a prefix", "what_can", "lint",
    "diff", "check", "usage", "denied", "suggest", "nothing granted",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sample(15)
def test_each_reader_gets_the_same_typed_rows(name, found):
    result = found[name]
    table = result.to_arrow()
    table.validate(full=True)
    assert table.num_columns > 0
    assert pa.RecordBatchReader.from_stream(result).read_all().equals(table)
    rows = table.to_pylist()
    frame, html = result.to_pandas(), (found["acls"] if name == "image" else result)._repr_html_()
    assert pa.table(result).equals(table)
    polars = pl.DataFrame(result)
    assert polars.columns == table.column_names
    assert pl.Object not in polars.dtypes
    assert polars.rows() == [tuple(row.values()) for row in rows]
    relation = duckdb.sql("SELECT * FROM result")
    assert relation.columns == table.column_names
    assert relation.fetchall() == [tuple(row.values()) for row in rows]
    assert list(frame.columns) == table.column_names
    assert frame.astype(object).where(frame.notna(), None).to_dict("records") == rows
    assert html.startswith("<table")


def test_the_rows_of_grants_are_one_per_principal(found):
    rows = found["who_can"].to_arrow().to_pylist()
    assert sorted((row["principal"], row["host"]) for row in rows) == [
        ("User:alice", "any"),
        ("User:bob", "127.0.0.1"),
        ("User:carol", "10.1.2.3"),
        ("User:root", "any"),
    ]
    by = {row["principal"]: row["rules"] for row in rows}
    assert by["User:root"] == ["SuperUser"]
    assert by["User:bob"] == ["ALLOW User:bob READ on TOPIC LITERAL 'orders' from 127.0.0.1"]
    assert {row["covers"] for row in found["who_can of a prefix"].to_arrow().to_pylist()} <= {"ALL", "SOME"}


def test_grants_are_a_sequence(found):
    grants = found["who_can"]
    assert len(grants) == 4
    assert grants[0] in grants
    assert list(reversed(grants))[-1] == grants[0]
    assert found["nothing granted"] == []
    assert [grant.to_dict() for grant in grants] == grants.to_dicts()


def test_an_empty_result_has_its_columns(tmp_path):
    with aclog.open_log(write_log(tmp_path / "log", [acl(1)])) as log:
        image = log.image()
        assert pl.DataFrame(image.acls(resource_type="CLUSTER")).columns == pl.DataFrame(image).columns
        assert pl.DataFrame(aclog.diff(log, log)).schema["exceptHosts"] == pl.List(pl.String)
        assert pl.DataFrame(aclog.lint(log, select="01")).schema["timestamp"] == pl.Datetime("ms", "UTC")
        nothing = image.authorizer().who_can("WRITE", "other")
        assert nothing.to_arrow().schema == image.authorizer().who_can("READ", "orders").to_arrow().schema


def test_a_prefix_by_a_flag():
    assert aclog.topic("pii-", prefixed=True) == aclog.topic("pii-*") == aclog.topic("pii-", pattern="PREFIXED")
    assert aclog.group("a*", prefixed=True) == aclog.group("a*", pattern="PREFIXED")
    assert aclog.topic("pii-", prefixed=False) == aclog.topic("pii-")
    with pytest.raises(aclog.ConfigError, match="prefixed=True: expected one"):
        aclog.topic("pii-", pattern="LITERAL", prefixed=True)
    with pytest.raises(aclog.ConfigError, match="expected True or False"):
        aclog.topic("pii-", prefixed="yes")


def test_a_page_of_grants_builds_the_rows_that_it_shows(tmp_path, monkeypatch):
    made = []
    rows = tables.region_rows
    monkeypatch.setattr(tables, "region_rows", lambda region: (made.append(row) or row for row in rows(region)))
    with aclog.open_log(write_log(tmp_path / "log", [acl(number, name=f"t{number}") for number in range(60)])) as log:
        grants = log.image().authorizer().what_can("User:alice")
    assert "... and more" in grants._repr_html_()
    assert len(made) == 21
    assert grants.to_arrow().num_rows > 60


def test_grants_behave_as_a_list(found):
    grants = found["who_can"]
    listed = list(grants)
    assert len(listed) > 1
    assert grants == listed == [grants[place] for place in range(len(grants))]
    assert (listed[0] in grants, grants.index(listed[1]), grants.count(listed[0])) == (True, 1, 1)
    assert list(reversed(grants)) == listed[::-1]
    assert aclog.Grants(listed, grants.premises) == grants
    assert isinstance(grants[:1], aclog.Grants)
    assert grants[:1].premises is grants.premises
    assert grants != listed[:1]
    assert not aclog.Grants()
