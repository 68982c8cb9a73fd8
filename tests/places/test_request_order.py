from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.targets.cluster import independent_runs

NAMES = ["*", "a", "ab", "abc", "b", "ba", "c"]
ACLS = st.lists(
    st.builds(
        StandardAcl,
        resource_type=st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
        resource_name=st.sampled_from(NAMES),
        pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
        principal=st.sampled_from(["User:a", "User:b", "User:*"]),
        host=st.just("*"),
        operation=st.sampled_from([3, 4]),
        permission_type=st.just(3),
    ),
    unique=True,
    max_size=10,
)


def covered(acl):
    """The names of resources, of a few, that an ACL is for."""
    names = [*NAMES, "abcd", "zz"]
    if acl.pattern_type == PatternType.PREFIXED:
        found = {name for name in names if name.startswith(acl.resource_name)}
    else:
        found = set(names) if acl.resource_name == "*" else {acl.resource_name}
    return {(acl.resource_type, name) for name in found}


@given(ACLS)
def test_what_covers_a_name_in_common_keeps_its_order_and_is_never_in_one_run(acls):
    runs = independent_runs(acls)
    assert {acl for run in runs for acl in run} == set(acls)
    number = {acl: index for index, run in enumerate(runs) for acl in run}
    for first, second in combinations(acls, 2):
        if covered(first) & covered(second):
            assert number[first] < number[second]


def test_a_thousand_topics_need_as_many_runs_as_one_has_rules():
    acls = [
        StandardAcl(
            resource_type=ResourceType.TOPIC,
            resource_name=f"topic-{number // 4}",
            pattern_type=PatternType.LITERAL,
            principal=f"User:{number}",
            host="*",
            operation=3,
            permission_type=3,
        )
        for number in range(200)
    ]
    assert [len(run) for run in independent_runs(acls)] == [50, 50, 50, 50]
