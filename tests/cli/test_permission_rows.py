"""CSV of who-can and what-can: a row per principal, operation, name and host, beside the decisions themselves."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aclog as library
from aclog.ops.tables import permission_rows, rule_text
from tests.support.cli.command import aclog

LOG = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"


def rows(*words):
    out = aclog(*words, "--log", LOG, "--format", "csv").ok().out
    return list(csv.DictReader(io.StringIO(out, newline="")))


def request(row):
    """A request that a row allows: its name, or one below its prefix; its host, or another one."""
    name = row["name"] if row["patternType"] == "LITERAL" else f"{row['name']}~"
    principal = "User:someone-else" if row["principal"] == "anyone" else row["principal"]
    return principal, row["operation"], row["resourceType"], name, "10.200.0.7" if row["host"] == "any" else row["host"]


@pytest.mark.parametrize("topic", ["orders", "payments.eu", "after-checkpoint"])
def test_each_row_is_allowed_and_each_principal_has_one(topic):
    found = rows("who-can", "--operation", "READ", "--topic", topic, "--super-users", "User:root")
    authorizer = library.open_log(LOG).image().authorizer(super_users="User:root")
    assert found
    for row in found:
        principal, operation, kind, name, host = request(row)
        assert (operation, kind, name, row["legal"]) == ("READ", "TOPIC", topic, "true")
        assert host not in row["exceptHosts"].split("; ")
        assert authorizer.check(principal, operation, name, host=host).allowed
    rules = {each.principal for each in library.open_log(LOG).image().acls()} - {"User:*"}
    for principal in (each for each in rules if ":" in each):
        named = [row for row in found if row["principal"] in (principal, "anyone")]
        named = [row for row in named if principal not in row["exceptPrincipals"].split("; ")]
        hosts = {row["host"] for row in named} or {"10.200.0.7"}
        for host in hosts - {"any"}:
            assert authorizer.check(principal, "READ", topic, host=host).allowed is bool(named)


def test_what_can_has_a_row_for_each_operation_and_name():
    found = rows("what-can", "--principal", "User:bob")
    kinds = {"TOPIC": library.topic, "GROUP": library.group, "TRANSACTIONAL_ID": library.transactional_id,
             "DELEGATION_TOKEN": library.delegation_token, "USER": library.user}  # fmt: skip
    authorizer = library.open_log(LOG).image().authorizer()
    assert {"READ", "DESCRIBE"} <= {row["operation"] for row in found}
    for row in found:
        principal, operation, kind, name, host = request(row)
        assert principal == "User:bob"
        assert row["rules"]
        if name not in row["exceptNames"].split("; "):
            resource = kinds[kind](name, pattern="LITERAL") if kind in kinds else library.cluster()
            assert authorizer.check(principal, operation, resource, host=host).allowed, row
    lone = next(row for row in found if row["operation"] == "ALTER")
    assert all(" ALTER " in rule or " ALL " in rule for rule in lone["rules"].split("; "))


def test_columns_are_those_of_the_rows():
    [row, *_] = rows("who-can", "--operation", "READ", "--topic", "orders", "--columns", "principal,host")
    assert row == {"principal": "User:alice", "host": "any"}
    words = ("who-can", "--log", LOG, "--operation", "READ", "--topic", "orders", "--format", "csv")
    assert "expected some of principal, " in aclog(*words, "--columns", "principals").complaint


def is_about(rule, row):
    """Whether a rule of a region may be about a row: the naive reference."""
    if isinstance(rule, str):
        return True
    literal, prefixed = (rule["patternType"] == each for each in ("LITERAL", "PREFIXED"))
    name, own, is_prefix = row["name"], rule["resourceName"], row["patternType"] == "PREFIXED"
    if literal and not (own in ("*", name if not is_prefix else "*") or (is_prefix and own.startswith(name))):
        return False
    if prefixed and not (name.startswith(own) or (is_prefix and own.startswith(name))):
        return False
    if ":" not in rule["principal"]:
        return True
    if row["principal"] != "anyone" and rule["principal"] not in (row["principal"], "User:*"):
        return False
    implied = {"READ": ["DESCRIBE"], "WRITE": ["DESCRIBE"]}.get(rule["operation"], [])
    implied = implied if rule["permissionType"] == "ALLOW" else []
    return rule["operation"] == "ALL" or row["operation"] in (rule["operation"], *implied)


NAMES = st.sampled_from(["*", "a", "ab", "abc", "b", "ba", "\uffff"])
RULES = st.fixed_dictionaries({
    "resourceType": st.just("TOPIC"), "resourceName": NAMES, "patternType": st.sampled_from(["LITERAL", "PREFIXED"]),
    "principal": st.sampled_from(["User:a", "User:b", "User:*", "malformed"]), "host": st.just("*"),
    "operation": st.sampled_from(["READ", "WRITE", "DESCRIBE", "ALL"]),
    "permissionType": st.sampled_from(["ALLOW", "DENY"]),
})  # fmt: skip
PARTS = st.one_of(
    NAMES.map(lambda name: {"literal": name}),
    st.sampled_from(["", "a", "ab", "b"]).map(
        lambda name: {"prefix": name, "exceptPrefixes": [], "exceptLiterals": []}
    ),
)


@given(
    rules=st.lists(RULES | st.just("SuperUser"), max_size=9),
    names=st.lists(PARTS, min_size=1, max_size=3),
    principals=st.sampled_from([{"in": ["User:a", "User:b"]}, {"except": ["User:a"]}]),
)
def test_rules_of_a_row_are_those_about_it(rules, names, principals):
    region = {"principals": principals, "operations": ["READ", "DESCRIBE"], "resourceType": "TOPIC", "names": names,
              "hosts": {"in": ["h"]}, "rules": rules, "denies": rules[::-1]}  # fmt: skip
    for row in permission_rows([region]):
        assert row["rules"] == [rule_text(rule) for rule in rules if is_about(rule, row)]
        assert row["denies"] == [rule_text(rule) for rule in rules[::-1] if is_about(rule, row)]
