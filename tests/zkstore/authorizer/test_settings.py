"""Authorizer settings: current names, names of KIP-11, and overrides for the ACLs only."""

import subprocess
import sys

import pytest

from aclog.installation import install_command
from aclog.metalog.errors import ConfigError
from aclog.zookeeper.authorizer import acl_authorizer_settings
from tests.support.zookeeper.real_acl_authorizer import RealError

CONNECT = {"zookeeper.connect": "a:2181,b:2182/kafka"}


def settings(**properties):
    return acl_authorizer_settings({**CONNECT, **{key.replace("__", "."): value for key, value in properties.items()}})


def test_defaults_are_kafkas():
    found = settings()
    assert found.super_users == frozenset()
    assert not found.allow_everyone
    assert (found.store.connect, found.store.session_timeout, found.store.connection_timeout) == (
        "a:2181,b:2182/kafka", 18.0, 18.0,
    )  # fmt: skip
    assert (found.store.in_flight, found.store.secure_acls, found.store.tls) == (10, False, None)


def test_the_acls_may_have_a_zookeeper_of_their_own():
    found = acl_authorizer_settings(
        {
            "zookeeper.connect": "a:2181",
            "zookeeper.session.timeout.ms": "6000",
            "zookeeper.set.acl": "true",
            "authorizer.zookeeper.url": "b:2181/acls",
            "authorizer.zookeeper.connection.timeout.ms": "1000",
            "authorizer.zookeeper.max.in.flight.requests": "50",
        }
    )
    store = found.store
    assert (store.connect, store.session_timeout, store.connection_timeout, store.in_flight, store.secure_acls) == (
        "b:2181/acls", 6.0, 1.0, 50, True,
    )  # fmt: skip


SUPER_USERS = [
    "", ";", "User:a", "User:a;", " User:a ; User:b ", "User:a;;", "User:CN=a,O=b", ":", "User:*", "User:a;;User:b",
    "a", "  ",
    ";User:a", " ;", "User:a; ",
]  # fmt: skip
ALLOW_EVERYONE = ["true", " TRUE ", "false", "False", "", "yes", "1"]


@pytest.mark.parametrize(
    ("key", "value"),
    [("super.users", value) for value in SUPER_USERS]
    + [("allow.everyone.if.no.acl.found", value) for value in ALLOW_EVERYONE],
)
def test_the_same_values_are_accepted_as_by_the_real_one(java, connect, key, value):
    properties = {"zookeeper.connect": connect, key: value}
    try:
        java.configure(properties)
        theirs = True
        java.close()
    except RealError:
        theirs = False
    if theirs:
        acl_authorizer_settings(properties)
    else:
        with pytest.raises(ConfigError, match=f"^{key} "):
            acl_authorizer_settings(properties)


def test_names_of_kip_11_are_read_if_the_released_ones_are_not_set():
    found = acl_authorizer_settings({**CONNECT, "kafka.superusers": "User:a;User:b", "allow.everyone": "true"})
    assert found.super_users == {"User:a", "User:b"}
    assert found.allow_everyone
    both = {"kafka.superusers": "User:a", "super.users": "User:c", "allow.everyone": "true"}
    found = acl_authorizer_settings({**CONNECT, **both, "allow.everyone.if.no.acl.found": "false"})
    assert found.super_users == {"User:c"}
    assert not found.allow_everyone


@pytest.mark.process
def test_without_kazoo_the_error_names_the_extra():
    code = """
import sys
sys.modules["kazoo"] = None
from aclog.authorizer.standard import load_authorizer_class
authorizer = load_authorizer_class("kafka.security.authorizer.AclAuthorizer")()
try:
    authorizer.configure({"zookeeper.connect": "127.0.0.1:1"})
except Exception as e:
    print(type(e).__name__, e)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    hint = install_command("zookeeper")
    assert done.stdout == f"ConfigError ZooKeeper needs kazoo, which is not installed: {hint}\n"
