"""The gate of prefixed ACLs before Kafka 2.0: the real AclAuthorizer opens and closes it by the same versions."""

import pytest

from aclog.authorizer.codes import PatternType
from aclog.metalog.errors import ConfigError
from aclog.zookeeper.authorizer import PROTOCOL_VERSION, takes_prefixed
from tests.support.builders.acls import acl
from tests.support.processes.waiting import wait_until
from tests.support.zookeeper.differential import exactly, our_authorizer, ours_create, ours_delete, rules_of
from tests.support.zookeeper.real_acl_authorizer import RealError

PREFIXED, LITERAL = acl("pay.", pattern_type=PatternType.PREFIXED), acl("pay.eu")
TEXT = "Adding ACLs on prefixed resource patterns requires inter.broker.protocol.version of 2.0-IV1 or greater"
CLOSED = {PROTOCOL_VERSION: "1.1"}


@pytest.mark.parametrize(
    ("is_open", "versions"),
    [
        (False, "0.11.0 0.11.0-IV2 0.11.0.3 1.0 1.1 1.1-IV0 1.1.1 2.0-IV0"),
        (True, "2.0 2.0-IV1 2.0.1 2.0.1-IV0 2.8 3.0-IV1 3.9 3.9.1 4.0-IV0"),
    ],
)
def test_versions(is_open, versions):
    """All were given to the real one too."""
    assert {takes_prefixed({PROTOCOL_VERSION: f" {version} "}) for version in versions.split()} == {is_open}
    assert takes_prefixed({})


@pytest.mark.parametrize("version", ["", "x", "1.2", "2.9", "9.9", "2", "3.9-IV", "1.1IV0"])
def test_what_is_no_version(version):
    with pytest.raises(ConfigError, match=f"^{PROTOCOL_VERSION} '{version}': expected a version of Kafka"):
        takes_prefixed({PROTOCOL_VERSION: version})


def test_the_same_versions_open_it_as_in_the_real_one(java, connect):
    for version in ("1.1.1", "2.0-IV0", "2.0", "2.0.1-IV0", "1.2"):
        properties = {"zookeeper.connect": connect, PROTOCOL_VERSION: version}
        try:
            ours = takes_prefixed(properties)
        except ConfigError:
            ours = None
        assert (version, ours) == (version, real_gate(java, properties))


def real_gate(java, properties):
    """Whether the real one takes prefixed ACLs; None if it does not take the properties."""
    try:
        java.configure(properties)
    except RealError:
        return None
    error, fine = java.create([PREFIXED, LITERAL])
    java.close()
    assert fine is None
    assert error is None or TEXT in error
    return error is None


def test_what_is_there_is_listed_and_removed_behind_it(real, connect):
    """A DENY that is there stays in force, and may go."""
    assert real.create([PREFIXED]) == [None]
    with our_authorizer(connect, CLOSED) as ours:
        assert rules_of(ours) == {PREFIXED}
        assert ours_create(ours, [PREFIXED, LITERAL]) == [f"Failed to create ACL: {TEXT}", None]
        wait_until(lambda: real.acls() == {PREFIXED, LITERAL}, "the literal ACL alone")
        assert ours_delete(ours, [exactly(PREFIXED)]) == [{PREFIXED}]
