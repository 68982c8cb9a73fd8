"""What a viewer sees of the rules: that nothing of others' is in it, and that it explains each of his decisions."""

import gc
from threading import Thread

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.settings import Settings
from aclog.console.login.guard import (
    All,
    Own,
    Sights,
    authorizer_of,
    decides_alone,
    visibility,
    visible_image,
    visible_settings,
)
from aclog.console.pages.states import OwnStates
from aclog.snapshots.image import Image, Provenance
from tests.support.builders.acls import acl, cluster_acl
from tests.support.web.consoles import console_of
from tests.support.web.guarded import NewestState
from tests.support.web.points import HeldSource, image_of

DENY = AclPermissionType.DENY
CLUSTER = {"resource_type": ResourceType.CLUSTER, "operation": AclOperation.DESCRIBE}


def sight(principal, *rules, host="10.0.0.1", **settings):
    return visibility(principal, host, authorizer_of(image_of(*rules), Settings(**settings)))


@pytest.mark.parametrize(
    ("rules", "settings", "sees_all"),
    [
        ([], {}, False),
        ([cluster_acl("User:a", AclOperation.DESCRIBE)], {}, True),
        ([cluster_acl("User:*", AclOperation.DESCRIBE)], {}, True),
        ([cluster_acl("User:a", AclOperation.ALTER)], {}, True),
        ([cluster_acl("User:a", AclOperation.ALL)], {}, True),
        ([cluster_acl("User:a", AclOperation.CLUSTER_ACTION)], {}, False),
        ([cluster_acl("User:A", AclOperation.DESCRIBE)], {}, False),
        ([acl("kafka-cluster", "User:a", "10.0.0.1", **CLUSTER)], {}, True),
        ([acl("kafka-cluster", "User:a", "10.0.0.2", **CLUSTER)], {}, False),
        ([acl("kafka-", "User:a", pattern_type=PatternType.PREFIXED, **CLUSTER)], {}, True),
        (
            [cluster_acl("User:a", AclOperation.DESCRIBE), acl("*", "User:*", permission_type=DENY, **CLUSTER)],
            {},
            False,
        ),
        ([], {"super_users": frozenset({"User:a"})}, True),
        ([], {"allow_everyone": True}, True),
        ([cluster_acl("User:b", AclOperation.DESCRIBE)], {"allow_everyone": True}, False),
        ([acl("kafka-cluster", "User:a", "10.0.0.0/8", **CLUSTER)], {"cidr": True}, True),
        ([acl("kafka-cluster", "User:a", "10.0.0.0/8", **CLUSTER)], {}, False),
    ],
)
def test_who_may_describe_the_cluster_sees_all(rules, settings, sees_all):
    assert sight("User:a", *rules, **settings) == (All() if sees_all else Own("User:a"))


@pytest.mark.parametrize("principal", ["User:*", "a", ""])
def test_what_cannot_ask_kafka_sees_only_its_own(principal):
    everybody = cluster_acl("User:*", AclOperation.ALL)
    assert sight(principal, everybody) == Own(principal)


def test_nothing_of_others_is_seen():
    rules = (
        acl("orders", "User:a"),
        acl("orders", "User:b", "10.9.9.9"),
        acl("orders", "User:c", permission_type=DENY),
        acl("orders", "User:*", "10.0.0.66", permission_type=DENY),
        acl("secret", "Group:a"),
        acl("secret", "User:aa"),
    )
    others = {"scram": "users", "tokens": "owners", "cluster": "brokers", "opaque": "topics"}
    whole = evolve(image_of(*rules), provenance=Provenance(end_offset=7, epoch=3, timestamp=5), **others)
    seen = visible_image(whole, Own("User:a"))
    assert {rule.acl for rule in seen.acls} == {rules[0], rules[3]}
    assert seen.acls.principals() == {"User:a", "User:*"}
    assert (seen.end_offset, seen.epoch, seen.timestamp) == (7, 3, 5)
    assert all(getattr(seen, name) is getattr(Image.EMPTY, name) for name in others)
    assert visible_image(whole, All()) is whole
    assert visible_image(whole, Own("User:*")).acls.principals() == {"User:*"}
    settings = Settings(super_users=frozenset({"User:root", "User:a"}))
    assert visible_settings(settings, Own("User:a")).super_users == {"User:a"}
    assert visible_settings(settings, Own("User:b")).super_users == set()
    assert visible_settings(settings, All()) is settings


PRINCIPALS, NAMES, HOSTS = ("User:a", "User:b", "User:*"), ("t", "tt", "*"), ("*", "10.0.0.1", "10.0.0.2")
RULES = st.builds(
    acl,
    st.sampled_from(NAMES),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from([AclOperation.READ, AclOperation.DESCRIBE, AclOperation.ALL]),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    permission_type=st.sampled_from([AclPermissionType.ALLOW, DENY]),
)


@given(st.lists(RULES, max_size=8, unique=True), st.booleans())
def test_what_is_seen_explains_each_decision(rules, everyone):
    """By the states that the pages of one viewer are made of."""
    whole, settings, own = image_of(*rules), Settings(allow_everyone=everyone), Own("User:a")
    console = console_of(HeldSource(whole), settings=settings)
    seen = OwnStates(states=console.states, sights=Sights(newest=lambda: whole, settings=settings), own=own).now()
    part = authorizer_of(seen.image, visible_settings(settings, own))
    full = authorizer_of(whole, settings)
    for name in ("t", "tt", "x"):
        for operation in (AclOperation.READ, AclOperation.DESCRIBE):
            pattern = ResourcePattern(resource_type=ResourceType.TOPIC, name=name)
            action = Action(operation=operation, resource_pattern=pattern)
            told = seen.authorizer.decide(RequestContext(principal="User:a", host="10.0.0.1"), action)
            assert told.rule is None or told.rule.acl in {rule.acl for rule in seen.image.acls}
            assert told.text == full.decide(RequestContext(principal="User:a", host="10.0.0.1"), action).text
            if decides_alone(whole, settings):
                alone = part.decide(RequestContext(principal="User:a", host="10.0.0.1"), action)
                assert (bool(alone), alone.text) == (bool(told), told.text)
    assert decides_alone(whole, settings) is not everyone


def test_a_rule_without_a_colon_decides_for_everybody():
    assert not decides_alone(image_of(acl("t", "nobody")), Settings())


def test_who_sees_what_does_not_wait_for_what_another_sees(monkeypatch):
    whole = image_of(acl("t", "User:a"))
    sights, seen = Sights(newest=lambda: whole, settings=Settings()), []

    def slow(image, sight):
        asker = Thread(target=lambda: seen.append(sights.of("User:b", "10.0.0.1")), daemon=True)
        asker.start()
        asker.join(120)  # only a hang takes that long
        return visible_image(image, sight)

    monkeypatch.setattr("aclog.console.login.guard.visible_image", slow)
    sights.image(whole, Own("User:a"))
    assert seen == [Own("User:b")]


def test_sights_are_decided_anew_when_the_state_changes():
    held = NewestState(image_of(cluster_acl("User:a", AclOperation.DESCRIBE), acl("t", "User:b")))
    sights = Sights(newest=held, settings=Settings())
    first = held.image
    assert sights.of("User:a", "10.0.0.1") == All()
    own = sights.of("User:b", "10.0.0.1")
    assert own == Own("User:b")
    assert sights.image(first, All()) is first
    assert sights.image(first, own) is sights.image(first, own)
    held.image = image_of(acl("t", "User:b"), acl("u", "User:b"))
    assert sights.of("User:a", "10.0.0.1") == Own("User:a")
    assert (len(sights.image(first, own).acls), len(sights.image(held.image, own).acls)) == (1, 2)
    held.image = None
    assert sights.of("User:a", "10.0.0.1") == Own("User:a")
    for number in range(300):
        sights.image(first, Own(f"User:{number}"))
    assert len(sights._images[first]) == 256
    del first
    gc.collect()
    assert len(sights._images) == 1, "nobody keeps the first"
