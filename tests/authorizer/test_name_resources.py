"""The patterns that cover many names, found in columns, against those of each name alone."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.authorizer.index import layout
from aclog.authorizer.index.name_resources import MANY, NameResources, in_columns, one_by_one
from tests.support.builders.acls import acl
from tests.support.builders.images import with_ids
from tests.support.runs.profiles import examples

CORES = [None] if layout.native is None else [None, layout.native]
PARTS = st.sampled_from(["a", "b", "*", ".", "\0", "é", "😀", "\ue000", "abcdefg", "aaaaaaaaaaaaaaaaa"])
NAMES = st.lists(PARTS, max_size=5).map("".join)
ASKED = st.lists(PARTS | st.sampled_from(["\ud800", "\udfff"]), max_size=6).map("".join)
KINDS = st.sampled_from([ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP])
PATTERNS = st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED, PatternType.PREFIXED])
RULES = st.builds(acl, NAMES, resource_type=KINDS, pattern_type=PATTERNS)


@pytest.fixture(params=CORES, ids=["python", "native"][: len(CORES)], autouse=True)
def core(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "native", request.param)
        yield request.param


def base_of(rules):
    return AclsImage.from_acls(with_ids(list(dict.fromkeys(rules)))).index.base


def equal(base, asked, *, documented=False) -> bool:
    kinds, names = [int(kind) for kind, _ in asked], [name for _, name in asked]
    expected, columns = (each(base, kinds, names, documented=documented) for each in (one_by_one, in_columns))
    return [each.tolist() for each in expected] == [each.tolist() for each in columns]


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rules=st.lists(RULES, max_size=30),
    asked=st.lists(st.tuples(KINDS | st.just(ResourceType.UNKNOWN), ASKED | NAMES), unique=True, max_size=30),
    documented=st.booleans(),
    crowded=st.booleans(),
)
def test_in_columns(rules, asked, documented, crowded):
    base = base_of(rules)
    asked += [(rule.resource_type, rule.resource_name) for rule in rules]
    with pytest.MonkeyPatch.context() as patch:
        if crowded:  # every name is then found by bisection, as in a crowded bucket
            patch.setattr(layout, "CROWDED", 0)
        assert equal(base, list(dict.fromkeys(asked)), documented=documented)


def test_deep_prefixes():
    base = base_of([acl("a" * n, pattern_type=PatternType.PREFIXED) for n in range(1, 400)])
    assert equal(base, [(ResourceType.TOPIC, "a" * n + end) for n in range(0, 450, 7) for end in ("", "b", "\0")])


def test_many_names_are_found_in_columns(monkeypatch):
    base, names = base_of([acl("t")]), [f"t{n}" for n in range(MANY)]
    kinds = [int(ResourceType.TOPIC)] * MANY
    monkeypatch.setattr("aclog.authorizer.index.name_resources.one_by_one", None)
    assert NameResources.of(base, kinds, names, documented=False).starts.tolist() == [0] * (MANY + 1)
