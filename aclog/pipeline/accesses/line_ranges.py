"""Lines of byte ranges of files: exactly these, whatever is appended to the files meanwhile."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
from attrs import frozen
from pyspark.sql import DataFrame, SparkSession

from aclog.usage.accesses.contents import Part, is_compressed, opened

_TASK_BYTES: Final = 32 << 20
_BATCH_BYTES: Final = 4 << 20
_BLOCK: Final = 1 << 16


@frozen(kw_only=True)
class LineRange:
    """Bytes of a file (decompressed) that are whole lines."""

    path: str
    name: str
    """The file's URI."""
    start: int
    end: int


def lines_of(spark: SparkSession, parts: Iterable[Part]) -> DataFrame:
    """Return `value` and `file` of every new line, as `read_lines` does of whole files."""
    tasks = _tasks([each for part in parts for each in _ranges(part)])

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers: list[Any] = batch.column(0).to_pylist()
            for number in numbers:
                for each in tasks[number]:
                    yield from _batches(each)

    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(read, "value string, file string")


def _ranges(part: Part) -> Iterator[LineRange]:
    """Cut a part at line ends; a compressed file can only be read from its start, so it stays whole."""
    content, start = part.content, part.start
    path, name = content.path, content.name
    if is_compressed(path):
        yield LineRange(path=path, name=name, start=start, end=content.length)
        return
    with Path(path).open("rb") as file:
        while start < content.length:
            end = _line_end(file, min(start + _TASK_BYTES, content.length), content.length)
            yield LineRange(path=path, name=name, start=start, end=end)
            start = end


def _line_end(file: BinaryIO, position: int, end: int) -> int:
    """Return the end of the line that the byte before `position` is in."""
    at = position - 1
    while at < end:
        block = os.pread(file.fileno(), _BLOCK, at)
        found = block.find(b"\n")
        if found >= 0 or not block:
            return min(at + found + 1, end) if block else end
        at += len(block)
    return end


def _tasks(ranges: Sequence[LineRange]) -> list[list[LineRange]]:
    """Return the ranges of each task: small ones share a task."""
    tasks: list[list[LineRange]] = []
    size = _TASK_BYTES
    for each in ranges:
        if size + each.end - each.start > _TASK_BYTES:
            tasks.append([])
            size = 0
        tasks[-1].append(each)
        size += each.end - each.start
    return tasks


def _batches(part: LineRange) -> Iterator[pa.RecordBatch]:
    with opened(part.path) as file:
        file.seek(part.start)
        held, left = b"", part.end - part.start
        while left:
            block = file.read(min(_BATCH_BYTES, left))
            if not block:
                break  # the file was truncated: the check of its pin says so
            left -= len(block)
            lines = (held + block).split(b"\n")
            held = lines.pop()
            yield from _as_batches(lines, part.name)
        if held:
            yield from _as_batches([held], part.name)


def _as_batches(lines: Iterable[bytes], name: str) -> Iterator[pa.RecordBatch]:
    rest = iter(lines)
    while some := list(islice(rest, _BLOCK)):
        data = pa.array(some, pa.binary())
        # text in Spark need not be UTF-8, and who reads the lines says what is not: so the bytes pass unseen
        buffers: list[Any] = data.buffers()
        values: Any = pa.StringArray.from_buffers(len(some), buffers[1], buffers[2])
        yield pa.RecordBatch.from_arrays([values, pa.repeat(pa.scalar(name), len(some))], names=["value", "file"])
