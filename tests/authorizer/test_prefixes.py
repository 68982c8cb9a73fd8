"""The prefixes of a name against the definition, and the number of comparisons on adversarial sets."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.index.prefixes import Prefixes

NAMES = st.text(st.sampled_from("abé😀\ue000"), max_size=6)


def prefixes_of(names: list[str]) -> Prefixes:
    encoded = pa.array([name.encode() for name in names], pa.binary())
    return Prefixes.of(encoded, np.arange(len(names), dtype=np.int32))


@given(names=st.lists(NAMES, unique=True, max_size=30), asked=NAMES)
def test_chain(names, asked):
    prefixes = prefixes_of(names)
    expected = sorted((name for name in names if asked.startswith(name)), key=len, reverse=True)
    nodes = list(prefixes.chain(asked))
    assert [prefixes.names[node] for node in nodes] == expected
    assert [names[prefixes.resources[node]] for node in nodes] == expected


class CountingName(str):
    """A name that counts its comparisons."""

    __slots__ = ("count",)

    def startswith(self, *args):
        self.count = getattr(self, "count", 0) + 1
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
    prefixes, name = prefixes_of(names), CountingName(asked)
    found = prefixes.names[prefixes.longest(name)]
    assert found == max((n for n in names if asked.startswith(n)), key=len)
    assert name.count <= 60
