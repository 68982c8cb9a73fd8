"""Responses with tokens in every version, as kio reads them and beyond the times that it can read."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.records import DelegationTokenRecord
from aclog.protocol.acls import (
    describe_tokens_response,
    token_created_response,
    token_expiry_response,
    token_refused_response,
)
from tests.support.nodes.wire_client import decode_response
from tests.support.tokens import answers as token_answers

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
TIMES = st.integers(0, 4_000_000_000_000)
PRINCIPALS = st.builds("{}:{}".format, st.text(st.characters(exclude_characters=":", exclude_categories=["Cs"])), NAMES)
TOKENS = st.builds(
    DelegationTokenRecord,
    owner=PRINCIPALS,
    requester=PRINCIPALS,
    renewers=st.lists(PRINCIPALS, max_size=3).map(tuple),
    issue_timestamp=TIMES,
    max_timestamp=TIMES,
    expiration_timestamp=TIMES,
    token_id=NAMES,
)


def decoded(api_key, version, body):
    header = bytes(5) if version >= 2 else bytes(4)
    _, message, rest = decode_response(api_key, version, header + body)
    assert rest == b""
    return message


def people(answer, version):
    owner = f"{answer.principal_type}:{answer.principal_name}"
    if version < 3:
        return [owner]
    return [owner, f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}"]


@pytest.mark.parametrize("version", [1, 2, 3])
@given(token=TOKENS, token_hmac=st.binary(max_size=200))
def test_created(version, token, token_hmac) -> None:
    found = decoded(38, version, token_created_response(version, token, token_hmac))
    assert (found.error_code, found.token_id, found.hmac) == (0, token.token_id, token_hmac)
    assert not found.throttle_time, "there are no quotas"
    assert people(found, version) == [token.owner, token.requester][: len(people(found, version))]
    times = [found.issue_timestamp, found.expiry_timestamp, found.max_timestamp]
    wanted = [token.issue_timestamp, token.expiration_timestamp, token.max_timestamp]
    assert [(at - EPOCH) // timedelta(milliseconds=1) for at in times] == wanted


@pytest.mark.parametrize("version", [1, 2, 3])
@given(tokens=st.lists(TOKENS, max_size=3))
def test_described(version, tokens) -> None:
    found = decoded(41, version, describe_tokens_response(version, [(token, b"hmac") for token in tokens]))
    assert (found.error_code, bool(found.throttle_time)) == (0, False)
    for told, token in zip(found.tokens, tokens, strict=True):
        assert people(told, version) == [token.owner, token.requester][: len(people(told, version))]
        wanted = [token.issue_timestamp, token.expiration_timestamp, token.max_timestamp]
        assert [told.issue_timestamp, told.expiry_timestamp, told.max_timestamp] == wanted
        assert (told.token_id, told.hmac) == (token.token_id, b"hmac")
        assert tuple(f"{each.principal_type}:{each.principal_name}" for each in told.renewers) == token.renewers
    refused = decoded(41, version, describe_tokens_response(version, (), 61))
    assert (refused.error_code, refused.tokens) == (61, ())


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("timestamp", [0, -1])
def test_not_created(version, timestamp) -> None:
    body = token_refused_response(version, "User:a:b", "User:c", error_code=65, timestamp=timestamp)
    found = token_answers.created(version, (bytes(5) if version >= 2 else bytes(4)) + body)
    who = ["User", "a:b", "User", "c"][: 4 if version >= 3 else 2]
    assert found == {"code": 65, "who": who, "times": [timestamp] * 3, "token_id": "", "hmac": b""}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("expiry", [0, -1, 1_800_000_000_123, (1 << 63) - 1])
def test_changed(version, expiry) -> None:
    body = token_expiry_response(version, 66, expiry)
    assert token_answers.changed(version, (bytes(5) if version >= 2 else bytes(4)) + body) == (66, expiry)
