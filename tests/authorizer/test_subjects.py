"""CIDR ranges as hosts of ACLs: found by address, and remembered across updates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer import acl as acl_module
from aclog.authorizer.acl import address_number, in_cidr, is_cidr
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import ResourceType
from aclog.authorizer.index import layout
from aclog.authorizer.index.layout import IN_RANGES, RangeHosts, rule_mask
from aclog.authorizer.index.subjects import RangePairs, range_masks
from tests.support.builders.acls import acl, record_of, removal_of
from tests.support.builders.images import with_ids
from tests.support.runs.profiles import examples

HOSTS = [
    *(
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.1.2.3/8",
        "10.1.0.0/16",
        "10.1.2.0/24",
        "10.1.2.3/32",
        "11.0.0.0/8",
        "10.0.0.0/33",
    ),
    *("::/0", "2001:db8::/32", "2001:db8::1/128", "2001:db8:0:1::/64", "10.1.2.3", "*", "nonsense/8", "a/b"),
]
ASKED = [
    "10.1.2.3",
    "10.1.9.9",
    "11.9.9.9",
    "0.0.0.0",
    "0:0:0:0:0:0:0:0",
    "2001:db8:0:0:0:0:0:1",
    "fe80:0:0:0:0:0:0:1%1",
    "name",
]


@given(st.lists(st.sampled_from(HOSTS)), st.lists(st.sampled_from(HOSTS)))
def test_the_ranges_that_contain_an_address(base, added):
    ranges = RangeHosts()
    ranges.add(base)
    for end in range(len(added) + 1):
        ranges.add_overlay(tuple(added[:end]))
    for host in ASKED:
        address = address_number(host)
        found = [] if address is None else sorted(ranges.containing(address))
        assert found == sorted({text for text in (*base, *added) if in_cidr(text, host)})


@settings(max_examples=examples(60), deadline=None)
@given(
    acls=st.lists(
        st.builds(
            acl,
            st.sampled_from(["t", "u"]),
            principal=st.sampled_from(["User:a", "User:*", "User:b"]),
            host=st.sampled_from(HOSTS),
            permission_type=st.sampled_from([2, 3]),
        ),
        unique=True,
        max_size=20,
    ),
    steps=st.lists(st.integers(0, 19), max_size=10),
)
def test_every_image_of_a_base_has_its_own_ranges(acls, steps):
    """Old images, and images with other changes on the same base, are asked in between."""
    rules = with_ids(acls)
    start = AclsImage.from_acls(rules[::2]).with_options(documented=False, cidr=True)
    images = [start]
    for number, step in enumerate(steps):
        if step < len(rules):
            image, rule = images[step % len(images) if number % 3 == 0 else -1], rules[step]
            images.append(image.apply([removal_of(rule) if image.get(rule.id) else record_of(rule)]))
        for image in (images[-1], images[0], images[len(images) // 2]):
            fresh = AclsImage.from_acls(list(image)).with_options(documented=False, cidr=True)
            for host in ASKED:
                asked = "User:a", host, 3, 2, "t"
                assert image.verdict(*asked) == fresh.verdict(*asked)
                assert image.rule(*asked) == fresh.rule(*asked)


@settings(max_examples=examples(60), deadline=None)
@given(
    pairs=st.lists(st.tuples(st.sampled_from(["User:a", "User:*", "User:b"]), st.sampled_from(HOSTS)), unique=True),
    asked=st.lists(st.tuples(st.sampled_from(["User:a", "User:b", "User:c"]), st.sampled_from(ASKED)), max_size=12),
)
def test_the_pairs_that_match_many_requests(pairs, asked):
    base = AclsImage.from_acls(with_ids([acl("t", principal=who, host=host) for who, host in pairs])).index.base
    principals, hosts = [list(dict.fromkeys(each)) for each in ([who for who, _ in asked], [at for _, at in asked])]
    principal_of = np.array([principals.index(who) for who, _ in asked], np.int32)
    host_of = np.array([hosts.index(host) for _, host in asked], np.int32)
    requests, found = np.arange(len(asked)), [set[int]() for _ in asked]
    for each in RangePairs.of(base).subject_pairs(principals, principal_of, hosts, host_of):
        for request, pair in zip(*each.of_requests(requests), strict=True):
            assert pair not in found[request]
            found[request].add(int(pair))
    for (principal, client), matching in zip(asked, found, strict=True):
        assert matching == {
            base.pair(who, host) for who, host in pairs if who in (principal, "User:*") and in_cidr(host, client)
        }


RULES = st.lists(
    st.builds(
        acl,
        st.sampled_from(["t", "u"]),
        principal=st.sampled_from(["User:a", "User:*", "User:b/c"]),
        host=st.sampled_from(HOSTS),
        operation=st.integers(2, 15),
        resource_type=st.sampled_from(list(ResourceType)[2:]),
        pattern_type=st.sampled_from([3, 4]),
        permission_type=st.sampled_from([2, 3]),
    ),
    unique=True,
    max_size=12,
)


@settings(max_examples=examples(60), deadline=None)
@given(base=RULES, added=RULES)
def test_what_all_ranges_say_by_type(base, added):
    rules = with_ids(list(dict.fromkeys([*base, *added])))
    image = AclsImage.from_acls(rules[: len(base)]).apply(map(record_of, rules[len(base) :]))
    expected = [0] * 8
    for each in rules:
        if is_cidr(each.acl.host):
            expected[each.acl.resource_type] |= rule_mask(each.acl.operation, each.acl.permission_type)
    for each in (image, image.merged()):
        assert range_masks(each.index) == expected


@pytest.mark.parametrize("cidr", [False, True])
def test_without_a_slash_nothing_is_a_range(cidr):
    plain, ranged = with_ids([acl("t", host="10.0.0.1"), acl("t", host="10.0.0.0/8")])
    image = AclsImage.from_acls([plain]).with_options(documented=False, cidr=cidr)
    assert (image.in_ranges, image.semantics) == (False, 0)
    changed = image.apply([record_of(ranged)])
    assert (changed.in_ranges, changed.semantics) == (cidr, IN_RANGES * cidr)
    assert (changed.merged().in_ranges, changed.merged().semantics) == (cidr, IN_RANGES * cidr)


def test_an_update_parses_what_it_brings(monkeypatch):
    parsed, real = [], acl_module.cidr_range
    monkeypatch.setattr(layout, "cidr_range", lambda text: parsed.append(text) or real(text))
    rules = with_ids([acl("t", principal="User:a", host=f"10.0.{number}.0/24") for number in range(100)])
    image = AclsImage.from_acls(rules).with_options(documented=False, cidr=True)

    def asked():
        parsed.clear()
        image.computed_mask("User:a", "10.0.7.7", 2, "t")  # the native core parses its own
        return len(parsed)

    assert asked() == 100
    plain, ranged, others = with_ids(
        [acl("u"), acl("u", principal="User:a", host="10.0.0.0/8"), acl("u", principal="User:b", host="10.0.0.0/8")],
        first=999,
    )
    for rule, expected in ((plain, 0), (others, 0), (ranged, 1)):
        image = image.apply([record_of(rule)])
        assert (asked(), asked()) == (expected, 0)


@pytest.mark.parametrize("host", ["10.0.0.1", "11.0.0.1"])
def test_a_range_that_was_removed_matches_no_longer(host):
    rule, other = with_ids(
        [acl("t", host="10.0.0.0/8", principal="User:a"), acl("t", host="11.0.0.0/8", principal="User:a")]
    )
    image = AclsImage.from_acls([rule]).apply([record_of(other)]).with_options(documented=False, cidr=True)
    assert image.verdict("User:a", host, 3, 2, "t").name == "ALLOW"
    image = image.apply([removal_of(rule), removal_of(other)])
    assert image.verdict("User:a", host, 3, 2, "t").name == "NO_CANDIDATE"
