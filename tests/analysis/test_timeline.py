"""When something was allowed: the intervals of a log, beside a replay of every offset."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NoReturn

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.comparison import allowed
from aclog.analysis.policy import Policy, is_allowed
from aclog.analysis.regions import EVERYONE, Principals, Query, Region, Request, everyone_but, only, operations_of
from aclog.analysis.timeline import AnyAllowed, Interval, RegionsSince, intervals, intervals_by_principal
from aclog.analysis.who_can import SUPER_USER, permissions
from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.authorizer.settings import Generation, Settings
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.files import list_checkpoints
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.deciding_kafka import DecidingKafka, KafkaChange, kafka_history, possible_kafka
from aclog.snapshots.history import Change, history_from, start_of_history
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import recover
from tests.support.analysis.cells import Cells
from tests.support.analysis.model import PolicyModel
from tests.support.analysis.policies import random_settings
from tests.support.analysis.timelines import READ, batches_of, random_query, with_brokers
from tests.support.builders.acls import acl as rule_acl
from tests.support.builders.images import with_ids
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, registration, removal
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)


def found(log: Path, query: Query, given_settings: Settings | None = None) -> list[Interval]:
    with open_reader(log) as reader:
        begin = start_of_history(reader, list_checkpoints(log))
        question = AnyAllowed(query)
        return list(intervals(begin, history_from(begin, reader), question, given_settings or Settings()))


def found_by_kafka(log: Path, query: Query, given_settings: Settings) -> list[Interval]:
    """As the brokers decided that were registered at the time."""
    with open_reader(log) as reader:
        begin = start_of_history(reader, list_checkpoints(log))
        changes = history_from(begin, reader)
        return list(intervals(begin, changes, AnyAllowed(query), given_settings, lambda: kafka_history(begin, reader)))


def ends(log: Path, query: Query, given_settings: Settings | None = None) -> list[tuple[int, int | None]]:
    """The offsets of the changes at both ends."""
    return [
        (each.start.offset, None if each.end is None else each.end.offset) for each in found(log, query, given_settings)
    ]


def on_topic(name: str, *, pattern: PatternType = PatternType.LITERAL, principals=EVERYONE, operations=READ) -> Query:
    resource = ResourcePattern(resource_type=ResourceType.TOPIC, name=name, pattern_type=pattern)
    return Query(resources=(resource,), operations=operations, principals=principals)


@CAMPAIGN
@given(RANDOMS)
def test_it_is_as_a_replay_of_every_offset(tmp_path_factory: pytest.TempPathFactory, random: Random) -> None:
    log = write_log(tmp_path_factory.mktemp("log"), *batches_of(random, 25))
    query, given_settings = random_query(random), random_settings(random)
    intervals_found = found(log, query, given_settings)
    with open_reader(log) as reader:
        end = reader.high_watermark()
    for offset in range(end + 1):
        policy = Policy(recover(log, offset).image.acls, given_settings)
        expected = next(allowed(policy, query), None) is not None
        in_one = [
            each
            for each in intervals_found
            if each.start.end_offset <= offset and (each.end is None or offset < each.end.end_offset)
        ]
        assert len(in_one) == expected, (offset, intervals_found)


@CAMPAIGN
@given(RANDOMS)
def test_each_region_is_dated_as_by_every_request_at_every_offset(
    tmp_path_factory: pytest.TempPathFactory, random: Random
) -> None:
    log = write_log(tmp_path_factory.mktemp("log"), *batches_of(random, 12))
    query, given_settings = random_query(random), random_settings(random)
    with open_reader(log) as reader:
        begin, end = start_of_history(reader, list_checkpoints(log)), reader.high_watermark()
        states = [Policy(recover(log, offset).image.acls, given_settings) for offset in range(end + 1)]
        dated = RegionsSince.of(begin, history_from(begin, reader), states[-1], [query])
    regions = [each.region for each in permissions(states[-1], query) if each.rules != (SUPER_USER,)]
    for region in random.sample(regions, min(3, len(regions))):
        requests = [each for each in requests_in(states, region) if each in region]
        assert requests
        event, since = dated.event(region), end
        while since > 0 and all(is_allowed(states[since - 1], each) for each in requests):
            since -= 1
        assert event.end_offset == since, (str(region), event)
        assert (event.change is None) == (since == 0)


def test_the_changes_of_the_kafka_are_read_once_for_all_principals() -> None:
    read: list[None] = []

    def kafka() -> Iterator[KafkaChange]:
        read.append(None)
        both = DecidingKafka(generations=tuple(Generation), stated=None)
        yield KafkaChange(offset=0, end_offset=0, timestamp=-1, kafka=both)

    rules = [rule_acl("t", f"User:u{number}", host="10.0.0.0/24") for number in range(3)]
    begin = Image(acls=AclsImage.from_acls(with_ids(rules)))
    topic = ResourcePattern(resource_type=ResourceType.TOPIC, name="t", pattern_type=PatternType.LITERAL)
    query = Query(resources=(topic,), operations=1 << READ, principals=EVERYONE, host=None)
    list(
        intervals_by_principal(
            begin, (), lambda principals: AnyAllowed(evolve(query, principals=principals)), Settings(), kafka
        )
    )
    assert len(read) == 1


@CAMPAIGN
@given(RANDOMS)
def test_the_intervals_of_each_principal_are_those_of_a_question_about_it_alone(
    tmp_path_factory: pytest.TempPathFactory, random: Random
) -> None:
    log = write_log(tmp_path_factory.mktemp("log"), *batches_of(random, 20))
    query, given_settings = evolve(random_query(random), principals=EVERYONE), random_settings(random)
    by_principal: dict[Principals, list[Interval]] = {}
    with open_reader(log) as reader:
        begin = start_of_history(reader, list_checkpoints(log))
        timelines = intervals_by_principal(
            begin,
            history_from(begin, reader),
            lambda principals: AnyAllowed(evolve(query, principals=principals)),
            given_settings,
        )
        for who, interval in timelines:
            by_principal.setdefault(who, []).append(interval)
    for who, own in by_principal.items():
        assert own == found(log, evolve(query, principals=who), given_settings)
    named = {name for who in by_principal if not who.complement for name in who.named}
    for name in ("User:a", "User:b", "Group:g"):
        if name not in named and all(name in who.named for who in by_principal if who.complement):
            assert found(log, evolve(query, principals=only(name)), given_settings) == []


def requests_in(states: list[Policy], region: Region) -> Iterator[Request]:
    """A request of each class that any state or the region tells apart."""
    cells = Cells.of(*states, regions=[region])
    for kind, name, principal, host in cells.all():
        for operation in operations_of(region.operations):
            yield Request(principal=principal, host=host, operation=operation, resource_type=kind, resource_name=name)


@CAMPAIGN
@given(RANDOMS)
def test_it_is_as_the_kafka_of_each_moment_decides(tmp_path_factory: pytest.TempPathFactory, random: Random) -> None:
    """Beside both generations asked at every offset, and what the brokers of that state ran."""
    batches = with_brokers(random, batches_of(random, 16, cidr=True))
    log = write_log(tmp_path_factory.mktemp("log"), *batches)
    query, given_settings = random_query(random), random_settings(random)
    intervals_found = found_by_kafka(log, query, given_settings)
    with open_reader(log) as reader:
        end = reader.high_watermark()
    for offset in range(end + 1):
        image = recover(log, offset).image
        deciding = possible_kafka(image).generations
        holding = [each for each in deciding if is_allowed_by(image, given_settings.of_generation(each), query)]
        expected = [] if not holding else [holding[0] if len(holding) < len(deciding) else None]
        in_one = [
            each.only
            for each in intervals_found
            if each.start.end_offset <= offset and (each.end is None or offset < each.end.end_offset)
        ]
        assert in_one == expected, (offset, intervals_found)


def is_allowed_by(image: Image, decided_by: Settings, query: Query) -> bool:
    acls = image.acls.with_options(documented=decided_by.documented, cidr=decided_by.cidr)
    return next(allowed(Policy(acls, decided_by), query), None) is not None


def test_a_broker_that_is_upgraded_begins_and_ends_intervals(tmp_path: Path) -> None:
    ranged = evolve(acl(1, name="t"), host="10.0.0.0/8")
    denied = evolve(acl(2, name="u", permission=2), host="10.0.0.0/8")
    brokers = [[registration(1, 30), registration(2, 30)], [registration(2, 33)], [registration(1, 33)]]
    log = write_log(tmp_path, [ranged, acl(3, name="u"), denied], *brokers)
    by_range = found_by_kafka(log, on_topic("t"), Settings())
    before, rolling, after = by_range[:1], by_range[1:2], by_range[2:]
    # Nobody knows what decided before the first broker registered.
    assert [(each.start.offset, each.end and each.end.offset, each.only) for each in before] == [
        (0, 4, Generation.V4_4)
    ]
    assert [(each.start.offset, each.end and each.end.offset, each.only) for each in rolling] == [
        (5, 6, Generation.V4_4)
    ]
    assert [(each.start.offset, each.end, each.only) for each in after] == [(6, None, None)]
    assert str(rolling[0].start.change) == "the brokers differ: broker 1 runs Kafka 4.3, broker 2 runs Kafka 4.4"
    assert str(after[0].start.change) == "all brokers run Kafka 4.4"
    everywhere = found_by_kafka(log, on_topic("u"), Settings())
    assert [(each.start.offset, each.end, each.only) for each in everywhere] == [(1, None, None)]


def test_without_a_range_nothing_is_asked_of_brokers(tmp_path: Path) -> None:
    log = write_log(tmp_path, [acl(1, name="t")], [registration(1, 30)], [registration(2, 33)], [removal(1)])
    with open_reader(log) as reader:
        begin = start_of_history(reader, list_checkpoints(log))
        changes = history_from(begin, reader)
        (only_one,) = intervals(begin, changes, AnyAllowed(on_topic("t")), Settings(), _never)
    assert (only_one.start.offset, only_one.end and only_one.end.offset) == (0, 3)


def _never() -> NoReturn:
    raise AssertionError("the log is read twice")


def test_each_end_names_the_change_that_made_it(tmp_path: Path) -> None:
    log = write_log(tmp_path, [acl(1, name="t")], [acl(2, name="u")], [removal(1)], [acl(3, name="t")])
    first, second = found(log, on_topic("t"))
    assert (first.start.offset, first.start.timestamp) == (0, 1000)
    assert first.end is not None
    assert (first.end.offset, first.end.timestamp) == (2, 3000)
    assert isinstance(first.end.change, Change)
    assert first.end.change.rule.acl.resource_name == "t"
    assert (second.start.offset, second.end) == (3, None)


def test_a_deny_ends_it_and_its_removal_begins_it_again(tmp_path: Path) -> None:
    log = write_log(tmp_path, [acl(1, name="t")], [acl(2, name="t", permission=2, principal="User:*")], [removal(2)])
    assert ends(log, on_topic("t")) == [(0, 1), (2, None)]


def test_what_was_so_only_within_a_batch_was_never_so(tmp_path: Path) -> None:
    log = write_log(tmp_path, [acl(1, name="t"), removal(1)], [acl(2, name="t")], [removal(2), acl(3, name="t")])
    assert ends(log, on_topic("t")) == [(2, None)]


def test_an_aborted_transaction_and_an_open_one_change_nothing(tmp_path: Path) -> None:
    begin = BeginTransactionRecord()
    log = write_log(tmp_path, [begin, acl(1, name="t")], [AbortTransactionRecord()], [begin, acl(2, name="t")])
    assert ends(log, on_topic("t")) == []


def test_a_transaction_ends_it_where_its_record_stands_and_as_it_became_visible(tmp_path: Path) -> None:
    log = write_log(tmp_path, [BeginTransactionRecord(), acl(1, name="t")], [acl(2)], [EndTransactionRecord()])
    (only_one,) = found(log, on_topic("t"))
    assert (only_one.start.offset, only_one.start.end_offset) == (1, 4)


def test_any_request_of_a_region(tmp_path: Path) -> None:
    """When could anyone except alice read any topic that begins with pii-?"""
    log = write_log(
        tmp_path,
        [acl(1, name="pii-card")],
        [acl(2, name="pii-card", principal="User:bob")],
        [acl(3, name="pii-name", principal="User:eve")],
        [removal(2)],
        [removal(3)],
    )
    query = on_topic("pii-", pattern=PatternType.PREFIXED, principals=everyone_but("User:alice"))
    assert ends(log, query) == [(1, 4)]


def test_settings_hold_for_all_of_the_log(tmp_path: Path) -> None:
    log = write_log(tmp_path, [acl(1, name="u")], [acl(2, name="t", principal="User:bob")])
    mallory = on_topic("t", principals=only("User:mallory"))
    assert ends(log, mallory, Settings(allow_everyone=True)) == [(0, 1)]
    assert ends(log, mallory, Settings(super_users=frozenset({"User:mallory"}))) == [(0, None)]


def test_what_a_checkpoint_holds_was_so_for_an_unknown_time(tmp_path: Path) -> None:
    whole = write_log(tmp_path / "whole", [acl(1, name="t")], [acl(2)], [acl(3)])
    short = write_log(tmp_path / "short", [removal(1)], base=3, times=[9000])
    write_checkpoint(recover(whole, 3).image, short)
    (one,) = found(short, on_topic("t"))
    assert (one.start.offset, one.start.end_offset, one.start.timestamp, one.start.change) == (3, 3, 3000, None)
    assert one.end is not None
    assert one.end.offset == 3


def test_the_model_agrees_that_a_region_is_open(tmp_path: Path) -> None:
    """Not only the engine says so: the last state is judged by the model, too."""
    log = write_log(tmp_path, [acl(1, name="pii-a", principal="User:bob")])
    model = PolicyModel(Policy(recover(log, None).image.acls))
    assert model.allowed("User:bob", "10.0.0.1", ResourceType.TOPIC, "pii-a") & READ
    assert ends(log, on_topic("pii-", pattern=PatternType.PREFIXED)) == [(0, None)]
