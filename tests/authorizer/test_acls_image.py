"""ACL images: changes in any order, merges, invalid changes, records, filters."""

from collections import Counter
from random import Random
from uuid import UUID

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import AclBindingFilter, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage, Verdict
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.codec import decode_record, encode_record
from aclog.metalog.errors import ReplayError
from tests.support.builders.acls import record_of, removal_of
from tests.support.builders.images import by_changes, columns_of, with_ids
from tests.support.models import estates
from tests.support.models.reference import ReferenceAuthorizer
from tests.support.runs.profiles import examples

ACL = StandardAcl(
    resource_type=ResourceType.TOPIC,
    resource_name="orders",
    pattern_type=PatternType.LITERAL,
    principal="User:alice",
    host="*",
    operation=AclOperation.READ,
    permission_type=AclPermissionType.ALLOW,
)
RULES = with_ids([ACL, evolve(ACL, resource_name="ord", pattern_type=4), evolve(ACL, principal="User:bob")])


def content(image: AclsImage) -> list[StandardAclWithId]:
    return sorted(image, key=str)


def questions(image: AclsImage, requests) -> list[object]:
    """Return the verdict and the ACL for each request."""
    return [
        (image.verdict(*ask), image.rule(*ask))
        for r in requests
        for ask in [(r.principal, r.host, r.operation, r.resource_type, r.resource_name or "")]
    ]


@settings(max_examples=examples(80), deadline=None)
@given(
    estate=estates.estates(odd=True),
    requests=st.lists(estates.requests(), min_size=5, max_size=5),
    seed=st.integers(0, 2**32),
)
def test_changes_in_any_order_lead_to_the_same_image(estate, requests, seed):
    rules = with_ids([acl for acl in estate.acls if ":" in acl.principal])
    straight, detour = AclsImage.from_acls(rules), by_changes(rules, Random(seed))
    merged, read = detour.merged(), AclsImage.from_columns(columns_of(rules))
    expected = questions(straight, requests)
    for image in (detour, merged, read):
        assert content(image) == content(straight)
        assert image.digest() == straight.digest()
        assert questions(image, requests) == expected
    assert merged.overlay_size == 0


@settings(max_examples=examples(60), deadline=None)
@given(
    estate=estates.estates(odd=True),
    requests=st.lists(estates.requests(), min_size=5, max_size=5),
    data=st.data(),
)
def test_old_images_stay_as_they_are(estate, requests, data):
    rules = with_ids([acl for acl in estate.acls if ":" in acl.principal])
    half = len(rules) // 2
    image = AclsImage.from_acls(rules[:half])
    seen = []
    for rule in data.draw(st.permutations(rules)):
        seen.append((image, content(image), questions(image, requests)))
        image = image.apply([removal_of(rule) if image.get(rule.id) else record_of(rule)])
    for old, rules_then, answers_then in seen:
        assert content(old) == rules_then
        assert questions(old, requests) == answers_then


@settings(max_examples=examples(150), deadline=None)
@given(estate=estates.estates(odd=True), seed=st.integers(0, 2**32), data=st.data())
def test_filters_take_what_kafkas_take(estate, seed, data):
    rules = with_ids(estate.acls)
    model = ReferenceAuthorizer(estate.acls)
    image = by_changes(rules, Random(seed))
    names = [None, "*", "", *(acl.resource_name for acl in estate.acls)]
    filters = st.builds(
        AclBindingFilter,
        resource_type=st.sampled_from([*ResourceType, 1, 1, 2, 2, 99]),
        resource_name=st.one_of(st.sampled_from(names), estates.names()),
        pattern_type=st.sampled_from([*PatternType, 1, 1, 77]),
        principal=st.sampled_from([None, None, None, *estates.RULE_PRINCIPALS]),
        host=st.sampled_from([None, None, None, *estates.RULE_HOSTS]),
        operation=st.sampled_from([*AclOperation, *[1] * 20, 99]),
        permission_type=st.sampled_from([*AclPermissionType, 1, 1, 1, 1]),
    )
    for wanted in data.draw(st.lists(filters, min_size=6, max_size=6)):
        found = [rule.acl for rule in image.matching(wanted)]
        assert Counter(found) == Counter(model.matching(wanted)), wanted


@settings(max_examples=examples(100), deadline=None)
@given(
    estate=estates.estates(odd=True),
    seed=st.integers(0, 2**32),
    other=st.sampled_from(["User:A", "user:a", "User:", "x", "User:\N{KELVIN SIGN}", "a" * 200]),
    merged=st.booleans(),
)
def test_which_principals_there_are(estate, seed, other, merged):
    image = by_changes(with_ids(estate.acls), Random(seed))
    image = image.merged() if merged else image
    principals = {rule.acl.principal for rule in image}
    for principal in (*principals, *map(str.swapcase, principals), other):
        assert image.has_principal(principal) == (principal in principals)
        if not image.may_be_spelled_otherwise(principal):
            assert principal.casefold() not in {each.casefold() for each in principals}


def test_a_principal_within_the_name_of_another_has_no_acl():
    image = AclsImage.from_acls(with_ids([evolve(ACL, principal="User:a", host="\x07User:b"), ACL]))
    assert image.has_principal("User:a")
    assert not image.has_principal("User:b")
    assert image.may_be_spelled_otherwise("USER:B")  # only a lookup shows that it is a host
    assert not image.may_be_spelled_otherwise("User:c")


@settings(max_examples=examples(60), deadline=None)
@given(estate=estates.estates(odd=True), seed=st.integers(0, 2**32))
def test_records_are_those_that_were_read(estate, seed):
    rules = with_ids(estate.acls)
    tagged = {rule.id: ((n, b"x" * n),) for n, rule in enumerate(rules) if n % 3 == 1}
    records = [record_of(rule, tagged.get(rule.id, ())) for rule in rules]
    image = AclsImage.empty().apply(records)
    values = sorted(map(encode_record, records))
    assert sorted(image.records()) == values
    assert sorted(image.merged().records()) == values
    half = [removal_of(rule) for rule in rules[::2]]
    left = sorted(encode_record(record) for record in records[1::2])
    assert sorted(image.merged().apply(half).records()) == left
    assert sorted(image.merged().apply(half).merged().records()) == left
    assert sorted(by_changes(rules, Random(seed)).records()) == sorted(encode_record(record_of(rule)) for rule in rules)
    assert all(decode_record(value) for value in image.records())


@pytest.mark.parametrize("merge", [False, True])
def test_what_replay_refuses(merge):
    image = AclsImage.from_acls(RULES[:1]).apply([record_of(RULES[1])])
    image = image.merged() if merge else image
    before = content(image)
    same_id = StandardAclWithId(id=RULES[0].id, acl=evolve(ACL, host="10.0.0.1"))
    same_content = StandardAclWithId(id=UUID(int=77), acl=RULES[1].acl)
    for change, word in (
        (record_of(RULES[0]), "exists already"),
        (record_of(same_id), "exists already"),
        (record_of(same_content), "is the same as ACL"),
        (record_of(evolve(same_content, acl=ACL)), "is the same as ACL"),
        (removal_of(same_content), "does not exist"),
    ):
        with pytest.raises(ReplayError, match=word):
            image.apply([record_of(RULES[2]), change])
    assert content(image) == before


def test_a_rule_can_come_back():
    image = AclsImage.from_acls(RULES)
    again = image.apply([removal_of(RULES[0]), record_of(RULES[0])])
    assert content(again) == content(image)
    under_another_id = StandardAclWithId(id=UUID(int=5), acl=ACL)
    moved = image.apply([removal_of(RULES[0]), record_of(under_another_id)])
    assert moved.find(ACL) == UUID(int=5)
    assert moved.get(RULES[0].id) is None
    assert moved.get(UUID(int=5)) == ACL


@pytest.mark.parametrize("bad", ["id", "content"])
def test_bulk_refuses_what_stands_twice_and_says_where(bad):
    rules = with_ids([evolve(ACL, host=f"10.0.0.{n}") for n in range(50)])
    twin = evolve(rules[7], acl=ACL) if bad == "id" else StandardAclWithId(id=UUID(int=3), acl=rules[7].acl)
    rules[30] = rules[40] = twin
    with pytest.raises(ReplayError, match=r"^rule 31: "):
        AclsImage.from_acls(rules)
    columns = columns_of(rules)
    with pytest.raises(ReplayError) as caught:
        AclsImage.from_columns(columns)
    assert caught.value.position == columns.value_start[30]


def test_ids_that_share_their_leading_bits_are_told_apart():
    acls = [evolve(ACL, host=f"10.0.{n // 200}.{n % 200}") for n in range(1000)]
    rules = [StandardAclWithId(id=UUID(int=(7 << 64) + n * 3), acl=acl) for n, acl in enumerate(acls)]
    image = AclsImage.from_acls(rules)
    assert all(image.get(rule.id) == rule.acl for rule in rules)
    assert image.get(UUID(int=(7 << 64) + 1)) is None
    with pytest.raises(ReplayError, match="exists already"):
        AclsImage.from_acls([*rules, StandardAclWithId(id=rules[500].id, acl=ACL)])


def test_rules_without_ids_are_decided_upon():
    image = AclsImage.from_acls([evolve(rule, id=None) for rule in RULES])
    assert image.verdict("User:alice", "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, "orders") == Verdict.ALLOW
    assert {rule.id for rule in image} == {None}
    assert image.find(ACL) is None
    assert image.get(UUID(int=0)) is None


def test_a_long_name_and_a_request_that_is_not_unicode():
    long = "é" * 5000
    image = AclsImage.from_acls(
        with_ids([evolve(ACL, resource_name=long, permission_type=2), evolve(ACL, resource_name="é", pattern_type=4)])
    )
    ask = ("User:alice", "10.0.0.1", AclOperation.READ, ResourceType.TOPIC)
    assert image.rule(*ask, long).acl.resource_name == long
    assert image.rule(*ask, "é\ud800").acl.resource_name == "é"
    assert image.verdict(*ask, "\ud800") == Verdict.NO_CANDIDATE
