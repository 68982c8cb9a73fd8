"""How the JVMs of a Spark in tests are started: quickly, since they are short-lived."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyspark

from tests.support.kafka.jvm import BUILD, QUICK, ROOT, archive_options

ARCHIVE = BUILD / f"spark-{pyspark.__version__}.jsa"
"""Of the version that runs: `make check-spark` runs the tests on others."""
_LOG = ROOT / "tests" / "data" / "kafka-4.3.1-small" / "__cluster_metadata-0"


def options() -> str:
    """The flags of a driver, an executor, a master and a worker."""
    return " ".join([*QUICK, *archive_options(ARCHIVE)])


def settings() -> dict[str, str]:
    """The settings of a session for small jobs on little data."""
    return {
        "spark.driver.defaultJavaOptions": options(),
        "spark.executor.defaultJavaOptions": options(),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }


def submit_arguments(more: Mapping[str, str]) -> str:
    """PYSPARK_SUBMIT_ARGS for a command that opens a session of its own: these settings, and more."""
    pairs = (f"{name}={value}" for name, value in {**settings(), **more}.items())
    return shlex.join([*(word for pair in pairs for word in ("--conf", pair)), "pyspark-shell"])


def make_archive() -> None:
    """Archive the classes that a session loads for a table, a query and a Parquet file, once for each Spark."""
    jars = Path(pyspark.__file__).parent / "jars"
    if ARCHIVE.exists() and ARCHIVE.stat().st_mtime > jars.stat().st_mtime:
        return
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    part = ARCHIVE.with_suffix(".part")
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", __name__, str(part), scratch], check=True, capture_output=True, cwd=ROOT)
    part.rename(ARCHIVE)


def main() -> None:
    """Run a session that archives its classes at its end."""
    from aclog.pipeline.session import open_session

    part, scratch = sys.argv[1:]
    flags = " ".join([*QUICK, f"-XX:ArchiveClassesAtExit={part}", "-Xlog:disable"])
    session = open_session("local[2]", {"spark.driver.defaultJavaOptions": flags, "spark.local.dir": scratch})
    table = session.read.format("aclog").load(str(_LOG))
    table.select("offset", "batch_offset", "timestamp", "record_type", "acl").write.parquet(f"{scratch}/out")
    read = session.read.parquet(f"{scratch}/out")
    read.exceptAll(read).count()
    read.groupBy("record_type").count().orderBy("record_type").toArrow()
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(120)


if __name__ == "__main__":
    main()
