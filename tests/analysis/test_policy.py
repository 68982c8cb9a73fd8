"""Names of one cluster as another one has them."""

import pytest

from aclog.analysis.policy import mapped_acls, parse_name_maps
from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from tests.support.builders.acls import acl, cluster_acl

PREFIXED = PatternType.PREFIXED


def mapped(rules, *maps):
    image = AclsImage.from_acls(StandardAclWithId(id=None, acl=rule) for rule in rules)
    return {rule.acl for rule in mapped_acls(image, parse_name_maps(maps))}


def prefixed(name):
    return acl(name, pattern_type=PREFIXED)


def test_names_of_three_types_begin_otherwise():
    kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    same = [cluster_acl("User:a", 3), acl("eu.t", resource_type=ResourceType.USER), acl("*"), acl("other")]
    rules = [acl("eu.t", resource_type=kind, pattern_type=pattern) for kind in kinds for pattern in (3, 4)]
    new = [acl("us.t", resource_type=kind, pattern_type=pattern) for kind in kinds for pattern in (3, 4)]
    assert mapped([*rules, *same], "eu.=us.") == {*new, *same}


def test_the_longest_beginning_counts_and_each_name_is_mapped_once():
    assert mapped([acl("a.x"), acl("a.b.x"), prefixed("a.b."), acl("b.x")], "a.=b.", "a.b.=c.", "b.=d.") == {
        acl("b.x"), acl("c.x"), prefixed("c."), acl("d.x"),
    }  # fmt: skip


def test_all_names_can_get_a_beginning_or_lose_one():
    assert mapped([acl("t"), prefixed("p"), prefixed(""), acl("*")], "=eu.") == {
        acl("eu.t"), prefixed("eu.p"), prefixed("eu."), acl("*"),
    }  # fmt: skip
    assert mapped([acl("eu.t"), prefixed("eu.")], "eu.=") == {acl("t"), prefixed("")}


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([prefixed("e")], "TOPIC PREFIXED 'e' is shorter than 'eu.'"),
        ([prefixed("")], "TOPIC PREFIXED '' is shorter than 'eu.'"),
        ([acl("eu.t"), acl("us.t")], "would both be 'us.t': two names become one"),
        ([prefixed("eu."), acl("us.t")], "'us.t' and 'eu.t' would both be 'us.t': two names become one"),
        ([acl("eu.t"), prefixed("us.")], "would both be 'us.t': two names become one"),
        ([acl("eu.t"), prefixed("u")], "would both be 'us.t': two names become one"),
    ],
)
def test_what_cannot_be_mapped_is_refused(rules, said):
    with pytest.raises(ConfigError) as refused:
        mapped(rules, "eu.=us.")
    assert said in str(refused.value)


def test_names_of_different_types_are_different():
    assert len(mapped([acl("eu.t"), acl("us.t", resource_type=ResourceType.GROUP)], "eu.=us.")) == 2


@pytest.mark.parametrize(("maps", "said"), [(["a"], "expected OLD=NEW"), (["a=b", "a=c"], "mapped twice")])
def test_malformed_maps_are_refused(maps, said):
    with pytest.raises(ConfigError, match=said):
        parse_name_maps(maps)
