"""What a configuration alone says of a node that is open, or locked, by mistake."""

import pytest

from aclog.authorizer.standard import KAFKAS_ACL_AUTHORIZERS, KAFKAS_STANDARD_AUTHORIZER, StandardAuthorizer
from aclog.config.listeners import configured_warnings
from aclog.config.server_properties import parse_config
from tests.support.nodes.node_properties import BROKER, COMBINED, CONTROLLER, JAAS, SASL, changed

STANDARD = {"authorizer.class.name": KAFKAS_STANDARD_AUTHORIZER}
ON_ZOOKEEPER = {"authorizer.class.name": KAFKAS_ACL_AUTHORIZERS[0], "zookeeper.connect": "a:2181"}
PEM = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "x", "ssl.keystore.type": "PEM"}
TLS = COMBINED | PEM | {
    "listeners": "SSL://localhost:9092,CONTROLLER://localhost:9093",
    "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "SSL",
    "ssl.keystore.key": "x",
    "ssl.keystore.certificate.chain": "x",
}  # fmt: skip


ONE_NAME = "is a single name, as super users are separated by ';': did you mean"


class Plugin(StandardAuthorizer):
    """With Kafka's properties."""


def found(base, changes):
    config = parse_config(changed(base, changes), "it", host_name=lambda: "this-machine")
    return [(each.kind, each.text) for each in configured_warnings(config)]


def kinds(base, changes):
    return [kind for kind, _ in found(base, changes)]


@pytest.mark.parametrize(
    ("base", "changes", "reasons"),
    [
        (SASL, {}, ["clients log in at listener SASL_PLAINTEXT"]),
        (TLS, {"ssl.client.auth": "required"}, ["clients log in at listener SSL"]),
        (TLS, {"ssl.client.auth": "requested"}, ["clients log in at listener SSL"]),
        (COMBINED, {"super.users": "User:a"}, ["super.users is set"]),
        (COMBINED, {"kafka.superusers": "User:a"}, ["kafka.superusers is set"]),
        (
            SASL,
            {"super.users": "User:a", "allow.everyone": "false", "authorizer.class.name": " "},
            ["clients log in at listener SASL_PLAINTEXT", "super.users is set", "allow.everyone is set"],
        ),
    ],
)
def test_no_authorizer(base, changes, reasons):
    text = (
        "authorizer.class.name is not set: every client may perform every operation, although "
        f"{' and '.join(reasons)}. Expected authorizer.class.name={KAFKAS_STANDARD_AUTHORIZER}"
    )
    assert found(base, changes) == [("no_authorizer", text)]


@pytest.mark.parametrize("base", [COMBINED, BROKER, CONTROLLER, TLS])
def test_no_authorizer_and_nothing_that_needs_one(base):
    text = (
        "authorizer.class.name is not set: every client may perform every operation. "
        f"Expected authorizer.class.name={KAFKAS_STANDARD_AUTHORIZER}"
    )
    assert found(base, {}) == [("no_authorizer", text)]


@pytest.mark.parametrize(
    "users",
    ["User:admin", " User:admin ; User:bob;", "User:CN=a,OU=b,O=c:d", "User:CN=kafka, O=x;User:admin",
     "User:CN=kafka,OU=Team A:b", r"User:CN=Duke\, Inc:x,O=y"],
)  # fmt: skip
def test_super_users_as_they_should_be(users):
    assert found(SASL, STANDARD | {"super.users": users}) == []


@pytest.mark.parametrize(
    ("users", "wrong", "told"),
    [
        ("User:a,User:b", "User:a,User:b", f"{ONE_NAME} 'User:a;User:b'?"),
        ("User:a, User:b;User:c", "User:a, User:b", f"{ONE_NAME} 'User:a;User:b'?"),
        ("User:a User:b", "User:a User:b", f"{ONE_NAME} 'User:a;User:b'?"),
        ("User:a|User:b", "User:a|User:b", f"{ONE_NAME} 'User:a;User:b'?"),
        ("User:b;user:a", "user:a", "is not a client: every login has the type User: did you mean 'User:a'?"),
        ("User:*", "User:*", "matches no principal: super.users has no wildcards"),
        ("User:Anonymous", "User:Anonymous", "is not the anonymous principal: did you mean 'User:ANONYMOUS'?"),
    ],
)
@pytest.mark.parametrize("authorizer", [STANDARD, ON_ZOOKEEPER, {"authorizer.class.name": f"{__name__}.Plugin"}])
def test_super_users_that_are_hardly_meant(users, wrong, told, authorizer):
    text = f"super.users: {wrong!r} {told}"
    assert found(SASL, authorizer | {"super.users": users}) == [("super_users", text)]


def test_the_old_name_counts_on_zookeeper():
    assert kinds(SASL, ON_ZOOKEEPER | {"kafka.superusers": "User:a,User:b"}) == ["super_users"]
    assert kinds(SASL, ON_ZOOKEEPER | {"kafka.superusers": "User:a,User:b", "super.users": "User:a"}) == []


@pytest.mark.parametrize("value", ["yes", "1", ""])
def test_allow_everyone_is_true_or_false(value):
    assert found(SASL, STANDARD | {"allow.everyone.if.no.acl.found": value}) == [
        (
            "allow_everyone",
            f"allow.everyone.if.no.acl.found: {value!r} means false, as in Kafka: expected true or false",
        )
    ]
    for good in ("true", "FALSE", " True "):
        assert found(SASL, STANDARD | {"allow.everyone.if.no.acl.found": good}) == []


@pytest.mark.parametrize(
    ("base", "changes", "names"),
    [
        (COMBINED, {}, "listeners PLAINTEXT, CONTROLLER"),
        (SASL, {}, "listener CONTROLLER"),
        (TLS, {"ssl.client.auth": "requested"}, "listeners SSL, CONTROLLER"),
        (TLS, {"ssl.client.auth": "required"}, "listener CONTROLLER"),
    ],
)
def test_whoever_has_not_logged_in_is_a_super_user(base, changes, names):
    text = (
        "super.users has User:ANONYMOUS, the principal of clients without login: every client that reaches "
        f"{names} may perform every operation"
    )
    users = {"super.users": "User:admin;User:ANONYMOUS"}
    assert found(base, STANDARD | changes | users) == [("anonymous_super_user", text)]


@pytest.mark.parametrize(
    ("base", "names"),
    [(COMBINED, "listeners PLAINTEXT, CONTROLLER"), (BROKER, "listener PLAINTEXT"),
     (CONTROLLER, "listener CONTROLLER"), (TLS, "listeners SSL, CONTROLLER")],
)  # fmt: skip
def test_no_super_user_can_log_in(base, names):
    text = (
        f"no super user can log in: all clients are User:ANONYMOUS at {names}. Expected a listener with SASL or "
        "ssl.client.auth=required, or ACLs for User:ANONYMOUS"
    )
    assert found(base, STANDARD | {"super.users": "User:admin"}) == [("no_super_user_login", text)]
    assert found(TLS, STANDARD | {"super.users": "User:admin", "ssl.client.auth": "requested"}) == []


def test_super_users_may_log_in_at_the_controller_listener_only():
    login = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": JAAS,
    }
    assert found(COMBINED, STANDARD | login | {"super.users": "User:admin"}) == []
