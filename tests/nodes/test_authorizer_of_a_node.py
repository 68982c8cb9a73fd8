"""The authorizer that a node's configuration names: made before anything is asked, asked about everything, or none."""

import asyncio
import sys
from types import ModuleType

import pytest

from aclog.authorizer.acl import AclBindingFilter
from aclog.authorizer.codes import AclOperation
from aclog.authorizer.interface import AclRequestError, AuthorizationResult, Authorizer
from aclog.authorizer.standard import StandardAuthorizer
from aclog.config.server_properties import parse_config
from aclog.metalog.errors import ConfigError
from aclog.protocol import api_keys
from aclog.protocol.headers import RequestError
from aclog.protocol.messages import build
from aclog.server.apis.acls import AclApis, AuthHelper
from aclog.server.node import authorizer_of
from tests.support.nodes.node_properties import COMBINED
from tests.support.nodes.node_requests import answer, request


class Recorder(Authorizer):
    """Somebody's authorizer: it remembers its calls, and allows `User:bob` everything."""

    def __init__(self):
        self.calls = []

    def configure(self, properties):
        self.calls.append(("configure", dict(properties)))

    def authorize(self, context, actions):
        self.calls.append(("authorize", context, *actions))
        allowed = context.principal == "User:bob"
        return [AuthorizationResult.ALLOWED if allowed else AuthorizationResult.DENIED for _ in actions]

    def authorize_by_resource_type(self, context, operation, resource_type):
        return AuthorizationResult.DENIED

    def acls(self, acl_filter: AclBindingFilter):
        return iter(())

    def create_acls(self, context, acls):
        raise NotImplementedError

    def delete_acls(self, context, filters):
        raise NotImplementedError


@pytest.fixture
def plugin(monkeypatch):
    module = ModuleType("somebodys")
    module.Recorder = Recorder
    monkeypatch.setitem(sys.modules, "somebodys", module)
    return "somebodys.Recorder"


def made(**properties: str) -> Authorizer | None:
    found = {key.replace("_", "."): value for key, value in properties.items()}
    return authorizer_of(parse_config(COMBINED | found, "it", host_name=lambda: "here"), None)


def asking(user):
    """A DescribeAcls request of everything."""
    anything = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    anything |= {"resource_name_filter": None, "principal_filter": None, "host_filter": None}
    return request(api_keys.DESCRIBE_ACLS, 3, build(api_keys.DESCRIBE_ACLS, 3, "request", **anything), user, "BROKER")


def described(authorizer, user):
    """What a node with the authorizer says to it."""
    body = asyncio.run(AclApis(AuthHelper(authorizer)).describe_acls(asking(user)))
    return answer(api_keys.DESCRIBE_ACLS, 3, body)


def test_it_is_configured_with_the_nodes_properties_before_it_is_asked(plugin):
    mine = made(authorizer_class_name=plugin, super_users="User:root")
    assert isinstance(mine, Recorder)
    ((call, properties),) = mine.calls
    assert call == "configure"
    assert (properties["super.users"], properties["node.id"]) == ("User:root", COMBINED["node.id"])
    described(mine, "bob")
    assert [call for call, *_ in mine.calls] == ["configure", "authorize"]


def test_it_decides_what_clients_may_do(plugin):
    mine = made(authorizer_class_name=plugin)
    assert described(mine, "bob").error_code == 0
    with pytest.raises(AclRequestError, match="needs DESCRIBE permission"):
        described(mine, "alice")
    (_, context, action) = mine.calls[-1]
    assert (context.principal, context.host) == ("User:alice", "10.0.0.9")
    assert (action.operation, action.resource_pattern.name) == (AclOperation.DESCRIBE, "kafka-cluster")


def test_kafkas_name_makes_ours():
    name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    assert isinstance(made(authorizer_class_name=name), StandardAuthorizer)


def test_a_class_that_is_no_authorizer_stops_the_start():
    with pytest.raises(ConfigError, match="Authorizer"):
        made(authorizer_class_name="collections.OrderedDict")


def test_one_that_does_not_count_its_acls_says_so(plugin):
    assert made(authorizer_class_name=plugin).acl_count() == -1


def test_without_a_name_everything_is_allowed_and_there_are_no_acls():
    assert made() is None
    helper = AuthHelper(None)
    asked = asking("nobody")
    for operation in AclOperation:
        assert helper.on_cluster(asked, operation)
        assert helper.on_topic(asked, operation, "orders")
        assert helper.on_user(asked, operation, "User:alice")
        assert helper.on_token(asked, operation, "a-token")
    with pytest.raises(RequestError, match="No Authorizer is configured") as refused:
        described(None, "nobody")
    assert refused.value.code == 54
