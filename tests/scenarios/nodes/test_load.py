"""A short run of tests.scenarios.nodes.load, and a flood of the HTTP endpoint."""

import socket
import threading
from collections import deque

import pytest

from tests.scenarios.nodes.load import Load, run
from tests.support.nodes.cluster import HOST, Cluster

pytestmark = pytest.mark.server

GROWTH_MB = 40
"""What a node may take beyond what it took before: buffers of so many connections, and what Python keeps."""


def test_others_are_served_beside_slow_and_half_open_connections_in_bounded_memory(tmp_path, zygote):
    load = Load(connections=60, requests=2500, slow=2, half=20)
    for figures in run(tmp_path, zygote, load):
        assert len(figures.all_seconds) >= load.requests
        for memory in figures.memory.values():
            assert max(memory) < memory[0] + GROWTH_MB, figures.text("load")


def test_every_probe_gets_through_a_flood_of_idle_and_half_open_connections(tmp_path, zygote):
    with Cluster(tmp_path, zygote).start() as cluster:
        port, enough, over = cluster.controller.ports.http, threading.Event(), threading.Event()

        def flood():
            held = deque()
            for number in range(1_000_000):
                held.append(socket.create_connection((HOST, port), timeout=10))
                if number % 2:
                    held[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
                if len(held) > 600:
                    held.popleft().close()
                    enough.set()
                if over.wait(0.001):  # a thousand a second: a probe must have sent its request before 256 have come
                    break
            for each in held:
                each.close()

        flooding = threading.Thread(target=flood)
        flooding.start()
        try:
            assert enough.wait(60)
            assert [cluster.controller.is_ready() for _ in range(30)] == [True] * 30
        finally:
            over.set()
            flooding.join(60)
