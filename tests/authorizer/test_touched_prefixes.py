"""Prefixes of an overlay found in order are those found by each length, whatever their number."""

from random import Random
from uuid import UUID

import pytest

from aclog.authorizer.acl import record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.authorizer.index import acl_index
from aclog.authorizer.index.acl_index import prefixes_among
from aclog.authorizer.index.layout import rule_mask
from aclog.metalog.records import RemoveAccessControlEntryRecord
from tests.support.builders.acls import acl
from tests.support.models.native_paths import through

TYPES = (ResourceType.TOPIC, ResourceType.GROUP)


def names_of(random, count):
    letters = random.choice(("ab", "a", "ab\U0001f600\ue000"))
    return sorted({"".join(random.choices(letters, k=random.randrange(12))) for _ in range(count)})


@pytest.mark.parametrize("seed", range(30))
def test_prefixes_among_names(seed):
    random = Random(seed)
    names = names_of(random, random.choice((0, 1, 5, 100)))
    for name in [*names_of(random, 20), *names]:
        expected = sorted((each for each in names if name.startswith(each)), key=len, reverse=True)
        assert list(prefixes_among(names, name)) == expected


@pytest.mark.parametrize("seed", range(8))
def test_decisions_do_not_depend_on_how_prefixes_are_found(seed, monkeypatch):
    random = Random(seed)
    monkeypatch.setattr(acl_index, "_MOST_PATTERNS", random.choice((0, 3, 1000)))
    rules = [
        acl(name, f"User:{random.randrange(3)}", pattern_type=random.choice((PatternType.PREFIXED,) * 3 + (3,)),
            resource_type=random.choice(TYPES), permission_type=random.choice((2, 3, 3)))
        for name in names_of(random, 150) if name
    ]  # fmt: skip
    rules += [acl("*", f"User:{who}", resource_type=kind) for who in range(3) for kind in TYPES]
    random.shuffle(rules)
    half = len(rules) // 2
    image = through(
        "python", AclsImage.empty().apply(record_of(rule, UUID(int=n)) for n, rule in enumerate(rules[:half]))
    )
    image = through("python", image.merged())
    changes = [record_of(rule, UUID(int=half + n)) for n, rule in enumerate(rules[half:])]
    changes += [RemoveAccessControlEntryRecord(id=UUID(int=n)) for n in random.sample(range(half), half // 3)]
    random.shuffle(changes)
    asked = [(f"User:{random.randrange(4)}", "10.0.0.1", kind, name) for kind in TYPES for name in names_of(random, 60)]
    for change in changes:
        image, answers = image.apply([change]), []
        some = random.sample(asked, 6)
        for few, pays in ((1 << 30, 1), (0, 1 << 30), (0, 8)):  # never listed, listed at once, listed after some
            monkeypatch.setattr(acl_index, "_FEW_LENGTHS", few)
            monkeypatch.setattr(acl_index, "_PAYS", pays)
            answers.append([image.index.mask(image.subject(*who), kind, name, False) for *who, kind, name in some])
        assert answers[0] == answers[1] == answers[2]
    assert any(image.index.mask(image.subject(*who), kind, name, False) for *who, kind, name in asked)


def naive_mask(rules, principal, host, kind, name):
    """The mask of these rules, each compared by itself."""
    mask = 0
    for rule in rules:
        is_prefix = rule.pattern_type == PatternType.PREFIXED
        covers = name.startswith(rule.resource_name) if is_prefix else name == rule.resource_name
        matches = rule.principal in {principal, "User:*"} and rule.host in {host, "*"}
        if covers and matches and rule.resource_type == kind:
            mask |= rule_mask(rule.operation, rule.permission_type)
    return mask


@pytest.mark.parametrize("seed", range(12))
def test_masks_after_removals_are_those_of_the_rules_that_are_left(seed, monkeypatch):
    """Of nested prefixes with several rules each, some of which are removed, and some added again."""
    random = Random(seed)
    monkeypatch.setattr(acl_index, "_FEW_LENGTHS", random.choice((1 << 30, 0)))
    monkeypatch.setattr(acl_index, "_MOST_PATTERNS", random.choice((0, 3, 1000)))
    monkeypatch.setattr(acl_index, "_PAYS", 1 << 30)
    names = [each for each in names_of(random, 40) if each]
    codes = range(2, 7)
    drawn = {
        acl(random.choice(names), f"User:{random.choice('012*')}", random.choice(("*", "10.0.0.1", "10.0.0.2")),
            operation=random.choice(codes), pattern_type=random.choice((PatternType.PREFIXED,) * 3 + (3,)),
            permission_type=random.choice((2, 3)))
        for _ in range(240)
    }  # fmt: skip
    rules = sorted(drawn, key=str)
    present = dict(enumerate(rules[:160]))
    image = AclsImage.empty().apply(record_of(rule, UUID(int=number)) for number, rule in present.items())
    image = through("python", through("python", image).merged())
    removed = []
    for number in range(160, 200):
        if number % 2:
            present[number] = removed.pop() if number % 4 == 1 else rules[number]
            change = record_of(present[number], UUID(int=number))
        else:
            gone = random.choice(sorted(present))
            removed.append(present.pop(gone))
            change = RemoveAccessControlEntryRecord(id=UUID(int=gone))
        image = image.apply([change])
        for _ in range(20):
            who, host = f"User:{random.randrange(4)}", f"10.0.0.{random.randrange(1, 4)}"
            name = random.choice(names) + random.choice(("", "a", "ab"))
            found = image.index.mask(image.subject(who, host), ResourceType.TOPIC, name, documented=False)
            assert found == naive_mask(present.values(), who, host, ResourceType.TOPIC, name)
