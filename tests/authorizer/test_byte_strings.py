"""Many byte strings at once against the same one by one."""

from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.authorizer.index import layout
from aclog.authorizer.index.layout import ByteStrings, crc32s, numbered, sorted_rows

CORES = [None] if layout.native is None else [None, layout.native]
TEXTS = st.lists(st.binary(max_size=40) | st.sampled_from([b"", b"\0", b"\0" * 8, b"\0" * 9, b"a" * 8, b"a" * 17]))


def columns(texts):
    strings = ByteStrings.of(texts)
    return strings.data, strings.starts, strings.ends


@pytest.fixture(params=CORES, ids=["python", "native"][: len(CORES)], autouse=True)
def core(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "native", request.param)
        yield request.param


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=TEXTS)
def test_functions_of_many(texts):
    data, starts, ends = columns(texts)
    assert ByteStrings.of(texts).values() == texts
    assert crc32s(data, starts, ends).tolist() == [crc32(text) for text in texts]
    assert sorted_rows(data, starts, ends).tolist() == sorted(range(len(texts)), key=texts.__getitem__)
    backwards = np.arange(len(texts))[::-1]
    assert ByteStrings.of(texts).take(backwards).values() == texts[::-1]
    assert ByteStrings.of(texts).joined(ByteStrings.of(texts[:3])).values() == texts + texts[:3]


@pytest.mark.parametrize("many", [0, 1 << 40])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=TEXTS)
def test_numbered(texts, many):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "_MANY", many)
        data, starts, ends = columns(texts)
        distinct, numbers = numbered(data.tobytes(), starts, ends)
        found = distinct.values()
        assert len(set(found)) == len(found)
        assert [found[number] for number in numbers] == texts


def test_numbered_when_hashes_collide(monkeypatch):
    monkeypatch.setattr(layout, "native", None)
    monkeypatch.setattr(layout, "_MULTIPLIER", np.uint64(0))
    texts = [b"one", b"two", b"one", b"three"] * 2000
    data, starts, ends = columns(texts)
    distinct, numbers = numbered(data.tobytes(), starts, ends)
    found = distinct.values()
    assert sorted(found) == sorted(set(texts))
    assert [found[number] for number in numbers] == texts
