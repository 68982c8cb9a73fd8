"""Admin clients of other makes get from aclog what they got from a real Kafka 4.3.1."""

from pathlib import Path

import pytest

from tests.support.admin import client_scripts
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports


@pytest.mark.parametrize("client", client_scripts.CLIENTS)
def test_a_client_of_another_make_manages_acls_and_scram_users(client: str, tmp_path: Path) -> None:
    ports = Ports.free()
    with AclogNode(tmp_path, ports).format():
        found = client_scripts.outcomes(client_scripts.CLIENTS[client], ports)
        texts = client_scripts.differences(client_scripts.recorded()[client], found)
        assert not texts, f"{len(texts)} calls differ\n" + "\n".join(texts)
