"""What every way to decide answers: the Python path, and the native core unless tests are told to do without it."""

from zlib import crc32

import pytest

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl
from aclog.authorizer.acls_image import AclsImage, Verdict
from aclog.authorizer.errors import InvalidRequestError
from tests.support.builders.acls import record_of, removal_of
from tests.support.builders.images import with_ids
from tests.support.models.native_paths import PATHS, through

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
