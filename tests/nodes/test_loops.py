"""Which event loop a node runs on: uvloop's wherever it is installed, except below TLS listeners."""

import asyncio
from importlib.util import find_spec

from aclog.config.server_properties import load_config
from aclog.server.loops import ASYNCIO, installed_loop, loop_for, running_loop
from tests.support.nodes.server_properties import Ports, server_properties

PORTS = Ports(broker=9092, controller=9093, http=9094)


def config(directory, **changes):
    path = directory / "server.properties"
    path.write_text(server_properties(PORTS, **changes), encoding="utf-8")
    return load_config(path)


def kind(given):
    async def running():
        return running_loop()

    with asyncio.Runner(loop_factory=given.factory) as runner:
        return runner.run(running())


def test_uvloop_is_used_where_it_is_installed(tmp_path):
    found = loop_for(config(tmp_path))
    assert found.name.partition(" ")[0] == ("uvloop" if find_spec("uvloop") else "asyncio")
    assert kind(found) == found.name


def test_a_node_without_it_has_asyncios(monkeypatch):
    monkeypatch.setattr("aclog.server.loops.find_spec", lambda _: None)
    assert installed_loop() == ASYNCIO
    assert kind(ASYNCIO) == "asyncio"


def test_a_tls_listener_takes_asyncios(tmp_path):
    protocols = "SASL_PLAINTEXT:SASL_SSL,CONTROLLER:SASL_PLAINTEXT"
    found = config(
        tmp_path, listener_security_protocol_map=protocols, ssl_keystore_location="k", ssl_keystore_type="PEM"
    )
    assert loop_for(found) == ASYNCIO
