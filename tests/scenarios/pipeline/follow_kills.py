"""Each access once, by the ACLs of its time: `aclog spark follow` is killed at random while accesses and log grow.

    python -m tests.scenarios.pipeline.follow_kills --kills 20 --seed 1 [--topic | --format delta|iceberg]

A thread adds files of accesses, or records of a topic of a real Kafka, and changes an ACL between them. The command is
killed with SIGKILL, its JVM included, and started again. At the end its output, files or a table, must have every
access exactly once, with the decision of a list of the changes.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

from attrs import define, field, frozen
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_log
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.pipeline.output_directory import OutFormat
from tests.scenarios.pipeline.followed_outputs import COLUMNS, OUTPUTS, Output
from tests.support.builders.acls import acl, acl_record
from tests.support.kafka.jvm import BUILD, ROOT
from tests.support.kafka.quorum import KafkaQuorum
from tests.support.kafka.topics import client_properties
from tests.support.nodes.server_properties import PLAIN, password
from tests.support.processes.waiting import SECONDS, wait_until
from tests.support.spark.jvm import submit_arguments

JARS = BUILD.parent / "spark-kafka"
PARTITIONS = 3
_PATIENCE = 3600.0
_RULE = acl("t", "User:a")


@frozen(kw_only=True)
class Outcome:
    """The result of a campaign."""

    source: str
    kills: int
    in_flight: int
    """The kills that left a batch begun and not committed in the checkpoint."""
    published: int
    """Of these, those whose batch had been published."""
    batches: int
    changes: int
    written: int
    rows: int
    distinct: int
    wrong: int
    seconds: float

    @property
    def once(self) -> bool:
        return self.written == self.rows == self.distinct and not self.wrong

    def __str__(self):
        return (
            f"{self.source}: {self.kills} kills in {self.seconds:.0f} s, a batch begun and not committed after "
            f"{self.in_flight}, published already after {self.published}; {self.written} accesses written, "
            f"{self.changes} changes of ACLs; {self.batches} batches: {self.rows} rows, {self.distinct} distinct, "
            f"{self.wrong} decided otherwise than by the list of changes: "
            f"{'each access once' if self.once else 'NOT EACH ACCESS ONCE'}"
        )


@define
class Writer:
    """Writes accesses and changes an ACL, in one thread: an access is written after the changes before it."""

    home: Path
    seed: int
    producer: Producer | None = None
    topic: str = ""
    written: int = field(init=False, default=0)
    times: dict[str, int] = field(init=False, factory=dict)
    changes: list[int] = field(init=False, factory=list)
    """The times at which the ACL was added, removed, added, ..."""

    def run(self, stop: threading.Event) -> None:
        """Write until `stop` is set."""
        rnd = random.Random(self.seed)
        with open_log(self.home / "log", create=True, segment_bytes=1 << 12) as log:
            self.change(log)
            while not stop.wait(rnd.uniform(0.1, 2)):
                if rnd.random() < 0.3:
                    self.change(log)
                self.write(rnd.randrange(1, 40))

    def change(self, log) -> None:
        """Add or remove the ACL."""
        time.sleep(0.002)  # later than the accesses before
        number = len(self.changes) // 2
        record = acl_record(number + 1, _RULE)
        if len(self.changes) % 2:
            record = RemoveAccessControlEntryRecord(id=UUID(int=number + 1))
        at = time.time_ns() // 1_000_000
        log.append([encode_record(record)], timestamp=at).result(60)
        self.changes.append(at)

    def write(self, count: int) -> None:
        """Write accesses, which are there when this returns."""
        lines = []
        for number in range(self.written, self.written + count):
            at, host = time.time_ns() // 1_000_000, f"10.0.{number // 250}.{number % 250}"
            self.times[host] = at
            row = {"principal": "User:a", "host": host, "operation": "READ", "resourceType": "TOPIC"}
            lines.append(json.dumps(row | {"resourceName": "t", "timestamp": at}))
        if self.producer is None:
            part = self.home / f"{self.written}.part"
            part.write_text("".join(f"{line}\n" for line in lines))
            part.rename(self.home / "accesses" / f"{self.written}.jsonl")
        else:
            for number, line in enumerate(lines):
                self.producer.produce(self.topic, line, partition=number % PARTITIONS)
            assert not self.producer.flush(SECONDS)
        self.written += count

    def allows(self, at: int) -> bool:
        """Return whether the ACL was there at a time."""
        return bisect_right(self.changes, at) % 2 == 1


@contextmanager
def _writing(writer: Writer) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=writer.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@define
class Command:
    """The command, and what it has done."""

    home: Path
    flags: tuple[str, ...]
    into: Output
    jars: tuple[Path, ...] = ()

    def start(self, *flags: str) -> subprocess.Popen:
        command = [self.into.python, "-m", "aclog", "spark", "follow", *self.flags, "--log", str(self.home / "log")]
        command += [*self.into.flags, "--super-users=", "--master", "local[2]", *flags]
        more = {"spark.local.dir": str(self.home / "scratch"), **self.into.settings}
        if self.jars:
            more["spark.jars"] = ",".join(map(str, self.jars))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_SUBMIT_ARGS": submit_arguments(more)}
        with (self.home / "command.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=environment, cwd=ROOT)

    @property
    def output(self) -> str:
        return (self.home / "command.log").read_text()[-3000:]

    def in_flight(self) -> int | None:
        """The batch that was begun and not committed, if there is one."""
        begun = self._noted("offsets") - self._noted("commits")
        return max(begun, default=None)

    def _noted(self, kind: str) -> set[int]:
        directory = self.into.checkpoint / kind
        return {int(path.name) for path in directory.glob("*") if path.name.isdigit()}

    def kill_in(self, rnd: random.Random, *, early: bool) -> None:
        """Start it, and kill it: while it starts, or after some batches and a part of the next one."""
        process = self.start("--interval", "0.1")
        try:
            if not early:
                wanted, deadline = self.into.commits() + 1, time.monotonic() + _PATIENCE
                while self.into.commits() < wanted:
                    if time.monotonic() > deadline or process.poll() is not None:
                        raise RuntimeError(self.output)
                    time.sleep(0.002)
            time.sleep(rnd.uniform(0, 1.2))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run(
    home: Path, kills: int, seed: int, *, bootstrap: str | None = None, form: OutFormat = OutFormat.PARQUET
) -> Outcome:
    """Run the campaign on files, or on a topic, into this format; every fifth kill falls into the start."""
    rnd, began, in_flight, published = random.Random(seed), time.monotonic(), 0, 0
    into = OUTPUTS[form](home)
    writer, command = _files(home, seed, into) if bootstrap is None else _topic(home, seed, bootstrap, into)
    with _writing(writer):
        wait_until(lambda: writer.written > 0, "the first accesses", SECONDS)
        for number in range(kills):
            command.kill_in(rnd, early=number % 5 == 4)
            left = command.in_flight()
            in_flight += left is not None
            published += left is not None and left in into.batches()
            print(f"kill {number + 1}: {len(into.batches())} batches", file=sys.stderr, flush=True)
    last = command.start("--to-end")
    if last.wait(_PATIENCE):
        raise RuntimeError(command.output)
    table = into.rows()
    found = list(zip(*(table[name].to_pylist() for name in COLUMNS), strict=True))
    hosts = Counter(host for host, _ in found)
    wrong = sum(decision != ("ALLOWED" if writer.allows(writer.times[host]) else "DENIED") for host, decision in found)
    source = "files" if bootstrap is None else "topic"
    return Outcome(
        source=source if form is OutFormat.PARQUET else f"{source} into a table of {form.value.title()}",
        kills=kills,
        in_flight=in_flight,
        published=published,
        batches=len(into.batches()),
        changes=len(writer.changes),
        written=writer.written,
        rows=hosts.total(),
        distinct=len(hosts),
        wrong=wrong,
        seconds=time.monotonic() - began,
    )


def _files(home: Path, seed: int, into: Output) -> tuple[Writer, Command]:
    (home / "accesses").mkdir()
    return Writer(home, seed), Command(home, ("--requests", str(home / "accesses")), into)


def _topic(home: Path, seed: int, bootstrap: str, into: Output) -> tuple[Writer, Command]:
    properties = client_properties(bootstrap)
    topic = f"accesses-{uuid4().hex[:8]}"
    new = NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1)
    admin = AdminClient(properties)  # it ends with the last reference
    admin.create_topics([new])[topic].result(SECONDS)
    config = home / "client.properties"
    login = f'{PLAIN} required username="admin" password="{password("admin")}";'
    config.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
    flags = ("--requests", f"kafka://{bootstrap}/{topic}", "--requests-command-config", str(config))
    producer = Producer(properties | {"linger.ms": "0"})
    return Writer(home, seed, producer, topic), Command(home, flags, into, tuple(JARS.glob("*.jar")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--topic", action="store_true")
    formats = [each.value for each in OUTPUTS]
    source.add_argument("--format", choices=formats, default=OutFormat.PARQUET.value)
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="follow-kills-"))
    if arguments.topic:
        (home / "kafka").mkdir()
        with KafkaQuorum(home / "kafka", nodes=1) as kafka:
            outcome = run(home, arguments.kills, arguments.seed, bootstrap=kafka.bootstrap)
    else:
        outcome = run(home, arguments.kills, arguments.seed, form=OutFormat(arguments.format))
    print(outcome)
    if outcome.once:
        shutil.rmtree(home)
    else:
        print(f"kept: {home}", file=sys.stderr)
    return 0 if outcome.once else 1


if __name__ == "__main__":
    sys.exit(main())
