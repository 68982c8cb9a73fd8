"""What `aclog sync` costs beside a node with a million rules: CPU time of the command, and of the node beside it.

The first poll records all rules. The later ones find nothing changed, by the digest of the response, by that of its
rules in another order, or by the rules of the replayed log; or they find one rule changed.
"""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from attrs import evolve, frozen

from aclog.metalog.filelog import open_log
from aclog.ops.sync_response import RESPONSE_FILE, read_response, write_response
from aclog.sources.logs import read_sync_properties
from benchmarks.measurement import cpu_seconds
from benchmarks.open_image import FOLLOWING, home
from benchmarks.report import Row
from tests.support.kafka.tools import client_properties
from tests.support.nodes.aclog_node import AclogProcess
from tests.support.nodes.server_properties import Ports, server_properties

FIRST_SECONDS, AGAIN_SECONDS = 15.0, 2.0
_POLLS = 10


@frozen(kw_only=True)
class _Used:
    """Seconds of CPU, of a command and of the node beside it."""

    ours: float
    node: float


@frozen(kw_only=True)
class _Commands:
    """Commands on one node."""

    node: AclogProcess
    flags: Sequence[object]
    log: Path

    def sync(self, *more: object, until: Callable[["subprocess.Popen[bytes]"], None] | None = None) -> _Used:
        """Run `aclog sync` from start to end."""
        return self.run("sync", *self.flags, "--to", self.log, *more, until=until)

    def run(self, *words: object, until: Callable[["subprocess.Popen[bytes]"], None] | None = None) -> _Used:
        """Run a command; `until` waits until it is to be stopped."""
        before = cpu_seconds(self.node.pid)
        command = [sys.executable, "-m", "aclog", *map(str, words)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            if until is not None:
                until(process)
                process.send_signal(signal.SIGTERM)
            assert process.stderr is not None
            text = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise AssertionError(text.decode())
        ours = used.ru_utime + used.ru_stime
        return _Used(ours=ours, node=cpu_seconds(self.node.pid) - before)


def run(directory: Path, count: int, rounds: int) -> Iterator[Row]:
    """Yield the CPU seconds of each kind of poll."""
    place = home(directory / "node", count).parent
    ports = Ports.free()
    node = AclogProcess(place, ports, server_properties(ports, log_dirs=str(place / "data")))
    node.format_if_empty = False
    server = ("--bootstrap-server", f"localhost:{ports.broker}", "--command-config", client_properties(place, "admin"))
    rules = f"{count + FOLLOWING:,} rules"
    with node:
        commands = _Commands(node=node, flags=server, log=directory / "synced")
        first = commands.sync("--once")
        yield Row(what=f"first poll, {rules}: CPU time", ours=first.ours, unit="s", target=FIRST_SECONDS)
        yield Row(what="CPU time of the node beside it", ours=first.node, unit="s")
        yield from _unchanged(commands, rounds)
        yield from _changed(commands)
        yield from _running(commands)


def _unchanged(commands: _Commands, rounds: int) -> Iterator[Row]:
    kinds: dict[str, tuple[Callable[[Path], None], float | None]] = {
        "nothing changed, --once": (lambda _: None, AGAIN_SECONDS),
        "the same in another order": (_put_another_order, None),
        "the same without sync.response": (lambda log: (log / RESPONSE_FILE).unlink(), None),
    }
    for what, (prepare, target) in kinds.items():
        used = []
        for _ in range(rounds):
            prepare(commands.log)
            used.append(commands.sync("--once"))
        yield Row(what=f"{what}: CPU time", ours=median(each.ours for each in used), unit="s", target=target)
        yield Row(what="CPU time of the node beside it", ours=median(each.node for each in used), unit="s")


def _put_another_order(directory: Path) -> None:
    """Have the file name a response in another order, as another broker of Kafka returns it."""
    properties = read_sync_properties(directory)
    assert properties is not None
    with open_log(directory) as log:
        kept = read_response(log, properties.cluster_id)
    assert kept is not None
    write_response(directory, evolve(kept, response="0" * 64))


def _changed(commands: _Commands) -> Iterator[Row]:
    rule = ("--allow-principal", "User:sync", "--operation", "READ", "--topic", "sync")
    commands.run("acls", "add", *commands.flags, *rule)
    yield Row(what="one rule added, --once: CPU time", ours=commands.sync("--once").ours, unit="s")


def _running(commands: _Commands) -> Iterator[Row]:
    """Yield the CPU time of each later poll of a running command."""
    port = Ports.free().http
    seconds: list[float] = []

    def waits(process: "subprocess.Popen[bytes]") -> None:
        begun = _polls(port, 2)
        cpu = cpu_seconds(process.pid)
        polls = _polls(port, begun + _POLLS) - begun
        seconds.append((cpu_seconds(process.pid) - cpu) / polls)

    commands.sync("--interval", "0.1", "--http", f"127.0.0.1:{port}", until=waits)
    yield Row(what="nothing changed, a later poll of a running command: CPU time", ours=seconds[0], unit="s")


def _polls(port: int, least: int) -> int:
    """Wait until a running command has polled so often; return how often it has."""
    while True:
        with suppress(OSError, urllib.error.URLError):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
                lines = response.read().decode().splitlines()
            polls = next(int(float(line.split()[1])) for line in lines if line.startswith("aclog_polls "))
            if polls >= least:
                return polls
        time.sleep(0.1)
