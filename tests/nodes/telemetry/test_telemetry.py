"""Metrics: names by Prometheus's conventions, recorded values, and counted decisions."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizerNotReadyError, InvalidRequestError, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.native import native
from aclog.server.telemetry import CountingAuthorizer, Metrics

TOPIC = Action(
    operation=AclOperation.READ,
    resource_pattern=ResourcePattern(resource_type=ResourceType.TOPIC, pattern_type=PatternType.LITERAL, name="orders"),
)


def families(metrics):
    return {family.name: family for family in text_string_to_metric_families(metrics.text().decode())}


def sample(metrics, name, **labels):
    return metrics.registry.get_sample_value(name, labels)


def test_names_follow_the_conventions():
    metrics = Metrics(process=False)
    metrics.accepted.labels("CLIENT").inc()
    found = families(metrics)
    assert {"aclog_ready", "aclog_last_applied_record_offset", "aclog_last_committed_record_offset"} <= set(found)
    assert {"aclog_lag_records", "aclog_lag_seconds", "aclog_authentication_failures"} <= set(found)
    for name, family in found.items():
        assert re.fullmatch(r"aclog_[a-z_]+", name), name
        assert family.documentation.endswith("."), name
        assert not name.endswith(("_count", "_sum", "_ms", "_total")), name
        if family.type == "histogram":
            assert name.endswith("_seconds"), name
        if family.type == "counter":
            assert all(s.name.endswith(("_total", "_created")) for s in family.samples), name


def test_kip_801_is_named_in_the_help():
    metrics = Metrics(process=False)
    metrics.watch_acl_count(lambda: 0)
    assert "AclCount" in families(metrics)["aclog_acls"].documentation


def test_each_node_has_its_own_registry():
    one, other = Metrics(), Metrics()
    one.lag.set(3)
    assert sample(one, "aclog_lag_seconds") == 3
    assert sample(other, "aclog_lag_seconds") == 0
    assert "process_resident_memory_bytes" in families(one)


def test_they_tell_whether_the_native_core_decides():
    assert sample(Metrics(process=False), "aclog_native_core") == float(native is not None)


def test_a_gauge_may_be_asked():
    metrics, state = Metrics(process=False), [1]
    metrics.lag.set_function(lambda: state[0])
    state[0] = 42
    assert sample(metrics, "aclog_lag_seconds") == 42


def counted(**settings):
    metrics, authorizer = Metrics(process=False), StandardAuthorizer()
    authorizer.configure(settings)
    return metrics, CountingAuthorizer(authorizer=authorizer, decisions=metrics.decisions), authorizer


def outcomes(metrics):
    return {
        outcome: sample(metrics, "aclog_authorizer_decisions_total", outcome=outcome)
        for outcome in ("allowed", "denied", "not_ready", "failed")
    }


def test_decisions_by_outcome():
    metrics, authorizer, standard = counted(**{"super.users": "User:admin"})
    alice = RequestContext(principal="User:alice", host="127.0.0.1")
    admin = RequestContext(principal="User:admin", host="127.0.0.1")
    with pytest.raises(AuthorizerNotReadyError):
        authorizer.authorize(alice, [TOPIC, TOPIC])
    with pytest.raises(AuthorizerNotReadyError):
        authorizer.authorize_by_resource_type(alice, AclOperation.READ, ResourceType.TOPIC)
    standard.complete_initial_load()
    authorizer.authorize(alice, [TOPIC, TOPIC, TOPIC])
    authorizer.authorize(admin, [TOPIC])
    authorizer.authorize_by_resource_type(alice, AclOperation.READ, ResourceType.TOPIC)
    authorizer.authorize_by_resource_type(admin, AclOperation.READ, ResourceType.TOPIC)
    with pytest.raises(InvalidRequestError):
        authorizer.authorize(RequestContext(principal="nobody", host="127.0.0.1"), [TOPIC])
    with pytest.raises(InvalidRequestError):
        authorizer.authorize_by_resource_type(alice, AclOperation.ANY, ResourceType.TOPIC)
    assert outcomes(metrics) == {"allowed": 2, "denied": 4, "not_ready": 3, "failed": 2}


def test_uncounted_calls_are_delegated():
    _, authorizer, standard = counted()
    authorizer.configure({"allow.everyone.if.no.acl.found": "true"})
    standard.complete_initial_load()
    assert authorizer.authorize(RequestContext(principal="User:a", host="::"), [TOPIC])[0].value == "ALLOWED"
    assert authorizer.acl_count() == 0
