"""Outputs that are overwritten or appended to: a reader has the former rows, the new ones, or an error."""

import shutil

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from aclog.metalog.errors import ConfigError
from aclog.pipeline import outputs, storage
from aclog.pipeline.output_directory import Mode
from aclog.pipeline.outputs import new_output

TWO = {"a": "parquet", "b": "parquet"}
COUNTS = {Mode.OVERWRITE: 2, Mode.APPEND: 5}


@pytest.fixture(params=["here", "store"])
def place(request, tmp_path, lake):
    """An output on this machine, or in a store, and its directory."""
    return (tmp_path / "out",) * 2 if request.param == "here" else (f"{lake}/out", tmp_path / "lake" / "out")


def content(directory):
    """The files, without checksums."""
    files = (path for path in directory.rglob("*") if path.is_file() and path.suffix != ".crc")
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def write(spark, out, rows, mode=Mode.ERROR, then=lambda: None):
    with new_output(spark, out, mode=mode) as output:
        output.write(spark.range(rows, numPartitions=2))
        assert output.read().count() == rows  # of this job alone
        then()


@pytest.mark.parametrize("mode", COUNTS)
def test_the_rows_after_a_second_job(spark, place, mode):
    out, directory = place
    write(spark, out, 3, mode)  # nothing is there yet
    write(spark, out, 2, mode)
    assert spark.read.parquet(str(out)).count() == COUNTS[mode]
    assert "_SUCCESS" in content(directory)
    assert [path.name for path in directory.parent.iterdir() if path.name.startswith("out")] == ["out"]
    before = content(directory)
    with pytest.raises(ZeroDivisionError):
        write(spark, out, 1, mode, lambda: 1 / 0)
    assert content(directory) == before
    if mode is Mode.APPEND:
        with (
            pytest.raises(ConfigError, match="the column id bigint where the new rows have id int: expected the same"),
            new_output(spark, out, mode=mode) as output,
        ):
            output.write(spark.range(1).selectExpr("cast(id as int) id"))
        assert content(directory) == before
    with pytest.raises(ConfigError, match="exists already"), new_output(spark, out):
        pass


def late_task(directory):
    """Leave what a task leaves that runs twice, or whose job has failed, and that ends later than its job."""
    beside = [path for path in directory.parent.iterdir() if path.name.startswith("out.")]
    attempt = (beside or [directory])[0] / "_temporary" / "0" / "_temporary" / "attempt_1"
    attempt.mkdir(parents=True)
    (attempt / "part-00000.parquet").write_bytes(b"PAR1")


def test_a_task_that_ends_later_than_its_job(spark, place):
    out, directory = place
    write(spark, out, 3, Mode.APPEND, lambda: late_task(directory))
    assert spark.read.parquet(str(out)).count() == 3
    before = content(directory)
    assert not any(name.startswith("_temporary") for name in before)

    def failing():
        late_task(directory)
        raise ZeroDivisionError

    for mode in (Mode.APPEND, Mode.OVERWRITE):
        with pytest.raises(ZeroDivisionError):
            write(spark, out, 2, mode, failing)
        assert content(directory) == before
    write(spark, out, 2, Mode.APPEND)
    assert spark.read.parquet(str(out)).count() == 5


def test_an_output_of_several_tables_is_overwritten(spark, place):
    out, directory = place
    for rows in (3, 2):
        with new_output(spark, out, TWO, Mode.OVERWRITE) as output:
            for name in TWO:
                output.write(spark.range(rows), name)
    assert [spark.read.parquet(f"{out}/{name}").count() for name in TWO] == [2, 2]
    before = content(directory)
    with pytest.raises(ConfigError, match=r"out/a: no file of such an output"):
        write(spark, out, 1, Mode.OVERWRITE)
    with pytest.raises(ZeroDivisionError), new_output(spark, out, TWO, Mode.OVERWRITE) as output:
        output.write(spark.range(9 // 0), "a")
    assert content(directory) == before


@pytest.mark.parametrize("mode", COUNTS)
def test_what_another_process_writes_is_kept(spark, place, mode):
    out, directory = place
    write(spark, out, 3)
    (directory / "notes.txt").write_text("x")
    with pytest.raises(ConfigError, match=r"notes\.txt: no file of such an output"):
        write(spark, out, 1, mode)
    (directory / "notes.txt").unlink()
    with pytest.raises(ConfigError, match="written by another process"):
        write(spark, out, 1, mode, lambda: (directory / "part-7.parquet").write_text("x"))
    assert (directory / "part-7.parquet").exists()
    assert len([name for name in content(directory) if name.endswith(".snappy.parquet")]) == 2
    shutil.rmtree(directory)
    (directory).write_text("a file")
    with pytest.raises(ConfigError):
        write(spark, out, 1, mode)


class KilledError(BaseException):
    """A process that is killed: it cleans up nothing."""


@pytest.mark.parametrize("mode", COUNTS)
def test_a_job_that_is_killed_in_a_store(spark, tmp_path, lake, monkeypatch, mode):
    directory, whole = tmp_path / "lake" / "out", tmp_path / "whole"
    write(spark, f"{lake}/out", 3)
    shutil.copytree(directory, whole)
    counts, is_killed = [], True
    while is_killed:
        shutil.rmtree(directory)
        shutil.copytree(whole, directory)
        is_killed = killed(spark, f"{lake}/out", mode, monkeypatch, len(counts))
        try:
            counts.append(spark.read.parquet(f"{lake}/out").count())
        except (PySparkException, Py4JJavaError):
            marker = (directory / "00-incomplete.parquet").read_text()
            former = {line.removeprefix("former file ") for line in marker.splitlines() if line.startswith("former")}
            assert former == {path.name for path in whole.iterdir() if path.name.startswith("part-")}
            counts.append(None)
    assert counts[0] == 3
    assert counts[-1] == COUNTS[mode]
    assert set(counts) == {3, COUNTS[mode], None}


def killed(spark, out, mode, monkeypatch, steps):
    """Write, but end after so many steps in the store; return whether that was before the end."""
    remaining = iter(range(steps))

    def counted(operation):
        def run(*arguments):
            if next(remaining, None) is None:
                raise KilledError
            return operation(*arguments)

        return run

    with monkeypatch.context() as context:
        for name in ("create", "delete"):
            context.setattr(storage, name, counted(getattr(storage, name)))
        try:
            write(spark, out, 2, mode)
        except KilledError:
            return True
    return False


def test_a_job_that_is_killed_here(spark, tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(spark, out, 3)
    with monkeypatch.context() as context:
        context.setattr(outputs, "_check_same", lambda *_: (_ for _ in ()).throw(KilledError))
        with pytest.raises(KilledError):
            write(spark, out, 2, Mode.OVERWRITE)
    assert spark.read.parquet(str(out)).count() == 3
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("out")] == ["out"]


def days(spark, first, count):
    """Rows of two days, and one without a time."""
    time = "CASE id WHEN 0 THEN NULL ELSE timestamp_millis(1795305600000 + id * 43200000) END"
    return spark.range(first, first + count).selectExpr("id", f"{time} AS timestamp")


def written_by_day(spark, out, rows, mode=Mode.ERROR, *, by_day=True):
    with new_output(spark, out, mode=mode) as output:
        output.write(rows, by_day=by_day)
        assert sorted(row["id"] for row in output.read().collect()) == sorted(row["id"] for row in rows.collect())


def test_a_table_by_day(spark, place):
    out, directory = place
    written_by_day(spark, out, days(spark, 0, 4), Mode.APPEND)
    names = {"day=2026-11-22", "day=2026-11-23", "day=__HIVE_DEFAULT_PARTITION__"}
    assert {path.name for path in directory.iterdir() if path.is_dir()} == names
    assert "_SUCCESS" in content(directory)
    rows = spark.read.parquet(str(out))
    assert rows.columns == ["id", "timestamp", "day"]
    by_day = {row["id"]: str(row["day"]) for row in rows.collect()}
    assert by_day == {0: "None", 1: "2026-11-22", 2: "2026-11-23", 3: "2026-11-23"}
    before = content(directory)
    # a job that fails, and new rows of other columns or without days
    broken = days(spark, 4, 4).selectExpr("IF(id = 7, raise_error('broken'), id) AS id", "timestamp")
    with pytest.raises((Py4JJavaError, PySparkException), match="broken"):
        written_by_day(spark, out, broken, Mode.APPEND)
    assert content(directory) == before
    with pytest.raises(ConfigError, match="written --by-day: expected the same for the new rows"):
        written_by_day(spark, out, days(spark, 4, 1), Mode.APPEND, by_day=False)
    with pytest.raises(ConfigError, match="the column timestamp timestamp where the new rows have n int"):
        written_by_day(spark, out, days(spark, 4, 1).selectExpr("id", "1 AS n", "timestamp"), Mode.APPEND)
    assert content(directory) == before
    written_by_day(spark, out, days(spark, 4, 4), Mode.APPEND)
    written_by_day(spark, out, days(spark, 0, 0), Mode.APPEND)
    assert sorted(row["id"] for row in spark.read.parquet(str(out)).collect()) == [*range(8)]
    written_by_day(spark, out, days(spark, 1, 1), Mode.OVERWRITE)
    assert [path.name for path in directory.iterdir() if path.is_dir()] == ["day=2026-11-22"]
    written_by_day(spark, out, days(spark, 0, 0), Mode.OVERWRITE)
    assert spark.read.parquet(str(out)).columns == ["id", "timestamp"]
    with pytest.raises(ConfigError, match="written without --by-day: expected the same"):
        written_by_day(spark, out, days(spark, 1, 1), Mode.APPEND)


def test_a_file_of_another_process_in_a_day_is_kept(spark, place):
    out, directory = place
    written_by_day(spark, out, days(spark, 0, 4))
    (directory / "day=2026-11-22" / "notes.txt").write_text("x")
    with pytest.raises(ConfigError, match=r"out/day=2026-11-22/notes\.txt: no file of such an output"):
        written_by_day(spark, out, days(spark, 0, 1), Mode.OVERWRITE)
    assert (directory / "day=2026-11-22" / "notes.txt").exists()
