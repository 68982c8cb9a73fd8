"""What decides while what it is made of is replaced."""

from aclog.console.pdp.decider import Decider
from aclog.console.pdp.mapping import default_mapping, parse_mapping
from tests.support.builders.acls import acl
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
