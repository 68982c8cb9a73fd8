"""Row groups as pieces of work: every row once, and no guess about columns or times."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.parquet import latest_time, plain_parts, read_plain
from aclog.usage.decisions.decisions import REQUEST_COLUMNS

UTC_MICROS = pa.timestamp("us", tz="UTC")


def table_of(times, kind=UTC_MICROS, text=None) -> pa.Table:
    texts = [pa.array([f"{name}-{n % 3}" for n in range(len(times))], text or pa.string()) for name in REQUEST_COLUMNS]
    return pa.table([pa.array(times, kind), *texts], names=["timestamp", *REQUEST_COLUMNS])


def written(path, table, **options) -> str:
    pq.write_table(table, path, **options)
    return str(path)


@pytest.mark.parametrize("most", [1, 2, 3, 7, 100])
def test_every_row_is_in_one_part(tmp_path, most):
    paths = [written(tmp_path / f"{n}.parquet", table_of(range(n * 7)), row_group_size=3) for n in range(4)]
    parts = plain_parts(paths, most)
    assert len(parts) <= most
    rows = [row for part in parts for batch in read_plain(part) for row in batch.to_pylist()]
    assert rows == [
        row for path in paths for row in pq.read_table(path).select([*REQUEST_COLUMNS, "timestamp"]).to_pylist()
    ]
    assert max(part.latest for part in parts) == max(map(latest_time, parts)) == 20


def test_the_latest_time_is_not_guessed(tmp_path):
    without = written(tmp_path / "without.parquet", table_of([3, 5]), write_statistics=False)
    nulls = written(tmp_path / "nulls.parquet", table_of([None, None]))
    (part,) = plain_parts([without], 1)
    assert (part.latest, latest_time(part)) == (None, 5)
    (part,) = plain_parts([nulls], 1)
    assert (part.latest, latest_time(part)) == (None, None)
    both = plain_parts([without, nulls], 1)
    assert [(part.latest, latest_time(part)) for part in both] == [(None, 5)]
    far = written(tmp_path / "far.parquet", table_of([1 << 61, 7]))
    (part,) = plain_parts([far], 1)
    assert part.latest is None


def test_what_needs_more_than_reading_is_not_plain(tmp_path):
    plain = table_of([1, 2])
    text = plain.column("host")
    others = [
        plain.drop_columns(["timestamp"]),
        plain.drop_columns(["host"]),
        plain.append_column("Host", text),  # Spark looks names up without regard to case
        plain.append_column("_malformed", text),
        table_of([1, 2], pa.int64()),
        table_of([1, 2], pa.timestamp("us")),
        table_of([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("ns", tz="UTC")),
        table_of([1, 2], text=pa.binary()),
    ]
    for number, other in enumerate(others):
        assert plain_parts([written(tmp_path / f"{number}.parquet", other)], 4) is None, number
    old = written(tmp_path / "old.parquet", table_of([1, 2]), use_deprecated_int96_timestamps=True)
    assert plain_parts([old], 4) is None
    assert plain_parts([written(tmp_path / "plain.parquet", plain), old], 4) is None
    assert plain_parts([], 4) == []


def test_damage_and_a_replaced_file_are_errors(tmp_path):
    path = tmp_path / "log.parquet"
    path.write_bytes(b"no parquet")
    with pytest.raises(ConfigError, match=r"log\.parquet: not a Parquet file"):
        plain_parts([str(path)], 1)
    written(path, table_of([1, 2]))
    (part,) = plain_parts([str(path)], 1)
    written(path, table_of(list(range(1000))))
    with pytest.raises(ConfigError, match="replaced by another file"):
        list(read_plain(part))
