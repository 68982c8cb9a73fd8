"""ACLs as JSON: Kafka's encoding, round trips, and malformed znodes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.codes import AclOperation, AclPermissionType
from aclog.metalog.errors import DecodeError
from aclog.zookeeper.znodes import AclEntry, decode_acls, encode_acls

PATH = "/kafka-acl/Topic/orders"
RULE = {"principal": "User:ann", "permissionType": "Allow", "host": "*", "operation": "Read"}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
ENTRIES = st.builds(
    AclEntry,
    principal=st.builds("{}:{}".format, TEXTS, TEXTS),
    permission_type=st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
    host=TEXTS,
    operation=st.sampled_from([code for code in AclOperation if 1 < code < 15]),
)


def node(**changes):
    rule = {key: value for key, value in (RULE | changes).items() if value != "MISSING"}
    return json.dumps({"version": 1, "acls": [rule]}).encode()


def test_the_encoding_equals_kafkas():
    entries = [
        AclEntry(principal="User:bob", permission_type=2, host="10.0.0.1", operation=AclOperation.ALTER_CONFIGS),
        AclEntry(principal="User:ann", permission_type=3, host="*", operation=AclOperation.READ),
    ]
    assert encode_acls(entries) == (
        b'{"acls":[{"principal":"User:ann","permissionType":"Allow","host":"*","operation":"Read"},'
        b'{"principal":"User:bob","permissionType":"Deny","host":"10.0.0.1","operation":"AlterConfigs"}],"version":1}'
    )


@given(st.frozensets(ENTRIES, max_size=5))
def test_acls_round_trip(entries):
    assert decode_acls(encode_acls(entries), path=PATH) == entries


@pytest.mark.parametrize("operation", ["Read", "READ", "read"])
@pytest.mark.parametrize("permission", ["Allow", "ALLOW", "allow"])
def test_names_are_case_insensitive_as_in_kafka(operation, permission):
    (entry,) = decode_acls(node(operation=operation, permissionType=permission), path=PATH)
    assert (entry.operation, entry.permission_type) == (AclOperation.READ, AclPermissionType.ALLOW)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "byte 1: expected JSON"),
        (b"null", "null: expected a JSON object"),
        (b"[]", r"\[\]: expected a JSON object"),
        (b"{}", "version None: expected 1"),
        (b'{"version":2,"acls":[]}', "version 2: expected 1"),
        (b'{"version":"1","acls":[]}', "version '1': expected 1"),
        (b'{"version":true,"acls":[]}', "version True: expected 1"),
        (b'{"version":1.0,"acls":[]}', "version 1.0: expected 1"),
        (b'{"version":1}', "acls is null: expected an array"),
        (b'{"version":1,"acls":[1]}', r"acls\[0\] is 1: expected an object"),
        (node() + b" x", "byte [0-9]+: expected JSON: Extra data"),
        (node().replace(b"ann", b"\xff"), "byte [0-9]+: expected UTF-8"),
        (node(principal="nocolon"), r"acls\[0\]: .*`nocolon`"),
        (node(principal="MISSING", principals=["User:ann"]), r"acls\[0\].principal is null: expected a string"),
        (node(host=None), r"acls\[0\].host is null: expected a string"),
        (node(host=5), r"acls\[0\].host is 5: expected a string"),
        (node(operation="Fly"), r"acls\[0\].operation 'Fly': expected one of All, Read, "),
        (node(operation="Any"), "operation 'Any'"),
        (node(operation="ALTER_CONFIGS"), "operation 'ALTER_CONFIGS'"),
        (node(operation="TwoPhaseCommit"), "operation 'TwoPhaseCommit'"),
        (node(permissionType="Maybe"), r"acls\[0\].permissionType 'Maybe': expected one of Deny, Allow"),
        (node(principal="User:\ud800"), "unpaired surrogate"),
        (b'{"version":1,"acls":' + b"[" * 100_000, "expected JSON"),
    ],
)
def test_malformed_nodes_are_rejected_with_their_path(data, message):
    with pytest.raises(DecodeError, match=f"^{PATH}: (.*)?{message}") as e:
        decode_acls(data, path=PATH)
    assert "\n" not in str(e.value)
    assert len(str(e.value)) < 400


@given(st.binary(max_size=60))
def test_any_bytes_decode_or_raise(data):
    try:
        decode_acls(data, path=PATH)
    except DecodeError as e:
        error = e
    else:
        return
    assert error.path == PATH


def test_an_empty_node_has_no_acls_and_unknown_keys_are_ignored():
    assert decode_acls(b"", path=PATH) == frozenset()
    assert len(decode_acls(node(comment="x"), path=PATH)) == 1
