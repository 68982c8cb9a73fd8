"""Every record of a log as text or JSON (kafka-dump-log --cluster-metadata-decoder)."""

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from attrs import frozen

from aclog.metalog.batches import BatchHeader, check_crc, iter_batches, read_records
from aclog.metalog.codec import decode_record
from aclog.metalog.control_records import decode_control
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
from aclog.metalog.json_form import Json, control_json, record_json
from aclog.terminal.columns import Column
from aclog.terminal.json_text import json_text
from aclog.terminal.progress import BYTES, progress
from aclog.terminal.timestamps import time_text

RecordJson: TypeAlias = dict[str, Json]


@frozen(kw_only=True)
class DumpedRecord:
    """A record: the timestamp (ms since 1970) is that of its batch, `content` is type, version and data."""

    file: str
    offset: int
    leader_epoch: int
    timestamp: int
    content: RecordJson
    position: int
    """Of its batch in the file."""


RECORD_COLUMNS = (
    Column(key="file", cut=True, spare=True),
    Column(key="offset"),
    Column(key="leaderEpoch", title="EPOCH"),
    Column(key="timestamp", spare=True, text=time_text),
    Column(key="type"),
    Column(key="version", spare=True),
    Column(key="data", flows=True),
)
"""Of a record."""


def dump_rows(paths: Sequence[Path], *, show_secrets: bool) -> Iterator[RecordJson]:
    """Yield a JSON object for each record. Raises as `dump`."""
    for record in dump(paths, show_secrets=show_secrets):
        place: RecordJson = {
            "file": record.file,
            "offset": record.offset,
            "leaderEpoch": record.leader_epoch,
            "timestamp": record.timestamp,
        }
        yield {**place, **record.content}


def dump_text(paths: Sequence[Path], *, show_secrets: bool) -> Iterator[str]:
    """Yield a line for each file and for each of its records. Raises as `dump`."""
    file = None
    for record in dump(paths, show_secrets=show_secrets):
        if record.file != file:
            file = record.file
            yield f"Dumping {file}"
        content = record.content
        yield (
            f"offset: {record.offset} leaderEpoch: {record.leader_epoch} timestamp: {record.timestamp} "
            f"{content['type']} v{content['version']} {json_text(content['data'])}"
        )


def dump(paths: Sequence[Path], *, show_secrets: bool) -> Iterator[DumpedRecord]:
    """Yield every record of these segments and checkpoints, by path, in a directory by offset.

    Raises:
        DecodeError: damage, or bytes after the last whole batch, after the records before it; with its position.
        LogError: a directory without segments and checkpoints.
        OSError: a file cannot be read.

    """
    files = [file for path in paths for file in _files(path)]
    total, done = sum(file.stat().st_size for file in files if file.is_file()), 0
    with progress("reading records", BYTES, streams=True) as advance:
        for file in files:
            for record in _dump_file(file, show_secrets=show_secrets):
                advance(done + record.position, total)
                yield record
            done += file.stat().st_size


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted([each.path for each in list_checkpoints(path)] + [each.path for each in list_segments(path)])
    if not found:
        raise LogError(f"{path}: not a metadata log: it has no segments (*.log) and no checkpoints")
    return found


def _dump_file(path: Path, *, show_secrets: bool) -> Iterator[DumpedRecord]:
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                yield from _dump_buffer(str(path), data, show_secrets=show_secrets)
            except DecodeError as error:
                raise error.at(path=str(path)) from None


def _dump_buffer(name: str, data: mmap.mmap, *, show_secrets: bool) -> Iterator[DumpedRecord]:
    end = 0
    for position, header in iter_batches(data):
        check_crc(data, position, header)
        end = position + header.size
        for offset, content in _contents(bytes(data[position:end]), position, header, show_secrets=show_secrets):
            yield DumpedRecord(
                file=name,
                offset=offset,
                leader_epoch=header.leader_epoch,
                timestamp=header.max_timestamp,
                content=content,
                position=position,
            )
    if end < len(data):
        raise DecodeError(f"{len(data) - end} bytes that are not a whole batch: truncated?", position=end)


def _contents(
    batch: bytes, position: int, header: BatchHeader, *, show_secrets: bool
) -> Iterator[tuple[int, RecordJson]]:
    """Yield each record of a batch as (offset, JSON); `position` is that of the batch in the file."""
    for record in read_records(batch, 0, header):
        offset = header.base_offset + record.offset_delta
        try:
            if header.is_control:
                yield offset, control_json(decode_control(record.key or b"", record.value))
            else:
                yield offset, record_json(decode_record(record.value), show_secrets=show_secrets)
        except DecodeError as error:
            # The position of the batch in the file is more useful than the position within the value.
            raise DecodeError(f"{error.what} (in the batch here)", position=position, offset=offset) from None
