"""Bind addresses of listeners, and the text of client addresses."""

import asyncio
import errno
import socket

import pytest
from attrs import evolve

from aclog.config.node_config import HostPort
from aclog.metalog.errors import ConfigError
from aclog.server.network import listeners
from aclog.server.network.listeners import listen, peer
from tests.support.nodes.served_listener import PLAINTEXT, Served, run


def connected(host, to):
    with listen(HostPort(host=host, port=0), "listener A") as listening:
        listening.setblocking(True)
        with socket.create_connection((to, listening.getsockname()[1])):
            accepted, _ = listening.accept()
            with accepted:
                return peer(accepted)


@pytest.mark.parametrize(
    ("host", "to", "expected"),
    [
        ("127.0.0.1", "127.0.0.1", ("127.0.0.1", bytes((127, 0, 0, 1)))),
        ("localhost", "127.0.0.1", ("127.0.0.1", bytes((127, 0, 0, 1)))),
        ("", "127.0.0.1", ("127.0.0.1", bytes((127, 0, 0, 1)))),
        ("0.0.0.0", "127.0.0.1", ("127.0.0.1", bytes((127, 0, 0, 1)))),
    ],
)
def test_addresses_as_java_prints_them(host, to, expected):
    assert connected(host, to) == expected


def test_ipv6():
    if not socket.has_dualstack_ipv6():
        with pytest.raises(ConfigError):
            listen(HostPort(host="::1", port=0), "listener A")
        return
    expected = ("0:0:0:0:0:0:0:1", bytes(15) + b"\1")
    assert connected("::1", "::1") == expected
    assert connected("", "::1") == expected


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_addresses_that_cannot_be_bound(host):
    with pytest.raises(ConfigError, match=rf"^listener A: cannot listen on {host}:0: "):
        listen(HostPort(host=host, port=0), "listener A")


def test_a_port_that_is_taken():
    with (
        listen(HostPort(host="127.0.0.1", port=0), "listener A") as first,
        pytest.raises(ConfigError, match=r"listener B: cannot listen on .*: Address already in use"),
    ):
        listen(HostPort(host="127.0.0.1", port=first.getsockname()[1]), "listener B")


def test_a_listener_that_was_not_started_has_no_port():
    async def scenario():
        served = Served(evolve(PLAINTEXT))
        with pytest.raises(RuntimeError, match="listener CLIENT is not listening"):
            _ = served.server.port
        await served.server.stop()

    asyncio.run(scenario())


class Full:
    """A socket whose accept fails because the process has no file descriptors left."""

    def __init__(self, inner, times):
        self.inner, self.times = inner, times

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def accept(self):
        self.times -= 1
        if self.times >= 0:
            raise OSError(errno.EMFILE, "Too many open files")
        return self.inner.accept()


def test_without_descriptors_accept_pauses_and_resumes(monkeypatch, caplog):
    monkeypatch.setattr(listeners, "_PAUSE", 0.01)

    async def scenario(served):
        before = await served.connect()
        assert await before.who()
        accepting = served.server._acceptor
        accepting.listening = Full(accepting.listening, times=3)
        after = await served.connect()
        assert await before.who()
        assert await after.who()
        assert accepting.listening.times < 0

    run(scenario)
    assert caplog.text.count("pausing accept: Too many open files") == 3
