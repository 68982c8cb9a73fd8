"""A packed virtual environment, as docs/spark.md has users make one for workers that have nothing installed."""

import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[3]
_UNUSED = frozenset({"..", "include", "src", "tests"})


def pack_environment(scratch: Path) -> Path:
    """Return `environment.tar.gz` in `scratch`: a Python with aclog and what it needs, but without Spark."""
    home, archive = scratch / "packed", scratch / "environment.tar.gz"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": ".", "platbase": "."}))
    # not compressed: the driver and both workers unpack it
    with tarfile.open(archive, "w:gz", compresslevel=0) as tar:
        tar.add(home, ".")
        for name in ("aclog", "pyspark_aclog"):
            tar.add(ROOT / name, packages / name)
        for found in _needed("aclog", set()):
            for file in found.files or ():
                # with the compiled modules: each executor would compile them anew
                if not _UNUSED & {*file.parts}:
                    tar.add(found.locate_file(file), packages / file)
    return archive


def _needed(name: str, seen: set[str]) -> Iterator[Distribution]:
    """The installed distributions that this one requires, extras apart, and those that they require."""
    for requirement in distribution(name).requires or ():
        needed = re.split(r"[^\w.-]", requirement)[0].lower()
        # what is required on another platform only is not installed
        if "extra ==" not in requirement and needed not in seen and any(distributions(name=needed)):
            seen.add(needed)
            yield distribution(needed)
            yield from _needed(needed, seen)
