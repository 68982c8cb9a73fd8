"""Odd rules found by their parts are those found by looking at each rule."""

from random import Random
from uuid import UUID

import pytest

from aclog.authorizer.acl import reasons_unmatched, record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.control import refusal
from aclog.metalog.records import RemoveAccessControlEntryRecord
from tests.support.analysis.policies import distinct, image_of, random_rule


def is_odd(acl):
    return "/" in acl.host or refusal(acl) is not None or any(reasons_unmatched(acl, cidr=True))


@pytest.mark.parametrize("seed", range(10))
def test_by_parts_as_one_by_one(seed):
    random = Random(seed)
    rules = distinct([random_rule(random, odd=(0, 3, 40)[seed % 3], cidr=True) for _ in range(300)])
    image = image_of(rules)
    for turn in range(2):
        assert list(image.odd_rules(is_odd)) == [rule for rule in image if is_odd(rule.acl)]
        gone = random.sample(list(image), 20)
        added = [
            rule for rule in distinct([random_rule(random, odd=30) for _ in range(10)]) if image.find(rule) is None
        ]
        changes = [RemoveAccessControlEntryRecord(id=rule.id) for rule in gone if rule.id is not None]
        image = image.apply([*changes, *(record_of(rule, UUID(int=100 * turn + n)) for n, rule in enumerate(added))])
        assert sorted(map(str, image.odd_rules(is_odd))) == sorted(str(rule) for rule in image if is_odd(rule.acl))
        image = image.merged()


def test_no_rules():
    assert list(AclsImage.empty().odd_rules(is_odd)) == []
