"""The native core as a package: a C compiler alone makes one wheel for all Pythons of its source distribution."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT
from tests.support.models.native_paths import PATHS

pytestmark = [
    pytest.mark.slow(5),
    pytest.mark.skipif("native" not in PATHS, reason="NATIVE=0: the tests are told to do without the core"),
]


def run(hook: str, source: Path, out: Path) -> Path:
    """Call a hook of the build back end in a source tree; what it has built."""
    code = f"import sys; from setuptools import build_meta; build_meta.{hook}(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(out)], cwd=source, check=True, capture_output=True, text=True)
    [built] = out.iterdir()
    return built


@pytest.fixture(scope="module")
def native_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("tree") / "native"
    shutil.copytree(ROOT / "native", tree, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    sdist = run("build_sdist", tree, tmp_path_factory.mktemp("sdist"))
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    [source] = unpacked.iterdir()
    return run("build_wheel", source, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_serves_every_later_python(native_wheel: Path):
    assert native_wheel.name.startswith("aclog_native-")
    assert "-cp311-abi3-" in native_wheel.name
    with zipfile.ZipFile(native_wheel) as archive:
        top = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"aclog_native.abi3.so"}


def test_aclog_uses_what_is_in_it(native_wheel: Path, tmp_path: Path):
    with zipfile.ZipFile(native_wheel) as archive:
        archive.extractall(tmp_path)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from aclog.metalog.native import native; print(native.__file__)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(tmp_path / "aclog_native.abi3.so")
