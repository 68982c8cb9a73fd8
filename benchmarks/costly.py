"""What an admin of a console waits for while one viewer asks for states of the past without end.

The log holds the rules. The viewer may see its own rights only; its clients are a process of their own
(benchmarks.costly_load) and ask for `/rules` as of a random offset. Server, clients, admin and writer share two cores.
"""

import http.client
import itertools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import FileLog, open_log
from benchmarks.console import write_log
from benchmarks.flood import log_in
from benchmarks.measurement import percentile
from benchmarks.report import Row
from tests.support.builders.acls import acl, acl_record
from tests.support.processes.waiting import SECONDS, wait_until
from tests.support.web.console import ConsoleProcess
from tests.support.web.logins import write_logins

CLIENTS, TIMES, VISIBLE_S = 8, 2.0, 1.0
_ADMIN, _VIEWER = "User:admin", "User:team-7"
_READ_S = 300


class Admin:
    """One connection of who sees all."""

    def __init__(self, port: int) -> None:
        self._cookie = log_in(port, _ADMIN)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)

    def get(self, path: str) -> bytes:
        """Return a page."""
        self._connection.request("GET", path, headers={"Cookie": self._cookie})
        reply = self._connection.getresponse()
        body = reply.read()
        if reply.status != 200:
            raise AssertionError(f"{path}: {reply.status} {body[:300]!r}")
        return body

    def sees_all(self) -> bool:
        """Return whether the first state is there: before it, nobody sees more than his own rights."""
        self._connection.request("GET", "/findings", headers={"Cookie": self._cookie})
        reply = self._connection.getresponse()
        reply.read()
        return reply.status == 200

    def pages(self, numbers: Iterator[int], times: int) -> list[float]:
        """Return the ms of pages that nobody asked for before."""
        found = []
        for number in itertools.islice(numbers, times):
            begun = time.monotonic()
            self.get(f"/rules?q={number}&operation=READ&permission=ALLOW&type=TOPIC&pattern=LITERAL")
            found.append(1000 * (time.monotonic() - begun))
        return found

    def wait_while(self, path: str, text: bytes) -> None:
        """Wait until a page no longer says that the console is at work on it."""
        deadline = time.monotonic() + _READ_S
        while text in self.get(path):
            if time.monotonic() > deadline:
                raise AssertionError(f"{path} still says {text.decode()!r}")
            time.sleep(0.5)

    def visible_after(self, log: FileLog, number: int) -> float:
        """Return the seconds from a commit of a rule until a page has it."""
        name = f"new.topic-{number}"
        log.append([encode_record(acl_record(number, acl(name, "User:new")))], timestamp=3).result(300)
        begun = time.monotonic()
        while f">{name}<".encode() not in self.get(f"/rules?resource={name}"):
            time.sleep(0.02)
        return time.monotonic() - begun


@contextmanager
def _asking(port: int, rules: int) -> Iterator[dict[str, int]]:
    """Let the viewer's clients ask during the `with`; at its end the dictionary has their statuses."""
    command = [sys.executable, "-m", "benchmarks.costly_load", "--port", str(port), "--cookie", log_in(port, _VIEWER)]
    found = dict[str, int]()
    with subprocess.Popen(
        [*command, "--clients", str(CLIENTS), "--rules", str(rules)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield found
        finally:
            process.stdin.close()
            found.update(json.loads(process.stdout.readline()))


def run(scratch: Path, rules: int, times: int, changes: int) -> Iterator[Row]:
    """Measure a console on so many rules: so many pages, and so many changes, at rest and under load."""
    log = write_log(scratch / "log", rules)
    logins = write_logins(scratch / "logins", "admin", "team-7")
    flags = ("--log", log, "--login", logins, "--super-users", _ADMIN)
    numbers, added = itertools.count(10_000), itertools.count(rules + 1)
    with ConsoleProcess(*flags, ready="/healthz") as console, open_log(log) as written:
        admin = Admin(console.port)
        wait_until(admin.sees_all)
        admin.wait_while("/findings", b"being scanned")
        admin.wait_while("/changes", b"still being read")
        admin.pages(numbers, 10)
        rest = admin.pages(numbers, times)
        rest_visible = [admin.visible_after(written, next(added)) for _ in range(changes)]
        with _asking(console.port, rules) as statuses:
            time.sleep(3)
            load = admin.pages(numbers, times)
            load_visible = [admin.visible_after(written, next(added)) for _ in range(changes)]
    about = f"{CLIENTS} clients of one viewer ask for the past"
    for when, took in (("at rest", rest), (about, load)):
        yield Row(what=f"{when}: a page of the admin, median", ours=statistics.median(took), unit="ms")
        yield Row(what=f"{when}: a page of the admin, p99 of {len(took)}", ours=percentile(took, 0.99), unit="ms")
    ratio = percentile(load, 0.99) / percentile(rest, 0.99)
    yield Row(what="p99 under that load, by p99 at rest", ours=ratio, unit="times", target=TIMES)
    yield Row(what="at rest: a new rule is on a page after, longest", ours=max(rest_visible), unit="s")
    yield Row(
        what=f"{about}: a new rule is on a page after, longest", ours=max(load_visible), unit="s", target=VISIBLE_S
    )
    for status, count in sorted(statuses.items()):
        yield Row(what=f"answers to the viewer, {status}", ours=count, unit="")
