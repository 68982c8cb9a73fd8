"""Outputs in other formats than Parquet, and those that the session has no package for."""

import json

import pytest
from pyspark.sql import functions as F

from aclog.authorizer.settings import Settings
from aclog.cli.flags.source import SourceFlags
from aclog.cli.spark.commands import (
    Policy,
    authorize_command,
    history_command,
    ingest_command,
    rules_of,
    simulate_command,
    usage_command,
)
from aclog.cli.spark.flags import AppendFlags, IngestFlags, ReportFlags, UsageFlags
from aclog.cli.spark.streams import ingest_stream_command
from aclog.metalog.errors import ConfigError
from aclog.pipeline.output_directory import Mode, OutFormat
from aclog.pipeline.table_outputs import with_day
from tests.pipeline.test_authorize_command import BOB, LOG
from tests.support.cli.command import aclog
from tests.support.spark.access_logs import audit_text

JSON = OutFormat.JSON


def lines(directory):
    """The objects of all files of a table."""
    return [json.loads(line) for path in sorted(directory.glob("part-*")) for line in path.read_text().splitlines()]


def test_json_lines_have_the_rows_of_parquet(spark, tmp_path, capsys):
    asked = tmp_path / "asked.jsonl"
    asked.write_text("".join(json.dumps(BOB | {"n": n, "timestamp": "2026-11-22T10:00:00Z"}) + "\n" for n in range(3)))
    (tmp_path / "a.log").write_text(f"{audit_text()}\nno access\n")
    rules, _ = rules_of(spark, SourceFlags(log=LOG), Settings(), own_time=True, configs=frozenset())
    policy = Policy(rules=rules, settings=Settings(), own_time=True)
    now, _ = rules_of(spark, SourceFlags(log=LOG), Settings(), own_time=False, configs=frozenset())
    printed = {}
    for form in OutFormat.PARQUET, JSON:
        history_command(spark, LOG, tmp_path / f"history-{form}", out_format=form)
        authorize_command(spark, str(asked), tmp_path / f"decided-{form}", policy, out_format=form)
        usage_command(spark, str(asked), tmp_path / f"usage-{form}", policy, flags=UsageFlags(days=1), out_format=form)
        sides = Policy(rules=now, settings=Settings()), Policy(rules=now, settings=Settings(allow_everyone=True))
        assert not simulate_command(spark, str(asked), tmp_path / f"flips-{form}", *sides, out_format=form)
        ingest_command(spark, [str(tmp_path / "a.log")], tmp_path / f"table-{form}", IngestFlags(), out_format=form)
        printed[form] = capsys.readouterr().out.replace(f"-{form}", "")
    assert printed[JSON] == printed[OutFormat.PARQUET]
    for table in (
        "history",
        "decided",
        "usage/rules",
        "usage/denied",
        "usage/holes",
        "table/accesses",
        "table/rejects",
    ):
        name, _, inner = table.partition("/")
        plain = spark.read.parquet(str(tmp_path / f"{name}-parquet" / inner))
        texts = [row["text"] for row in plain.select(F.to_json(F.struct("*")).alias("text")).collect()]
        rows = lines(tmp_path / f"{name}-json" / inner)
        assert sorted(map(str, rows)) == sorted(str(json.loads(text)) for text in texts), table
        assert rows, table
    with pytest.raises(ConfigError, match="JSON lines do not state their columns"):
        authorize_command(spark, str(asked), tmp_path / "decided-json", policy, mode=Mode.APPEND, out_format=JSON)
    assert len(lines(tmp_path / "decided-json")) == 3


@pytest.mark.parametrize(
    ("form", "package"), [(OutFormat.DELTA, "io.delta:delta-spark_4"), (OutFormat.ICEBERG, "org.apache.iceberg:")]
)
def test_a_format_without_its_package_is_refused_by_name(spark, tmp_path, form, package):
    out = tmp_path / "out"
    with pytest.raises(
        ConfigError, match=f"--out-format {form}: Spark writes it by a package: .* --packages {package}"
    ):
        history_command(spark, LOG, out, out_format=form)
    flags = IngestFlags(), AppendFlags(append=True), ReportFlags()
    with pytest.raises(ConfigError, match=f"--out-format {form}: Spark writes it by a package"):
        ingest_stream_command(spark, [str(tmp_path)], out, *flags, form=form)
    assert not out.exists()


def test_days_need_a_time(spark, tmp_path):
    (row,) = with_day(spark.sql("SELECT TIMESTAMP '2026-11-21 23:59:59' AS timestamp")).collect()
    assert str(row["day"]) == "2026-11-21"
    for columns, text in (("1 AS x", "no column 'timestamp'"), ("current_timestamp() AS timestamp, 1 AS Day", "'day'")):
        with pytest.raises(ConfigError, match=text):
            with_day(spark.sql(f"SELECT {columns}"))
    flags = IngestFlags(), AppendFlags(append=True), ReportFlags()
    with pytest.raises(ConfigError, match="--by-day: a batch is one file of Parquet"):
        ingest_stream_command(spark, [str(tmp_path)], tmp_path / "out", *flags, by_day=True)


def test_flags_that_exclude_each_other(tmp_path):
    for words, text in (
        (("--append", "--out-format", "json"), "--out-format json: not with --append"),
        (("--by-day",), "--by-day: expected --append or --follow with --out-format delta or iceberg"),
        (("--append", "--checkpoint", "x"), "--checkpoint: the ledger in DIR"),
    ):
        refused = aclog("spark", "ingest", tmp_path, "--out", tmp_path / "out", *words)
        assert (refused.code, refused.lines) == (2, []), refused
        assert text in refused.err
