"""What decides while what it is made of is replaced."""

import pytest
from attrs import evolve

from aclog.authorizer.settings import Settings
from aclog.console.pdp.deciding import Decider, KafkaRequest
from aclog.console.pdp.mapping import default_mapping, parse_mapping
from aclog.snapshots.image import ClusterImage, Image
from tests.support.builders.acls import acl
from tests.support.builders.state_records import registration
from tests.support.web.points import HeldSource, image_of, look, point_of


def test_a_mapping_that_is_replaced_meanwhile_is_used_from_then_on(monkeypatch):
    source = HeldSource(image_of(acl("t", "User:a")))
    point, make = point_of(source), Decider.of
    other = parse_mapping({"subject": {"user": "User"}}, "it")

    def replacing(*arguments):
        found = make(*arguments)
        point.deciders.mapping = other
        return found

    monkeypatch.setattr(Decider, "of", replacing)
    for as_of in (None, "0"):
        point.deciders.mapping = default_mapping()
        point.deciders.at(as_of)
        assert point.deciders.at(as_of).mapping is other


def test_a_source_that_is_replaced_is_seen_at_once():
    point = point_of(HeldSource(image_of()))
    before = point.deciders.at(None)
    assert point.deciders.at(None) is before
    look(point)
    assert point.deciders.at(None) is before
    point.deciders.live.replace(HeldSource(image_of(acl("t", "User:a"))))
    assert point.deciders.at(None) is not before
    assert list(point.deciders.at(None).acls.principals()) == ["User:a"]


RANGE = acl("t", "User:a", "10.0.0.0/8")
ASKED = KafkaRequest(principal="User:a", host="10.1.2.3", operation=3, resource_type=2, name="t")
UNSTATED = Settings(is_kafka_stated=False)


def run_by(*levels: int) -> Image:
    """A state whose brokers' software supports these levels of metadata.version."""
    registered = enumerate(registration(number, level) for number, level in enumerate(levels))
    return evolve(image_of(RANGE), cluster=ClusterImage.EMPTY.apply(registered))


@pytest.mark.parametrize(("levels", "allowed"), [((30, 30), False), ((33,), True)])
def test_each_state_is_decided_by_the_kafka_that_its_brokers_run(levels, allowed):
    point = point_of(HeldSource(run_by(*levels)), settings=UNSTATED)
    assert point.deciders.at(None).decide(ASKED).decision is allowed


@pytest.mark.parametrize("image", [image_of(RANGE), run_by(30, 33)])
def test_the_stricter_one_decides_while_that_is_not_known(image):
    answer = point_of(HeldSource(image), settings=UNSTATED).deciders.at(None).decide(ASKED)
    assert (answer.decision, answer.only_on) == (False, ("4.4",))
    known = point_of(HeldSource(image), settings=Settings(cidr=True)).deciders.at(None).decide(ASKED)
    assert (known.decision, known.only_on) == (True, ())


def test_an_upgrade_of_the_brokers_is_noticed_though_no_rule_changes():
    source = HeldSource(run_by(30))
    point = point_of(source, settings=UNSTATED)
    assert not point.deciders.at(None).decide(ASKED).decision
    source.current = evolve(run_by(33), acls=source.current.acls)
    look(point)
    assert point.deciders.at(None).decide(ASKED).decision
