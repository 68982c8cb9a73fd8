"""A short run of tests.scenarios.nodes.load, and a flood of the HTTP endpoint."""

import asyncio
import resource
import socket
import threading
from collections import deque
from contextlib import ExitStack

import pytest

from aclog.metalog.filelog.committed_mark import COMMITTED_FILE
from aclog.server.http_endpoint import HTTP_CONNECTIONS
from aclog.server.network.admission import OWN_FILES
from tests.scenarios.nodes.load import Load, run
from tests.support.builders.acls import acl
from tests.support.nodes.acl_client import AclClient
from tests.support.nodes.cluster import HOST, Cluster
from tests.support.processes.waiting import SECONDS

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
        held = deque()

        def flood(count):
            for number in range(count):
                held.append(socket.create_connection((HOST, cluster.controller.ports.http), timeout=SECONDS))
                if number % 2:
                    held[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
                if len(held) > 600:
                    held.popleft().close()

        try:
            for _ in range(60):
                # Fewer than close a probe that is still to send its request, and than may wait to be accepted.
                flooding = threading.Thread(target=flood, args=(HTTP_CONNECTIONS // 6,))
                flooding.start()
                assert cluster.controller.is_ready()
                flooding.join()
            assert len(held) == 600
        finally:
            for each in held:
                each.close()


def test_a_node_keeps_its_own_files_in_a_flood_of_both_kinds_of_connections(tmp_path, zygote):
    """Whoever may connect, and no more, must not be able to stop a node."""
    clients = 20
    with Cluster(tmp_path, zygote, max_connections=str(clients)) as cluster, ExitStack() as held:
        node = cluster.start().controller
        mark, files = node.home / "data" / COMMITTED_FILE, clients + OWN_FILES
        resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (files, files))

        async def change_during_the_flood():
            async with await AclClient.open(node.ports.controller) as admin:
                for _ in range(clients - 1):
                    held.enter_context(socket.create_connection((HOST, node.ports.controller), timeout=SECONDS))
                for number in range(3):
                    before = mark.read_bytes()
                    assert await admin.create([acl(f"name-{number}")]) == [(0, "")]
                    while mark.read_bytes() == before:  # it is replaced within a second, after a look at all files
                        assert node.running, node.output[-2000:]
                        for _ in range(80):
                            held.enter_context(socket.create_connection((HOST, node.ports.http), timeout=SECONDS))
                        await asyncio.sleep(0.1)

        asyncio.run(change_during_the_flood())
