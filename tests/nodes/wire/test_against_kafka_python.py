"""Encoded bytes compared with kafka-python, an independent implementation of Kafka's protocol."""

import warnings
from importlib import import_module

import pytest

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult, AclRequestError
from aclog.protocol.acls import create_acls_body, delete_acls_chunks, describe_acls_chunks
from aclog.protocol.headers import RequestHeader, decode_header, encode_header
from aclog.protocol.messages import decode_request, decode_response, encode_request, message_type
from tests.support.nodes.wire_messages import SERVED, filled

MODULES = ("kafka.protocol.admin", "kafka.protocol.metadata", "kafka.protocol.consumer", "kafka.protocol.sasl")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas by a deprecated call
    THEIRS = {
        (found.API_KEY, found.type): found
        for name in MODULES
        for found in vars(import_module(name)).values()
        if isinstance(found, type) and getattr(found, "API_KEY", None) is not None
    }
BOTH = [
    (*api, kind)
    for api in SERVED
    for kind in ("request", "response")
    if (api[0], kind) in THEIRS and api[1] <= THEIRS[api[0], kind].max_version
]


def test_kafka_python_has_most_served_versions():
    assert {api_key for api_key, _, _ in BOTH} >= {1, 3, 17, 18, 29, 30, 31, 36, 48, 50, 51, 60}


@pytest.mark.parametrize(("api_key", "version", "kind"), BOTH)
def test_both_read_and_write_the_same_bytes(api_key, version, kind):
    message = filled(message_type(api_key, version, kind))
    encoded = encode_request(message)
    theirs = THEIRS[api_key, kind].decode(encoded, version=version)
    theirs._header = None  # what it decodes without a header cannot be encoded otherwise
    again = bytes(theirs.encode(version=version))
    assert again == encoded
    assert (decode_request if kind == "request" else decode_response)(api_key, version, again, 0) == message


@pytest.mark.parametrize(("api_key", "version"), sorted({each[:2] for each in BOTH if each[2] == "request"}))
def test_their_headers_are_ours(api_key, version):
    theirs = THEIRS[api_key, "request"](version=version)
    theirs.with_header(correlation_id=7, client_id="someone")
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=7, client_id="someone")
    encoded = bytes(theirs.encode_header(flexible=theirs.flexible_version_q(version)))
    assert encoded == encode_header(header)
    assert decode_header(encoded + b"body") == (header, len(encoded))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_kafka_python_reads_acl_responses(version):
    acl = StandardAcl(
        resource_type=2,
        resource_name="x" * 200,
        pattern_type=4,
        principal="User:é",
        host="*",
        operation=3,
        permission_type=2,
    )
    rules = (StandardAclWithId(id=None, acl=acl),)
    described = THEIRS[29, "response"].decode(b"".join(describe_acls_chunks(version, rules)), version=version)
    assert [(each.resource_name, each.pattern_type) for each in described.resources] == [("x" * 200, 4)]
    assert [(each.principal, each.host, each.operation) for each in described.resources[0].acls] == [("User:é", "*", 3)]
    results = [AclDeleteResult(deleted=rules), AclDeleteResult(error=AclRequestError(42, "no"))]
    deleted = THEIRS[31, "response"].decode(b"".join(delete_acls_chunks(version, results)), version=version)
    found = [(each.error_code, each.error_message, len(each.matching_acls)) for each in deleted.filter_results]
    assert found == [(0, None, 1), (42, "no", 0)]
    created = [AclCreateResult(), AclCreateResult(error=AclRequestError(42, "no"))]
    answer = THEIRS[30, "response"].decode(create_acls_body(version, created), version=version)
    assert [(each.error_code, each.error_message) for each in answer.results] == [(0, ""), (42, "no")]
