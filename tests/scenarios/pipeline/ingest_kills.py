"""Each line once: `aclog spark ingest --follow` over logs that grow and are rotated, killed at random and restarted.

    python -m tests.scenarios.pipeline.ingest_kills --kills 20 --seed 1

A thread writes lines in pieces, rotates the log and compresses the older ones. The command is killed with SIGKILL,
its JVM included, most times around an append. At the end the table must have every line exactly once.
"""

import argparse
import gzip
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds
from attrs import define, field, frozen

from tests.support.processes.waiting import wait_until
from tests.support.spark.access_logs import audit_text
from tests.support.spark.jvm import submit_arguments

_PATIENCE = 180.0


@frozen(kw_only=True)
class Pace:
    """How the logs grow: lines between two chances of a rotation, pauses (s), and the most rotations by chance."""

    lines: int = 300
    pause: float = 0.003
    rotations: int = sys.maxsize


FULL_PACE = Pace()


@frozen(kw_only=True)
class Outcome:
    """The result of a campaign."""

    kills: int
    staged: int
    """The kills that left an append begun and not committed, or committed and not moved."""
    appends: int
    written: int
    rows: int
    distinct: int
    rotations: int
    seconds: float

    @property
    def once(self) -> bool:
        return self.written == self.rows == self.distinct

    def __str__(self):
        return (
            f"{self.kills} kills in {self.seconds:.0f} s, {self.staged} of them in the middle of an append; "
            f"{self.appends} appends, {self.rotations} rotations, {self.written} lines written; "
            f"the table: {self.rows} rows, {self.distinct} distinct: "
            f"{'each line once' if self.once else 'NOT EACH LINE ONCE'}"
        )


@define
class Writer:
    """Writes numbered lines into `app.log` of a directory, and rotates it, as log4j and logrotate do."""

    logs: Path
    seed: int
    pace: Pace
    written: int = field(init=False, default=0)
    rotations: int = field(init=False, default=0)

    def run(self, stop: threading.Event) -> None:
        """Write until `stop` is set; the last line is whole."""
        rnd = random.Random(self.seed)
        while not stop.is_set():
            with (self.logs / "app.log").open("a") as log:
                for _ in range(rnd.randrange(self.pace.lines)):
                    line = audit_text(name=f"t-{self.written}") + "\n"
                    cut = rnd.randrange(len(line))
                    for piece in (line[:cut], line[cut:]):
                        log.write(piece)
                        log.flush()
                        stop.wait(rnd.uniform(0, self.pace.pause))
                    self.written += 1
                    if stop.is_set():
                        return
            if rnd.random() < 0.1 and self.rotations < self.pace.rotations:
                self.rotate()

    def rotate(self) -> None:
        """Rename the log, and compress the one before it."""
        self.rotations += 1
        (self.logs / "app.log").rename(self.logs / f"app.log.{self.rotations}")
        older = self.logs / f"app.log.{self.rotations - 1}"
        if older.exists():
            partial = self.logs / f".{older.name}.gz"
            partial.write_bytes(gzip.compress(older.read_bytes()))
            partial.rename(self.logs / f"{older.name}.gz")
            older.unlink()


@contextmanager
def _writing(writer: Writer):
    stop = threading.Event()
    thread = threading.Thread(target=writer.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _start(home: Path, *flags: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "aclog", "spark", "ingest", str(home / "logs"), "--out", str(home / "table")]
    scratch = {"spark.local.dir": str(home / "scratch")}
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": submit_arguments(scratch)}
    with (home / "command.log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--master", "local[2]", *flags],
            stdout=log, stderr=log, start_new_session=True, env=environment,
        )  # fmt: skip


def _appends(home: Path) -> int:
    """The appends that have moved files into the table."""
    return len({path.name.split("-")[0] for path in (home / "table" / "accesses").glob("day=2026*/*.parquet")})


def _kill_in(home: Path, rnd: random.Random, *, early: bool) -> bool:
    """Start the command, kill it, and return whether it was in the middle of an append."""
    process = _start(home, "--follow", "--interval", "0.01")
    try:
        if not early:
            wanted, deadline = _appends(home) + rnd.randrange(1, 4), time.monotonic() + _PATIENCE
            while _appends(home) < wanted:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise RuntimeError((home / "command.log").read_text()[-3000:])
                time.sleep(0.002)
        time.sleep(rnd.uniform(0, 0.6))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return (home / "table" / "_staging").exists()


def run(home: Path, kills: int, seed: int, pace: Pace = FULL_PACE) -> Outcome:
    """Run the campaign; every fifth kill falls into the start, and the log is rotated before the last run."""
    rnd, began, staged = random.Random(seed), time.monotonic(), 0
    (home / "logs").mkdir()
    writer = Writer(home / "logs", seed, pace)
    with _writing(writer):
        for number in range(kills):
            staged += _kill_in(home, rnd, early=number % 5 == 4)
            print(f"kill {number + 1}: {_appends(home)} appends", file=sys.stderr, flush=True)
        counted = writer.written  # one more may be whole, and taken
        wait_until(lambda: writer.written > counted + 1, "a line that no append has taken", _PATIENCE)
    writer.rotate()
    last = _start(home, "--append")
    if last.wait(_PATIENCE):
        raise RuntimeError((home / "command.log").read_text()[-3000:])
    table = ds.dataset(home / "table" / "accesses", format="parquet").to_table(columns=["resourceName"])
    found = Counter(table["resourceName"].to_pylist())
    return Outcome(
        kills=kills,
        staged=staged,
        appends=_appends(home),
        written=writer.written,
        rows=found.total(),
        distinct=len(found),
        rotations=writer.rotations,
        seconds=time.monotonic() - began,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="ingest-kills-"))
    outcome = run(home, arguments.kills, arguments.seed)
    print(outcome)
    if outcome.once:
        shutil.rmtree(home)
    else:
        print(f"kept: {home}", file=sys.stderr)
    return 0 if outcome.once else 1


if __name__ == "__main__":
    sys.exit(main())
