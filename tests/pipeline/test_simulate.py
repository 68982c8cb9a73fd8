"""Changed decisions between two sets of ACLs, checked against the engine on both."""

import json
import shutil
from collections import Counter
from datetime import timedelta
from random import Random

import pyarrow as pa
import pytest
from attrs import evolve

from aclog.authorizer.acl import acl_text, object_of_rule
from aclog.authorizer.acls_image import AclsImage, RuleChange
from aclog.authorizer.codes import AclOperation
from aclog.authorizer.settings import Generation, Settings
from aclog.cli.flags.many_requests import SecondStateFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.spark.commands import Policy, TwoPolicies, changed_rules, simulate_command
from aclog.metalog.errors import ConfigError
from aclog.metalog.records import FeatureLevelRecord
from aclog.pipeline import authorize
from aclog.pipeline.authorize import flips_of, simulated
from aclog.pipeline.session import Enclosed
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decisions import REQUEST_COLUMNS, Ranges
from tests.pipeline.usage.test_report import START, acl, frame_of, ms, random_rows, random_rules, rules_of
from tests.snapshots.test_kafka_history import controller
from tests.support.builders.acls import acl_record
from tests.support.builders.images import with_ids
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import registration
from tests.support.models.engine_answers import decided, engine
from tests.usage.decisions.test_bulk_authorizer import Interval

BEFORE = Settings(super_users=frozenset({"User:root"}))
AFTER = Settings(allow_everyone=True)


def simulate(accesses, before, after, *, own_time=False):
    """What `spark simulate` writes."""
    return flips_of(simulated(accesses, before, after, own_time=own_time), before[0], after[0])


@pytest.mark.parametrize("own_time", [True, False])
def test_changes_agree_with_the_engine(spark, own_time):
    random = Random(5)
    one, other = random_rules(random), random_rules(random)
    other.append(Interval(with_ids([acl("nocolon", "pay")], first=500)[0], None, None))
    rows = [row for row in random_rows(random, 200) if row[3]]
    flips = simulate(
        frame_of(spark, rows), (rules_of(one), BEFORE), (rules_of(other), AFTER), own_time=own_time
    ).collect()
    counts, first, last = Counter(), {}, {}
    for principal, operation, name, time in rows:
        at = ms(time) if own_time else 1 << 60
        access = principal, "10.0.0.1", operation.name, "TOPIC", name
        before, after = (asked(each, at, settings, access) for each, settings in ((one, BEFORE), (other, AFTER)))
        if before[0] != after[0]:
            key = change(before[0], after[0]), *access, before, after
            counts[key] += 1
            first[key], last[key] = min(first.get(key, time), time), max(last.get(key, time), time)
    told = {}
    for row in flips:
        sides = [
            (row[f"decision_{side}"][0], "" if row[f"decision_{side}"] == "ERROR" else row[f"rule_{side}"])
            for side in ("before", "after")
        ]
        key = row.change, row.principal, row.host, row.operation, row.resourceType, row.resourceName, *sides
        count, first_at, last_at = told.get(key, (0, row.first_at, row.last_at))  # an ACL added again is another one
        told[key] = count + row["count"], min(first_at, row.first_at), max(last_at, row.last_at)
    assert told == {
        key: (count, first[key].replace(tzinfo=None), last[key].replace(tzinfo=None)) for key, count in counts.items()
    }
    assert {key[0] for key in told} >= {"GAINED", "LOST", "BROKEN"}


@pytest.mark.parametrize("own_time", [True, False])
def test_one_python_function_decides_and_counts_before_rows_are_exchanged(spark, own_time, capsys):
    """Spark puts Python functions below an aggregation if a filter on their results allows it: there is none."""
    rules = rules_of(random_rules(Random(5)))
    rows = frame_of(spark, random_rows(Random(5), 20))
    simulate(rows, (rules, BEFORE), (rules, AFTER), own_time=own_time).explain(mode="simple")
    plan = capsys.readouterr().out
    assert plan.count("MapInArrow") == 1
    assert "EvalPython" not in plan
    assert plan.index("HashAggregate") < plan.index("MapInArrow")  # a plan is printed from its end


def asked(intervals, at, settings, access):
    image = AclsImage.from_acls(interval.rule for interval in intervals if interval.holds(at))
    return decided(engine(image, settings), *access)[:2]


def change(before, after) -> str:
    return {"AD": "LOST", "DA": "GAINED", "AE": "BROKEN", "DE": "BROKEN", "EA": "MENDED", "ED": "MENDED"}[
        before + after
    ]


def test_output_and_refusals_of_the_command(spark, tmp_path, capsys):
    (one, other), out = with_ids([acl("User:a", "orders"), acl("User:b", "orders", denies=True)]), tmp_path / "out"
    before = Policy(rules=rules_of([Interval(one, None, None)]), settings=BEFORE)
    after = Policy(rules=rules_of([Interval(other, None, None)]), settings=AFTER)
    rows = [("User:a", AclOperation.READ, "orders", START - each * timedelta(hours=1)) for each in range(3)]
    rows += [("User:c", AclOperation.READ, "pay", START), ("User:b", AclOperation.READ, "orders", START)]
    frame_of(spark, rows).drop("timestamp").write.parquet(str(tmp_path / "log"))
    assert simulate_command(spark, str(tmp_path / "log"), out, before, after)
    text = acl_text(one.acl)
    assert capsys.readouterr().out.splitlines() == [
        "accesses  distinct requests  change",
        "1         1                  GAINED",
        "3         1                  LOST",
        "",
        "gained  principal  host      operation  resource   before       after",
        "1       User:c     10.0.0.1  READ       TOPIC:pay  DefaultDeny  DefaultAllow",
        "",
        f"lost  principal  host      operation  resource      {'before':{len(text)}}  after",
        f"3     User:a     10.0.0.1  READ       TOPIC:orders  {text}  DefaultDeny",
    ]
    assert spark.read.parquet(str(out)).count() == 2
    with pytest.raises(ConfigError, match="out: exists already"):
        simulate_command(spark, str(tmp_path / "log"), out, before, after)
    with pytest.raises(ConfigError, match="no column 'timestamp'"):
        simulate_command(spark, str(tmp_path / "log"), tmp_path / "new", evolve(before, own_time=True), after)
    assert not simulate_command(spark, str(tmp_path / "log"), tmp_path / "same", before, before)


def test_what_cannot_be_decided_may_be_decided_differently(spark, tmp_path, capsys):
    (one, other) = with_ids([acl("User:a", "orders"), acl("User:b", "orders")])
    before = Policy(rules=rules_of([Interval(one, None, None), Interval(other, None, None)]), settings=Settings())
    after = Policy(rules=rules_of([Interval(one, None, None)]), settings=Settings())
    frame_of(spark, [("User:b", "REED", "orders", START)]).write.parquet(str(tmp_path / "log"))
    assert simulate_command(spark, str(tmp_path / "log"), tmp_path / "out", before, after)
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].split() == ["1", "-", "NOT_JUDGED"]
    unread = "1 access could not be read or decided (NO_OPERATION 1; unknown broker 2026-03-01 12:00)"
    assert f"{unread}: rules that may apply to them change" in printed.err
    frame_of(spark, [("User:a", "REED", "orders", START)]).write.parquet(str(tmp_path / "other"))
    assert not simulate_command(spark, str(tmp_path / "other"), tmp_path / "same", before, after)
    rejects = spark.createDataFrame([("f", "is Allowed", "NO_HEAD", "")], ["file", "line", "reason", "detail"])
    (tmp_path / "table").mkdir()
    frame_of(spark, [("User:a", "READ", "orders", START)]).write.parquet(str(tmp_path / "table/accesses"))
    rejects.write.parquet(str(tmp_path / "table/rejects"))
    assert simulate_command(spark, str(tmp_path / "table"), tmp_path / "more", before, after)


def two_policies(spark, first, second, settings):
    return TwoPolicies.of(spark, first, second, (settings, settings), configs=(frozenset(), frozenset()), proves="x")


def test_one_warning_tells_of_both_states_that_no_kafka_is_known(spark, tmp_path, capsys):
    path = tmp_path / "rules"
    path.write_text(f"{json.dumps(object_of_rule(evolve(acl('User:a', 'orders'), host='10.0.0.0/8')))}\n")
    two_policies(
        spark, SourceFlags(acls=str(path)), SecondStateFlags(to_acls=str(path)), Settings(is_kafka_stated=False)
    )
    assert capsys.readouterr().err.count("the version of the brokers is unknown") == 1


def test_controllers_count_for_what_they_decide(spark, tmp_path, capsys):
    """The brokers were upgraded, the controller was not: whether a CREATE is allowed from a range is not known."""
    path = tmp_path / "log"
    for operation, ranges in ((AclOperation.READ, None), (AclOperation.CREATE, Ranges.UNKNOWN)):
        rule = evolve(acl("User:a", "orders"), host="10.0.0.0/8", operation=operation)
        shutil.rmtree(path, ignore_errors=True)
        write_log(path, [controller(9, 30), registration(1, 33), acl_record(1, rule)])
        (tmp_path / "rules").write_text(f"{json.dumps(object_of_rule(rule))}\n")
        flags = SourceFlags(log=path), SecondStateFlags(to_acls=str(tmp_path / "rules"))
        both = two_policies(spark, *flags, Settings(is_kafka_stated=False))
        for each in (both.before, both.after):
            kafka = each.rules.intervals.kafka
            if ranges is None:
                assert (kafka, each.settings.cidr) == (None, True)
            else:
                assert (kafka.ranges, kafka.of_controllers) == ((Ranges.YES,), (ranges,))
        assert ("the version of the brokers is unknown" in capsys.readouterr().err) is (ranges is not None)


@pytest.mark.parametrize("second_is_log", [True, False])
def test_a_finalized_metadata_version_states_the_kafka_of_both_states(spark, tmp_path, capsys, second_is_log):
    """No broker is registered; at 4.4-IV1 every node has to be of Kafka 4.4."""
    ranged = evolve(acl("User:a", "orders"), host="10.0.0.0/8")
    level = FeatureLevelRecord(name="metadata.version", feature_level=33)
    write_log(tmp_path / "log", [level, acl_record(1, ranged)])
    (tmp_path / "rules").write_text(f"{json.dumps(object_of_rule(ranged))}\n")
    log, rules = tmp_path / "log", str(tmp_path / "rules")
    if second_is_log:
        flags = SourceFlags(acls=rules), SecondStateFlags(to_log=log)
    else:
        flags = SourceFlags(log=log), SecondStateFlags(to_acls=rules)
    both = two_policies(spark, *flags, Settings(is_kafka_stated=False))
    assert [(each.settings.cidr, each.rules.intervals.kafka) for each in (both.before, both.after)] == [
        (True, None)
    ] * 2
    assert "is not known" not in capsys.readouterr().err


def test_what_an_unknown_kafka_may_decide_is_not_judged(spark, tmp_path, capsys):
    ranged, plain = evolve(acl("User:a", "orders"), host="10.0.0.0/8"), acl("User:b", "orders")
    for name, rules in (("one", (ranged, plain)), ("none", ())):
        (tmp_path / name).write_text("".join(f"{json.dumps(object_of_rule(rule))}\n" for rule in rules))
    rows = [(who, AclOperation.READ, "orders", START) for who in ("User:a", "User:b", "User:c")]
    frame_of(spark, rows).write.parquet(str(tmp_path / "log"))
    first, second = SourceFlags(acls=str(tmp_path / "one")), SecondStateFlags(to_acls=str(tmp_path / "none"))
    unnamed = Settings(is_kafka_stated=False)
    both = two_policies(spark, first, second, unnamed)
    assert capsys.readouterr().err.count("state it with --kafka-version V") == 1
    assert simulate_command(spark, str(tmp_path / "log"), tmp_path / "out", both.before, both.after)
    assert [row.principal for row in spark.read.parquet(str(tmp_path / "out")).collect()] == ["User:b"]
    unread = "1 access could not be read or decided (UNKNOWN_KAFKA 1; unknown broker 2026-03-01 12:00)"
    undecided = f"{unread}: rules that may apply to them change"
    assert undecided in capsys.readouterr().err
    known = two_policies(spark, first, second, unnamed.of_generation(Generation.V4_4))
    assert simulate_command(spark, str(tmp_path / "log"), tmp_path / "known", known.before, known.after)
    assert spark.read.parquet(str(tmp_path / "known")).count() == 2


def test_the_second_state_is_the_first_with_a_change():
    (kept, gone, new) = with_ids([acl("User:a", "orders"), acl("User:b", "orders"), acl("User:c", "orders")])
    before = rules_of([Interval(rule, None, None) for rule in (kept, gone)])
    changes = [RuleChange(added=False, acl=gone.acl, where="--remove r"), RuleChange(added=True, acl=new.acl)]
    after = changed_rules(before, changes).table
    assert after.column("principal").to_pylist() == ["User:a", "User:c"]
    assert after.column("id").to_pylist() == [before.table.column("id")[0].as_py(), None]
    with pytest.raises(ConfigError, match="--remove r: no such ACL: ALLOW User:b READ"):
        changed_rules(before, [*changes, changes[0]])
    with pytest.raises(ConfigError, match="the ACL exists already: ALLOW User:c READ"):
        changed_rules(before, [*changes, changes[1]])


@pytest.mark.parametrize("most", [1 << 20, 20])
def test_what_a_worker_remembers_changes_no_task(monkeypatch, most):
    monkeypatch.setattr(authorize, "broadcast", lambda _, value: Enclosed(value))
    monkeypatch.setattr(authorize, "_MOST_DISTINCT", most)
    random, decided_once = Random(9), []
    decide = BulkAuthorizer.decide_once
    monkeypatch.setattr(
        BulkAuthorizer,
        "decide_once",
        lambda self, columns: decided_once.append(len(columns[0])) or decide(self, columns),
    )
    sides = [authorize._Side.of(None, rules_of(random_rules(random)), settings) for settings in (BEFORE, AFTER)]
    rows = [
        (principal, "10.0.0.1", operation.name, "TOPIC", name, ms(time) * 1000 if time else None)
        for principal, operation, name, time in random_rows(random, 140)
    ]
    tasks = [rows[:100], rows[50:150], rows[:60], rows]

    def reported(task):
        halves = (
            pa.table(list(zip(*half, strict=True)), [*REQUEST_COLUMNS, "time"]) for half in (task[:30], task[30:])
        )
        batches = authorize._changes_of_distinct(halves, sides)
        return Counter(tuple(row.values()) for batch in batches for row in batch.to_pylist())

    authorize._known.cache_clear()
    together = [reported(task) for task in tasks]
    distinct = len({row[:5] for row in rows})
    assert (sum(decided_once) == 2 * distinct) is (most > distinct)
    for task, found in zip(tasks, together, strict=True):
        authorize._known.cache_clear()
        alone = reported(task)
        if most > distinct:
            assert found == alone
        counts = [Counter(), Counter()]
        for total, result in zip(counts, (found, alone), strict=True):
            for row, times in result.items():
                total[row[:5] + row[8:]] += row[5] * times
        assert counts[0] == counts[1] != Counter()
    authorize._known.cache_clear()
