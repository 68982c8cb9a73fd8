"""Output and refusals of `aclog spark authorize`."""

import json
import subprocess
import sys

import pytest
from attrs import evolve

from aclog.authorizer.settings import Settings
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.spark import commands as authorize_module
from aclog.cli.spark.commands import Policy, authorize_command, rules_of, usage_command
from aclog.cli.spark.flags import UsageFlags
from aclog.installation import install_command
from aclog.metalog.errors import ConfigError
from aclog.ops.policies import settings_of
from aclog.pipeline.authorize import authorize
from aclog.pipeline.output_directory import check_new
from tests.pipeline.test_authorize import DATA
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, registration

LOG = DATA / "kafka-4.3.1-small" / "__cluster_metadata-0"
BOB = {
    "principal": "User:bob",
    "host": "127.0.0.1",
    "operation": "WRITE",
    "resourceType": "TOPIC",
    "resourceName": "payments.eu",
}
RULE = (
    "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=payments., patternType=PREFIXED, "
    "principal=User:bob, host=127.0.0.1, operation=WRITE, permissionType=DENY])"
)


def written(spark, path):
    return [row.asDict() for row in spark.read.parquet(str(path)).orderBy("n").collect()]


@pytest.mark.tier("test")
def test_what_is_printed_and_written(spark, tmp_path, capfd):
    lines = [
        json.dumps({**BOB, "n": 0, "note": "kept"}),
        json.dumps({**BOB, "n": 1, "principal": "User:root"}),
        json.dumps({**BOB, "n": 2, "operation": "REED"}),
        "no JSON",
    ]
    (tmp_path / "asked.jsonl").write_text("\n".join(lines) + "\n")
    rules, _ = rules_of(spark, SourceFlags(log=LOG), Settings(), own_time=False, configs=frozenset())
    settings = settings_of(AuthorizerFlags(super_users="User:root"))
    out = tmp_path / "out"
    assert authorize_command(spark, str(tmp_path / "asked.jsonl"), out, Policy(rules=rules, settings=settings)) == 2
    printed = capfd.readouterr()
    assert printed.out == "requests  decision\n1         ALLOWED\n1         DENIED\n2         ERROR\n"
    assert "aclog: warning: 1 requests: not a request\n" in printed.err
    assert "aclog: warning: 1 requests: not an operation of Kafka\n" in printed.err
    torn, denied, allowed, wrong = written(spark, out)
    assert {key: denied[key] for key in BOB} == BOB
    assert (denied["note"], denied["decision"], denied["rule"]) == ("kept", "DENIED", RULE)
    assert len(denied["rule_id"]) == 22
    assert (allowed["decision"], allowed["rule"], allowed["rule_id"]) == ("ALLOWED", "SuperUser", None)
    assert (wrong["decision"], wrong["rule"]) == ("ERROR", "not an operation of Kafka")
    assert (torn["decision"], torn["rule"], torn["principal"]) == ("ERROR", "not a request: no JSON", None)


def test_requests_that_are_rotated_meanwhile_are_not_decided_in_part(spark, tmp_path, monkeypatch):
    path = tmp_path / "asked.jsonl"
    path.write_text(json.dumps(BOB) + "\n")

    def rotated_then_authorized(*arguments, **options):
        path.rename(tmp_path / "asked.jsonl.1")
        path.write_text("")
        return authorize(*arguments, **options)

    monkeypatch.setattr(authorize_module, "authorize", rotated_then_authorized)
    rules, _ = rules_of(spark, SourceFlags(log=LOG), Settings(), own_time=False, configs=frozenset())
    policy = Policy(rules=rules, settings=settings_of(AuthorizerFlags()))
    with pytest.raises(ConfigError, match=r"asked\.jsonl: replaced by another file while it was being read"):
        authorize_command(spark, str(path), tmp_path / "out", policy)
    assert not (tmp_path / "out").exists()


def test_own_time_needs_timestamps(spark, tmp_path):
    (tmp_path / "asked.jsonl").write_text(json.dumps(BOB) + "\n")
    rules, _ = rules_of(spark, SourceFlags(log=LOG), Settings(), own_time=True, configs=frozenset())
    policy = Policy(rules=rules, settings=settings_of(AuthorizerFlags()), own_time=True)
    with pytest.raises(ConfigError, match="no column 'timestamp'"):
        authorize_command(spark, str(tmp_path / "asked.jsonl"), tmp_path / "out", policy)
    assert not (tmp_path / "out").exists()


def test_a_log_that_begins_in_the_middle_of_a_clusters_life_decides_nothing_before_it(spark, tmp_path, capfd):
    """The log is one batch, as import and the first poll of sync write it; what was in force before is unknown."""
    log = write_log(tmp_path / "log", [acl(1, principal="User:bob")], times=[10_000])
    times = [9_999, 10_000, 0, 20_000]
    bob = {**BOB, "operation": "READ", "resourceName": "1"}
    lines = [json.dumps({**bob, "n": n, "timestamp": time}) for n, time in enumerate(times)]
    (tmp_path / "asked.jsonl").write_text("\n".join(lines) + "\n")
    policy = Policy(
        rules=rules_of(spark, SourceFlags(log=log), Settings(), own_time=True, configs=frozenset())[0],
        settings=settings_of(AuthorizerFlags()),
        own_time=True,
    )
    assert authorize_command(spark, str(tmp_path / "asked.jsonl"), tmp_path / "out", policy) == 2
    reason = "the log does not reach back to the time of the access"
    assert f"aclog: warning: 2 requests: {reason}\n" in capfd.readouterr().err
    rows = written(spark, tmp_path / "out")
    assert [(row["decision"], row["rule"] == reason) for row in rows] == [
        ("ERROR", True),
        ("ALLOWED", False),
        ("ERROR", True),
        ("ALLOWED", False),
    ]
    usage_command(spark, str(tmp_path / "asked.jsonl"), tmp_path / "usage", policy, flags=UsageFlags(days=3))
    said = capfd.readouterr().out
    assert "2         evaluated against the ACLs, for the verdicts below\n" in said
    assert f"2         not judged: {reason}\n" in said
    assert spark.read.parquet(str(tmp_path / "usage" / "rules")).first().answer == "NOT_JUDGED"


def test_each_row_is_decided_by_the_kafka_of_its_time(spark, tmp_path, capfd):
    """While brokers differ, what a range may match is not decided; before the first one there was no access."""
    ranged = evolve(acl(1, name="t", principal="User:bob"), host="10.0.0.0/8")
    steps = ([ranged, acl(2, name="t", principal="User:eve")], [registration(1, 30), registration(2, 30)],
             [registration(2, 33)], [registration(1, 33)])  # fmt: skip
    times = [1_600_000_000_000 + 1000 * number for number in range(len(steps))]
    log = write_log(tmp_path / "log", *steps, times=times)
    asked = [(who, time) for time in times for who in ("User:bob", "User:eve")]
    lines = [
        json.dumps({**BOB, "principal": who, "host": "10.1.2.3", "operation": "READ", "resourceName": "t", "n": n,
                    "timestamp": time})
        for n, (who, time) in enumerate(asked)
    ]  # fmt: skip
    (tmp_path / "asked.jsonl").write_text("\n".join(lines) + "\n")
    unnamed = Settings(is_kafka_stated=False)
    rules, settings = rules_of(spark, SourceFlags(log=log), unnamed, own_time=True, configs=frozenset())
    policy = Policy(rules=rules, settings=settings, own_time=True)
    assert "state it with --kafka-version V" in capfd.readouterr().err
    assert authorize_command(spark, str(tmp_path / "asked.jsonl"), tmp_path / "out", policy) == 2
    assert "1 requests: Kafka 4.3 and 4.4 decide it by different ACLs" in capfd.readouterr().err
    bobs = [row["decision"] for row in written(spark, tmp_path / "out")][::2]
    assert bobs == ["DENIED", "DENIED", "ERROR", "ALLOWED"]
    assert [row["decision"] for row in written(spark, tmp_path / "out")][1::2] == ["ALLOWED"] * 4
    usage_command(spark, str(tmp_path / "asked.jsonl"), tmp_path / "usage", policy, flags=UsageFlags(days=1))
    assert "UNKNOWN_KAFKA 1" in capfd.readouterr().out
    rules, settings = rules_of(spark, SourceFlags(log=log), unnamed, own_time=False, configs=frozenset())
    assert (rules.intervals.kafka, settings.cidr) == (None, True)


@pytest.mark.parametrize("flags", [SourceFlags(log=LOG, as_of="40"), SourceFlags(acls="-")])
def test_own_time_needs_a_log_without_as_of(spark, flags):
    with pytest.raises(ConfigError, match="expected --log and no --as-of"):
        rules_of(spark, flags, Settings(), own_time=True, configs=frozenset())


def test_an_existing_directory_is_not_overwritten(tmp_path):
    with pytest.raises(ConfigError, match="exists already"):
        check_new(tmp_path)
    with pytest.raises(ConfigError, match="no such directory: expected one to create new in"):
        check_new(tmp_path / "missing" / "new")


@pytest.mark.process
def test_without_pyspark_the_command_says_what_to_install(tmp_path):
    script = (
        "import sys; sys.modules['pyspark'] = None; from aclog.__main__ import run; "
        f"sys.exit(run(['spark', 'ingest', 'x', '--out', {str(tmp_path / 'out')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(f": {install_command('spark')}\n")
    assert done.stderr.count("\n") == 1
