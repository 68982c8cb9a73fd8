"""Real logs and checkpoints of Kafka 4.3.1: the same state from a checkpoint and from the start of the log."""

import gzip
import json
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest

from aclog.metalog.batches import build_batch, decode_batch, iter_batches
from aclog.metalog.codec import decode_record
from aclog.metalog.filelog.files import list_checkpoints, list_segments
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import read_checkpoint
from aclog.snapshots.history import ChangeKind, history
from aclog.snapshots.publisher import recover
from tests.support.kafka.described import acl_rows, scram_rows, token_rows
from tests.support.models.naive_replay import assert_shows, naive_replay, state_of

DATA = Path(__file__).parents[1] / "data"
NAMES = ("kafka-4.3.1-small", "kafka-4.3.1-churn")
CHECKPOINTS = [file.path for name in NAMES for file in list_checkpoints(DATA / name / "__cluster_metadata-0")]


def log_dir(name):
    return DATA / name / "__cluster_metadata-0"


def log_bytes(name):
    return b"".join(segment.path.read_bytes() for segment in list_segments(log_dir(name)))


def expected(name, what):
    path = DATA / name / "expected" / what
    data = path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())
    return [json.loads(line) for line in data.splitlines()]


def assert_is_what_kafka_says(image, name):
    secret = re.search(
        r"^delegation.token.secret.key=(.*)$", (DATA / name / "expected/server.properties").read_text(), re.MULTILINE
    )
    assert acl_rows(image) == sorted(expected(name, "acls.jsonl"), key=lambda row: tuple(row.values()))
    assert scram_rows(image) == sorted(expected(name, "scram.jsonl"), key=lambda row: row["user"])
    tokens = sorted(expected(name, "tokens.jsonl"), key=lambda row: row["tokenId"])
    assert token_rows(image, secret and secret[1]) == tokens
    assert [user.user for user in image.scram.describe()] == sorted(user.user for user in image.scram.describe())
    assert [token.token_id for token in image.tokens.records()] == [token["tokenId"] for token in tokens]
    features = json.loads((DATA / name / "expected/live.json").read_text())["features"]
    assert image.provenance.kraft_version == features.pop("kraft.version")
    assert {record.name: record.feature_level for record in image.features.records()} == features


@pytest.mark.parametrize("name", NAMES)
class TestReplay:
    def test_from_the_newest_checkpoint(self, name):
        found = recover(log_dir(name))
        assert_is_what_kafka_says(found.image, name)
        assert found.source.startswith(str(list_checkpoints(log_dir(name))[-1].path))

    @pytest.mark.parametrize("bulk_bytes", [0, 1 << 60])
    def test_from_the_start_of_the_log(self, name, bulk_bytes):
        assert_is_what_kafka_says(Applier(bulk_bytes=bulk_bytes).apply(log_bytes(name)), name)

    def test_from_each_checkpoint(self, name):
        data = log_bytes(name)
        starts = {header.base_offset: position for position, header in iter_batches(data)}
        for file in list_checkpoints(log_dir(name)):
            applier = Applier(image=read_checkpoint(file.path))
            assert_is_what_kafka_says(applier.apply(data, starts[file.end_offset]), name)

    def test_in_random_chunks(self, name):
        data, rnd = log_bytes(name), random.Random(17)
        positions = [position for position, _ in iter_batches(data)][1:]
        for _ in range(2):
            cuts = [0, *sorted(rnd.sample(positions, min(12, len(positions)))), len(data)]
            applier = Applier()
            for start, end in pairwise(cuts):
                applier.apply(data[start:end])
            assert_is_what_kafka_says(applier.image, name)


def test_every_moment_of_the_small_log_is_that_of_the_naive_replayer():
    data = log_bytes(NAMES[0])
    moments = {moment.end_offset: moment for moment in naive_replay(data)}
    applier = Applier()
    for position, header in iter_batches(data):
        image = applier.apply(data, position, position + header.size)
        if not applier.in_transaction:
            assert_shows(image, moments[image.end_offset])
    assert len(moments) > 80


def test_every_split_of_the_small_log_in_two_gives_the_same(sample):
    data = log_bytes(NAMES[0])
    whole = Applier().apply(data)
    for position, _ in sample(list(iter_batches(data)), 20):
        applier = Applier(bulk_bytes=0)
        applier.apply(data[:position])
        image = applier.apply(data[position:])
        assert (image.acls.digest(), image.provenance) == (whole.acls.digest(), whole.provenance)
        assert state_of(image) == state_of(whole)


def data_values(data):
    batches = (decode_batch(data, position) for position, header in iter_batches(data) if not header.is_control)
    return [record.value for batch in batches for record in batch.records]


def rebatched(values, sizes):
    """Return the same records in other batches."""
    data, offset = [], 0
    for size in sizes:
        group = values[offset : offset + size]
        if group:
            data.append(build_batch(group, base_offset=offset, leader_epoch=1, timestamp=1))
            offset += len(group)
    assert offset == len(values)
    return b"".join(data)


@pytest.mark.parametrize("bulk_bytes", [0, 1 << 60])
def test_every_way_to_batch_the_small_log_in_two_gives_the_same(bulk_bytes, sample):
    data = log_bytes(NAMES[0])
    values, whole = data_values(data), state_of(Applier().apply(data))
    for first in sample(range(1, len(values)), 20):
        image = Applier(bulk_bytes=bulk_bytes).apply(rebatched(values, [first, len(values)]))
        assert state_of(image) == whole


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 7, 1 << 30])
@pytest.mark.sample(2)
def test_batches_of_other_sizes_give_the_same(name, size):
    data = log_bytes(name)
    values = data_values(data)
    image = Applier().apply(rebatched(values, [size] * len(values)))
    assert_is_the_same_state(image, Applier().apply(data))


def assert_is_the_same_state(image, other):
    assert image.acls.digest() == other.acls.digest()
    assert (image.scram, image.tokens, image.features) == (other.scram, other.tokens, other.features)
    assert list(image.opaque.values()) == list(other.opaque.values())


def test_the_churn_log_at_offsets_in_between(sample):
    data = log_bytes(NAMES[1])
    wanted = set(random.Random(5).sample(range(28032), 16))
    moments = {}
    last = None
    for moment in naive_moments_of_acls(data):
        for offset in [w for w in wanted if last is not None and last[0] <= w < moment[0]]:
            moments[offset] = last
            wanted.discard(offset)
        last = moment
    assert len(moments) >= 15
    for offset, (end, acls) in sample(list(moments.items()), 4):
        found = recover(log_dir(NAMES[1]), offset)
        assert found.image.end_offset == end
        assert {rule.id for rule in found.image.acls} == acls


def naive_moments_of_acls(data):
    """(End offset, ids of the ACLs) after each batch, without copying all other state 28,000 times."""
    acls, position = frozenset(), 0
    while position < len(data):
        batch = decode_batch(data, position)
        position += batch.header.size
        if not batch.header.is_control:
            live = set(acls)
            for record in map(decode_record, (r.value for r in batch.records)):
                if type(record).__name__ == "AccessControlEntryRecord":
                    live.add(record.id)
                if type(record).__name__ == "RemoveAccessControlEntryRecord":
                    live.remove(record.id)
            acls = frozenset(live)
        yield batch.header.end_offset, acls


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: f"{path.parts[-3][12:]}-{path.stem[:20]}")
def test_a_checkpoint_is_the_state_of_the_log_at_its_end(path):
    read = read_checkpoint(path)
    if read.end_offset == 0:
        assert len(read.acls) == len(read.opaque) == 0
        return
    data = log_bytes(path.parts[-3])
    end = next(position for position, header in iter_batches(data) if header.base_offset == read.end_offset)
    replayed = Applier().apply(data[:end])
    assert read.acls.digest() == replayed.acls.digest()
    assert (read.scram, read.tokens, read.features) == (replayed.scram, replayed.tokens, replayed.features)
    assert read.provenance == replayed.provenance


@pytest.mark.parametrize("name", NAMES)
def test_history_adds_up_to_the_state(name):
    standing = {}
    for change in history(log_dir(name)):
        if change.kind is ChangeKind.ADDED:
            standing[change.rule.id] = change.rule
        else:
            assert standing.pop(change.rule.id) == change.rule
    assert standing == {rule.id: rule for rule in recover(log_dir(name)).image.acls}
