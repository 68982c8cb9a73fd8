"""Numbers of distinct accesses, against a dictionary."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from aclog.metalog.errors import DecodeError
from aclog.usage.decisions.access_columns import parse_columns
from aclog.usage.decisions.decisions import AccessNumbers


def random_batch(random, size):
    values = [["User:a", "User:b", None], [f"10.0.0.{n}" for n in range(9)], ["READ"], ["TOPIC", "GROUP"]]
    values.append([f"t{n}" for n in range(random.choice((3, 300)))])
    return [tuple(random.choice(column) for column in values) for _ in range(size)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.sample(4)
def test_numbers_are_those_of_a_dictionary(seed):
    random, numbers, naive = Random(seed), AccessNumbers(), {}
    for _ in range(random.randrange(1, 12)):
        rows = random_batch(random, random.choice((0, 1, 50, 1500)))
        columns = [pa.array([row[at] for row in rows], pa.string()) for at in range(5)]
        before = len(naive)
        of = [naive.setdefault(row, len(naive)) for row in rows]
        access_of, new = numbers.number(columns)
        # new ones of a batch have the next numbers, in order of their last rows
        assert new == len(naive) - before
        names = {number: row for row, number in zip(rows, access_of.tolist(), strict=True)}
        assert len(set(zip(of, access_of.tolist(), strict=True))) == len(names)
        naive = {**naive, **{row: number for number, row in names.items()}}
        assert sorted(naive.values()) == list(range(len(naive)))
    texts = zip(*(column.to_pylist() for column in numbers.columns(slice(None))), strict=True)
    assert list(texts) == sorted(naive, key=naive.__getitem__)


def test_a_dictionary_with_a_value_twice_is_one_access():
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["t", "t", "u"]))
    columns = [*(pa.array([text] * 3) for text in ("User:a", "10.0.0.1", "READ", "TOPIC")), twice]
    numbers = AccessNumbers()
    access_of, new = numbers.number(columns)
    assert new == 2
    assert access_of[0] == access_of[1] != access_of[2]
    assert numbers.number(columns)[1] == 0


def test_codes_that_share_a_slot_are_distinct():
    numbers = AccessNumbers()
    same = [pa.array([text] * 60_000) for text in ("User:a", "10.0.0.1", "READ", "TOPIC")]
    names = pa.array([f"t{number}" for number in range(60_000)])
    access_of, new = numbers.number([*same, names])
    assert new == 60_000
    again, none = numbers.number([*same, names])
    assert none == 0
    np.testing.assert_array_equal(access_of, again)


def test_a_dictionary_with_a_null_is_null():
    texts = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array([None, "a"]))
    columns = [*[pa.array(["x"] * 3)] * 4, texts]
    plain = [*[pa.array(["x"] * 3)] * 4, pa.array([None, "a", None])]
    numbers, new = AccessNumbers().number(columns)
    assert (numbers.tolist(), new) == ([0, 1, 0], 2)
    assert parse_columns(columns).codes.tolist() == parse_columns(plain).codes.tolist()


@pytest.mark.parametrize("read", [parse_columns, AccessNumbers().number])
def test_text_that_is_not_utf_8_is_an_error(read):
    columns = [*[pa.array(["x"])] * 4, pa.array([b"\xff\xfe"]).view(pa.string())]
    with pytest.raises(DecodeError, match="text of an access that is not UTF-8"):
        read(columns)
