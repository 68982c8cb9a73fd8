"""Authorization that raises errors."""

import pickle

import pytest

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.interface import (
    AclRequestError,
    Action,
    AuthorizationError,
    AuthorizerNotReadyError,
    RequestContext,
    require,
    require_on_cluster,
)
from aclog.authorizer.standard import StandardAuthorizer

ADMIN = RequestContext(principal="User:admin", host="10.0.0.1")
BOB = RequestContext(principal="User:bob", host="10.0.0.1")
READ = Action(
    operation=AclOperation.READ, resource_pattern=ResourcePattern(resource_type=ResourceType.TOPIC, name="orders")
)


@pytest.fixture
def authorizer():
    made = StandardAuthorizer()
    made.configure({"super.users": "User:admin"})
    made.complete_initial_load()
    return made


def test_allowed(authorizer):
    assert require(authorizer, ADMIN, READ) is None
    assert require_on_cluster(authorizer, ADMIN, AclOperation.ALTER, lambda: "r") is None


def test_denied(authorizer):
    with pytest.raises(AuthorizationError) as e:
        require(authorizer, BOB, READ)
    denied = e.value
    assert (denied.principal, denied.operation, denied.host) == ("User:bob", "READ", "10.0.0.1")
    assert denied.resource == "TOPIC:LITERAL:orders"


def test_a_name_cannot_forge_a_line():
    names = {
        "principal": "User:bob",
        "operation": "READ",
        "host": "10.0.0.1",
        "resource": "TOPIC:LITERAL:x\nok\x1b[2K\u2028é",
    }
    error = AuthorizationError(**names)
    assert str(error) == r"User:bob is not authorized to READ on TOPIC:LITERAL:x\nok\x1b[2K\u2028é from 10.0.0.1"
    assert error.resource == names["resource"]


def test_it_can_be_pickled():
    error = AuthorizationError(principal="User:bob", operation="READ", host="10.0.0.1", resource="TOPIC:LITERAL:x\n")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is AuthorizationError
    assert (str(again), again.resource, again.principal) == (str(error), error.resource, error.principal)


def test_denied_on_the_cluster(authorizer):
    with pytest.raises(AclRequestError, match=r"^Request r needs DESCRIBE permission\.$") as e:
        require_on_cluster(authorizer, BOB, AclOperation.DESCRIBE, lambda: "r")
    assert (e.value.code, e.value.name) == (31, "CLUSTER_AUTHORIZATION_FAILED")


def test_not_ready():
    with pytest.raises(AuthorizerNotReadyError):
        require(StandardAuthorizer(), BOB, READ)
