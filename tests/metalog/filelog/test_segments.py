"""Reads by offset: the bulk check of large reads accepts exactly what the exact check accepts."""

import random
import shutil

import pytest

from aclog.metalog.batches import iter_batches
from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog import open_reader, segments
from tests.support.builders.log_files import KAFKA_LOGS, segment_paths


def read_with(monkeypatch, directory, bulk, max_bytes):
    """Return everything that can be read, and the error that ended it; `bulk` is the size of reads checked in bulk."""
    monkeypatch.setattr(segments, "_BULK", bulk)
    parts, offset = [], 0
    with open_reader(directory) as reader:
        try:
            while data := reader.read(offset, max_bytes):
                parts.append(data)
                *_, (_, last) = iter_batches(data)
                offset = last.end_offset
        except DecodeError as error:
            return parts, str(error)
    return parts, None


@pytest.mark.parametrize("path", KAFKA_LOGS, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("max_bytes", [700, 9000, 1 << 20])
def test_a_valid_log(monkeypatch, path, max_bytes):
    exact = read_with(monkeypatch, path, 1 << 40, max_bytes)
    assert exact[1] is None
    assert read_with(monkeypatch, path, 0, max_bytes) == exact


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_log(monkeypatch, tmp_path, seed):
    """Half of the bit flips are in bytes that no CRC covers."""
    numbers = random.Random(seed)
    directory = shutil.copytree(KAFKA_LOGS[0], tmp_path / "log")
    path = segment_paths(directory)[0]
    data = bytearray(path.read_bytes())
    position, header = numbers.choice(list(iter_batches(data)))
    data[position + numbers.randrange(21 if seed % 2 else header.size)] ^= 1 << numbers.randrange(8)
    path.write_bytes(data)
    exact = read_with(monkeypatch, directory, 1 << 40, 1 << 20)
    assert exact[1] is not None
    assert read_with(monkeypatch, directory, 0, 1 << 20) == exact


def test_a_log_without_leader_epochs(monkeypatch, tmp_path):
    directory = shutil.copytree(KAFKA_LOGS[0], tmp_path / "log")
    (directory / "leader-epoch-checkpoint").unlink()
    assert read_with(monkeypatch, directory, 0, 5000) == read_with(monkeypatch, KAFKA_LOGS[0], 1 << 40, 5000)
