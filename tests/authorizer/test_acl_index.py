"""The names of overlays in order, whichever version is asked after which other."""

from secrets import token_bytes

from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.authorizer.index.acl_index import touched_names
from aclog.metalog.primitives import random_uuid
from aclog.metalog.records import RemoveAccessControlEntryRecord
from tests.support.builders.acls import acl

NAMES = st.text("ab-\U0010ffff", max_size=4)
PATTERNS = st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])
TYPES = st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP])
RULES = st.builds(lambda name, pattern, kind: (name, pattern, kind), NAMES, PATTERNS, TYPES)


def image_of(rules, start=None):
    image = start or AclsImage.empty()
    for name, pattern, kind in rules:
        rule = acl(name, pattern_type=pattern, resource_type=kind)
        known = image.find(rule)
        image = image.apply(
            (record_of(rule, random_uuid(token_bytes)) if known is None else RemoveAccessControlEntryRecord(id=known),)
        )
    return image


def naive(image, kind, prefix, literal):
    return sorted(
        name
        for (its_kind, name, is_literal), _ in image.index.overlay.resources()
        if its_kind == kind and is_literal == literal and name.startswith(prefix)
    )


@given(st.lists(RULES, max_size=40), st.lists(st.lists(RULES, max_size=12), min_size=1, max_size=4), NAMES, st.data())
def test_each_version_has_its_own(common, changes, prefix, data):
    base = image_of(common).merged()
    versions = [base]
    for each in changes:
        versions.append(image_of(each, data.draw(st.sampled_from(versions))))
    for image in data.draw(st.permutations(versions)):
        found = touched_names(image.index)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP):
            for literal in (False, True):
                under = [each for each in found.under(kind, prefix) if each.literal == literal]
                assert [each.name for each in under] == naive(image, kind, prefix, literal)
                assert all(
                    each.touched is image.index.overlay.resource(kind, each.name, literal=literal) for each in under
                )
