"""The prefixes of a name against the definition, and the number of comparisons on adversarial sets."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index.base import build, rows_of_acls
from aclog.authorizer.index.layout import Prefixes

NAMES = st.text(st.sampled_from("abé😀\ue000"), max_size=6)
TOPIC = int(ResourceType.TOPIC)


def prefixes_of(names: list[str]) -> Prefixes:
    acls = [
        StandardAcl(
            resource_type=kind,
            resource_name=name,
            pattern_type=PatternType.PREFIXED,
            principal="User:a",
            host="*",
            operation=AclOperation.READ,
            permission_type=AclPermissionType.ALLOW,
        )
        for kind, some in ((ResourceType.GROUP, names[::2]), (ResourceType.TOPIC, names))
        for name in some
    ]
    rules = [StandardAclWithId(id=UUID(int=number + 1), acl=acl) for number, acl in enumerate(acls)]
    return build(rows_of_acls(rules)).prefixes


@given(names=st.lists(NAMES, unique=True, max_size=30), asked=NAMES)
def test_chain(names, asked):
    prefixes = prefixes_of(names)
    expected = sorted((name for name in names if asked.startswith(name)), key=len, reverse=True)
    for _ in range(3):  # by and by the names are listed
        nodes = list(prefixes.chain(TOPIC, asked.encode()))
        assert [prefixes.name(node).decode() for node in nodes] == expected


class CountingName(bytes):
    """A name that counts its comparisons."""

    def startswith(self, *args):
        self.comparisons = getattr(self, "comparisons", 0) + 1
        return super().startswith(*args)


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (["a" * n for n in range(1, 1001)], "a" * 3 + "b"),
        (["a" * n for n in range(1, 1001)], "a" * 999 + "b"),
        (["a" + "b" * n for n in range(1000)] + [f"a{'b' * 999}{n:05}" for n in range(5000)], "a" + "b" * 500 + "c"),
        (["", *(f"{n:06}" for n in range(20000))], "00a"),
    ],
)
def test_few_steps(names, asked):
    prefixes, name = prefixes_of(names), CountingName(asked.encode())
    found = prefixes.name(prefixes.longest(TOPIC, name)).decode()
    assert found == max((n for n in names if asked.startswith(n)), key=len)
    assert name.comparisons <= 60
