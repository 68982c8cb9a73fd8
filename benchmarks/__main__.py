"""`python -m benchmarks`: every figure in one run, printed as tables of ratios and kept under benchmarks/results.

The rival (the real StandardAuthorizer and Kafka's own readers, in a JVM beside) is asked in between, on the same data.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from aclog.pipeline.session import open_session
from benchmarks import (
    authorizing,
    batching,
    committing,
    deciding,
    log_reading,
    replaying,
    serving,
    tokens,
    topic_committing,
    updating,
    zookeeper,
)
from benchmarks.report import Row, keep, show
from benchmarks.rival import Rival

ROOT = Path(__file__).parents[1]


def decide(*, quick: bool) -> Iterator[Row]:
    with Rival() as rival:
        yield from deciding.run(rival, [10_000] if quick else [10_000, 50_000, 200_000], 50 if quick else 100)


def replay(*, quick: bool) -> Iterator[Row]:
    with Rival() as rival, tempfile.TemporaryDirectory() as scratch:
        yield from replaying.run(rival, Path(scratch), 100_000 if quick else 1_000_000)


def update(*, quick: bool) -> Iterator[Row]:
    yield from updating.run(100_000 if quick else 1_000_000, 500 if quick else 2_000)


def batch(*, quick: bool) -> Iterator[Row]:
    yield from batching.run(1_000_000 if quick else 10_000_000, 50_000 if quick else 500_000)


def commit(*, quick: bool) -> Iterator[Row]:
    scratch = ROOT / "build" / "bench"  # on the disk of the checkout: a temporary directory may be in memory
    scratch.mkdir(parents=True, exist_ok=True)
    yield from committing.run(1 if quick else 5, scratch)


def serve(*, quick: bool) -> Iterator[Row]:
    scratch = ROOT / "build" / "bench"
    scratch.mkdir(parents=True, exist_ok=True)
    yield from serving.run(scratch, 1 if quick else 5, 40 if quick else 400)


def topic(*, quick: bool) -> Iterator[Row]:
    scratch = ROOT / "build" / "bench"
    scratch.mkdir(parents=True, exist_ok=True)
    yield from topic_committing.run(scratch, 1 if quick else 10)


def token(*, quick: bool) -> Iterator[Row]:
    scratch = ROOT / "build" / "bench"
    scratch.mkdir(parents=True, exist_ok=True)
    yield from tokens.run(scratch, 100 if quick else 400)


def older(*, quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        yield from zookeeper.run(Path(scratch), 5_000 if quick else 100_000, 20 if quick else 300)


def spark(*, quick: bool) -> Iterator[Row]:
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as scratch:
        rows = 1_000_000 if quick else 10_000_000
        yield from authorizing.run(Path(scratch), rows, rows * 10, 1 if quick else 3)


def spark_columns(*, quick: bool) -> Iterator[Row]:
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as scratch:
        yield from authorizing.run_columns(Path(scratch), 1_000_000 if quick else 10_000_000, 1 if quick else 3)


def spark_log(*, quick: bool) -> Iterator[Row]:
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as scratch:
        session = open_session("local[2]", {"spark.local.dir": scratch})
        yield from log_reading.run(session, Path(scratch), 100_000 if quick else 1_000_000)
        session.stop()


PARTS: dict[str, tuple[str, Callable[..., Iterator[Row]]]] = {
    "decide": ("Decisions, beside the real StandardAuthorizer", decide),
    "replay": ("Replay into an authorizer that decides, beside Kafka's own readers", replay),
    "update": ("One update made visible", update),
    "batch": ("Many requests at once", batch),
    "serve": ("Nodes, beside a real Kafka", serve),
    "topic": ("Controllers on a topic of a real Kafka, beside its own controller", topic),
    "tokens": ("Delegation tokens, beside a real Kafka", token),
    "zookeeper": ("Rules in ZooKeeper, beside the real AclAuthorizer of Kafka 3.9", older),
    "spark": ("Batch authorization on Spark, beside the least that it can cost", spark),
    "spark-columns": ("Batch authorization on Spark with all columns out, beside passing them on", spark_columns),
    "spark-log": ("Reading a log as a table of Spark, beside the same source giving batches made before", spark_log),
    "commit": ("Group commit: 64 writers beside one", commit),
}


def _part(name: str, *, quick: bool) -> None:
    title, rows = PARTS[name]
    before = os.getloadavg()[0]
    found = list(rows(quick=quick))
    show(title, found)
    if not quick:
        keep(name, f"{title} (load average {before:.1f} before, {os.getloadavg()[0]:.1f} after)", found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[*PARTS, []], help="all of them unless named")
    parser.add_argument("--quick", action="store_true", help="small and short; nothing is kept")
    arguments = parser.parse_args()
    if len(arguments.parts) == 1:
        _part(arguments.parts[0], quick=arguments.quick)
        return
    for name in arguments.parts or PARTS:  # each in a process of its own: no part pays for what another left behind
        command = [sys.executable, "-m", "benchmarks", name, *(["--quick"] if arguments.quick else [])]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
