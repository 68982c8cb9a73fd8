"""What is new in a log counts once, however its files are renamed, packed or grow."""

import gzip
import json
from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.access_log import NewAccesses, find_accesses, only_new, read_part
from aclog.usage.decisions.decisions import REQUEST_COLUMNS


def _line(number: int) -> str:
    values = ("User:a", "10.0.0.1", "READ", "TOPIC", f"t{number}")
    row = dict(zip(REQUEST_COLUMNS, values, strict=True))
    return json.dumps({**row, "timestamp": f"2026-11-20T10:00:{number:02}Z"}) + "\n"


def _lines(first: int, end: int) -> bytes:
    return "".join(map(_line, range(first, end))).encode()


def _new(known: set[tuple[int, bytes]], *paths: Path) -> tuple[list[str], NewAccesses]:
    """Return the topics that are new, in order, and take them as known."""
    found = only_new(find_accesses([str(path) for path in paths], UTC), known, lambda done, total: None)
    names: list[str] = []
    for part in found.input.parts:
        for batch in read_part(part):
            names += batch.rows.column("resourceName").cast(pa.string()).to_pylist()
    known |= {part.content.key for part in found.contents}
    return names, found


def _topics(first: int, end: int) -> list[str]:
    return [f"t{number}" for number in range(first, end)]


def test_a_file_that_grows_is_rotated_and_packed_counts_once(tmp_path: Path) -> None:
    log, known = tmp_path / "a.log", set[tuple[int, bytes]]()
    log.write_bytes(_lines(0, 3) + b'{"principal": "User:')  # the last line is still being written
    assert (topics := _new(known, log))[0] == _topics(0, 3)
    assert topics[1].waiting == (str(log),)
    assert _new(known, log)[0] == []
    log.write_bytes(_lines(0, 5))
    names, found = _new(known, log)
    assert (names, found.grown) == (_topics(3, 5), 1)
    # rotated and packed, with lines that came just before; and the same under two names
    packed = tmp_path / "a.log.1.gz"
    packed.write_bytes(gzip.compress(_lines(0, 7)))
    log.write_bytes(_lines(7, 8))
    (tmp_path / "copy.log").write_bytes(_lines(7, 8))
    assert sorted(_new(known, tmp_path)[0]) == _topics(5, 8)
    assert _new(known, packed, log, log)[0] == []


def test_a_table_counts_once_as_a_whole(tmp_path: Path) -> None:
    known = set[tuple[int, bytes]]()
    rows = [json.loads(_line(number)) for number in range(3)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "b.log").write_bytes(_lines(3, 4))
    assert sorted(_new(known, tmp_path)[0]) == _topics(0, 4)
    (tmp_path / "a.parquet").rename(tmp_path / "c.parquet")
    assert _new(known, tmp_path)[0] == []


def test_an_empty_log_holds_nothing_new(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    assert _new(set(), tmp_path / "a.log")[0] == []


def test_a_file_that_shrinks_meanwhile_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(_lines(0, 3))
    found = find_accesses([str(log)], UTC)
    log.write_bytes(_lines(0, 1))
    with pytest.raises(ConfigError, match="truncated"):
        only_new(found, set(), lambda done, total: None)
