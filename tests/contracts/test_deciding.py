"""What every way to decide answers: the Python path, and the native core unless tests are told to do without it."""

from zlib import crc32

import pytest
from hypothesis import given, settings

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage, Verdict
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import InvalidRequestError
from tests.support.builders.acls import record_of, removal_of
from tests.support.builders.images import with_ids
from tests.support.models.differential import image_of
from tests.support.models.native_paths import PATHS, through
from tests.support.models.reference import ReferenceAuthorizer
from tests.support.models.shapes import RANGED, RARE_RANGES, Maker, shapes
from tests.support.runs.profiles import examples

HOST = "10.0.0.1"
pytestmark = pytest.mark.parametrize("path", PATHS)


def rule(name: str, *, pattern: int = PatternType.LITERAL, who: str = "User:a", **codes: object) -> StandardAcl:
    return StandardAcl(
        **{
            "resource_type": ResourceType.TOPIC,
            "resource_name": name,
            "pattern_type": pattern,
            "principal": who,
            "host": "*",
            "operation": AclOperation.READ,
            "permission_type": AclPermissionType.ALLOW,
            **codes,
        }
    )


def prefix(name: str, **fields: object) -> StandardAcl:
    return rule(name, pattern=PatternType.PREFIXED, **fields)


def verdict(image: AclsImage, name: str, who: str = "User:a", host: str = HOST) -> Verdict:
    return image.verdict(who, host, AclOperation.READ, ResourceType.TOPIC, name)


def named(image: AclsImage, name: str, who: str = "User:a", host: str = HOST) -> StandardAcl | None:
    found = image.rule(who, host, AclOperation.READ, ResourceType.TOPIC, name)
    return found and found.acl


def image_through(path: str, *acls: StandardAcl) -> AclsImage:
    return through(path, AclsImage.from_acls(with_ids(acls)))


def in_ranges(path: str, *acls: StandardAcl) -> AclsImage:
    return image_through(path, *acls).with_options(documented=False, cidr=True)


@pytest.mark.parametrize("name", ["", "*", "*a", "a", "a\0b", "é", "😀", "\ud800", "x" * 300, "x" * 40_000])
def test_names_of_every_kind(path, name):
    written = name.encode("utf-8", "replace").decode()  # a record holds no lone surrogate, a request may
    covering = prefix(written[:1], who="User:b")
    image = image_through(path, rule(written), covering)
    expected = Verdict.ALLOW if written == name else Verdict.NO_CANDIDATE
    assert verdict(image, name) is expected
    assert named(image, name) == (rule(written) if written == name else None)
    if written == name:
        assert verdict(image, name, who="User:c") is Verdict.NO_MATCH
        assert named(image, name + "!", who="User:b") == covering


@pytest.mark.parametrize("who", ["User:a", "Group:g", "User:" + "u" * 500, "User:é😀", ":", "User:a:b"])
def test_principals_and_hosts_of_every_kind(path, who):
    everybody, here = rule("every", who="User:*"), rule("here", who=who, host=HOST)
    image = image_through(path, everybody, here, rule("mine", who=who))
    assert [verdict(image, name, who) for name in ("every", "here", "mine")] == [Verdict.ALLOW] * 3
    assert [verdict(image, name, who, "10.0.0.2") for name in ("every", "here", "mine")] == [
        Verdict.ALLOW,
        Verdict.NO_MATCH,
        Verdict.ALLOW,
    ]
    assert verdict(image, "here", who, "*") is Verdict.NO_MATCH
    assert verdict(image, "mine", who, "*") is Verdict.ALLOW


@pytest.mark.parametrize("who", ["nocolon", "", "User:*"])
def test_a_principal_on_which_kafka_throws(path, who):
    image = image_through(path, rule("a", who="User:*"))
    for ask in (verdict, named):
        with pytest.raises(InvalidRequestError):
            ask(image, "a", who)


@pytest.mark.parametrize("code", [-1, 0, 8, 99, 1 << 40])
def test_a_resource_type_that_kafka_does_not_know(path, code):
    image = image_through(path, rule("a", resource_type=0), rule("b"))
    assert image.verdict("User:a", HOST, AclOperation.READ, code, "a") is Verdict.ALLOW
    assert image.verdict("User:a", HOST, AclOperation.READ, code, "b") is Verdict.NO_CANDIDATE


def colliding_names(count: int) -> list[str]:
    """Names with one CRC-32: any 33 positions where either of two letters may stand leave one free choice or more."""
    size = 64
    zero = crc32(b"a" * size)
    # The CRC is linear: turning `a` into `c` at a place changes it in the same way, whatever stands elsewhere.
    basis: dict[int, tuple[int, int]] = {}
    kernel = []
    for place in range(size):
        change, places = crc32(b"a" * place + b"c" + b"a" * (size - place - 1)) ^ zero, 1 << place
        while change and change.bit_length() in basis:
            other, of_other = basis[change.bit_length()]
            change, places = change ^ other, places ^ of_other
        if change:
            basis[change.bit_length()] = change, places
        else:
            kernel.append(places)
    names = []
    for number in range(count):
        places = 0
        for bit, vector in enumerate(kernel):
            if number >> bit & 1:
                places ^= vector
        names.append("".join("c" if places >> place & 1 else "a" for place in range(size)))
    assert len({crc32(name.encode()) for name in names}) == 1
    return names


def test_names_picked_to_collide(path):
    names = colliding_names(3_000)
    image = image_through(path, *map(rule, names[::2]))
    assert [verdict(image, name) for name in names[:200]] == [Verdict.ALLOW, Verdict.NO_CANDIDATE] * 100
    changed = image.apply([record_of(each) for each in with_ids(list(map(rule, names[1::2])), first=5000)])
    assert all(verdict(changed, name) is Verdict.ALLOW for name in names)
    assert [named(image, name) for name in names[:2]] == [rule(names[0]), None]


@pytest.mark.parametrize("step", [1, 7])
@pytest.mark.parametrize("changed", [False, True])
def test_a_thousand_nested_prefixes(path, step, changed):
    ladder = [prefix("p" * size, who=f"User:{size}") for size in range(1, 1001, step)]
    image = image_through(path, *(() if changed else ladder))
    if changed:
        image = image.apply([record_of(each) for each in with_ids(ladder)])
    for each in ladder[:: len(ladder) // 12]:
        assert named(image, "p" * 1001, each.principal) == each
        assert verdict(image, each.resource_name + "q", each.principal) is Verdict.ALLOW
        assert verdict(image, each.resource_name[:-1] or "q", each.principal) is not Verdict.ALLOW
    assert verdict(image, "q") is Verdict.NO_CANDIDATE


def test_old_images_stay_as_they_were_and_go_separate_ways(path):
    [first, second, third] = with_ids([rule("t"), rule("t", permission_type=AclPermissionType.DENY), prefix("t")])
    empty = image_through(path)
    one = empty.apply([record_of(first)])
    denied, other = one.apply([record_of(second)]), one.apply([record_of(third)])
    again = denied.apply([removal_of(second), removal_of(first)])
    for _ in range(2):  # neither does asking change anything
        assert [verdict(image, "t") for image in (empty, one, denied, other, again)] == [
            Verdict.NO_CANDIDATE,
            Verdict.ALLOW,
            Verdict.DENY,
            Verdict.ALLOW,
            Verdict.NO_CANDIDATE,
        ]
        assert [verdict(image, "t2") for image in (one, other)] == [Verdict.NO_CANDIDATE, Verdict.ALLOW]


def test_rules_that_come_and_go_all_day(path):
    [kept, removed] = with_ids([rule("kept"), rule("removed")])
    image = image_through(path, kept.acl, removed.acl).apply([removal_of(removed)])
    held = image
    for number in range(6_000):  # more versions than a store of changes keeps
        [passing] = with_ids([rule(f"passing-{number}")], first=10 + number)
        image = image.apply([record_of(passing)])
        assert verdict(image, f"passing-{number}") is Verdict.ALLOW
        image = image.apply([removal_of(passing)])
    for each in (held, image):
        found = [verdict(each, name) for name in ("kept", "removed", "passing-0", "passing-5999")]
        assert found == [Verdict.ALLOW, *[Verdict.NO_CANDIDATE] * 3]


DENY = AclPermissionType.DENY


@pytest.mark.parametrize("changed", [False, True])
def test_a_range_matches_the_addresses_in_it(path, changed):
    acls = [
        rule("v4", host="10.1.2.3/8"),
        rule("v6", host="2001:db8::/32"),
        rule("all", host="0.0.0.0/0", who="User:*"),
    ]
    image = in_ranges(path, *(() if changed else acls))
    image = image.apply([record_of(each) for each in with_ids(acls)]) if changed else image
    expected = {
        "10.255.255.255": "v4 all",
        "11.0.0.0": "all",
        "0.0.0.0": "",
        "2001:db8:ffff:0:0:0:0:1": "v6",
        "2001:db9:0:0:0:0:0:1": "",
        "::ffff:10.0.0.1": "v4 all",
        "0:0:0:0:0:ffff:a00:1": "v4 all",
        "10.0.0.0/8": "",
        "name": "",
        "": "",
        "*": "",
    }
    found = {
        host: " ".join(name for name in ("v4", "v6", "all") if verdict(image, name, host=host) is Verdict.ALLOW)
        for host in expected
    }
    assert found == expected
    assert [named(image, "v4", host=host) for host in ("10.0.0.1", "11.0.0.1")] == [acls[0], None]
    as_texts = image.with_options(documented=False, cidr=False)
    assert {verdict(as_texts, "v4", host=host) for host in expected} == {Verdict.NO_MATCH}
    assert verdict(as_texts, "v4", host="10.1.2.3/8") is Verdict.ALLOW


def test_one_address_in_ranges_of_everybody_and_of_its_own(path):
    wide, narrow = rule("t", host="10.0.0.0/8"), rule("t", host="10.1.0.0/16", who="User:*", permission_type=DENY)
    image = in_ranges(path, wide, narrow, prefix("", host="10.1.0.0/16"))
    assert [verdict(image, "t", host=host) for host in ("10.0.0.1", "10.1.0.1")] == [Verdict.ALLOW, Verdict.DENY]
    assert [named(image, "t", host=host) for host in ("10.0.0.1", "10.1.0.1")] == [wide, narrow]
    assert verdict(image, "u", host="10.1.0.1") is Verdict.ALLOW
    assert verdict(image, "t", who="User:b", host="10.0.0.1") is Verdict.NO_MATCH


@pytest.mark.parametrize("who", ["User:!", "User:a", "A:b", "Z:b"])
@pytest.mark.parametrize("permission", [AclPermissionType.ALLOW, DENY])
def test_of_rules_on_one_name_kafka_names_by_principal_and_host(path, who, permission):
    hosts = ["10.1.2.0/24", "*", "10.1.0.0/16", "10.1.2.3", "0.0.0.0/0", "10.1.2.3/32", "10.9.9.9/8", "192.0.0.0/8"]
    acls = [rule("t", host=host, who=each, permission_type=permission) for each in (who, "User:*") for host in hosts]
    matching = [acl for acl in acls if acl.host != "192.0.0.0/8"]
    while matching:
        image = in_ranges(path, *reversed(matching))
        best = (min if permission == DENY else max)(matching, key=lambda acl: (acl.principal, acl.host))
        assert named(image, "t", who=who, host="10.1.2.3") == best
        matching.remove(best)


def test_ranges_that_are_added_and_removed(path):
    [first, second, third] = with_ids(
        [
            rule("t", host="10.0.0.0/8"),
            rule("t", host="10.1.0.0/16", permission_type=DENY),
            rule("u", host="10.1.0.0/16"),
        ]
    )
    empty = in_ranges(path)
    one = empty.apply([record_of(first)])
    denied, other = one.apply([record_of(second)]), one.apply([record_of(third)])
    again = denied.apply([removal_of(second), removal_of(first)])
    merged = denied.merged().apply([removal_of(second)])
    images = [empty, one, denied, other, again, merged]
    for _ in range(2):
        verdicts = [verdict(image, "t", host="10.1.0.1") for image in images]
        assert [found.name for found in verdicts] == ["NO_CANDIDATE", "ALLOW", "DENY", "ALLOW", "NO_CANDIDATE", "ALLOW"]
        assert named(merged, "t", host="10.1.0.1") == first.acl
        assert verdict(other, "u", host="10.1.0.1") is Verdict.ALLOW
        assert verdict(denied, "t", host="10.2.0.1") is Verdict.ALLOW


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("count", [3, 27, 28, 29, 200])
def test_an_address_in_many_ranges(path, changed, count):
    """Spelled otherwise, too: bits below the prefix make another host of the same range."""
    ladder = [rule(f"t{at}", host=f"10.{at % 2}.0.{at}/{8 + at // 2 % 3}") for at in range(count)]
    image = in_ranges(path, *(() if changed else ladder))
    image = image.apply([record_of(each) for each in with_ids(ladder)]) if changed else image
    for at in (0, 1, count // 2, count - 1):
        assert named(image, f"t{at}", host="10.0.0.1") == ladder[at]
        assert verdict(image, f"t{at}", host="10.64.0.1") is (Verdict.ALLOW if at // 2 % 3 < 2 else Verdict.NO_MATCH)
    assert verdict(image, "t0", who="User:b", host="10.0.0.1") is Verdict.NO_MATCH


def test_rare_spellings(path):
    image = in_ranges(path, rule("t", host="[2001:db8::]/+32"), rule("u", host="10.0.0.0/8"))
    assert verdict(image, "t", host="2001:db8:0:0:0:0:0:1") is Verdict.ALLOW
    assert verdict(image, "t", host="2001:db9:0:0:0:0:0:1") is Verdict.NO_MATCH
    assert verdict(image, "u", host="10.0.0.1") is Verdict.ALLOW


@settings(max_examples=examples(80), deadline=None)
@given(shape=shapes(**RANGED, rules=(1, 3, 6, 12, 25), odd=(0,), odd_patterns=(0,), special=(0, 20)))
def test_ranges_as_the_naive_model_has_them(path, shape):
    """With changes and without; the rule that is named, too."""
    maker = Maker(shape)
    acls = [each for each in maker.estate.acls if each.acl.host not in RARE_RANGES]
    image = through(path, image_of(acls, changes=shape.changes, random=maker.random))
    image = image.with_options(documented=False, cidr=True)
    model = ReferenceAuthorizer([each.acl for each in acls], cidr=True)
    for ask in maker.asks(60):
        if ask.principal == "User:*":
            continue
        request = ask.principal, ask.host, ask.operation, ask.resource_type
        if ask.by_type:
            expected = model.by_resource_type(*request)[0] == "ALLOWED"
            assert image.by_resource_type(*request) == expected, ask
            continue
        decision, text = model.decide(*request, ask.name)
        named_acl = image.rule(*request, ask.name)
        assert (image.verdict(*request, ask.name) is Verdict.ALLOW) == (decision == "ALLOWED"), ask
        assert (f"MatchingAcl(acl={named_acl.acl})" if named_acl else "DefaultDeny") == text, ask
