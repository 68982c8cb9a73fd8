"""Which native core is used, and what it does to many keys at once."""

import sys
import tomllib
from pathlib import Path
from random import Random
from types import ModuleType
from zlib import crc32

import numpy as np
import pytest
from crc32c import crc32c

from aclog.authorizer.index import layout
from aclog.metalog.native import NATIVE_VERSION, load_native, native
from tests.support.models.native_paths import PATHS

NATIVE = Path(__file__).parents[2] / "native"
needs_core = pytest.mark.skipif("native" not in PATHS, reason="NATIVE=0: the tests are told to do without the core")


def pretend(monkeypatch: pytest.MonkeyPatch, version: str) -> str:
    module = ModuleType("pretended_native")
    module.VERSION = version
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.__name__


def test_one_that_is_installed_is_used(monkeypatch):
    name = pretend(monkeypatch, NATIVE_VERSION)
    assert load_native({}, name) == (sys.modules[name], f"native core {NATIVE_VERSION}")


def test_one_of_another_version_is_not_used(monkeypatch):
    found, text = load_native({}, pretend(monkeypatch, "9.9"))
    assert found is None
    assert text == f"no native core: aclog-native 9.9 is installed, and {NATIVE_VERSION} is needed"


def test_one_that_is_turned_off_is_not_used(monkeypatch):
    name = pretend(monkeypatch, NATIVE_VERSION)
    assert load_native({"ACLOG_NATIVE": "0"}, name) == (None, "no native core: ACLOG_NATIVE is 0")


def test_one_that_is_missing_or_broken(monkeypatch, tmp_path):
    assert load_native({}, "no_such_native") == (None, "no native core: aclog-native is not installed")
    (tmp_path / "broken_native.py").write_text("raise ImportError('undefined symbol')\n")
    monkeypatch.syspath_prepend(tmp_path)
    text = "no native core: aclog-native cannot be loaded (undefined symbol)"
    assert load_native({}, "broken_native") == (None, text)


def test_versions_agree():
    project = tomllib.loads((NATIVE / "pyproject.toml").read_text())["project"]
    extras = tomllib.loads((NATIVE.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert project["version"] == NATIVE_VERSION
    assert extras["native"] == [f"aclog-native=={NATIVE_VERSION}"]
    assert f'#define VERSION "{NATIVE_VERSION}"' in (NATIVE / "src" / "python.h").read_text()
    assert (NATIVE / "LICENSE").read_bytes() == (NATIVE.parent / "LICENSE").read_bytes()
    assert f"#define LAYOUT {layout.VERSION} " in (NATIVE / "src" / "layout.h").read_text()


def columns_of(values):
    ends = np.cumsum([len(value) for value in values], dtype=np.int64) if values else np.zeros(0, np.int64)
    return b"".join(values), ends - np.array([len(value) for value in values], np.int64), ends


@needs_core
@pytest.mark.parametrize("seed", range(40))
def test_many_keys_at_once(seed):
    random = Random(seed)
    stem = b"stem-" * random.randrange(4)
    values = [stem + bytes(random.choices(b"ab\0\xff", k=random.randrange(14))) for _ in range(random.randrange(80))]
    slices = columns_of(values)
    numbers, firsts = (np.frombuffer(found, np.int32).tolist() for found in native.number(*slices))
    distinct = list(dict.fromkeys(values))
    assert ([distinct[number] for number in numbers], [values[row] for row in firsts]) == (values, distinct)
    assert np.frombuffer(native.crc32(*slices), np.uint32).tolist() == list(map(crc32, values))
    in_order = sorted(range(len(values)), key=values.__getitem__)
    assert np.frombuffer(native.order(*slices), np.int32).tolist() == in_order
    rows = np.array(in_order, np.int64)
    assert native.cut(slices[0], slices[1][rows], slices[2][rows]) == b"".join(sorted(values))


@needs_core
@pytest.mark.parametrize("function", ["number", "crc32", "order", "cut"])
@pytest.mark.parametrize(
    ("starts", "ends"), [([0], [4]), ([2], [1]), ([-1], [1]), ([0], [-1]), ([1 << 62], [1 << 62]), ([0, 1], [1])]
)
def test_slices_beyond_the_buffer_are_refused(function, starts, ends):
    with pytest.raises(ValueError, match=r"slice 0|starts and ends"):
        getattr(native, function)(b"abc", np.array(starts, np.int64), np.array(ends, np.int64))


@needs_core
@pytest.mark.parametrize(
    ("starts", "ends", "counts"),
    [([0], [4], [0]), ([2], [1], [0]), ([-1], [1], [0]), ([0], [-1], [0]), ([0, 1], [1], [1]), ([0], [1], [0, 0])],
)
def test_batches_beyond_the_buffer_are_refused(starts, ends, counts):
    with pytest.raises(ValueError, match=r"does not lie|as many int64"):
        native.values(b"abc", *(np.array(each, np.int64) for each in (starts, ends, counts)))


@needs_core
@pytest.mark.parametrize("count", [1, 9, 1 << 62, -1])
def test_a_count_beyond_its_batch_ends_the_values(count):
    columns = (np.array([each], np.int64) for each in (0, 64, count))
    assert native.values(bytes(64), *columns) == (b"", b"", 0)


@needs_core
def test_checksums_are_those_of_the_package():
    random = Random(1)
    for size in (0, 1, 7, 8, 9, 200, 70_000):
        data, before = random.randbytes(size), random.randrange(1 << 32)
        assert native.crc32c(data, before) == crc32c(data, before)
        assert native.crc32c(memoryview(data)[size // 2 :], native.crc32c(data[: size // 2], 0)) == crc32c(data)


@needs_core
@pytest.mark.parametrize(("position", "error"), [(-1, ValueError), (1 << 99, OverflowError), ("0", TypeError)])
def test_batches_begin_at_a_position(position, error):
    assert native.batches(b"abc", 1 << 40, True) == (b"", -1)
    with pytest.raises(error):
        native.batches(b"abc", position, True)


@needs_core
@pytest.mark.parametrize("arguments", [(), (b"", b""), (b"", "", b""), (None, b"", b"")])
def test_other_arguments_are_refused(arguments):
    with pytest.raises(TypeError):
        native.number(*arguments)
