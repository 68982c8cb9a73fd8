import pytest

from aclog.metalog.errors import DecodeError
from aclog.protocol.messages import (
    build,
    build_response,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from tests.support.nodes.wire_messages import SERVED


@pytest.mark.parametrize(("api_key", "version"), SERVED)
def test_a_message_of_defaults_can_be_sent(api_key, version):
    request, response = build(api_key, version, "request"), build(api_key, version, "response")
    assert decode_request(api_key, version, encode_request(request), 0) == request
    assert decode_response(api_key, version, encode_response(response), 0) == response


def test_missing_fields_are_empty_or_the_schemas_default():
    found = build(60, 2, "response")
    assert (found.controller_id, found.error_message, found.endpoint_type, found.brokers) == (-1, None, 1, ())
    assert build(30, 3, "response", "AclCreationResult").error_message == ""


def test_fields_of_other_versions_are_left_out():
    assert build(60, 2, "request", endpoint_type=2).endpoint_type == 2
    assert not hasattr(build(60, 0, "request", endpoint_type=2), "endpoint_type")
    topic = build(1, 12, "request", "FetchTopic", topic="t", topic_id=None)
    assert topic.topic == "t"


def test_a_field_that_no_version_has_is_a_mistake():
    with pytest.raises(TypeError, match="DescribeClusterRequest has no field endpoint in any version"):
        build(60, 0, "request", endpoint=2)


@pytest.mark.parametrize(("code", "sent"), [(31, 31), (0, 0), (10801, -1)])
def test_error_codes_may_be_ints(code, sent):
    assert build(60, 0, "response", error_code=code).error_code == sent


def test_an_unknown_api():
    with pytest.raises(DecodeError):
        build(58, 1, "request")


def test_build_response_encodes_the_message():
    assert build_response(60, 2, error_code=31) == encode_response(build(60, 2, "response", error_code=31))
