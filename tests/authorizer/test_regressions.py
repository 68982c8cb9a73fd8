"""Past and present bugs of Kafka, each with the case that showed it; the model and the engine agree on all of them."""

from uuid import UUID

import pytest

from aclog.authorizer.acl import AclBindingFilter, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType
from aclog.authorizer.control import create_acls, delete_acls
from aclog.metalog.errors import ReplayError
from aclog.metalog.records import RemoveAccessControlEntryRecord
from tests.support.builders import acls
from tests.support.builders.acls import acl_record
from tests.support.models.reference import ReferenceAuthorizer

LITERAL, PREFIXED = 3, 4
ALL, READ, WRITE, DESCRIBE = AclOperation.ALL, AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
TOPIC, GROUP = 2, 3
HOST = "10.0.0.1"


def acl(name, pattern=LITERAL, permission=ALLOW, operation=READ, principal="User:a", kind=TOPIC) -> StandardAcl:
    return acls.acl(
        name, principal, operation=operation, resource_type=kind, pattern_type=pattern, permission_type=permission
    )


def base_only(rules):
    """Return an image with all ACLs in the base, as after reading a checkpoint."""
    return AclsImage.from_acls(StandardAclWithId(id=UUID(int=i), acl=rule) for i, rule in enumerate(rules, 2))


def one_by_one(rules):
    """Return an image with all ACLs in the overlay, as after replaying a log."""
    image = AclsImage.empty()
    for i, rule in enumerate(rules, 2):
        image = image.apply([acl_record(i, rule)])
    return image


WAYS = pytest.mark.parametrize("made", [base_only, one_by_one, lambda rules: one_by_one(rules).merged()])


def decided(rules, made, name, operation=READ, principal="User:a", kind=TOPIC):
    """Return the engine's verdict and the text of its ACL, checked against the model."""
    question = (principal, HOST, operation, kind, name)
    image = made(rules)
    verdict, rule = image.verdict(*question).name, image.rule(*question)
    decision, text = ReferenceAuthorizer(rules).decide(*question)
    assert (decision == "ALLOWED") == (verdict == "ALLOW")
    assert text == ("DefaultDeny" if rule is None else f"MatchingAcl(acl={rule.acl})")
    return verdict, None if rule is None else rule.acl


@WAYS
@pytest.mark.parametrize("name", ["foobar", "fooa", "f", "foobarbaz", "foo", "fooaa"])
def test_kafka_14265_prefixes_do_not_shadow_one_another(made, name):
    """KAFKA-14265: a scan that stopped at the first name that was no prefix missed the shorter prefixes behind it."""
    rules = [acl("foobar", PREFIXED), acl("fooa", PREFIXED), acl("f", PREFIXED, permission=DENY, principal="User:b")]
    rules += [acl("f", PREFIXED, operation=WRITE), acl("fop", PREFIXED), acl("e", PREFIXED)]
    assert decided(rules, made, name, WRITE) == ("ALLOW", rules[3])
    assert decided(rules, made, name, principal="User:b")[0] == "DENY"
    expected = rules[0] if name.startswith("foobar") else rules[1] if name.startswith("fooa") else None
    assert decided(rules, made, name)[1] == expected


@pytest.mark.parametrize("order", [1, -1])
def test_kafka_14214_no_image_between_a_deny_and_an_allow(order):
    """KAFKA-14214: a reader could see an ALLOW without the DENY that was created before it."""
    batch = [acl_record(2, acl("secret", permission=DENY)), acl_record(3, acl("*"))][::order]
    before = AclsImage.empty()
    after = before.apply(batch)
    question = ("User:a", HOST, READ, TOPIC, "secret")
    assert before.verdict(*question).name == "NO_CANDIDATE"
    assert after.verdict(*question).name == "DENY"
    # An image that a reader holds does not change.
    assert len(before) == 0


def test_kafka_14214_in_batches_the_order_of_the_records_counts():
    """A removal and an addition of the same ACL in one batch take effect in their order."""
    image = AclsImage.empty().apply([acl_record(2, acl("t"))])
    again = image.apply([RemoveAccessControlEntryRecord(id=UUID(int=2)), acl_record(2, acl("t", permission=DENY))])
    assert again.get(UUID(int=2)) == acl("t", permission=DENY)
    with pytest.raises(ReplayError):
        image.apply([acl_record(2, acl("u")), RemoveAccessControlEntryRecord(id=UUID(int=2))])
    assert image.verdict("User:a", HOST, READ, TOPIC, "t").name == "ALLOW"


@WAYS
@pytest.mark.parametrize("permission", [ALLOW, DENY])
def test_point_3_star_does_not_cover_names_that_begin_with_it(made, permission):
    """LITERAL `*` is skipped as a literal prefix of `*foo`; for allow.everyone there is no candidate, either."""
    rules = [acl("*", permission=permission)]
    assert decided(rules, made, "*foo")[0] == "NO_CANDIDATE"
    assert decided(rules, made, "*")[0] == permission.name
    assert decided(rules, made, "foo")[0] == permission.name
    documented = made(rules).with_options(documented=True, cidr=False)
    assert documented.verdict("User:a", HOST, READ, TOPIC, "*foo").name == permission.name
    plain = [acl("*", PREFIXED, permission=permission)]
    assert decided(plain, made, "*foo")[0] == permission.name
    assert decided(plain, made, "foo")[0] == "NO_CANDIDATE"


@WAYS
@pytest.mark.parametrize(
    ("rule", "name", "kafka"),
    [("!b", "!a", "hangs"), ("!bb", "!ba", "throws"), ("#$", "#$#", None), ("$", "!a", None), (" b", " a", "hangs")],
)
def test_pr_23550_and_point_4_names_below_star_are_decided(made, rule, name, kafka):
    """PR 23550: if narrowing the prefix makes no progress, Kafka 4.3.1 loops forever or throws."""
    rules = [acl(rule, kind=GROUP, principal="User:b"), acl("*", kind=GROUP)]
    model = ReferenceAuthorizer(rules)
    assert model.stuck("User:a", HOST, READ, GROUP, name) == kafka
    assert decided(rules, made, name, kind=GROUP) == ("ALLOW", rules[1])
    denying = [*rules, acl(name, kind=GROUP, permission=DENY)]
    assert ReferenceAuthorizer(denying).stuck("User:a", HOST, READ, GROUP, name) is None
    assert decided(denying, made, name, kind=GROUP)[0] == "DENY"


@WAYS
def test_point_12_by_resource_type_implies_nothing_beyond_its_probe(made):
    """WRITE on a topic implies DESCRIBE of that topic, but not in authorizeByResourceType."""
    rules = [acl("orders", operation=WRITE)]
    assert decided(rules, made, "orders", DESCRIBE)[0] == "ALLOW"
    image, model = made(rules), ReferenceAuthorizer(rules)
    for operation, expected in ((WRITE, True), (DESCRIBE, False)):
        assert image.by_resource_type("User:a", HOST, operation, TOPIC) is expected
        assert (model.by_resource_type("User:a", HOST, operation, TOPIC)[0] == "ALLOWED") is expected
    probed = [acl("hard", PREFIXED, operation=WRITE)]
    assert made(probed).by_resource_type("User:a", HOST, DESCRIBE, TOPIC)


@WAYS
@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([acl("t"), acl("", PREFIXED, permission=DENY)], True),
        ([acl("t"), acl("*", permission=DENY)], False),
        ([acl("*"), acl("t", PREFIXED, permission=DENY)], True),
        ([acl("t", PREFIXED), acl("t", permission=DENY)], True),
        ([acl("t", PREFIXED), acl("t", PREFIXED, permission=DENY)], False),
        ([acl("tt"), acl("t", PREFIXED, permission=DENY)], False),
    ],
)
def test_point_12_which_denies_dominate(made, rules, expected):
    assert made(rules).by_resource_type("User:a", HOST, READ, TOPIC) is expected
    assert (ReferenceAuthorizer(rules).by_resource_type("User:a", HOST, READ, TOPIC)[0] == "ALLOWED") is expected


def ids():
    return map(UUID, (f"{i:032x}" for i in range(2, 1 << 20))).__next__


def test_kafka_19411_a_delete_beyond_the_limit_removes_nothing():
    """KAFKA-19411: a deletion could exceed the maximum number of records of one operation."""
    rules = [acl(f"t{i}") for i in range(10_001)]
    image = base_only(rules)
    refused = delete_acls(image, [AclBindingFilter()])
    assert refused.records == ()
    assert {result.error.code for result in refused.results} == {42}
    enough = delete_acls(image, [AclBindingFilter(resource_name=f"t{i}") for i in range(300)])
    assert len(image.apply(enough.records)) == 10_001 - 300


def test_kafka_14996_a_create_beyond_the_limit_creates_nothing():
    """KAFKA-14996: a request for too many records crashed the controller; now it is rejected as a whole."""
    refused = create_acls(AclsImage.empty(), [acl(f"t{i}") for i in range(10_001)], ids())
    assert refused.records == ()
    assert {(result.error.code, result.error.name) for result in refused.results} == {(44, "POLICY_VIOLATION")}
    assert len(create_acls(AclsImage.empty(), [acl(f"t{i}") for i in range(10_000)], ids()).records) == 10_000


@WAYS
def test_the_rule_named_when_star_and_the_empty_prefix_both_deny(made):
    """The real class names the empty prefix if its scan jumps over `*`, else `*`."""
    star, empty = acl("*", permission=DENY), acl("", PREFIXED, permission=DENY)
    assert decided([star, empty], made, "abc")[1] == star
    assert decided([star, empty, acl("aaa", principal="User:b")], made, "abc")[1] == star
    assert decided([star, empty, acl("*", PREFIXED, principal="User:b")], made, "abc")[1] == star
    assert decided([star, empty, acl("5", principal="User:b")], made, "abc")[1] == empty
    assert decided([star, empty, acl("*-", principal="User:b")], made, "abc")[1] == empty
    assert decided([star, empty, acl("*", 2, principal="User:b")], made, "abc")[1] == empty
    assert decided([star, empty], made, "!bc")[1] == empty
    assert decided([star, empty], made, "*")[1] == star


@WAYS
def test_the_rule_named_when_a_name_below_star_is_seen_twice(made):
    """Kafka visits names below `*` again after `*`, so that one of them and not `*` is the last ALLOW."""
    star, below = acl("*"), acl("!", PREFIXED)
    assert decided([star, below], made, "!a")[1] == below
    assert decided([star, below, acl("#", principal="User:b")], made, "!a")[1] == star
    assert decided([star, below, acl("*", PREFIXED, principal="User:b")], made, "!a")[1] == star


@WAYS
@pytest.mark.parametrize("odd", [0, 1, 2, 77])
def test_the_rule_named_when_the_empty_name_has_an_odd_pattern_type(made, odd):
    """The second section jumps to LITERAL on the empty name, and so over pattern types that sort before it."""
    star, empty = acl("*"), acl("", odd)
    between = acl("!", principal="User:b")
    assert decided([star, empty], made, "abc")[1] == empty
    assert decided([star, empty, between], made, "abc")[1] == star
    assert decided([star, empty, between], made, "hardcode")[1] == star
    assert decided([star, empty, between, acl("", PREFIXED)], made, "abc")[1].pattern_type == PREFIXED
    assert decided([star, empty, acl("*", PREFIXED, principal="User:b")], made, "abc")[1] == star
    assert decided([star, empty, between], made, "")[1] == star
    # PREFIXED `*` is visited again as well; what sorts before LITERAL on `*` is not
    assert decided([acl("*", PREFIXED), empty], made, "*foo")[1] == empty
    assert decided([acl("*", PREFIXED), empty, between], made, "*foo")[1] == acl("*", PREFIXED)
    assert decided([acl("*", odd), empty, between], made, "*foo")[1] == empty
    assert decided([acl("*", odd), acl("*"), empty, between], made, "*")[1] == star
    # and so is a prefix below `*`, if nothing comes before it
    assert decided([acl("!", PREFIXED), empty, acl(" ", principal="User:b")], made, "!a")[1] == acl("!", PREFIXED)
    assert decided([acl("!", PREFIXED), empty, acl("#", principal="User:b")], made, "!a")[1] == empty
