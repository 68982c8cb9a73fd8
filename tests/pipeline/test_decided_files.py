"""What workers write to files on their own is what Spark writes of the same requests; anything odd is left to Spark."""

from datetime import date
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aclog.authorizer.settings import Settings
from aclog.cli.spark import commands
from aclog.cli.spark.commands import Policy, authorize_command, simulate_command
from aclog.cli.spark.flags import DecidedFlags
from aclog.metalog.errors import ConfigError
from aclog.pipeline.access_rows import AccessRows
from aclog.pipeline.accesses import plain_accesses
from aclog.pipeline.authorize import flips_of, simulated, undecided_of
from aclog.pipeline.decided_files import common_schema
from aclog.pipeline.event_form import EventForm
from aclog.pipeline.output_directory import Mode
from aclog.usage.accesses.parquet import plain_parts
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from tests.pipeline.usage.test_report import START, random_rows, random_rules, rules_of

SETTINGS = Settings(super_users=frozenset({"User:root"}))
ODD = (None, "nocolon", "User:*", "User:root", "User:é")


def requests(seed, count=400):
    """Requests of random principals, some malformed or without a time, and columns of other types."""
    random = Random(seed)
    rows = []
    for number, (principal, operation, name, time) in enumerate(random_rows(random, count)):
        odd = random.random() < 0.1
        rows.append(
            {
                "number": number,
                "principal": random.choice(ODD) if odd else principal,
                "host": random.choice(("10.0.0.1", "10.0.0.2", "no address", None)) if odd else "10.0.0.1",
                "operation": random.choice(("REED", "Read", None)) if odd else operation.name,
                "resourceType": random.choice(("TOPIC", "GROUP", "NONE")),
                "resourceName": name,
                "timestamp": time,
                "loggedDecision": random.choice(("ALLOWED", "DENIED", None)),
                "share": random.random(),
                "day": date(2026, 1, 1 + number % 28),
                "flag": random.choice((True, False, None)),
            }
        )
    return pa.Table.from_pylist(rows)


def written(path, tables, **options):
    path.mkdir()
    for number, table in enumerate(tables):
        time = table.schema.get_field_index("timestamp")
        times = table.column("timestamp").cast(pa.timestamp(options.pop("unit", "us"), "UTC"))
        pq.write_table(table.set_column(time, "timestamp", times), path / f"{number}.parquet", row_group_size=90)
    return path


def by_number(spark, path):
    frame = spark.read.parquet(str(path))
    return [(each.name, each.dataType) for each in frame.schema], sorted(frame.collect(), key=lambda row: row.number)


@pytest.fixture
def policy():
    return Policy(rules=rules_of(random_rules(Random(3))), settings=SETTINGS)


@pytest.fixture
def by_spark(monkeypatch):
    """Make the commands leave files to Spark."""

    def switch():
        monkeypatch.setattr(commands, "plain_accesses", lambda *_: None)

    return switch


@pytest.mark.parametrize("own_time", [False, True])
def test_rows_and_printed_lines_are_those_of_spark(spark, tmp_path, capsys, policy, by_spark, own_time):
    policy = Policy(rules=policy.rules, settings=SETTINGS, own_time=own_time)
    path = written(tmp_path / "requests", [requests(1), requests(2)])
    code = authorize_command(spark, str(path), tmp_path / "own", policy)
    ours = capsys.readouterr()
    names = sorted(each.name for each in (tmp_path / "own").iterdir())
    assert names[0] == "_SUCCESS"
    assert all(name.startswith("part-") and name.endswith(".parquet") for name in names[1:])
    by_spark()
    assert authorize_command(spark, str(path), tmp_path / "spark", policy) == code == 2
    assert capsys.readouterr() == ours
    schema, rows = by_number(spark, tmp_path / "own")
    expected_schema, expected = by_number(spark, tmp_path / "spark")
    assert (schema, rows) == (expected_schema, expected)
    assert {row.decision for row in rows} == {"ALLOWED", "DENIED", "ERROR"}
    assert pq.read_schema(tmp_path / "own" / names[1]).field("principal").type == pa.string()
    groups = [pq.ParquetFile(tmp_path / "own" / name).num_row_groups for name in names[1:]]
    assert set(groups) == {1}  # of several small ones that were read


def test_text_has_dictionaries_and_numbers_have_statistics(spark, tmp_path, policy):
    path = written(tmp_path / "requests", [requests(1)])
    authorize_command(spark, str(path), tmp_path / "out", policy)
    names = [str(each) for each in (tmp_path / "out").iterdir() if each.name.startswith("part-")]
    for name in names:
        group = pq.ParquetFile(name).metadata.row_group(0)
        chunks = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
        with_statistics = {column for column, chunk in chunks.items() if chunk.is_stats_set}
        assert with_statistics == {"number", "timestamp", "share", "day", "flag"}
        assert all(chunks[column].has_dictionary_page for column in chunks.keys() - with_statistics)
        (part,) = plain_parts([name], 1)
        times = pq.read_table(name, columns=["timestamp"]).column("timestamp").cast(pa.int64())
        assert part.latest == max(time for time in times.to_pylist() if time is not None)
    principals = [name for each in names for name in pq.read_table(each).column("principal").to_pylist()]
    found = spark.read.parquet(*names).where("principal = 'User:root'").count()
    assert found == principals.count("User:root") > 0


def test_events_of_them(spark, tmp_path, policy):
    path = written(tmp_path / "requests", [requests(1)])
    flags = DecidedFlags(as_=EventForm.CLOUDEVENTS, only="denied")
    authorize_command(spark, str(path), tmp_path / "out", policy, flags)
    decided = spark.read.parquet(str(tmp_path / "out" / "decided"))
    events = spark.read.json(str(tmp_path / "out" / "events"))
    assert events.count() == decided.where("decision = 'DENIED'").count() > 0


def test_a_row_is_decided_after_it_is_counted(spark, tmp_path, policy, capsys):
    """Tasks return only what changes: above them, Spark adds up, and no other function of Python runs."""
    path = written(tmp_path / "requests", [requests(1), requests(2)])
    rows = AccessRows.of_parts(spark, plain_accesses(spark, str(path), 4)[0])
    sides = (policy.rules, SETTINGS), (policy.rules, Settings(allow_everyone=True))
    reported = simulated(rows, *sides)
    flips_of(reported, sides[0][0], sides[1][0]).explain(mode="simple")
    plan = capsys.readouterr().out
    assert plan.count("MapInArrow") == 1
    assert "EvalPython" not in plan
    assert "FileScan" not in plan
    frame = spark.read.parquet(str(path))
    expected = simulated(frame, *sides)
    ours, theirs = (sorted(flips_of(each, sides[0][0], sides[1][0]).collect()) for each in (reported, expected))
    assert ours == theirs
    assert ours
    assert undecided_of(reported) == undecided_of(expected)


def test_simulation_prints_and_writes_the_same(spark, tmp_path, capsys, policy, by_spark):
    path = written(tmp_path / "requests", [requests(1), requests(2)])
    after = Policy(rules=rules_of(random_rules(Random(4))), settings=SETTINGS)
    assert simulate_command(spark, str(path), tmp_path / "own", policy, after)
    ours = capsys.readouterr()
    by_spark()
    assert simulate_command(spark, str(path), tmp_path / "spark", policy, after)
    assert capsys.readouterr() == ours
    own, expected = (sorted(map(str, spark.read.parquet(str(tmp_path / n)).collect())) for n in ("own", "spark"))
    assert own == expected


def test_a_column_that_decisions_add_is_refused(spark, tmp_path, policy):
    table = requests(1).append_column("Rule", pa.nulls(401, pa.string()))
    path = written(tmp_path / "requests", [table])
    with pytest.raises(ConfigError, match="the table has a column 'Rule', which would come out twice"):
        authorize_command(spark, str(path), tmp_path / "out", policy)
    assert [each.name for each in tmp_path.iterdir()] == ["requests"]


def test_files_that_spark_would_change_are_left_to_it(tmp_path):
    table = requests(1)
    plain = written(tmp_path / "plain", [table])

    def schema(path):
        return common_schema(plain_parts(sorted(map(str, path.iterdir())), 2))

    assert schema(plain).names == table.column_names
    # other columns in one file; a type that Spark widens; a nested one
    assert schema(written(tmp_path / "other", [table, table.drop_columns(["share"])])) is None
    for kind in (pa.uint8(), pa.timestamp("ns"), pa.list_(pa.int32()), pa.decimal128(9, 2)):
        odd = table.append_column("odd", pa.nulls(len(table), kind))
        assert schema(written(tmp_path / str(kind), [odd])) is None


def test_appends_are_left_to_spark(spark, tmp_path, policy):
    path = written(tmp_path / "requests", [requests(1)])
    authorize_command(spark, str(path), tmp_path / "out", policy)
    authorize_command(spark, str(path), tmp_path / "out", policy, mode=Mode.APPEND)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 802


def test_a_file_that_is_replaced_meanwhile_fails_the_command(spark, tmp_path, policy, monkeypatch):
    path = written(tmp_path / "requests", [requests(1)])

    def replaced(parts):
        schema = common_schema(parts)
        written(tmp_path / "next", [requests(2)])
        (tmp_path / "next" / "0.parquet").replace(path / "0.parquet")
        return schema

    monkeypatch.setattr(commands, "common_schema", replaced)
    with pytest.raises(ConfigError, match=r"0\.parquet: replaced by another file while it was being read"):
        authorize_command(spark, str(path), tmp_path / "out", policy)
    assert not (tmp_path / "out").exists()


def test_batches_of_mostly_distinct_accesses_are_decided_alike():
    rules = rules_of(random_rules(Random(3)))
    table = requests(5)
    columns = [table.column(name).combine_chunks() for name in REQUEST_COLUMNS]
    times = np.full(len(table), int(START.timestamp() * 1e6))
    repeated = [pa.concat_arrays([column] * 20) for column in columns]
    for own in (None, times):
        authorizer = BulkAuthorizer.of(rules.intervals, SETTINGS)
        again = None if own is None else np.tile(own, 20)
        remembered = authorizer.decide(repeated, again)[: len(table)]
        one_by_one = [
            int(code)
            for at in range(len(table))
            for code in authorizer.decide([c.slice(at, 1) for c in columns], None if own is None else own[at : at + 1])
        ]
        assert remembered.tolist() == one_by_one
