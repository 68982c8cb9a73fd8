"""Altering SCRAM credentials: the resulting records and errors."""

from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.credentials import scram
from aclog.credentials.scram import (
    ScramDeletion,
    ScramImage,
    ScramMechanism,
    ScramResult,
    ScramUpsertion,
    alter_credentials,
    credential_record,
)
from aclog.metalog.records import RemoveUserScramCredentialRecord

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
TWICE = "A user credential cannot be altered twice in the same request"
ABSENT = "Attempt to delete a user credential that does not exist"


def upsertion(name="alice", mechanism=SHA_256, iterations=4096, salted_password=b"hush-salted"):
    return ScramUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"hush-salt", salted_password=salted_password
    )


def deletion(name="alice", mechanism=SHA_256):
    return ScramDeletion(name=name, mechanism=mechanism)


def refused(user, code, message):
    return ScramResult(user=user, error_code=code, error_message=message)


def image_of(*upsertions):
    return ScramImage.EMPTY.apply(alter_credentials(ScramImage.EMPTY, [], upsertions).records)


IMAGE = image_of(upsertion("alice"), upsertion("bob", SHA_512))


def test_a_credential_equals_the_one_that_kafka_wrote():
    """The keys that Kafka 4.3.1 wrote into the bundled log for this password."""
    salt = b64decode("MWZ2aGpzcHhvYTNieGpqOXQwODYxcDMwc2c=")
    salted = scram.salted_password(SHA_256, "admin-secret", salt, 4096)
    upsertions = [ScramUpsertion(name="admin", mechanism=1, iterations=4096, salt=salt, salted_password=salted)]
    (record,) = alter_credentials(ScramImage.EMPTY, [], upsertions).records
    assert record == credential_record("admin", SHA_256, salt=salt, salted_password=salted, iterations=4096)
    assert (record.name, record.mechanism, record.salt, record.iterations) == ("admin", 1, salt, 4096)
    assert b64encode(record.stored_key) == b"XQXez8mHpg3uImALeYI//vPjwmpVWcLlyaUMdSKAjeM="
    assert b64encode(record.server_key) == b"qsVSP04kPIXGGom8Hrm4oE81D3Fm4gIou8F+EtEVxHA="


@pytest.mark.parametrize(("mechanism", "size"), [(SHA_256, 32), (SHA_512, 64)])
def test_keys_are_as_long_as_the_hash(mechanism, size):
    (record,) = alter_credentials(ScramImage.EMPTY, [], [upsertion(mechanism=mechanism)]).records
    assert {len(record.stored_key), len(record.server_key)} == {size}
    assert record.stored_key != record.server_key


def test_deleting():
    altered = alter_credentials(IMAGE, [deletion("alice")], [])
    assert altered.records == (RemoveUserScramCredentialRecord(name="alice", mechanism=1),)
    assert altered.results == (ScramResult(user="alice"),)
    assert IMAGE.apply(altered.records).get("alice", SHA_256) is None


@pytest.mark.parametrize(
    ("deletions", "upsertions", "result"),
    [
        ([deletion("nobody")], [], refused("nobody", 91, ABSENT)),
        ([deletion("alice", SHA_512)], [], refused("alice", 91, ABSENT)),
        ([deletion("")], [], refused("", 93, "Username must not be empty")),
        ([deletion("", 7)], [], refused("", 93, "Username must not be empty")),
        ([deletion("alice", 0)], [], refused("alice", 33, "Unknown SCRAM mechanism")),
        ([deletion("alice", -1)], [], refused("alice", 33, "Unknown SCRAM mechanism")),
        ([], [upsertion("")], refused("", 93, "Username must not be empty")),
        ([], [upsertion(mechanism=3)], refused("alice", 33, "Unknown SCRAM mechanism")),
        ([], [upsertion(mechanism=3, iterations=1)], refused("alice", 33, "Unknown SCRAM mechanism")),
        ([], [upsertion(iterations=4095)], refused("alice", 93, "Too few iterations")),
        ([], [upsertion(iterations=-1)], refused("alice", 93, "Too few iterations")),
        ([], [upsertion(iterations=16_385)], refused("alice", 93, "Too many iterations")),
        ([], [upsertion(salted_password=b"")], refused("alice", -1, None)),
        ([deletion(), deletion()], [], refused("alice", 92, TWICE)),
        ([deletion(), deletion(), deletion()], [], refused("alice", 92, TWICE)),
        ([], [upsertion(), upsertion(mechanism=SHA_512)], refused("alice", 92, TWICE)),
        ([deletion()], [upsertion(mechanism=SHA_512)], refused("alice", 92, TWICE)),
        ([deletion()], [upsertion(iterations=1)], refused("alice", 92, TWICE)),
        ([deletion("nobody")], [upsertion("nobody")], refused("nobody", 91, ABSENT)),
        ([], [upsertion(iterations=1), upsertion()], refused("alice", 93, "Too few iterations")),
    ],
)
def test_rejected_alterations(deletions, upsertions, result):
    altered = alter_credentials(IMAGE, deletions, upsertions)
    assert altered.results == (result,)
    assert altered.records == ()


@pytest.mark.parametrize("iterations", [4096, 16_384])
def test_the_bounds_of_iterations_are_inclusive(iterations):
    altered = alter_credentials(IMAGE, [], [upsertion(iterations=iterations)])
    assert altered.results == (ScramResult(user="alice"),)
    assert altered.records[0].iterations == iterations


def test_valid_alterations_succeed_next_to_rejected_ones():
    altered = alter_credentials(
        IMAGE,
        [deletion("nobody"), deletion("bob", SHA_512)],
        [upsertion("carol"), upsertion("dave", iterations=1), upsertion("alice", SHA_512)],
    )
    assert altered.results == (
        ScramResult(user="bob"),
        ScramResult(user="carol"),
        ScramResult(user="alice"),
        refused("nobody", 91, ABSENT),
        refused("dave", 93, "Too few iterations"),
    )
    assert [(type(r).__name__[:6], r.name, r.mechanism) for r in altered.records] == [
        ("Remove", "bob", 2),
        ("UserSc", "carol", 1),
        ("UserSc", "alice", 2),
    ]


def test_a_metadata_version_without_scram():
    altered = alter_credentials(
        IMAGE, [deletion(), deletion("bob")], [upsertion("bob"), upsertion("")], supported=False
    )
    assert altered.records == ()
    message = "The current metadata.version does not support SCRAM"
    assert altered.results == tuple(refused(user, 35, message) for user in ("alice", "bob", ""))


def test_an_empty_request():
    assert alter_credentials(IMAGE, [], []) == alter_credentials(ScramImage.EMPTY, [], [])


def test_no_secret_is_shown():
    assert "hush" not in repr(upsertion()) + repr(alter_credentials(IMAGE, [], [upsertion()]))


USERS = st.sampled_from(["", "alice", "bob", "carol"])
CODES = st.integers(0, 3)


@given(
    st.lists(st.builds(deletion, USERS, CODES), max_size=4),
    st.lists(st.builds(upsertion, USERS, CODES, st.sampled_from([1, 4096, 20_000])), max_size=4),
)
def test_every_user_gets_one_result_and_every_success_one_record(deletions, upsertions):
    altered = alter_credentials(IMAGE, deletions, upsertions)
    users = [result.user for result in altered.results]
    assert len(users) == len(set(users))
    assert set(users) == {alteration.name for alteration in (*deletions, *upsertions)}
    assert [record.name for record in altered.records] == [r.user for r in altered.results if r.error_code == 0]
