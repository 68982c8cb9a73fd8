from itertools import chain, repeat
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.errors import ConfigError
from aclog.metalog.machine import randomness
from aclog.metalog.primitives import RandomIds, parse_uuid, random_uuid, uuid_text


@given(st.uuids())
def test_round_trip(value):
    assert parse_uuid(uuid_text(value)) == value
    assert len(uuid_text(value)) == 22


def test_the_topic_id_of_every_metadata_log():
    assert uuid_text(UUID(int=1)) == "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAQ==",
        "AAAAAAAAAAAAAAAAAAAAAR",
        "A+AAAAAAAAAAAAAAAAAAAA",
        "é" * 22,
    ],
)
def test_texts_that_are_no_uuid_are_refused(text):
    with pytest.raises(ConfigError, match="is not a Kafka uuid"):
        parse_uuid(text)


def test_a_random_uuid_never_looks_like_a_flag():
    flag, fine = b"\xf8" + bytes(15), bytes(range(16))
    draws = chain([flag, flag], repeat(fine))
    value = random_uuid(lambda size: next(draws)[:size])
    assert value == UUID(bytes=fine, version=4)
    assert not uuid_text(value).startswith("-")


def test_random_ids_are_kafkas_and_unique():
    new_id = RandomIds()
    ids = [new_id() for _ in range(3000)]
    assert len(set(ids)) == 3000
    assert {each.version for each in ids} == {4}
    assert set(ids).isdisjoint(RandomIds()() for _ in range(1000))


def test_random_bytes_are_read_in_blocks(monkeypatch):
    import os

    asked, real = [], os.urandom
    monkeypatch.setattr(randomness, "urandom", lambda count: asked.append(count) or real(count))
    new_id = RandomIds()
    for _ in range(100):
        new_id()
    assert len(asked) == 1
