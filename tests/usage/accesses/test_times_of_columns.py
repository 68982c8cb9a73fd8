"""Times of many lines in columns are those of each line by itself."""

from datetime import UTC, datetime, timedelta, timezone
from random import Random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from aclog.usage.accesses.access_batch import micros_of_seconds
from aclog.usage.accesses.times import second_micros

ZONES = (
    UTC,
    timezone(timedelta(hours=5, minutes=45)),
    *map(ZoneInfo, ("UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Africa/Monrovia")),
)
TURNS = tuple(
    map(
        datetime.fromisoformat,
        (
            "2026-03-29 02:00", "2026-10-25 02:00", "2026-04-05 01:30", "2026-10-04 02:00", "1972-01-07 00:00",
            "2006-10-29 00:01", "2026-01-01 00:00", "0001-01-01 03:00", "9999-12-31 20:00",
        ),
    )
)  # fmt: skip
"""Local times near which some of the zones change their offset: on the hour, within one, or by half of one."""
ODD = (
    "2026-02-30 10:00:00", "2026-10-25 24:00:00", "2026-10-25 24:00:01", "2026-10-25 23:60:00", "2026-10-25 23:59:60",
    "2026-10-25 23:5a:00", "2026-10-25 23-59-00", "0000-01-01 00:00:00", "2026-10-25 23:59:0/", "2026-10-25 23:59: 9",
    "xxxxxxxxxxxxxxxxxxx", "2026-13-01 10:00:00",
)  # fmt: skip


def texts_near(random, turn):
    for _ in range(40):
        try:
            yield str((turn + timedelta(seconds=random.randrange(-9_000, 9_000))).replace(microsecond=0))
        except OverflowError:
            continue


@pytest.mark.parametrize("zone", ZONES, ids=str)
@pytest.mark.parametrize("separator", [" ", "T"])
def test_seconds_in_columns_are_those_of_each_text(zone, separator):
    random = Random(7)
    texts = [text for turn in TURNS for text in texts_near(random, turn)] + list(ODD)
    distinct = list(dict.fromkeys(text.replace(" ", separator, 1) for text in texts))
    random.shuffle(distinct)
    expected = [second_micros(text.replace("T", " "), zone) for text in distinct]
    assert None in expected
    for some in (slice(None), slice(3), slice(2, 200)):
        column = pa.array([text.encode() for text in distinct], pa.binary())[some]
        assert micros_of_seconds(column, zone).to_pylist() == expected[some]


def test_texts_of_other_sizes_are_read_one_by_one():
    texts = [*(f"2026-11-21 10:00:{second:02}" for second in range(30)), "2026-11-21 10:00", "x"]
    column = pa.array([text.encode() for text in texts], pa.binary())
    assert micros_of_seconds(column, UTC).to_pylist() == [second_micros(text, UTC) for text in texts]
