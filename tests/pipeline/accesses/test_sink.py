"""What a task writes and reports, without Spark."""

import pyarrow.parquet as pq
import pytest

from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import tables as writing
from aclog.pipeline.accesses.kafka_log import ACCESS_SCHEMA, REJECT_SCHEMA, split_lines
from aclog.pipeline.accesses.tables import SplitAndWrite, commit_files
from tests.support.spark.access_logs import audit_text, batch_of


def written(directory, *batches):
    task = SplitAndWrite(split=split_lines, directory=str(directory))
    told = [row for batch in task(batch_of(lines) for lines in batches) for row in batch.to_pylist()]
    files = [row["file"] for row in told if row["file"]]
    return files, {row["reason"]: row["count"] for row in told if not row["file"]}


def test_both_tables_and_their_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_ROWS", 3)  # row groups of a few rows
    batches = [[audit_text(name=str(2 * number)), audit_text(name=str(2 * number + 1)), "bad"] for number in range(5)]
    files, counts = written(tmp_path, *batches, [""], [])
    assert counts == {None: 10, "NO_HEAD": 5, "BLANK": 1}
    commit_files(tmp_path, files)
    accesses = pq.ParquetFile(tmp_path / "accesses" / "part-00000.parquet")
    assert accesses.read()["resourceName"].to_pylist() == [str(number) for number in range(10)]
    assert [accesses.metadata.row_group(group).num_rows for group in range(accesses.num_row_groups)] == [4, 4, 2]
    assert pq.read_table(tmp_path / "rejects").num_rows == 5


def test_no_file_for_no_rows_but_an_empty_table(tmp_path):
    assert written(tmp_path, [""]) == ([], {"BLANK": 1})
    assert not list(tmp_path.iterdir())
    commit_files(tmp_path, [])
    assert pq.read_table(tmp_path / "accesses").schema == ACCESS_SCHEMA
    assert pq.read_table(tmp_path / "rejects").schema == REJECT_SCHEMA


def test_files_of_attempts_that_failed_are_left_out(tmp_path):
    files, _ = written(tmp_path, [audit_text()])
    (tmp_path / "accesses" / "part-00000-7.parquet").write_bytes(b"PAR1")
    commit_files(tmp_path, files)
    assert [path.name for path in (tmp_path / "accesses").iterdir()] == ["part-00000.parquet"]


def test_a_directory_that_is_not_shared(tmp_path):
    with pytest.raises(ConfigError, match=r"accesses/part-1\.parquet: written by a task, but not visible here"):
        commit_files(tmp_path, ["accesses/part-1.parquet"])
