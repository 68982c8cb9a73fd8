"""Small logs of ours for the tests of the file log, and what can be read out of a directory."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from aclog.metalog.batches import decode_batch, iter_batches
from aclog.metalog.filelog import open_log, open_reader
from aclog.metalog.filelog.committed_mark import MARK_FILE

DATA = Path(__file__).parents[2] / "data"
KAFKA_LOGS = tuple(DATA / f"kafka-4.3.1-{name}" / "__cluster_metadata-0" for name in ("small", "churn"))


def value(text: str) -> bytes:
    """A record value that decodes (a TopicRecord, which nobody looks into) and is told from others by its text."""
    return b"\x01\x02\x00" + text.encode()


def small_log(directory: Path, batches: int = 4, *, mark: bool = True, **options: object) -> Path:
    """A log of `batches` data batches, each of one to three records, in a directory of its own."""
    with open_log(directory, create=True, **options) as log:
        for number in range(batches):
            log.append([value(f"{number}-{part}") for part in range(1 + number % 3)], timestamp=number).result(60)
    if not mark:
        (directory / MARK_FILE).unlink()
    return directory


def read_batches(reader) -> list[tuple[int, list[bytes]]]:
    """(base offset, values) of every committed data batch that a reader gives, from its start on."""
    batches, offset = [], reader.start_offset()
    while data := reader.read(offset):
        for position, header in iter_batches(data):
            offset = header.end_offset
            if not header.is_control:
                values = [record.value for record in decode_batch(data, position).records]
                batches.append((header.base_offset, values))
    return batches


def read_directory(directory: Path) -> list[tuple[int, list[bytes]]]:
    """What a fresh reader gives."""
    with open_reader(directory) as reader:
        return read_batches(reader)


def segment_paths(directory: Path) -> list[Path]:
    """The segment files, in order."""
    return sorted(directory.glob("*.log"))


def batch_ends(directory: Path) -> list[tuple[int, int]]:
    """(position, offset) after each batch of a log of one segment."""
    (path,) = segment_paths(directory)
    return [(position + header.size, header.end_offset) for position, header in iter_batches(path.read_bytes())]


def flips(path: Path, positions: Iterable[int] | None = None) -> Iterator[tuple[int, int]]:
    """Flip each bit of a file in turn, in place (each back before the next); gives (byte position, bit)."""
    original = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for position in positions or range(len(original)):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([original[position] ^ 1 << bit]), position)
                yield position, bit
            os.pwrite(file.fileno(), original[position : position + 1], position)
