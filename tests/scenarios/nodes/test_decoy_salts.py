"""Who asks several brokers for the salt of a user cannot tell whether there is such a user."""

import base64

import pytest

from tests.support.nodes.cluster import Cluster
from tests.support.nodes.wire_client import WireClient

pytestmark = pytest.mark.server


def salt(port, user, mechanism="SCRAM-SHA-256"):
    """What a server tells whoever wants to log in as a user."""
    with WireClient(port) as client:
        client._handshake(mechanism)
        challenge = client._authenticate(f"n,,n={user},r=abcdefghijkl".encode()).decode()
    return base64.b64decode(dict(part.split("=", 1) for part in challenge.split(","))["s"])


def test_all_brokers_tell_the_same_salts_for_users_who_do_not_exist(tmp_path, zygote):
    with Cluster(tmp_path, zygote) as cluster:
        first, second = cluster.add_broker(), cluster.add_broker()
        cluster.start()
        told = {user: salt(first.ports.broker, user) for user in ("nobody", "somebody")}
        assert len(set(told.values())) == 2
        assert {user: salt(second.ports.broker, user) for user in told} == told
        first.stop()
        first.start()
        assert {user: salt(first.ports.broker, user) for user in told} == told, "after a restart, too"
    with Cluster(tmp_path / "another", zygote) as other:
        broker = other.add_broker()
        other.start()
        assert salt(broker.ports.broker, "nobody") != told["nobody"]
