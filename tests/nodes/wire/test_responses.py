from datetime import UTC, datetime

import pytest

from aclog.protocol.api_keys import DESCRIBE_QUORUM
from aclog.protocol.messages import build, decode_response
from aclog.protocol.responses import (
    AUTHORIZER_NOT_READY,
    MAX_MESSAGE,
    EnvelopeResponse,
    decode_envelope_response,
    error_response,
)
from tests.support.nodes.wire_messages import SERVED

CODE, MESSAGE = 31, "Request denied."


def answer(api_key, version, *, message=MESSAGE, code=CODE, **request):
    body = error_response(build(api_key, version, "request", **request), api_key, version, code, message=message)
    return decode_response(api_key, version, body, 0)


def part(api_key, version, name, /, **values):
    return build(api_key, version, "request", name, **values)


@pytest.mark.parametrize(("api_key", "version"), SERVED)
@pytest.mark.parametrize("message", [MESSAGE, None])
def test_every_api_has_an_error_response(api_key, version, message):
    found = answer(api_key, version, message=message)
    if hasattr(found, "error_code") and api_key != 3:
        assert found.error_code == CODE
    if hasattr(found, "error_message"):
        assert found.error_message == ("Cluster authorization failed." if api_key == DESCRIBE_QUORUM else message)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_acl_requests_have_one_result_an_entry(version):
    creations = (part(30, version, "AclCreation"),) * 3
    found = answer(30, version, creations=creations).results
    assert [(each.error_code, each.error_message) for each in found] == [(CODE, MESSAGE)] * 3
    filters = (part(31, version, "DeleteAclsFilter"),) * 2
    results = answer(31, version, filters=filters).filter_results
    assert [(each.error_code, each.error_message, each.matching_acls) for each in results] == [(CODE, MESSAGE, ())] * 2
    described = answer(29, version)
    assert (described.error_code, described.error_message, described.resources) == (CODE, MESSAGE, ())


@pytest.mark.parametrize("version", [4, 6, 7, 12])
def test_old_fetches_have_the_error_at_every_partition(version):
    partitions = tuple(part(1, version, "FetchPartition", partition=number) for number in (0, 4))
    topics = (part(1, version, "FetchTopic", topic="a", partitions=partitions),)
    found = answer(1, version, topics=topics, session_id=9)
    (topic,) = found.responses
    assert topic.topic == "a"
    assert [(each.partition_index, each.error_code, each.high_watermark) for each in topic.partitions] == [
        (0, CODE, -1),
        (4, CODE, -1),
    ]
    if version >= 7:
        assert (found.error_code, found.session_id) == (CODE, 9)


@pytest.mark.parametrize("version", [13, 17, 18])
def test_fetches_have_the_error_at_the_top(version):
    topics = (part(1, version, "FetchTopic", partitions=(part(1, version, "FetchPartition"),)),)
    found = answer(1, version, topics=topics, session_id=9)
    assert (found.error_code, found.responses, found.session_id) == (CODE, (), 9)


@pytest.mark.parametrize("version", [0, 1, 9, 12, 13])
def test_metadata_has_the_error_at_every_topic(version):
    topics = (part(3, version, "MetadataRequestTopic", name="a"),)
    if version >= 12:
        topics += (part(3, version, "MetadataRequestTopic", name=None),)
    found = answer(3, version, topics=topics)
    assert [(each.name, each.error_code, each.partitions) for each in found.topics] == [
        (each.name or "", CODE, ()) for each in topics
    ]
    if version >= 13:
        assert found.error_code == 0


def test_metadata_for_all_topics_has_none():
    assert answer(3, 13, topics=None).topics == ()


def test_scram_changes_have_one_result_a_user_sorted():
    deletions = tuple(part(51, 0, "ScramCredentialDeletion", name=name) for name in ("c", "a"))
    upsertions = tuple(part(51, 0, "ScramCredentialUpsertion", name=name) for name in ("b", "a"))
    found = answer(51, 0, deletions=deletions, upsertions=upsertions).results
    assert [(each.user, each.error_code, each.error_message) for each in found] == [
        (name, CODE, MESSAGE) for name in ("a", "b", "c")
    ]


@pytest.mark.parametrize("users", [None, (), ("a", "b")])
def test_scram_descriptions_have_the_error_everywhere(users):
    names = None if users is None else tuple(part(50, 0, "UserName", name=name) for name in users)
    found = answer(50, 0, users=names)
    assert (found.error_code, found.error_message) == (CODE, MESSAGE)
    assert [(each.error_code, each.error_message) for each in found.results] == [(CODE, MESSAGE)] * len(users or ())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_token_that_was_not_made_is_anonymous_and_has_no_times(version):
    found = answer(38, version)
    assert (found.principal_type, found.principal_name, found.token_id, found.hmac) == ("User", "ANONYMOUS", "", b"")
    none = datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    assert (found.issue_timestamp, found.expiry_timestamp, found.max_timestamp) == (none,) * 3
    body = error_response(build(38, version, "request"), 38, version, CODE)
    assert body.count(b"\xff" * 24) == 1


def test_quotas_are_null():
    assert answer(48, 1).entries is None


@pytest.mark.parametrize("version", [0, 4, 5, 99])
def test_an_unsupported_version_of_api_versions_is_answered_in_version_0(version):
    found = decode_response(18, 0, error_response(None, 18, version, 35), 0)
    assert (found.error_code, [each.api_key for each in found.api_keys]) == (35, [18])


@pytest.mark.parametrize(
    ("version", "code", "told"), [(0, AUTHORIZER_NOT_READY, -1), (1, AUTHORIZER_NOT_READY, 10801), (0, 31, 31)]
)
def test_envelopes(version, code, told):
    body = error_response(None, 58, version, code, message=MESSAGE)
    assert decode_envelope_response(body, 0) == EnvelopeResponse(error_code=told)


def test_a_code_that_is_not_kafkas_is_an_unknown_server_error():
    assert answer(60, 2, code=AUTHORIZER_NOT_READY).error_code == -1


def test_a_message_that_quotes_a_long_name_is_cut():
    assert len(answer(29, 1, message="é" * 40000).error_message) == MAX_MESSAGE


@pytest.mark.parametrize("version", [0, 1])
def test_quota_changes_have_the_error_at_every_entity(version):
    entity = part(49, version, "EntityData", entity_type="user", entity_name=None)
    found = answer(49, version, entries=(part(49, version, "EntryData", entity=(entity,)),) * 2)
    told = [(each.error_code, each.error_message, each.entity[0].entity_type) for each in found.entries]
    assert told == [(CODE, MESSAGE, "user")] * 2


@pytest.mark.parametrize("version", [1, 4])
def test_configs_have_the_error_at_every_resource(version):
    resources = tuple(
        part(32, version, "DescribeConfigsResource", resource_type=4, resource_name=name) for name in ("1", "2")
    )
    found = answer(32, version, resources=resources)
    told = [(each.error_code, each.error_message, each.resource_type, each.resource_name) for each in found.results]
    assert told == [(CODE, MESSAGE, 4, "1"), (CODE, MESSAGE, 4, "2")]
