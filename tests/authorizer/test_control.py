"""ACL control against the responses of a real Kafka, request by request, and its limits."""

import itertools
import json
import pickle
import re
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import AclBindingFilter, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation
from aclog.authorizer.control import create_acls, delete_acls
from aclog.authorizer.interface import AclRequestError, RequestContext, require_on_cluster
from aclog.authorizer.settings import Generation
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from tests.support.builders import acls
from tests.support.models import estates, golden
from tests.support.models.reference import ReferenceAuthorizer
from tests.support.runs.profiles import examples

EXPECTED = Path(__file__).parent.parent / "data" / "kafka-4.3.1-small" / "expected"
RULES = [golden.acl_of(json.loads(line)) for line in (EXPECTED / "acls.jsonl").read_text("utf-8").splitlines()]
CASES = [json.loads(line) for line in (EXPECTED / "errors.jsonl").read_text("utf-8").splitlines()]
CLOSED = "connection closed by broker"
EVERYTHING = AclBindingFilter()


def ids():
    """Yield ids in ascending order, none of them reserved."""
    return map(UUID, (f"{i:032x}" for i in itertools.count(2))).__next__


def image_of(acls) -> AclsImage:
    new_id = ids()
    return AclsImage.from_acls(StandardAclWithId(id=new_id(), acl=acl) for acl in acls)


def acl(kind=2, name="t", pattern=3, principal="User:x", host="*", operation=3, permission=3) -> StandardAcl:
    return acls.acl(
        name, principal, host, operation, resource_type=kind, pattern_type=pattern, permission_type=permission
    )


def wanted(kind, name, pattern, principal, host, operation, permission) -> AclBindingFilter:
    return AclBindingFilter(
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def tuple_of(rule: StandardAcl) -> list:
    return [
        rule.resource_type,
        rule.resource_name,
        rule.pattern_type,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission_type,
    ]


class Cluster:
    """Return the image that the cases are applied to, one after the other."""

    def __init__(self):
        self.image, self.new_id = image_of(RULES), (UUID(int=1 << 100 | i) for i in itertools.count()).__next__
        self.authorizer = StandardAuthorizer()
        self.authorizer.configure({"super.users": "User:admin"})
        self.authorizer.load(self.image)
        self.authorizer.complete_initial_load()

    def refusal(self, user, operation, expected):
        """Kafka's response if the user is not authorized on the cluster."""
        request = re.fullmatch(r"Request (Request\(.*\)) needs \w+ permission\.", expected or "")
        try:
            require_on_cluster(
                self.authorizer,
                RequestContext(principal=f"User:{user}", host="127.0.0.1"),
                operation,
                lambda: request[1] if request else "?",
            )
        except AclRequestError as e:
            return e
        return None

    def create(self, user, acls, expected):
        refused = self.refusal(user, AclOperation.ALTER, expected)
        if refused:
            return [{"code": refused.code, "message": refused.message}] * len(acls)
        done = create_acls(self.image, acls, self.new_id)
        self.image = self.image.apply(done.records)
        # For a success Kafka sends an empty text, not null.
        return [
            {"code": r.error.code, "message": r.error.message} if r.error else {"code": 0, "message": ""}
            for r in done.results
        ]

    def delete(self, user, filters, expected):
        refused = self.refusal(user, AclOperation.ALTER, expected)
        if refused:
            return [{"code": refused.code, "message": refused.message, "matches": []}] * len(filters)
        done = delete_acls(self.image, filters)
        self.image = self.image.apply(done.records)
        return [
            {
                "code": r.error.code if r.error else 0,
                "message": r.error.message if r.error else None,
                "matches": [[0, None, *tuple_of(rule.acl)] for rule in r.deleted],
            }
            for r in done.results
        ]


def first_message(reply):
    return reply[0].get("message") if isinstance(reply, list) and reply else None


def counted(replies):
    """Kafka's responses to large deletes were recorded as counts."""
    return [{**reply, "matches": len(reply["matches"])} for reply in replies]


def creations(case):
    if case["acls"] == "10001 acls":
        return [acl(name=f"big{i}") for i in range(10_001)]
    if case["acls"] == "10000 acls":
        return [acl(name=f"big{i}") for i in range(10_000)]
    return [acl(*row) for row in case["acls"]]


def deletions(case):
    if case["filters"] == "300 exact filters":
        return [wanted(2, f"big{i}", 3, "User:x", "*", 3, 3) for i in range(300)]
    return [wanted(*row) for row in case["filters"]]


def compared(cluster, case):
    """Return our response and Kafka's in one form; None if Kafka could not parse the request."""
    reply, user = case["reply"], case["as"]
    if reply == CLOSED or case.get("client") != "raw":
        return None
    if case["case"].startswith("CreateAcls"):
        ours = cluster.create(user, creations(case), first_message(reply))
        if isinstance(reply, dict):
            distinct = {(r["code"], r["message"]) for r in ours}
            ours = {"results": len(ours), "distinct": [[*pair, len(ours)] for pair in distinct]}
        return ours, reply
    if case["case"].startswith("DeleteAcls"):
        ours = cluster.delete(user, deletions(case), first_message(reply))
        if isinstance(reply, str):
            total = sum(len(r["matches"]) for r in ours)
            return f"{len(ours)} results, all codes {sorted({r['code'] for r in ours})}, total matches {total}", reply
        is_count = any(isinstance(r.get("matches"), int) for r in reply)
        if not all("matches" in r for r in reply):
            ours = [{"code": r["code"], "message": r["message"]} for r in ours]
        return counted(ours) if is_count else ours, reply
    if case["case"].startswith("DescribeAcls"):
        return described(cluster, case)
    return None


def described(cluster, case):
    reply = case["reply"]
    refused = cluster.refusal(case["as"], AclOperation.DESCRIBE, reply["message"])
    if refused:
        ours = {"code": refused.code, "message": refused.message, "count": 0, "first": []}
        return ours, {key: reply[key] for key in ours}
    found = [tuple_of(rule.acl) for rule in cluster.image.matching(wanted(*case["filter"]))]
    # Kafka lists the first few of them in no particular order.
    ours = {"code": 0, "message": "", "count": len(found), "first": [r for r in reply["first"] if r in found]}
    return ours, {key: reply[key] for key in ours}


def test_every_answer_of_a_real_kafka():
    cluster, count, codes = Cluster(), 0, set()
    for case in CASES:
        both = compared(cluster, case)
        if both is None:
            continue
        ours, kafka = both
        assert ours == kafka, case["case"]
        count += 1
        codes |= set(re.findall(r'"code": (-?\d+)', json.dumps(kafka)))
    assert count >= 55
    assert codes >= {"0", "-1", "42", "31"}


def test_kafkas_own_client_refuses_what_we_refuse():
    refused = [case for case in CASES if case.get("client") == "java AdminClient" and "CreateAcls" in case["case"]]
    assert len(refused) == 4
    for case in refused:
        ((kind, name, pattern, principal, host, operation, permission),) = case["cmd"]["acls"]
        row = {
            "resourceType": kind,
            "resourceName": name,
            "patternType": pattern,
            "principal": principal,
            "host": host,
            "operation": operation,
            "permissionType": permission,
        }
        (result,) = create_acls(AclsImage.empty(), [golden.acl_of(row)], ids()).results
        code = case["reply"]["code"] or case["reply"]["errors"][0]["code"]
        assert result.error.code == code


def codes(done):
    return [result.error.code if result.error else 0 for result in done.results]


def test_a_new_rule_gets_a_record():
    done = create_acls(AclsImage.empty(), [acl()], ids())
    (record,) = done.records
    assert isinstance(record, AccessControlEntryRecord)
    assert record.id == UUID(int=2)
    assert AclsImage.empty().apply(done.records).find(acl()) == record.id


def test_duplicates_succeed_without_a_record():
    image = image_of([acl()])
    done = create_acls(image, [acl(), acl(name="new"), acl(name="new")], (UUID(int=i) for i in (50, 51)).__next__)
    assert codes(done) == [0, 0, 0]
    assert [record.resource_name for record in done.records] == ["new"]


def test_an_id_in_use_is_not_given_again():
    image = image_of([acl()])
    offered = iter([UUID(int=2), UUID(int=7), UUID(int=7), UUID(int=8)]).__next__
    done = create_acls(image, [acl(name="a"), acl(name="b")], offered)
    assert [record.id.int for record in done.records] == [7, 8]


def test_the_limit_of_a_creation_counts_new_rules_only():
    image = image_of([acl()])
    enough = [acl(name=f"n{i}") for i in range(10_000)]
    done = create_acls(image, [*enough, acl(), enough[0], acl(name="")], ids())
    assert len(done.records) == 10_000
    assert codes(done)[-3:] == [0, 0, 42]
    refused = create_acls(image, [*enough, acl(name=""), acl(principal="x"), acl(), acl(name="more")], ids())
    assert refused.records == ()
    # ACLs that the broker rejects keep their own errors; all others fail with this one.
    assert codes(refused)[-4:] == [42, 44, 44, 44]
    assert str(refused.results[0].error) == "Unable to perform excessively large batch operation."


@pytest.mark.parametrize(
    "bad", [{"kind": 1}, {"pattern": 1}, {"pattern": 2}, {"operation": 1}, {"permission": 1}], ids=str
)
def test_any_and_match_fail_the_whole_request(bad):
    done = create_acls(AclsImage.empty(), [acl(), acl(**bad), acl(name="")], ids())
    assert codes(done) == [-1, -1, -1]
    assert [result.error.message for result in done.results] == [None] * 3
    assert done.records == ()


def test_a_wrong_cluster_name_is_told_before_an_empty_one():
    done = create_acls(AclsImage.empty(), [acl(kind=4, name="")], ids())
    assert str(done.results[0].error) == "The only valid name for the CLUSTER resource is kafka-cluster"


@pytest.mark.parametrize("host", ["10.0.0.0/33", "example.org/24", "10.0.0.0/"])
def test_a_bad_range_is_refused_only_where_ranges_mean_something(host):
    assert codes(create_acls(AclsImage.empty(), [acl(host=host)], ids())) == [0]
    assert codes(create_acls(AclsImage.empty(), [acl(host=host)], ids(), cidr=True)) == [42]
    assert codes(create_acls(AclsImage.empty(), [acl(host="10.0.0.0/8")], ids(), cidr=True)) == [0]


INVALID, BETWEEN = "Invalid CIDR notation", "prefix length must be between 0 and 128"
BELOW = (35, "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher.")


@pytest.mark.parametrize(
    ("host", "below", "from_32"),
    [
        ("*", (0, None), (0, None)),
        ("10.0.0.1", (0, None), (0, None)),
        ("my host", (0, None), (0, None)),
        ("10.0.0.1-10.0.0.9", (0, None), (0, None)),
        ("", (42, "Host pattern cannot be null or empty"), (42, "Host pattern cannot be null or empty")),
        ("10.0.0.0/8", BELOW, (0, None)),
        ("10.1.2.3/8", BELOW, (0, None)),
        ("2001:db8::/32", BELOW, (0, None)),
        ("a/b", BELOW, (42, "Invalid CIDR notation 'a/b': Could not parse [a/b]")),
        (" 10.0.0.0/8", BELOW, (42, "Invalid CIDR notation ' 10.0.0.0/8': Could not parse [ 10.0.0.0/8]")),
        ("10.0.0.0/33", BELOW, (42, "Invalid CIDR notation '10.0.0.0/33': Value [33] not in range [0,32]")),
        ("10.0.256.0/8", BELOW, (42, "Invalid CIDR notation '10.0.256.0/8': Value [256] not in range [0,255]")),
        (
            "::ffff:10.0.0.0/104",
            BELOW,
            (
                42,
                "Invalid CIDR notation '::ffff:10.0.0.0/104': Could not parse [::ffff:10.0.0.0] - not an IPv6 address",
            ),
        ),
        (
            "2001:db8::/129",
            BELOW,
            (
                42,
                f"{INVALID} '2001:db8::/129': Could not parse [2001:db8::/129] - {BETWEEN}",
            ),
        ),
    ],
)
def test_hosts_that_kafka_4_4_refuses(host, below, from_32):
    def refused(level, generation):
        done = create_acls(AclsImage.empty(), [acl(host=host), acl()], ids(), generation=generation, level=level)
        error = done.results[0].error
        assert len(done.records) == (1 if error or host == "*" else 2)
        return (0, None) if error is None else (error.code, error.message)

    assert refused(33, Generation.V4_3) == refused(30, Generation.V4_3) == (0, None)
    assert refused(30, Generation.V4_4) == refused(31, Generation.V4_4) == refused(0, Generation.V4_4) == below
    assert refused(32, Generation.V4_4) == refused(33, Generation.V4_4) == from_32


def test_a_host_is_checked_after_all_else():
    done = create_acls(
        AclsImage.empty(), [acl(host="", principal="nobody")], ids(), generation=Generation.V4_4, level=33
    )
    assert "principal" in str(done.results[0].error).lower()


def test_overlapping_filters_list_a_rule_under_each_and_remove_it_once():
    image = image_of([acl(), acl(name="u")])
    done = delete_acls(image, [wanted(2, "t", 3, None, None, 1, 1), EVERYTHING])
    names = [sorted(rule.acl.resource_name for rule in result.deleted) for result in done.results]
    assert names == [["t"], ["t", "u"]]
    assert len(done.records) == 2
    assert all(isinstance(record, RemoveAccessControlEntryRecord) for record in done.records)
    assert len(image.apply(done.records)) == 0


def test_the_limit_of_a_deletion():
    image = image_of(acl(name=f"n{i}") for i in range(10_000))
    done = delete_acls(image, [EVERYTHING])
    assert len(done.records) == 10_000
    # As in Kafka, at the limit even an ACL that is removed already counts.
    assert codes(delete_acls(image, [EVERYTHING, wanted(2, "n1", 3, None, None, 1, 1)])) == [42, 42]
    unknown = wanted(2, None, 77, None, None, 1, 1)
    more = image.apply(create_acls(image, [acl(name="one more")], lambda: UUID(int=1 << 90)).records)
    refused = delete_acls(more, [unknown, EVERYTHING])
    assert (codes(refused), refused.records) == ([42, 42], ())
    assert {str(result.error) for result in refused.results} == {
        "Cannot remove more than 10000 acls in a single delete operation."
    }


def test_an_unknown_filter_fails_by_itself():
    image = image_of([acl()])
    done = delete_acls(image, [wanted(99, None, 1, None, None, 1, 1), wanted(2, "t", 3, None, None, 99, 1), EVERYTHING])
    assert [str(r.error) for r in done.results[:2]] == ["Unknown patternFilter.", "Unknown entryFilter."]
    assert len(done.records) == 1


def test_the_error_survives_pickling():
    error = AclRequestError(42, "x")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.code, copy.name, copy.message, str(copy)) == (42, "INVALID_REQUEST", "x", "x")
    assert str(AclRequestError(-1)) == "UNKNOWN_SERVER_ERROR"


filters = st.builds(
    AclBindingFilter,
    resource_type=st.sampled_from([1, 2, 3]),
    resource_name=st.none() | estates.names(),
    pattern_type=st.sampled_from([1, 2, 3, 4]),
    principal=st.none() | st.sampled_from(estates.RULE_PRINCIPALS),
    host=st.none() | st.just("*"),
    operation=st.sampled_from([1, 1, 2, 3]),
    permission_type=st.sampled_from([1, 2, 3]),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(estates.rules(), max_size=25), st.lists(filters, max_size=3))
def test_create_then_delete_equals_the_model(acls, wanted_filters):
    created = create_acls(AclsImage.empty(), acls, ids())
    image = AclsImage.empty().apply(created.records)
    good = {rule for rule, code in zip(acls, codes(created), strict=True) if code == 0}
    assert {rule.acl for rule in image} == good
    model = ReferenceAuthorizer(good)
    deleted = delete_acls(image, wanted_filters)
    taken = [set(model.matching(one)) for one in wanted_filters]
    assert [{rule.acl for rule in result.deleted} for result in deleted.results] == taken
    assert {rule.acl for rule in image.apply(deleted.records)} == good - set().union(*taken)
