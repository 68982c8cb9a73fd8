"""Prefixes of an overlay found in order are those found by each length, whatever their number."""

from random import Random
from uuid import UUID

import pytest

from aclog.authorizer.acl import record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.authorizer.index import acl_index
from aclog.authorizer.index.acl_index import prefixes_among
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
    rules = [
        acl(name, f"User:{random.randrange(3)}", pattern_type=random.choice((PatternType.PREFIXED,) * 3 + (3,)),
            resource_type=random.choice(TYPES), permission_type=random.choice((2, 3, 3)))
        for name in names_of(random, 150) if name
    ]  # fmt: skip
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
