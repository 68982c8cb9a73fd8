"""The files of a stream that are looked at: the newest, also after Spark has compacted its record of them."""

import json
import os
from pathlib import Path

from aclog.pipeline.streams import taken_files
from aclog.pipeline.streams.taken_files import TakenFiles


class Files:
    """The store of the checkpoint: a directory."""

    @staticmethod
    def joined(*parts: str) -> str:
        return "/".join(parts)

    @staticmethod
    def children(_spark: object, name: str) -> list[str]:
        return [path.name for path in Path(name).iterdir()]

    @staticmethod
    def read_bytes(_spark: object, name: str) -> bytes:
        return Path(name).read_bytes()


def test_a_compacted_record_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(taken_files, "storage", Files)
    monkeypatch.setattr(taken_files, "_RECENT", 10)
    source = tmp_path / "checkpoint" / "sources" / "0"
    source.mkdir(parents=True)
    files = [tmp_path / f"f{number:03d}" for number in range(60)]

    def entry(number):
        path = files[number]
        path.write_text("x")
        os.utime(path, (number, number))
        return json.dumps({"path": f"file://{path}", "timestamp": 1000 * number, "batchId": number // 6})

    taken = TakenFiles(None, str(tmp_path / "checkpoint"))
    for batch in range(9):
        (source / str(batch)).write_text("\n".join(["v1", *map(entry, range(6 * batch, 6 * batch + 6))]))
        assert taken.changed() == []
    for batch in range(9):
        (source / str(batch)).unlink()
    (source / "9.compact").write_text("\n".join(["v1", *map(entry, range(60))]))
    assert taken.changed() == []
    for number in (53, 20):
        os.utime(files[number], (1000, 1000))
    assert taken.changed() == [f"file://{files[53]}"]
    assert TakenFiles(None, str(tmp_path / "checkpoint")).changed() == [f"file://{files[53]}"]
