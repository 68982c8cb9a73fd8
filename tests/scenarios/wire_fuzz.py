"""Hostile bytes on listeners that ask for no login, and on one that does: no crash, no growth, no neighbour harmed.

    python -m tests.scenarios.wire_fuzz --frames 100000 --seed 1
    python -m tests.scenarios.wire_fuzz --address localhost:9092 --http localhost:8080     # a node that runs already

The server is a process of its own with every API of brokers and controllers behind handlers that decode and refuse.
Memory, tasks and files are read from its own metrics before and after; a steady client asks all the time.
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import random
import re
import socket
import sys
import time
import urllib.request
from itertools import islice

from attrs import frozen
from prometheus_client import Gauge

from aclog.config.node_config import HostPort
from aclog.protocol.headers import RequestError
from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS
from aclog.server.http_endpoint import HttpEndpoint
from tests.support.nodes.fuzz_frames import hostile
from tests.support.nodes.served_listener import PLAINTEXT, SASL, Served
from tests.support.processes.waiting import SECONDS

SOCKETS = 32
STEADY = bytes.fromhex("0000000d 0012 0000 00000007 0003 616263".replace(" ", ""))
"""ApiVersions version 0, which a listener answers before and after a login."""


@frozen(kw_only=True)
class Outcome:
    """What a campaign saw. Memory in bytes; `warm` after the first tenth."""

    frames: int
    seconds: float
    connections: int
    answered: int
    steady_answers: int
    memory_warm: int
    memory_end: int
    memory_most: int
    tasks_end: int
    connections_end: int
    files_end: int
    errors: int
    """Connections that an error of the server's own ended, and answers with -1."""

    def __str__(self):
        growth = (self.memory_end - self.memory_warm) / 2**20
        return (
            f"{self.frames} frames in {self.seconds:.1f} s ({self.frames / self.seconds:.0f}/s) over "
            f"{self.connections} connections, {self.answered} answered as requests, "
            f"{self.steady_answers} answers to the steady client; memory {self.memory_warm / 2**20:.1f} MiB warm, "
            f"{self.memory_end / 2**20:.1f} MiB at the end ({growth:+.1f}), at most {self.memory_most / 2**20:.1f}; "
            f"{self.tasks_end} tasks, {self.connections_end} connections, {self.files_end} files left, "
            f"{self.errors} errors of the server's own"
        )


async def _refuse(request):
    raise RequestError(42, "refused")


def serve(pipe) -> None:
    """The server's process: tells the ports of its listeners and of its metrics, and ends when the pipe does."""

    async def main():
        handlers = {api.api_key: _refuse for api in (*BROKER_APIS, *CONTROLLER_APIS)}
        settings = {"handlers": handlers, "apis": (*BROKER_APIS, *CONTROLLER_APIS)}
        plain = Served(PLAINTEXT, process=True, **settings)
        sasl = Served(SASL, beside=plain, **settings)
        Gauge("aclog_tasks", "Tasks.", registry=plain.metrics.registry).set_function(lambda: len(asyncio.all_tasks()))
        address = HostPort(host="", port=0)
        http = HttpEndpoint(address=address, metrics=plain.metrics.text, healthy=lambda: None, ready=lambda: None)
        for part in (plain.server, sasl.server, http):
            await part.start()
        pipe.send((plain.server.port, sasl.server.port, http.port))
        await asyncio.to_thread(pipe.poll, None)

    asyncio.run(main())


def metrics(where: str) -> dict[str, float]:
    """A node's metrics without labels, and the sums over labels of two."""
    with urllib.request.urlopen(f"http://{where}/metrics", timeout=SECONDS) as answer:
        text = answer.read().decode()
    found = {name: float(value) for name, value in re.findall(r"^(\w+) ([0-9.e+-]+)$", text, re.MULTILINE)}
    labelled = re.findall(r"^(\w+)\{(.*)\} ([0-9.e+-]+)$", text, re.MULTILINE)
    for name in ("aclog_connections", "aclog_request_duration_seconds_count"):
        found[name] = sum(float(value) for each, _, value in labelled if each == name)
    found["errors"] = sum(
        float(value) for _, labels, value in labelled if 'reason="error"' in labels or 'error_code="-1"' in labels
    )
    return found


class Steady:
    """A neighbour that behaves, and must be answered each time."""

    def __init__(self, address):
        self.socket, self.answers = socket.create_connection(address, timeout=SECONDS), 0

    def ask(self):
        self.socket.sendall(STEADY)
        size = int.from_bytes(self._exactly(4), "big")
        assert self._exactly(size)[:4] == (7).to_bytes(4, "big")
        self.answers += 1

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            assert piece, "the steady client was cut off"
            data += piece
        return data


class Attackers:
    """Sockets that are written to in turn, and made anew when the server has closed them."""

    def __init__(self, addresses, chance):
        self.addresses, self.chance, self.made = addresses, chance, 0
        self.sockets = [self._new() for _ in range(SOCKETS)]

    def _new(self):
        made = socket.create_connection(self.chance.choice(self.addresses), timeout=SECONDS)
        made.setblocking(False)
        self.made += 1
        return made

    def write(self, data):
        at = self.chance.randrange(SOCKETS)
        try:
            closed = self._drain(self.sockets[at])
        except OSError:
            closed = True
        if closed or self.chance.random() < 0.2:
            self.sockets[at].close()
            self.sockets[at] = self._new()
        with contextlib.suppress(OSError):
            self.sockets[at].send(data)

    def _drain(self, one):
        while True:
            try:
                piece = one.recv(1 << 16)
            except BlockingIOError:
                return False
            if not piece:
                return True

    def close(self):
        for each in self.sockets:
            each.close()


def attack(addresses, http: str, frames: int, seed: int) -> Outcome:
    """Send hostile frames to the listeners in turn; raises where the steady client is not answered."""
    attackers, steady = Attackers(addresses, random.Random(seed)), Steady(addresses[0])
    warm, most, begin = 0.0, 0.0, time.monotonic()
    step = max(1, frames // 10)
    for number, data in enumerate(islice(hostile(seed), frames)):
        attackers.write(data)
        if number % 50 == 0:
            steady.ask()
        if number % step == step - 1:
            now = metrics(http)["process_resident_memory_bytes"]
            warm, most = warm or now, max(most, now)
    seconds = time.monotonic() - begin
    attackers.close()
    end = metrics(http)
    for _ in range(200):
        if end["aclog_connections"] <= 1:
            break
        time.sleep(0.05)
        end = metrics(http)
    steady.ask()
    steady.socket.close()
    return Outcome(
        frames=frames,
        seconds=seconds,
        connections=attackers.made,
        answered=int(end["aclog_request_duration_seconds_count"]) - steady.answers,
        steady_answers=steady.answers,
        memory_warm=int(warm),
        memory_end=int(end["process_resident_memory_bytes"]),
        memory_most=int(most),
        tasks_end=int(end.get("aclog_tasks", -1)),
        connections_end=int(end["aclog_connections"]),
        files_end=int(end["process_open_fds"]),
        errors=int(end["errors"]),
    )


def campaign(frames: int, seed: int) -> Outcome:
    """A server of its own, the attack, and the end of the server."""
    ours, its = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(target=serve, args=(its,))
    child.start()
    its.close()  # so that its end here is the end of the pipe
    try:
        plain, sasl, http = ours.recv()
        outcome = attack([("127.0.0.1", plain), ("127.0.0.1", sasl)], f"127.0.0.1:{http}", frames, seed)
        assert child.is_alive()
        return outcome
    finally:
        ours.send(None)
        ours.close()
        child.join(30)
        child.kill()
        child.join()
        child.close()


def main() -> int:
    """Run a campaign as the command line asks and print what came of it; 1 where memory grew or the server erred."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--address", action="append", help="HOST:PORT of a listener of a node that runs already")
    parser.add_argument("--http", help="HOST:PORT of that node's metrics")
    options = parser.parse_args()
    if options.address:
        pairs = [each.rsplit(":", 1) for each in options.address]
        outcome = attack([(host, int(port)) for host, port in pairs], options.http, options.frames, options.seed)
    else:
        outcome = campaign(options.frames, options.seed)
    print(outcome)
    grown = outcome.memory_end - outcome.memory_warm > 32 << 20
    return int(grown or outcome.connections_end > 1 or outcome.errors > 0)


if __name__ == "__main__":
    sys.exit(main())
