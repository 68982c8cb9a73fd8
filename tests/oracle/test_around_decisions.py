"""Comparison with the real StandardAuthorizer besides decisions: filters, changes, readiness, errors, audit lines."""

import logging
from random import Random
from uuid import UUID

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.audit import TRACE, audit_level, audit_line
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizerNotReadyError, InvalidRequestError, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.errors import ReplayError
from aclog.metalog.primitives import uuid_text
from aclog.metalog.records import RemoveAccessControlEntryRecord
from tests.support.builders.acls import record_of
from tests.support.builders.unmatched import OWNER, UNMATCHED
from tests.support.kafka.oracle import Ask, Estate, OracleError, OracleProcess
from tests.support.models.differential import image_of, reference_of
from tests.support.models.shapes import Maker, Shape, shapes
from tests.support.runs.profiles import examples

EACH = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck), database=None)
LEVELS = {"TRACE": TRACE, "DEBUG": logging.DEBUG, "INFO": logging.INFO}


def filters(maker: Maker, count: int) -> list[AclBindingFilter]:
    """Return filters with values from the estate's ACLs, some left open."""
    random, found = maker.random, []
    for _ in range(count):
        acl = random.choice(maker.estate.acls).acl
        name = random.choice([None, acl.resource_name, acl.resource_name, acl.resource_name + "a", "*"])
        found.append(
            AclBindingFilter(
                resource_type=random.choice([ResourceType.ANY, acl.resource_type]),
                resource_name=name,
                pattern_type=random.choice([kind for kind in PatternType if kind > 0]),
                principal=random.choice([None, None, acl.principal]),
                host=random.choice([None, None, acl.host]),
                operation=random.choice([AclOperation.ANY, AclOperation.ANY, acl.operation]),
                permission_type=random.choice([AclPermissionType.ANY, AclPermissionType.ANY, acl.permission_type]),
            )
        )
    return found


def test_a_filter_takes_what_it_takes_in_kafka(oracle: OracleProcess) -> None:
    taken = 0

    @EACH
    @given(shapes().filter(lambda shape: shape.rules > 0 and not shape.odd and not shape.odd_patterns))
    def campaign(shape: Shape) -> None:
        nonlocal taken
        maker = Maker(shape)
        oracle.load(maker.estate)
        image = image_of(maker.estate.acls, changes=shape.changes, random=maker.random)
        reference = reference_of(maker.estate)
        for wanted in filters(maker, 40):
            theirs = [maker.estate.acls[place] for place in oracle.matching(wanted)]
            ours = list(image.matching(wanted))
            assert len(ours) == len(theirs)
            assert set(ours) == set(theirs)
            assert reference.matching(wanted) == [entry.acl for entry in theirs], "in Kafka's order"
            taken += len(ours)

    campaign()
    assert taken > 1000


def test_changes_rule_by_rule_are_refused_where_kafka_refuses_them(oracle: OracleProcess) -> None:
    """Compare additions and removals of existing and absent ids and contents, and the decisions afterwards."""
    refused = 0

    @EACH
    @given(shapes().filter(lambda shape: shape.rules > 3 and not shape.odd and not shape.odd_patterns))
    def campaign(shape: Shape) -> None:
        nonlocal refused
        maker = Maker(shape)
        entries, random = list(maker.estate.acls), maker.random
        half = entries[: len(entries) // 2]
        oracle.load(Estate(acls=half))
        image = AclsImage.from_acls(half)
        stands = list(half)
        for _ in range(40):
            change = random_change(entries, random)
            (error,) = oracle.change([uuid_text(change) if isinstance(change, UUID) else change])
            record = RemoveAccessControlEntryRecord(id=change) if isinstance(change, UUID) else record_of(change)
            if error:
                refused += 1
                with pytest.raises(ReplayError):
                    image.apply([record])
            elif isinstance(change, UUID):
                image = image.apply([record])
                stands = [entry for entry in stands if entry.id != change]
            else:
                image = image.apply([record])
                stands.append(change)
        assert set(image) == set(stands)
        asks = [ask for ask in maker.asks(50) if not ask.by_type]
        for ask, answer in zip(asks, oracle.decide(asks), strict=True):
            assert (image.verdict(*ask[1:6]).name == "ALLOW") is (answer.letter == "A"), ask

    campaign()
    assert refused > 100


def random_change(entries: list[StandardAclWithId], random: Random) -> StandardAclWithId | UUID:
    """Return an entry to add, possibly with the id of another one, or the id of one to remove."""
    entry = random.choice(entries)
    turn = random.randrange(4)
    if turn == 0:
        return StandardAclWithId(id=random.choice(entries).id, acl=entry.acl)
    return entry if turn == 1 else entry.id


def test_one_rule_under_two_ids_is_no_estate(oracle: OracleProcess) -> None:
    acl = Maker(Shape(**SMALL)).estate.acls[0].acl
    twice = [StandardAclWithId(id=UUID(int=7), acl=acl), StandardAclWithId(id=UUID(int=8), acl=acl)]
    with pytest.raises(OracleError, match="Unable to add the ACL"):
        oracle.load(Estate(acls=twice))
    with pytest.raises(ReplayError):
        AclsImage.from_acls(twice)


SMALL = {
    "seed": 1, "rules": 10, "alphabet": "ab", "longest": 2, "principals": 2, "operations": 3, "types": 1,
    "prefixed": 50, "deny": 20, "special": 20, "any_host": 80, "odd": 0, "changes": 0,
    "super_users": "User:u1", "allow_everyone": "true",
}  # fmt: skip


def ours(estate: Estate, *, ready: bool) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(cache=False)
    authorizer.configure({"super.users": estate.super_users, "allow.everyone.if.no.acl.found": estate.allow_everyone})
    authorizer.load(AclsImage.from_acls(estate.acls))
    if ready:
        authorizer.complete_initial_load()
    return authorizer


def test_before_the_first_load_is_complete_only_super_users_are_decided(oracle: OracleProcess) -> None:
    made = Maker(Shape(**SMALL)).estate
    estate = Estate(
        acls=made.acls, super_users=made.super_users, allow_everyone=made.allow_everyone, ready=False
    )  # fmt: skip
    oracle.load(estate)
    authorizer = ours(estate, ready=False)
    for by_type in (False, True):
        asks = [
            Ask(by_type, user, "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, "zz")
            for user in ("User:u0", "User:u1")
        ]
        stranger, admin = oracle.decide(asks)
        assert (stranger.letter, stranger.error.split(":")[0].rpartition(".")[2]) == (
            "E",
            "AuthorizerNotReadyException",
        )
        assert admin.letter == "A"
        for ask in asks:
            if ask.principal == "User:u1":
                assert ask_ours(authorizer, ask).name == "ALLOWED"
            else:
                with pytest.raises(AuthorizerNotReadyError):
                    ask_ours(authorizer, ask)


def ask_ours(authorizer: StandardAuthorizer, ask: Ask):
    context = RequestContext(principal=ask.principal, host=ask.host)
    if ask.by_type:
        return authorizer.authorize_by_resource_type(context, ask.operation, ask.resource_type)
    pattern = ResourcePattern(resource_type=ask.resource_type, name=ask.name, pattern_type=ask.pattern_type)
    return authorizer.authorize(context, [Action(operation=ask.operation, resource_pattern=pattern)])[0]


def test_only_literal_resources_can_be_asked_for(oracle: OracleProcess) -> None:
    estate = Maker(Shape(**SMALL)).estate
    oracle.load(estate)
    authorizer = ours(estate, ready=True)
    for pattern in PatternType:
        ask = Ask(False, "User:u0", "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, "a", pattern)
        (answer,) = oracle.decide([ask])
        assert (answer.letter == "E") is (pattern != PatternType.LITERAL)
        if answer.letter == "E":
            with pytest.raises(InvalidRequestError):
                ask_ours(authorizer, ask)


def test_the_audit_line_and_its_level_are_those_of_kafka(oracle: OracleProcess) -> None:
    shape = Shape(**SMALL | {"types": 6, "operations": 14, "rules": 100})
    maker = Maker(shape)
    oracle.load(maker.estate)
    authorizer = ours(maker.estate, ready=True)
    heard = []
    authorizer.set_audit(lambda *decided: heard.append(decided))
    for ask in maker.asks(300):
        random = maker.random
        request = {
            "principal": ask.principal,
            "host": ask.host,
            "operation": AclOperation(ask.operation).name,
            "resourceType": ResourceType(ask.resource_type).name,
            "resourceName": ask.name,
            "api": random.choice([0, 1, 3, 29, 30, 31]),
            "refCount": random.randrange(4),
            "logIfAllowed": random.random() < 0.7,
            "logIfDenied": random.random() < 0.7,
            "kind": "byResourceType" if ask.by_type else "authorize",
        }
        theirs = oracle.audit(request)
        heard.clear()
        context = RequestContext(principal=ask.principal, host=ask.host, request_type=request["api"])
        if ask.by_type:
            authorizer.authorize_by_resource_type(context, ask.operation, ask.resource_type)
        else:
            pattern = ResourcePattern(resource_type=ask.resource_type, name=ask.name)
            action = Action(
                operation=ask.operation,
                resource_pattern=pattern,
                resource_reference_count=request["refCount"],
                log_if_allowed=request["logIfAllowed"],
                log_if_denied=request["logIfDenied"],
            )
            authorizer.authorize(context, [action])
        said = [
            (audit_level(action, decision.result), audit_line(*who, action, decision))
            for *who, action, decision in heard
        ]
        assert said == [(LEVELS[level], line) for level, _, line in (text.partition(" ") for text in theirs["lines"])]


def test_a_rule_that_is_said_to_match_nobody_matches_nobody_in_kafka(oracle: OracleProcess) -> None:
    asks = [
        Ask(False, principal, host, acl.operation, acl.resource_type, "User:owner1")
        for acl in (OWNER, UNMATCHED[-1][0])
        for principal in ("User:app", "User:bob", "User:eve", "User:owner1")
        for host in ("10.0.0.1", "127.0.0.1", "0:0:0:0:0:0:0:1")
    ]
    rules = [evolve(rule, resource_name=name_in(rule)) for rule, _ in UNMATCHED]
    oracle.load(Estate(acls=[StandardAclWithId(id=UUID(int=7 + i), acl=rule) for i, rule in enumerate(rules)]))
    assert {answer.letter for answer in oracle.decide(asks)} == {"D"}
    meant = [evolve(OWNER, resource_name="User:owner1"), evolve(rules[1], host="127.0.0.1")]
    oracle.load(Estate(acls=[StandardAclWithId(id=UUID(int=7 + i), acl=rule) for i, rule in enumerate(meant)]))
    assert {answer.letter for answer in oracle.decide(asks)} == {"A", "D"}


def name_in(rule: StandardAcl) -> str:
    """The name that is asked for, but for a rule whose own name is at fault."""
    return rule.resource_name if rule.resource_type == ResourceType.USER else "User:owner1"
