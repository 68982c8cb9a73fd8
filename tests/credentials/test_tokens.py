"""Delegation tokens: upserts, removals of absent ones, ownership, and their HMAC."""

import pytest

from aclog.credentials.tokens import TokensImage, token_hmac
from aclog.metalog.records import DelegationTokenRecord, RemoveDelegationTokenRecord


def token(token_id, owner="User:o", requester="User:r", renewers=("User:n",), expiration=5):
    return DelegationTokenRecord(
        owner=owner,
        requester=requester,
        renewers=renewers,
        issue_timestamp=1,
        max_timestamp=9,
        expiration_timestamp=expiration,
        token_id=token_id,
    )


def test_a_renewal_replaces():
    image = TokensImage.EMPTY.apply([token("a"), token("a", expiration=7)])
    assert len(image) == 1
    assert image.get("a").expiration_timestamp == 7


def test_removing_an_absent_token_has_no_effect():
    before = TokensImage.EMPTY.apply([token("a"), token("b")])
    after = before.apply([RemoveDelegationTokenRecord(token_id=name) for name in ("a", "a", "never")])
    assert [record.token_id for record in after.records()] == ["b"]
    assert after.get("a") is None
    assert len(before) == 2


@pytest.mark.parametrize(
    ("principal", "found"), [("User:o", ["a"]), ("User:r", ["a"]), ("User:n", ["a"]), ("User:x", ["b"]), ("User:y", [])]
)
def test_owned_by(principal, found):
    image = TokensImage.EMPTY.apply([token("b", "User:x", "User:x", ()), token("a")])
    assert [record.token_id for record in image.owned_by([principal])] == found


def test_the_hmac_equals_that_of_a_real_kafka():
    expected = "r0YXa+t0ovH9u/fJ94APyKslnfu9x7FY5KQSrJGfB4etj6Vmgoo2ciV32CUR7a8wotXd3y3/usEWkqVZKyBc+g=="
    assert token_hmac("fixture-secret", "JJSPAC_kRsWqF9jeI5VDtQ") == expected


def test_the_repr_is_a_number():
    assert repr(TokensImage.EMPTY.apply([token("a")])) == "TokensImage(_tokens=1)"
