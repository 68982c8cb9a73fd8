"""`aclog spark usage-index` and `suggest`: the same as without Spark, whichever of the two began."""

import json
from functools import partial
from random import Random

import pytest

from aclog.authorizer.settings import Settings
from aclog.cli.flags.accesses import AccessesFlags, WindowFlags
from aclog.cli.flags.commands import SuggestFlags
from aclog.cli.flags.common import Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.index_update import update_index
from aclog.cli.usage_report import print_suggestion
from aclog.ops.usage import AccessLog, suggest_least
from aclog.pipeline.session import each_on_spark
from aclog.terminal.columns import OutputFormat
from aclog.usage import suggesting
from tests.support.cli.command import aclog
from tests.support.processes.object_store import object_store

NAMES = ["orders", "pay", "bill"]
RULE = {"resourceType": "TOPIC", "patternType": "LITERAL", "host": "*", "operation": "READ", "permissionType": "ALLOW"}


@pytest.fixture
def acls(tmp_path):
    path = tmp_path / "acls.jsonl"
    rules = [RULE | {"resourceName": name, "principal": who} for name in NAMES for who in ("User:a", "User:*")]
    path.write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    return path


def log(path, seed):
    random = Random(seed)
    rows = [
        {
            "principal": random.choice(["User:a", "User:b"]), "host": "10.0.0.1", "operation": "READ",
            "resourceType": "TOPIC", "resourceName": random.choice(NAMES[:2]), "broker": str(random.randrange(2)),
            "timestamp": f"2026-11-{random.randrange(1, 9):02}T0{random.randrange(9)}:00:00Z",
        }
        for _ in range(200)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def taken(spark, acls, path, index, *, on_spark):
    each = partial(each_on_spark, spark) if on_spark else None
    source, flags = SourceFlags(acls=str(acls)), AccessesFlags(accesses=[str(path)])
    update_index(source, flags, Settings(), index, Output(form=OutputFormat.TEXT), flags.open(each))


def answers(acls, index):
    found = aclog("unused", "--acls", acls, "--index", index, "--days", 7, "--format", "jsonl")
    assert found.code == 1
    return found.out, aclog("coverage", "--index", index, "--format", "jsonl").out


def test_the_index_is_the_same(spark, tmp_path, acls):
    first, second = log(tmp_path / "first", 1), log(tmp_path / "second", 2)
    for name, runs in (("here", (False, False)), ("spark", (True, True)), ("both", (True, False))):
        for path, on_spark in zip((first, second), runs, strict=True):
            taken(spark, acls, path, tmp_path / name, on_spark=on_spark)
    assert answers(acls, tmp_path / "spark") == answers(acls, tmp_path / "here") == answers(acls, tmp_path / "both")
    before = answers(acls, tmp_path / "both")
    taken(spark, acls, first, tmp_path / "both", on_spark=True)  # it counts once
    assert answers(acls, tmp_path / "both") == before


def test_the_index_is_the_same_in_a_store(spark, tmp_path, acls, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    paths = [log(tmp_path / name, seed) for seed, name in enumerate(("first", "second"))]
    with object_store({}) as options:
        places = (tmp_path / "here", f"s3://lake/usage{options}")
        for path, on_spark in zip(paths, (True, False), strict=True):
            for place in places:
                taken(spark, acls, path, place, on_spark=on_spark)
        assert answers(acls, places[0]) == answers(acls, places[1])


def test_each_part_in_order(spark):
    assert list(each_on_spark(spark, list(range(50)), _negate)) == [-n for n in range(50)]
    assert list(each_on_spark(spark, [], _negate)) == []


def _negate():
    return lambda number: -number


def test_what_fails_in_a_worker_is_told(spark, tmp_path, acls):
    path = log(tmp_path / "log", 1)
    index = tmp_path / "index"

    def gone(parts, make):
        path.unlink()
        return each_on_spark(spark, parts, make)

    flags = AccessesFlags(accesses=[str(path)])
    output = Output(form=OutputFormat.TEXT)
    with pytest.raises(Exception, match="No such file"):
        update_index(SourceFlags(acls=str(acls)), flags, Settings(), index, output, flags.open(gone))
    path.write_text(log(tmp_path / "again", 1).read_text())
    taken(spark, acls, path, index, on_spark=True)
    assert aclog("unused", "--acls", acls, "--index", index, "--days", 7).code == 1


def test_a_suggestion_is_the_same(spark, tmp_path, acls, monkeypatch):
    monkeypatch.setattr(suggesting, "_ROWS", 2)  # a part for each of two principals
    path, jobs = log(tmp_path / "first", 1), []
    flags = SuggestFlags(out=tmp_path / "spark.jsonl")

    def each(parts, make):
        jobs.append(len(parts))
        return each_on_spark(spark, parts, make)

    accesses = AccessLog.of(AccessesFlags(accesses=[str(path)]), each)
    choice, options = SourceFlags(acls=str(acls)).choose(), flags.options(WindowFlags(), None)
    suggested = suggest_least(accesses, choice, Settings(), options, frozenset(), each=each)
    assert jobs[1:4] == [2, 2, 2]  # judged, granted and proved by workers
    print_suggestion(suggested, flags, Output(form=OutputFormat.TEXT))
    assert aclog("suggest", "--accesses", path, "--acls", acls, "--out", tmp_path / "here.jsonl").code == 0
    assert (tmp_path / "spark.jsonl").read_text() == (tmp_path / "here.jsonl").read_text() != ""
