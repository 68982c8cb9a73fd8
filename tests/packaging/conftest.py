"""The wheel, built from the source distribution, and virtual environments that it is installed in."""

import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HANG_S = 1_800
"""Only a command that hangs takes longer: mypy checks all of aclog, in minutes on a busy machine."""


def build(source: Path, target: str, out: Path) -> Path:
    """Build one distribution of a source tree with the build back end that pyproject.toml names; the file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    [built] = out.iterdir()
    return built


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution."""
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as an installer builds it from the source distribution."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    [source] = unpacked.iterdir()
    return build(source, "wheel", tmp_path_factory.mktemp("wheel"))


class Environment:
    """A virtual environment with dependencies from the tests' own, but not their editable aclog."""

    def __init__(self, home: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
        self.python = home / "bin" / "python"
        self.packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(home), "platbase": str(home)}))
        # A plain path: Python does not process the .pth files in it, so the editable aclog stays out.
        (self.packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")

    def install(self, wheel: Path) -> None:
        """Install a wheel without its dependencies."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run its Python in a directory, with the directory's modules before all others, as for a user's script."""
        return subprocess.run(
            [str(self.python), *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=HANG_S
        )


@pytest.fixture
def bare(tmp_path: Path) -> Environment:
    """An environment without aclog, for one test."""
    return Environment(tmp_path / "venv")


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel in it, which no test changes: making one takes seconds."""
    environment = Environment(tmp_path_factory.mktemp("installed") / "venv")
    environment.install(wheel)
    return environment
