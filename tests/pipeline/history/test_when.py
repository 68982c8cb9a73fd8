"""When something was allowed, on Spark: as by one pass over the history, from those changes only that concern it."""

from pathlib import Path
from random import Random
from unittest import mock

import pytest
from attrs import evolve
from pyspark.errors import PySparkException

from aclog.analysis.intents import Intent, needs_of
from aclog.analysis.regions import EVERYONE, REQUESTED, Query, everyone_but, only
from aclog.analysis.timeline import AnyAllowed, concerns, concerns_controllers, intervals, question_of
from aclog.authorizer.acl import ResourcePattern, StandardAclWithId
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.settings import Generation, Settings
from aclog.metalog.batches import iter_batches
from aclog.metalog.errors import ReplayError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.files import list_checkpoints, segment_name
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from aclog.pipeline.history import bulk
from aclog.pipeline.history.intervals import concerned, first_pass, when
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.deciding_kafka import kafka_history
from aclog.snapshots.history import history_from, start_of_history
from aclog.snapshots.publisher import recover
from tests.support.analysis.policies import distinct, random_rule, random_settings
from tests.support.analysis.timelines import READ, batches_of, random_query, with_brokers
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, removal

DATA = Path(__file__).parents[2] / "data"
BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()
in_one_process = pytest.mark.usefixtures("in_one_process")
pytestmark = pytest.mark.usefixtures("quick_session", "small_ranges", "by_workers")


def on_topic(name, *, pattern=PatternType.LITERAL, principals=EVERYONE):
    resource = ResourcePattern(resource_type=ResourceType.TOPIC, name=name, pattern_type=pattern)
    return Query(resources=(resource,), operations=READ, principals=principals)


PII = on_topic("pii-", pattern=PatternType.PREFIXED, principals=everyone_but("User:audit"))


@pytest.fixture
def asked(monkeypatch):
    """The changes on the driver, by call."""
    calls = []

    def spied(begin, changes, *others):
        calls.append(list(changes))
        return intervals(begin, calls[-1], *others)

    monkeypatch.setattr("aclog.pipeline.history.intervals.intervals_of", spied)
    return calls


def in_one_pass(log, question, settings):
    """The intervals, and the changes that concern the question."""
    with open_reader(log) as reader:
        begin = start_of_history(reader, list_checkpoints(log))
        changes = list(history_from(begin, reader))
    concerned = [each for each in changes if not each.first_seen and question.concerns(each.rule.acl, settings)]
    return list(intervals(begin, changes, question, settings)), concerned


def check(spark, log, make_question, settings, asked):
    """All ways give the same intervals; what they ask is the same, too."""
    expected, concerned = in_one_pass(log, make_question(), settings)
    for most_bytes in (-1, 1 << 20):  # by workers, and by the driver
        with mock.patch.object(bulk, "MOST_BYTES", most_bytes):
            assert when(spark, log, make_question(), settings) == expected
        assert asked.pop() == concerned
    return expected, concerned


@in_one_process
@pytest.mark.parametrize("seed", [0, 2, 3])
def test_random_logs(spark, tmp_path, seed, asked):
    random = Random(seed)
    batches = batches_of(random, 150, odd=0)
    times = [1000 * n + random.randrange(-5000, 5000) if random.random() < 0.9 else -1 for n in range(150)]
    log = write_log(tmp_path, *batches, times=times)
    query, settings = random_query(random), random_settings(random)
    expected, concerned = check(spark, log, lambda: AnyAllowed(query), settings, asked)
    assert expected
    assert concerned


@in_one_process
def test_a_random_log_that_begins_at_a_checkpoint(spark, tmp_path, asked):
    random = Random(7)
    whole = write_log(tmp_path / "whole", *batches_of(random, 120, odd=0))
    data = (whole / segment_name(0)).read_bytes()
    start = recover(whole, 90).image
    short = tmp_path / "short"
    short.mkdir()
    write_checkpoint(start, short)
    # the log begins before the checkpoint's end, as retention leaves it
    cut, position = next((each.base_offset, at) for at, each in iter_batches(data) if each.base_offset > 70)
    (short / segment_name(cut)).write_bytes(data[position:])
    query = on_topic("*a", pattern=PatternType.PREFIXED)
    expected, concerned = check(spark, short, lambda: AnyAllowed(query), Settings(), asked)
    assert [each.start.change is None for each in expected] == [True, False]
    in_it = {rule.id for rule in start.acls}
    assert any(change.rule.id in in_it for change in concerned)


@in_one_process
@pytest.mark.parametrize("operations", [REQUESTED, 1 << AclOperation.READ], ids=["also of controllers", "of brokers"])
def test_by_the_kafka_of_the_time(spark, tmp_path, operations):
    random = Random(1)
    log = write_log(tmp_path, *with_brokers(random, batches_of(random, 150, odd=0, cidr=True)))
    query = evolve(on_topic("*a", pattern=PatternType.PREFIXED), operations=operations)
    question, unnamed = AnyAllowed(query), Settings(is_kafka_stated=False)
    controllers = concerns_controllers(question)
    assert controllers is (operations == REQUESTED)
    with open_reader(log) as reader:
        begin = start_of_history(reader, list_checkpoints(log))
        changes = history_from(begin, reader)
        history = kafka_history(begin, reader, controllers=controllers)
        expected = list(intervals(begin, changes, question, unnamed, lambda: history))
    assert {each.only for each in expected} == {None, Generation.V4_4}
    assert when(spark, log, AnyAllowed(question.query), unnamed) == expected


@in_one_process
def test_transactions(spark, tmp_path, asked):
    log = write_log(
        tmp_path,
        [acl(1, name="pii-a", principal="User:bob")],
        [BEGIN, removal(1)],
        [acl(2, name="other")],
        [acl(3, name="pii-b", principal="User:eve"), removal(3), END, acl(4, name="pii-c"), BEGIN, removal(4)],
        [removal(4), ABORT],
        [removal(4)],
        [BEGIN, acl(5, name="pii-d")],
    )
    expected, concerned = check(spark, log, lambda: AnyAllowed(PII), Settings(), asked)
    assert [(each.start.offset, each.start.end_offset, each.end.offset) for each in expected] == [(0, 1, 12)]
    held = [(each.offset, each.end_offset) for each in concerned]
    assert held == [(0, 1), (2, 12), (4, 12), (5, 12), (7, 12), (12, 13)]


@in_one_process
def test_an_intent(spark, tmp_path, asked):
    log = write_log(tmp_path, [acl(1, name="t")], [acl(2, name="g", resource_type=3)], [acl(3, name="u")], [removal(1)])
    topic = on_topic("t").resources
    query = Query(resources=topic, principals=only("User:alice"))
    needs = needs_of(Intent.CONSUME, topic)
    expected, concerned = check(spark, log, lambda: question_of(query, needs), Settings(), asked)
    assert [(each.start.offset, each.end.offset) for each in expected] == [(1, 3)]
    assert [each.offset for each in concerned] == [0, 1, 3]


@pytest.mark.parametrize("settings", [Settings(), Settings(allow_everyone=True)])
def test_the_log_of_a_real_kafka(spark, asked, settings):
    log = DATA / "kafka-4.3.1-small" / "__cluster_metadata-0"
    query = Query(principals=only("User:alice"))
    expected, _ = check(spark, log, lambda: AnyAllowed(query), settings, asked)
    assert expected


@in_one_process
def test_a_log_with_codes_without_a_name(spark, tmp_path):
    log = write_log(
        tmp_path, [acl(1, name="t", resource_type=98)], [acl(2, name="t")], [acl(3, name="t", resource_type=99)]
    )
    question = AnyAllowed(on_topic("t"))
    assert when(spark, log, question, Settings()) == in_one_pass(log, AnyAllowed(on_topic("t")), Settings())[0]


@in_one_process
@pytest.mark.parametrize(
    "batches",
    [
        [[acl(1, name="u")], [acl(2, name="u")], [removal(3)]],
        [[acl(1, name="t")], [acl(1, name="t")], [END]],
    ],
)
def test_a_contradiction_anywhere_is_the_appliers(spark, tmp_path, batches):
    log = write_log(tmp_path, *batches)
    with pytest.raises(ReplayError) as appliers:
        recover(log)
    with pytest.raises(ReplayError) as ours:
        when(spark, log, AnyAllowed(on_topic("t")), Settings())
    assert str(ours.value) == str(appliers.value)


def test_a_segment_that_retention_removes_after_the_first_pass(spark, tmp_path, monkeypatch):
    log = write_log(tmp_path, [acl(1, name="t")], [removal(1)])

    def removing(spark, directory):
        found = first_pass(spark, directory)
        (directory / segment_name(0)).unlink()
        return found

    monkeypatch.setattr("aclog.pipeline.history.intervals.first_pass", removing)
    with pytest.raises(PySparkException, match=r"LogError: .*: removed since the read was planned \(retention\?\)"):
        when(spark, log, AnyAllowed(on_topic("t")), Settings())


def test_spark_finds_the_same_rules_to_concern_a_query(spark):
    random = Random(1)
    rules = distinct([random_rule(random, odd=10) for _ in range(400)])
    asked = [(random_query(random), random_settings(random)) for _ in range(20)]
    rows = [StandardAclWithId(id=None, acl=rule).to_dict() | {"number": n} for n, rule in enumerate(rules)]
    frame = spark.createDataFrame(
        rows, "number int, " + ", ".join(f"{name} string" for name in rows[0] if name != "number")
    )
    found = frame.select(
        "number", *(concerned([query], settings).alias(f"q{n}") for n, (query, settings) in enumerate(asked))
    )
    for row in found.collect():
        rule = rules[row.number]
        for n, (query, settings) in enumerate(asked):
            if rule.resource_name:  # Spark need not know that an empty name covers nothing
                assert row[f"q{n}"] == concerns(query, rule, settings), (rule, query)
            else:
                assert row[f"q{n}"] >= concerns(query, rule, settings)
