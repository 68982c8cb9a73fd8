"""Exactly once: a stream over a log that grows and rolls its segments is killed at random and restarted each time.

    python -m tests.scenarios.pipeline.stream_kills --kills 20 --seed 1

A writer process appends batches of ACLs; a streaming job, in its own process, writes them to Parquet. It is killed
with SIGKILL, including its JVM. At the end the sink must have every record of the log exactly once.
"""

import argparse
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from attrs import define, field, frozen

from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_log, open_reader
from aclog.metalog.filelog.files import list_segments
from aclog.metalog.records import AccessControlEntryRecord
from tests.support.builders.acls import acl, acl_record
from tests.support.spark.jvm import settings
from tests.support.spark.session import finished

SEGMENT_BYTES = 32 << 10
ROWS_A_TRIGGER = 2000
START_SECONDS, END_SECONDS = 180, 300
_LAST_SECONDS = 1.5
"""The approximate time of a micro-batch (s): kills fall anywhere in it."""


@frozen(kw_only=True)
class Outcome:
    """The result of a campaign; `in_flight` counts the kills that left a micro-batch begun but not committed."""

    kills: int
    in_flight: int
    micro_batches: int
    segments: int
    records: int
    rows: int
    distinct: int
    different: int
    seconds: float

    @property
    def exactly_once(self) -> bool:
        return self.records == self.rows == self.distinct and not self.different

    def __str__(self):
        return (
            f"{self.kills} kills in {self.seconds:.0f} s, "
            f"a micro-batch begun and not committed after {self.in_flight}; "
            f"{self.records} records in {self.segments} segments, {self.micro_batches} micro-batches; "
            f"the sink: {self.rows} rows, {self.distinct} offsets, {self.different} rows unlike the log's: "
            f"{'each record once' if self.exactly_once else 'NOT EXACTLY ONCE'}"
        )


@define
class Job:
    """The paths of the streaming job, and its current process."""

    home: Path
    _process: subprocess.Popen | None = field(init=False, default=None)

    def start(self, role: str) -> None:
        """Start the job in its own process session."""
        with (self.home / "job.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __spec__.name if __name__ == "__main__" else __name__, role, str(self.home)],
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_it_runs(self) -> None:
        line = self._process.stdout.readline()
        if line != b"started\n":
            raise RuntimeError(f"the job did not start: {(self.home / 'job.log').read_text()[-3000:]}")

    def wait_for(self, micro_batches: int) -> None:
        """Wait until so many micro-batches are committed."""
        deadline = time.monotonic() + START_SECONDS
        while self.micro_batches < micro_batches:
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"the job does not go on: {(self.home / 'job.log').read_text()[-3000:]}")
            time.sleep(0.01)

    def kill(self) -> None:
        """Send SIGKILL to the job and its JVM; Python workers exit when the JVM is gone."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()

    def result(self) -> str:
        said, _ = self._process.communicate(timeout=END_SECONDS)
        if self._process.returncode:
            raise RuntimeError(f"the job failed: {(self.home / 'job.log').read_text()[-3000:]}")
        return said.decode()

    @property
    def in_flight(self) -> bool:
        return len(self._noted("offsets")) > len(self._noted("commits"))

    @property
    def micro_batches(self) -> int:
        return max(map(int, self._noted("commits")), default=-1) + 1

    def _noted(self, kind: str) -> set[str]:
        return {path.name for path in (self.home / "checkpoint" / kind).glob("*") if path.name.isdigit()}


def run(home: Path, kills: int, seed: int) -> Outcome:
    """Run the campaign; the job is killed after a few micro-batches and a random part of a second."""
    rnd, began, in_flight = random.Random(seed), time.monotonic(), 0
    job = Job(home)
    with _writer(home):
        for number in range(kills):
            job.start("stream")
            try:
                if number % 5 < 4:  # every fifth is killed during startup
                    job.wait_until_it_runs()
                    job.wait_for(job.micro_batches + rnd.randrange(5))
                time.sleep(rnd.uniform(0, _LAST_SECONDS))
            finally:
                job.kill()
            in_flight += job.in_flight
            print(f"kill {number + 1}: {job.micro_batches} micro-batches committed", file=sys.stderr, flush=True)
    job.start("finish")
    try:
        rows, distinct, different = map(int, job.result().splitlines()[-1].split())
    except BaseException:
        job.kill()
        raise
    with open_reader(home / "log") as reader:
        records = reader.high_watermark()
    return Outcome(
        kills=kills,
        in_flight=in_flight,
        micro_batches=job.micro_batches,
        segments=len(list_segments(home / "log")),
        records=records,
        rows=rows,
        distinct=distinct,
        different=different,
        seconds=time.monotonic() - began,
    )


@contextmanager
def _writer(home: Path) -> Iterator[None]:
    """Run the writer until the block ends."""
    command = [sys.executable, "-m", __spec__.name if __name__ == "__main__" else __name__, "write", str(home)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        yield
    finally:
        process.stdin.close()
        process.wait(timeout=300)
        process.stdout.close()


def write(home: Path) -> None:
    """Append batches until standard input ends."""
    rnd = random.Random(7)
    with open_log(home / "log", create=True, segment_bytes=SEGMENT_BYTES) as log:
        print("ready", flush=True)
        while not select.select([0], [], [], 0)[
            0
        ]:  # nothing is ever written to it: it becomes readable when it is closed
            values = [encode_record(_rule(rnd)) for _ in range(rnd.randrange(1, 30))]
            log.append(values, timestamp=time.time_ns() // 1_000_000).result(60)
            time.sleep(rnd.uniform(0, 0.2))


def _rule(rnd: random.Random) -> AccessControlEntryRecord:
    added = UUID(int=rnd.getrandbits(128))
    return acl_record(added, acl(f"topic-{rnd.randrange(1000)}", f"User:u{rnd.randrange(1000)}"))


def stream(home: Path, *, finish: bool) -> None:
    """Run the streaming job until it is killed, or up to the end of the log, and then compare sink and log."""
    from aclog.pipeline.session import open_session

    spark = open_session("local[2]", {**settings(), "spark.sql.warehouse.dir": str(home / "warehouse")})
    log, out = str(home / "log"), str(home / "out")
    frame = spark.readStream.format("aclog").option("maxRecordsPerTrigger", ROWS_A_TRIGGER).load(log)
    frame = frame.select("offset", "batch_offset", "leader_epoch", "timestamp", "record_type", "acl")
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(home / "checkpoint"))
    if finish:
        finished(lambda: writer.trigger(availableNow=True).start(out))
    else:
        query = writer.start(out)
        print("started", flush=True)
        query.awaitTermination()
    sink = spark.read.parquet(out)
    table = spark.read.format("aclog").load(log).select(*sink.columns)
    different = sink.exceptAll(table).count() + table.exceptAll(sink).count()
    print(sink.count(), sink.select("offset").distinct().count(), different, flush=True)
    spark.stop()


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] in {"write", "stream", "finish"}:
        role, home = sys.argv[1], Path(sys.argv[2])
        if role == "write":
            write(home)
        else:
            stream(home, finish=role == "finish")
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="stream-kills-"))
    outcome = run(home, arguments.kills, arguments.seed)
    print(outcome)
    if outcome.exactly_once:
        shutil.rmtree(home)
    else:
        print(f"kept: {home}", file=sys.stderr)
    return 0 if outcome.exactly_once else 1


if __name__ == "__main__":
    sys.exit(main())
