"""`aclog log copy` between directories and topics of a real Kafka: every byte, or a clear no."""

import re
import shutil
from pathlib import Path

import pytest

from aclog.metalog.batches import decode_batch, encode_batch, iter_batches
from aclog.metalog.filelog import open_log
from aclog.metalog.topic_message import BatchMessage, Placement
from aclog.metalog.topiclog import TopicReader, open_topic_log
from tests.support.cli.command import aclog
from tests.support.kafka.topics import contents, new_topic, send, topic_settings, whole

DATA = Path(__file__).parents[1] / "data"
KAFKAS = ("kafka-4.3.1-small", "kafka-4.3.1-churn", "kafka-3.9.1")
LOG = DATA / "kafka-4.3.1-small" / "__cluster_metadata-0"
LATER = "00000000000000000183.log"
CHECKPOINT = "00000000000000000211-0000000002.checkpoint"


@pytest.fixture(scope="module")
def config(topic_kafka, tmp_path_factory):
    """A client properties file."""
    path = tmp_path_factory.mktemp("client") / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="admin" password="admin-secret";\n'
    )
    return path


@pytest.fixture
def copy(config):
    """Run the command."""

    def run(source, target, *flags):
        return aclog("log", "copy", source, target, "--command-config", config, "--replication-factor", 1, *flags)

    return run


def segments(directory):
    """The bytes of a directory's log, and the offset at which it begins."""
    paths = sorted(directory.glob("*.log"))
    return int(paths[0].stem), b"".join(path.read_bytes() for path in paths)


@pytest.fixture
def shortened(tmp_path):
    """A Kafka's log that begins after its first segment, which a checkpoint covers."""
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    for name in (LATER, CHECKPOINT, "leader-epoch-checkpoint"):
        if (LOG / name).exists():
            shutil.copyfile(LOG / name, directory / name)
    return directory


@pytest.mark.parametrize("name", KAFKAS)
def test_a_kafkas_log_goes_to_a_topic_and_back_byte_for_byte(topic_kafka, tmp_path, copy, name):
    source, topic = DATA / name / "__cluster_metadata-0", topic_settings(topic_kafka)
    said = copy(source, topic.name).ok()
    assert "read back and verified" in said.out
    assert "differ in bytes" not in said.err
    with whole(topic) as reader:
        assert (reader.start_offset(), contents(reader)) == segments(source)
    copy(topic.name, tmp_path / "back").ok()
    assert segments(tmp_path / "back") == segments(source)
    assert aclog("log", "verify", tmp_path / "back").ok().lines[-1] == "all is well"
    assert not list(tmp_path.glob("*.part"))


def test_a_log_of_ours_is_gone_on_with_wherever_it_is_copied(topic_kafka, tmp_path, copy):
    topic = topic_settings(topic_kafka)
    with open_log(tmp_path / "log", create=True, segment_bytes=2048) as log:
        for number in range(100):
            log.append([b"\x01\x02\x00%d" % number] * (1 + number % 3), timestamp=number)
    copy(tmp_path / "log", topic.name).ok()
    with open_topic_log(topic, node_id=2) as log:
        assert log.leader_epoch == 2
        log.append([b"\x01\x02\x00more"], timestamp=7).result(60)
        expected = contents(log)
    assert expected.startswith(segments(tmp_path / "log")[1])
    copy(topic.name, tmp_path / "back").ok()
    with open_log(tmp_path / "back", new_epoch=True) as log:
        assert (log.leader_epoch, contents(log)[: len(expected)]) == (3, expected)
    copy(tmp_path / "back", tmp_path / "again").ok()
    assert segments(tmp_path / "again") == segments(tmp_path / "back")


def test_a_log_that_begins_later_needs_its_checkpoint(topic_kafka, tmp_path, copy, shortened):
    topic = topic_settings(topic_kafka)
    said = copy(shortened, topic.name).ok()
    assert f"each controller needs a checkpoint of 183 or higher, such as {shortened / CHECKPOINT}" in said.err
    with whole(topic) as reader:
        assert (reader.start_offset(), contents(reader)) == segments(shortened)

    refused = copy(topic.name, tmp_path / "back")
    what = (
        "the log begins at offset 183 and needs a checkpoint with end offset 183 or higher: expected --checkpoint FILE"
    )
    assert (refused.code, refused.complaint) == (2, f"{topic.name}: {what}")
    assert not (tmp_path / "back").exists()

    copy(topic.name, tmp_path / "back", "--checkpoint", shortened / CHECKPOINT).ok()
    copy(shortened, tmp_path / "other").ok()
    for directory in (tmp_path / "back", tmp_path / "other"):
        assert segments(directory) == segments(shortened)
        assert (directory / CHECKPOINT).read_bytes() == (shortened / CHECKPOINT).read_bytes()
        assert aclog("log", "verify", directory).ok().lines[-1] == "all is well"


def test_what_is_not_empty_is_refused(topic_kafka, tmp_path, copy):
    full = new_topic(topic_kafka)
    with open_topic_log(full, node_id=1) as log:
        refused = copy(LOG, full.name)
        assert (refused.code, refused.complaint) == (
            2,
            f"{full.name}: not empty: it holds a log that ends at offset 1; nothing is written",
        )
        log.append([b"x"], timestamp=1).result(60)  # and its writer is not fenced
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    refused = copy(LOG, tmp_path / "full")
    assert refused.code == 2
    assert "not empty (it contains something): expected an empty directory, or none" in refused.complaint
    assert sorted(path.name for path in (tmp_path / "full").iterdir()) == ["something"]
    (tmp_path / "to.part").mkdir()
    assert "left by an interrupted copy" in copy(LOG, tmp_path / "to").complaint


def test_an_empty_log_is_not_copied(topic_kafka, tmp_path, copy):
    refused = copy(new_topic(topic_kafka).name, tmp_path / "to")
    assert (refused.code, "empty: nothing to copy" in refused.complaint) == (2, True)


def test_of_a_damaged_log_nothing_is_copied(topic_kafka, tmp_path, copy):
    """Damage in the last batches, when all the others have been sent."""
    directory, topic = tmp_path / "damaged", topic_settings(topic_kafka)
    with open_log(directory, create=True) as log:
        for number in range(50):
            log.append([b"\x01\x02\x00%d" % number], timestamp=number)
    path = next(directory.glob("*.log"))
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    for target in (topic.name, tmp_path / "to"):
        refused = copy(directory, target)
        assert (refused.code, "CRC" in refused.complaint) == (2, True)
    with TopicReader(topic) as reader:
        reader.wait_known(60)
        assert reader.high_watermark() == 0
    assert not (tmp_path / "to").exists()
    assert not (tmp_path / "to.part").exists()


def test_a_batch_that_messages_cannot_carry_is_put_together_anew(topic_kafka, tmp_path, copy):
    """Another time on its first record than on its last: the records, and the last one's time, are what counts."""
    topic = topic_settings(topic_kafka)
    with open_log(tmp_path / "log", create=True) as log:
        log.append([b"\x01\x02\x00x"], timestamp=9).result(60)
        data = log.read(0)
    (_, first), (at, _) = iter_batches(data)
    batch = decode_batch(data, at)
    other = encode_batch(batch.__class__(header=batch.header._replace(base_timestamp=8), records=batch.records))
    next((tmp_path / "log").glob("*.log")).write_bytes(data[: first.size] + other)
    said = copy(tmp_path / "log", topic.name).ok()
    assert "note: 1 batches differ in bytes" in said.err
    with whole(topic) as reader:
        assert contents(reader) == data


@pytest.mark.parametrize("address", ["kafka://localhost", "kafka://localhost:1/", "kafka:x", "kafka://localhost:1/a b"])
def test_an_address_that_is_none(tmp_path, address):
    refused = aclog("log", "copy", address, tmp_path / "to")
    assert (refused.code, refused.complaint) == (
        2,
        f"{address}: expected kafka://HOST:PORT[,HOST:PORT...]/TOPIC, or a directory",
    )


def test_a_topic_that_is_not_there_and_a_directory_that_is_none(topic_kafka, tmp_path, copy):
    refused = copy(topic_settings(topic_kafka, "no-such-log").name, tmp_path / "to")
    assert (refused.code, "UNKNOWN_TOPIC_OR_PART" in refused.complaint) == (2, True)
    assert copy(tmp_path / "no", tmp_path / "to").code == 2
    refused = copy(LOG, tmp_path / "to", "--checkpoint", tmp_path / "x.checkpoint")
    assert (refused.code, "not a finished checkpoint" in refused.complaint) == (2, True)


def test_a_wrong_password_is_not_shown(topic_kafka, tmp_path, config):
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(re.sub("admin-secret", "swordfish", config.read_text()))
    refused = aclog("log", "copy", LOG, topic_settings(topic_kafka).name, "--command-config", wrong)
    assert refused.code == 2
    assert "Authentication failed" in refused.complaint
    assert "swordfish" not in refused.err + refused.out


def test_until_damage_without_damage_copies_all(topic_kafka, tmp_path, copy):
    topic = topic_settings(topic_kafka)
    copy(LOG, topic.name).ok()
    said = copy(topic.name, tmp_path / "back", "--until-damage").ok()
    assert len(said.lines) == 1
    assert segments(tmp_path / "back") == segments(LOG)


def test_until_damage_says_what_stands_after_it(topic_kafka, tmp_path, copy):
    topic = topic_settings(topic_kafka)
    copy(LOG, topic.name).ok()
    end = len(segments(LOG)[1])
    place = Placement(offset=9999, base_offset=9999, count=1, epoch=1)
    send(topic, BatchMessage(place=place, value=b"stranger", timestamp=1))
    assert copy(topic.name, tmp_path / "refused").code == 2
    said = copy(topic.name, tmp_path / "back", "--until-damage")
    assert said.code == 1
    assert f"damage: {topic.name}, Kafka's offset " in said.lines[1]
    assert re.fullmatch(
        r"not copied: 1 messages, from Kafka's offset [0-9]+ on; "
        r"1 of them have the headers of records, offsets 9999 to 9999",
        said.lines[2],
    )
    assert len(segments(tmp_path / "back")[1]) == end


def test_until_damage_is_for_topics(tmp_path, copy):
    said = copy(LOG, tmp_path / "other", "--until-damage")
    assert (said.code, said.complaint) == (
        2,
        f"{LOG}: --until-damage: only for a log in a topic: `aclog log verify` shows where a directory is damaged",
    )
