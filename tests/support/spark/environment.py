"""A packed virtual environment, as docs/spark.md has users make one for workers that have nothing installed."""

import subprocess
import sys
import sysconfig
import tarfile
from importlib.metadata import distribution
from pathlib import Path

from tests.packaging.requirements import needed, requirements

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
        for name in needed(requirements("spark")) - {"pyspark", "py4j"}:
            package = distribution(name)
            for file in package.files or ():
                # with the compiled modules: each executor would compile them anew
                if not _UNUSED & {*file.parts}:
                    tar.add(package.locate_file(file), packages / file)
    return archive
