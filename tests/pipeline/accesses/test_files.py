"""Files that are rotated, truncated, replaced or appended to between the plan of a job and its end."""

import gzip
import json
import os
from pathlib import Path

import pytest
from attrs import evolve

from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses import files, ingest, write
from aclog.pipeline.accesses.kafka_log import split_lines
from tests.support.spark.access_logs import audit_text

LINES = 40


def fill(path, count=LINES, name="zz"):
    path.write_text("".join(f"{audit_text(name=f'{name}-{number}')}\n" for number in range(count)))


@pytest.fixture
def logs(tmp_path):
    """A live directory: the log that is being written, and two older ones."""
    directory = tmp_path / "logs"
    directory.mkdir()
    for name in ("app.log", "app.log.1", "app.log.2"):
        fill(directory / name)
    return directory


def rotate(directory):
    """What log4j does: each file takes the next name, and the log begins anew."""
    (directory / "app.log.2").rename(directory / "app.log.3")
    (directory / "app.log.1").rename(directory / "app.log.2")
    (directory / "app.log").rename(directory / "app.log.1")
    fill(directory / "app.log", 1)


def copytruncate(directory):
    """What logrotate does with `copytruncate`; the log is longer than it was by the time it is looked at again."""
    (directory / "app.log.3").write_bytes((directory / "app.log").read_bytes())
    with (directory / "app.log").open("r+") as file:
        file.truncate(0)
        file.writelines(f"{audit_text(name=f'new-{number}')}\n" for number in range(2 * LINES))


def compress(directory):
    path = directory / "app.log.2"
    Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


def truncate(directory):
    os.truncate(directory / "app.log", 0)


@pytest.mark.parametrize("change", [rotate, copytruncate, compress, truncate])
def test_a_file_that_is_not_the_one_that_was_listed_fails_the_job(spark, logs, tmp_path, change):
    ingested = ingest(spark, logs, "kafka-log")
    change(logs)
    with pytest.raises(ConfigError, match=rf"^{logs}/app\.log[.0-9]*: .* while it was being read"):
        write(ingested, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]
    assert write(ingest(spark, logs, "kafka-log"), tmp_path / "out").accesses >= 2 * LINES


def test_a_rotation_in_the_middle_of_a_job_fails_it(spark, logs, tmp_path):
    def split_once_rotated(batch):
        try:
            (tmp_path / "rotated").mkdir()
        except FileExistsError:
            pass
        else:
            rotate(logs)
        return split_lines(batch)

    ingested = evolve(ingest(spark, logs, "kafka-log"), split=split_once_rotated)
    with pytest.raises(ConfigError, match=r"app\.log.*(replaced by another file|renamed or removed) while"):
        write(ingested, tmp_path / "out")


def test_a_log_that_grows_is_read_to_where_it_ended(spark, logs, tmp_path):
    ingested = ingest(spark, logs, "kafka-log")
    with (logs / "app.log").open("a") as file:
        file.writelines(f"{audit_text(name=f'late-{number}')}\n" for number in range(LINES))
    fill(logs / "app.log.new")
    counts = write(ingested, tmp_path / "out")
    assert 3 * LINES <= counts.accesses <= 3 * LINES + 1
    assert counts.total == counts.accesses


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_every_kind_of_file_is_held_against_the_listing(spark, tmp_path, kind):
    row = {"principal": "User:a", "host": "::1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "t"}
    (tmp_path / "rows").write_text(f"{json.dumps(row)}\n" * 3)
    frame = spark.read.json(str(tmp_path / "rows"))
    for name in ("a", "b"):
        if kind == "jsonl":
            (tmp_path / name).write_text(f"{json.dumps(row)}\n" * 3)
        elif kind == "csv":
            (tmp_path / name).write_text("\n".join([",".join(row), *[",".join(row.values())] * 3, ""]))
        else:
            frame.toPandas().to_parquet(tmp_path / name)
    ingested = ingest(spark, [tmp_path / "a", tmp_path / "b"], kind)
    (tmp_path / "a").rename(tmp_path / "old")
    (tmp_path / "a").write_bytes((tmp_path / "b").read_bytes())
    with pytest.raises(ConfigError, match=rf"^{tmp_path}/a: replaced by another file"):
        write(ingested, tmp_path / "out")


def test_another_file_of_the_same_size_and_time_differs_by_its_tag():
    one = files.Pin(device=0, inode=0, size=7, modified=7, tag="16387")
    assert one.is_before(evolve(one, size=8, modified=8))
    assert not one.is_before(evolve(one, tag="16388"))


def test_a_directory_that_changes_while_it_is_listed_is_listed_again(spark, logs, monkeypatch):
    listed, rotations = files.listed_names, iter([rotate])

    def listed_then_rotated(session, paths):
        names = listed(session, paths)
        for change in rotations:
            change(logs)
        return names

    monkeypatch.setattr(files, "listed_names", listed_then_rotated)
    ingested = ingest(spark, logs, "kafka-log")
    assert {Path(name).name for name in ingested.files.pins} == {"app.log", "app.log.1", "app.log.2", "app.log.3"}
    ingested.files.check()


def test_a_file_of_another_file_system_is_pinned_by_size_and_time(spark, logs, monkeypatch):
    """Asked through Hadoop, which has no inodes; here of this machine's files, as if they were elsewhere."""
    monkeypatch.setattr(files, "local_path", lambda _: None)
    ingested = ingest(spark, logs, "kafka-log")
    sizes = {Path(name).name: pin.size for name, pin in ingested.files.pins.items()}
    assert sizes == {path.name: path.stat().st_size for path in logs.iterdir()}
    ingested.files.check()
    with (logs / "app.log").open("a") as file:
        file.write("more\n")
    with pytest.raises(ConfigError, match=r"app\.log: changed while it was being read"):
        ingested.files.check()
    (logs / "app.log").unlink()
    with pytest.raises(ConfigError, match=r"app\.log: renamed or removed while it was being read"):
        ingested.files.check()


def test_files_that_are_always_renamed_are_refused(spark, logs, monkeypatch):
    listed = files.listed_names

    def listed_then_replaced(session, paths):
        names = listed(session, paths)
        (logs / "app.log").rename(logs / "app.log.9")
        fill(logs / "app.log")
        return names

    monkeypatch.setattr(files, "listed_names", listed_then_replaced)
    with pytest.raises(ConfigError, match="renamed or removed faster than they are listed"):
        ingest(spark, logs, "kafka-log")
