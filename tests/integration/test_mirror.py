"""A real Kafka's log in a mirror: the very bytes, also those that Kafka has let go since, and states of the past."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from aclog.metalog.batches import end_offset, iter_batches
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.files import list_checkpoints
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import recover
from tests.support.builders.acls import acl_row
from tests.support.builders.log_files import segment_paths
from tests.support.cli.command import Result, aclog
from tests.support.kafka.described import acl_rows
from tests.support.kafka.quorum import KafkaQuorum, QuorumNode
from tests.support.kafka.server import AdminClient
from tests.support.nodes.server_properties import CLUSTER_ID
from tests.support.processes.waiting import wait_until

ROOT = Path(__file__).parents[2]
SMALL_LOG = {
    "metadata.log.max.record.bytes.between.snapshots": "30000",
    "internal.metadata.log.segment.bytes": "20000",
    "metadata.max.retention.bytes": "40000",
    "internal.metadata.max.batch.size.in.bytes": "8192",
    "internal.metadata.delete.delay.millis": "600000",
    "file.delete.delay.ms": "600000",
}
"""Checkpoints soon, and old segments go with them; but what was dropped stays on the disk, under another name."""
LOGIN = r"""
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  username="admin" password="admin-secret";
"""


def rule(number: int) -> dict[str, str]:
    return acl_row(
        f"mirrored-{number}-" + "x" * 150,
        patternType="PREFIXED" if number % 3 else "LITERAL",
        principal=f"User:{number % 7}",
        permissionType="DENY" if number % 5 == 0 else "ALLOW",
    )


def flags(kafka: KafkaQuorum, directory: Path) -> list[str]:
    config = kafka.home / "admin.properties"
    config.write_text(LOGIN)
    controllers = ",".join(map(str, kafka.controllers))
    return ["--bootstrap-controller", controllers, "--command-config", str(config), "--to", str(directory)]


def mirrored_once(kafka: KafkaQuorum, directory: Path) -> Result:
    return aclog("mirror", *flags(kafka, directory), "--once").ok()


@contextmanager
def mirroring(kafka: KafkaQuorum, directory: Path) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-m", "aclog", "mirror", *flags(kafka, directory)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def copy_log(node: QuorumNode, directory: Path) -> None:
    """Add the files of a leader's log to a copy, those that it has dropped too."""
    directory.mkdir(exist_ok=True)
    before: set[str] = set()
    while before != (found := {path.name for path in node.log_directory.iterdir()}):  # it may be dropping some
        before = found
        for name in found:
            kept = name.removesuffix(".deleted")
            if kept.endswith((".log", ".checkpoint")):
                with suppress(FileNotFoundError):
                    shutil.copyfile(node.log_directory / name, directory / kept)


def committed(directory: Path) -> bytes:
    found = b""
    with open_reader(directory) as reader:
        offset, end = reader.start_offset(), reader.high_watermark()
        while offset < end:
            found += reader.read(offset)
            offset = end_offset(found)
    return found


def dumped(paths: list[Path]) -> list[dict]:
    lines = aclog("log", "dump", "--json", *paths).ok().lines
    return [{**json.loads(line), "file": None} for line in lines]


def content(image: Image) -> list:
    """What is interpreted: of the rest, a state that is begun with a checkpoint of Kafka's has less."""
    credentials = [*image.scram.records(), *image.tokens.records(), *image.features.records()]
    return [image.provenance, image.acls.digest(), sorted(map(encode_record, credentials))]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaQuorum]:
    with KafkaQuorum(tmp_path_factory.mktemp("mirrored"), nodes=1, changes=SMALL_LOG) as quorum:
        yield quorum


@pytest.mark.slow(70)
def test_what_kafka_lets_go_stays_in_the_mirror(kafka: KafkaQuorum, tmp_path: Path) -> None:
    directory, rested, theirs = tmp_path / "mirror", tmp_path / "rested", tmp_path / "theirs"
    node = kafka.leader()
    first = node.log_directory / f"{0:020d}.log"
    with mirroring(kafka, directory) as process:
        with AdminClient(node.ports.broker) as admin:
            admin("createAcls", acls=[rule(number) for number in range(20)])
            mirrored_once(kafka, rested)
            wait_until(
                lambda: segment_paths(directory)
            )  # who asks for offset 0 once there is a checkpoint is given that
            for number in range(20, 600, 20):  # as many as go into a batch of this size
                admin("createAcls", acls=[rule(each) for each in range(number, number + 20)])
                admin("deleteAcls", acls=[rule(each) for each in range(number - 5, number)])
            copy_log(node, theirs)  # on a busy machine what was let go is gone before it is copied
            wait_until(lambda: not first.exists())  # Kafka looks for what may go once a minute
            copy_log(node, theirs)  # a start clears away what was dropped
        node.stop()
        node.start()
        with AdminClient(node.ports.broker) as admin:
            admin("createAcls", acls=[rule(number) for number in range(1000, 1020)])
            wait_until(lambda: rule(1019) in admin.acls())  # the broker replays what its controller acknowledged
            rules = admin.acls()
        wait_until(lambda: acl_rows(recover(directory).image) == rules)
        process.terminate()
        _, said = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "snapshot" not in said
    gap = mirrored_once(kafka, rested)
    copy_log(node, theirs)
    assert_same_log(directory, theirs)
    assert_states_of_the_past(directory, theirs)
    assert_gap(rested, theirs, gap.err, node)


def assert_same_log(directory: Path, theirs: Path) -> None:
    mine, whole = committed(directory), committed(theirs)
    assert whole.startswith(mine)
    assert mine.startswith((theirs / f"{0:020d}.log").read_bytes())  # which Kafka has let go
    assert len({header.leader_epoch for _, header in iter_batches(mine)}) == 2
    records = dumped(segment_paths(directory))
    assert records == dumped(segment_paths(theirs))[: len(records)]
    assert aclog("log", "verify", directory).ok().lines[-1] == "all is well"
    assert f"cluster.id={CLUSTER_ID}" in (directory / "mirror.properties").read_text()


def assert_states_of_the_past(directory: Path, theirs: Path) -> None:
    """From the first batch on: what a quorum is formatted with before it, no leader gives."""
    mine = committed(directory)
    start, end = next(iter_batches(mine))[1].end_offset, end_offset(mine)
    for offset in [start, *random.Random(1).sample(range(start, end), 20), end]:
        ours = recover(directory, as_of=offset).image
        assert content(ours) == content(recover(theirs, as_of=offset).image)


def assert_gap(rested: Path, theirs: Path, said: str, node: QuorumNode) -> None:
    """What had been mirrored before Kafka let it go is in the archive, and the mirror goes on with Kafka's snapshot."""
    (archive,) = rested.glob("archive-*")
    whole = committed(theirs)
    assert str(archive) in said
    assert whole.startswith(committed(archive))
    (checkpoint,) = list_checkpoints(rested)
    assert checkpoint.path.read_bytes() == (theirs / checkpoint.path.name).read_bytes()
    after = committed(rested)
    start = whole.index(after)
    assert end_offset(whole[:start]) == checkpoint.end_offset
    for log in (rested, archive):
        assert aclog("log", "verify", log).ok().lines[-1] == "all is well"
    end = end_offset(after)
    assert content(recover(rested).image) == content(recover(theirs, as_of=end).image)
