from collections import defaultdict
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer import acls_image
from aclog.authorizer.acl import AclBindingFilter, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.interface import (
    AclCreateResult,
    AclDeleteResult,
    AclRequestError,
    AuthorizerNotReadyError,
    InvalidRequestError,
)
from aclog.protocol.acls import (
    acl_error,
    create_acls_body,
    delete_acls_chunks,
    describe_acls_chunks,
    describe_groups_chunks,
)
from aclog.protocol.messages import decode_response
from tests.authorizer.test_acls_image import by_changes, estates, examples, with_ids
from tests.authorizer.test_rule_columns import FILTERS
from tests.support.builders.acls import acl

VERSIONS = st.sampled_from([1, 2, 3])
CODES = st.integers(-128, 127)
NAMES = st.sampled_from(["a", "b", "*", "é" * 70, "x" * 126, "x" * 127, "x" * 32767]) | st.text(max_size=4)
ACLS = st.builds(
    StandardAcl,
    resource_type=st.sampled_from([2, 3]) | CODES,
    resource_name=NAMES,
    pattern_type=st.sampled_from([3, 4]) | CODES,
    principal=NAMES.map(lambda name: f"User:{name}"[:32767]),
    host=NAMES,
    operation=CODES,
    permission_type=CODES,
)
RULES = st.lists(st.builds(StandardAclWithId, id=st.uuids(), acl=ACLS), max_size=12)
ERRORS = st.sampled_from(
    [AclRequestError(42, "Invalid empty resource name"), AclRequestError(-1), AuthorizerNotReadyError("wait")]
)


def rule(name="orders"):
    return StandardAclWithId(id=None, acl=acl(name, "User:a"))


@given(VERSIONS, RULES, st.integers(1, 4))
def test_described_rules_are_grouped_by_resource(version, rules, piece):
    body = b"".join(describe_acls_chunks(version, iter(rules), piece))
    found = decode_response(29, version, body + b"behind", 0)
    assert (found.error_code, found.error_message) == (0, "")
    expected = defaultdict(set)
    for each in rules:
        acl = each.acl
        entry = acl.principal, acl.host, acl.operation, acl.permission_type
        expected[acl.resource_type, acl.resource_name, acl.pattern_type].add(entry)
    entries = {
        (each.resource_type, each.resource_name, each.pattern_type): [
            (acl.principal, acl.host, acl.operation, acl.permission_type) for acl in each.acls
        ]
        for each in found.resources
    }
    assert len(found.resources) == len(entries)
    assert {key: set(acls) for key, acls in entries.items()} == expected
    assert all(len(set(acls)) == len(acls) for acls in entries.values())


def entries_of(body, version):
    """The resources of a body, each once, and their ACLs, each once."""
    resources = decode_response(29, version, body, 0).resources
    found = {}
    for each in resources:
        acls = [(acl.principal, acl.host, acl.operation, acl.permission_type) for acl in each.acls]
        found[each.resource_type, each.resource_name, each.pattern_type] = set(acls)
        assert len(set(acls)) == len(acls)
    assert len(found) == len(resources)
    return found


@settings(max_examples=examples(150), deadline=None)
@given(
    estates.estates(odd=True), st.integers(0, 2**32), FILTERS, st.booleans(), st.sampled_from([2, 3]), st.integers(1, 5)
)
def test_acls_in_columns_are_described_as_objects_are(estate, seed, acl_filter, merged, version, piece):
    """Also after changes since the base: new resources, more and fewer ACLs of a resource, codes of records alone."""
    image = by_changes(with_ids(estate.acls), Random(seed))
    image = image.merged() if merged else image
    with patch.object(acls_image, "_MANY", 0):
        groups = image.groups(acl_filter)
    if groups is None:
        assert image.index.base.raw_codes
        return
    body = b"".join(describe_groups_chunks(groups, piece))
    expected = b"".join(describe_acls_chunks(version, image.matching(acl_filter)))
    assert entries_of(body, version) == entries_of(expected, version)
    assert len(body) == len(expected)


def test_acls_in_columns_are_in_groups_of_any_size():
    acls = [acl(f"topic-{size}", f"User:{n}") for size in (1, 126, 127, 128, 300) for n in range(size)]
    image = AclsImage.from_acls(with_ids(acls))
    with patch.object(acls_image, "_MANY", 0):
        groups = image.groups(AclBindingFilter())
    for piece in (1, 100, 1 << 20):
        found = entries_of(b"".join(describe_groups_chunks(groups, piece)), 3)
        assert sorted(map(len, found.values())) == [1, 126, 127, 128, 300]


def test_a_filter_that_names_something_is_not_answered_from_columns():
    image = AclsImage.from_acls(with_ids([acl(f"topic-{n}", "User:a") for n in range(2_000)]))
    assert image.groups(AclBindingFilter()) is not None
    for name in ("resource_name", "principal", "host"):
        assert image.groups(AclBindingFilter(**{name: "x"})) is None


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 126, 127, 128, 300])
def test_lengths_of_arrays_of_any_size(version, count):
    rules = [rule(f"topic-{number}") for number in range(count)]
    body = b"".join(describe_acls_chunks(version, rules))
    assert [each.resource_name for each in decode_response(29, version, body, 0).resources] == [
        each.acl.resource_name for each in rules
    ]
    deleted = AclDeleteResult(deleted=tuple(rules))
    found = decode_response(31, version, b"".join(delete_acls_chunks(version, [deleted] * count, 50)), 0)
    assert [len(each.matching_acls) for each in found.filter_results] == [count] * count


def test_chunks_stay_small():
    rules = [rule(f"topic-{number}") for number in range(1000)]
    assert len(list(describe_acls_chunks(3, rules, 10))) > 200
    assert max(map(len, describe_acls_chunks(3, rules, 10))) < 10 * 40
    assert max(map(len, delete_acls_chunks(3, [AclDeleteResult(deleted=tuple(rules))], 10))) < 10 * 40


@given(VERSIONS, st.lists(st.tuples(RULES, st.none() | ERRORS), max_size=4), st.integers(1, 4))
def test_deleted_acls_are_listed_per_filter(version, parts, piece):
    results = [AclDeleteResult(deleted=tuple(rules), error=error) for rules, error in parts]
    found = decode_response(31, version, b"".join(delete_acls_chunks(version, results, piece)) + b"behind", 0)
    assert len(found.filter_results) == len(results)
    for theirs, ours in zip(found.filter_results, results, strict=True):
        assert (theirs.error_code, theirs.error_message) == acl_error(ours.error)
        assert [fields_of(each) for each in theirs.matching_acls] == [
            (0, None, *attributes(each.acl)) for each in ours.deleted
        ]


def fields_of(each):
    return each.error_code, each.error_message, *attributes(each)


def attributes(acl):
    resource = acl.resource_type, acl.resource_name, acl.pattern_type
    return *resource, acl.principal, acl.host, acl.operation, acl.permission_type


@given(VERSIONS, st.lists(st.none() | ERRORS, max_size=200))
def test_created_rules_have_an_empty_message(version, errors):
    body = create_acls_body(version, [AclCreateResult(error=error) for error in errors])
    found = decode_response(30, version, body + b"behind", 0)
    assert [(each.error_code, each.error_message) for each in found.results] == [
        (0, "") if error is None else acl_error(error) for error in errors
    ]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, (0, None)),
        (AclRequestError(44, "too many"), (44, "too many")),
        (AuthorizerNotReadyError("still replaying"), (-1, "AUTHORIZER_NOT_READY: still replaying")),
        (InvalidRequestError("what we think of it"), (-1, None)),
    ],
)
def test_errors_and_their_messages(error, expected):
    assert acl_error(error) == expected
