"""The admin API as a source, and `aclog sync`, of a real Kafka 4.3.1 and of aclog: what Kafka's own Admin describes."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path

import pytest

import aclog as library
from aclog.client import requests
from aclog.metalog.filelog.verify import verify
from aclog.ops import sync
from aclog.ops.sync import SyncLog
from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog
from tests.support.kafka.described import acl_rows, scram_rows
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import AdminClient
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import CLUSTER_ID, PLAIN, Ports, password
from tests.support.processes.waiting import SECONDS, wait_until

NODES = {"aclog": AclogNode, "kafka": RealNode}
POINTS, CHANGES = 12, 6
"""Quiesced points, and changes of rules before each at most."""
ODD_NAMES = ("\0", "nul\0inside", "\ufffd", "x" * 32_767, "€" * 10_922, "😀", "a\nb", "*", "**", "\u2028", " ")
LOGIN = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={} required {};\n"

Row = dict[str, str]


def ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda each: tuple(each.values()))


def flags(home: Path, ports: Ports, user: str = "admin") -> list[str]:
    """The flags that name the node, and log in there."""
    config = home / f"{user}.properties"
    config.write_text(LOGIN.format(PLAIN, f'username="{user}" password="{password(user)}"'), encoding="utf-8")
    return ["--bootstrap-server", f"localhost:{ports.broker}", "--command-config", str(config)]


@contextmanager
def syncing(place: list[str], directory: Path) -> Iterator[None]:
    """`aclog sync` as a process, until SIGTERM, which is a clean end of it; it prints into files beside the log."""
    command = [sys.executable, "-m", "aclog", "sync", *place, "--to", str(directory), "--interval", "0.05"]
    with (
        directory.with_suffix(".out").open("w") as out,
        directory.with_suffix(".err").open("w") as err,
        subprocess.Popen([*command, "--format", "jsonl"], stdout=out, stderr=err) as process,
    ):
        try:
            yield
        finally:
            process.terminate()
        assert process.wait(SECONDS) == 0, directory.with_suffix(".err").read_text()


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.tier("test")) if kind == "aclog" else kind for kind in NODES]
)
def test_described_listed_and_recorded(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = Ports.free()
    with NODES[kind](tmp_path / "node", ports).format(), AdminClient(ports.broker) as client:
        client("createAcls", acls=[acl_row(name) for name in ODD_NAMES])
        client("alterScram", users=[{"user": "sue", "mechanism": "SCRAM-SHA-512", "iterations": 8192, "password": "p"}])
        wait_until(lambda: len(client.acls()) == len(ODD_NAMES) and len(client.scram()) == 2, client.acls)
        assert_told_as_described(flags(tmp_path, ports), client)
        assert_refused_without_describe(flags(tmp_path, ports, "bob"))
        directory = tmp_path / "history"
        states = recorded(flags(tmp_path, ports), directory, client)
        states.append(recorded_once(flags(tmp_path, ports), directory, client))
        states.append(recorded_without_decoding(flags(tmp_path, ports), directory, client, monkeypatch))
    assert_history_is_what_was_described(directory, states)


def assert_told_as_described(place: list[str], client: AdminClient) -> None:
    listed = aclog("acls", "list", *place, "--format", "jsonl").ok()
    rows = [json.loads(line) for line in listed.out.split("\n") if line]
    assert {each.pop("id") for each in rows} == {None}
    assert ordered(rows) == client.acls()
    assert listed.err == ""
    with library.open_log(bootstrap_server=place[1], command_config=place[3]) as log:
        image = log.image().state
    assert acl_rows(image) == client.acls()
    assert scram_rows(image) == client.scram()


def assert_refused_without_describe(place: list[str]) -> None:
    for said in (aclog("acls", "list", *place), aclog("sync", *place, "--to", "nowhere", "--once")):
        assert said.code == 2
        assert "needs DESCRIBE permission. (the user of --command-config needs" in said.complaint


def recorded(place: list[str], directory: Path, client: AdminClient) -> list[tuple[int, list[Row]]]:
    """Change rules while they are recorded; what was described at each quiesced point, and the log's end there."""
    dice, states = random.Random(3), []
    with syncing(place, directory):
        rules = client.acls()
        for point in range(POINTS):
            rules = changed(client, rules, dice, point)
            wait_until(lambda: client.acls() == rules, client.acls)  # noqa: B023 - looked at before it changes again
            wait_until(lambda: state(directory)[1] == rules, lambda: state(directory))  # noqa: B023
            states.append(state(directory))
    assert "warning" not in directory.with_suffix(".err").read_text()
    exported = aclog("export", "--log", directory, "--history", "--format", "jsonl").ok().out
    assert directory.with_suffix(".out").read_text() == exported
    return states


def recorded_once(place: list[str], directory: Path, client: AdminClient) -> tuple[int, list[Row]]:
    """A poll over a new connection, of a broker that says itself that it reaches its controller."""
    rules = client.acls()
    client("deleteAcls", acls=rules[:1])
    wait_until(lambda: client.acls() == rules[1:], client.acls)
    aclog("sync", *place, "--to", directory, "--once").ok()
    assert state(directory)[1] == rules[1:]
    return state(directory)


def recorded_without_decoding(
    place: list[str], directory: Path, client: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, list[Row]]:
    """Polls over new connections of rules that do not change: the response is known by its bytes, or by its rules."""
    monkeypatch.setattr(SyncLog, "keep_response", partialmethod(SyncLog.keep_response, least=0))
    many = [acl_row(f"many-{number}", principal=f"User:{number % 7}") for number in range(200)]
    client("createAcls", acls=many)
    rules = ordered(client.acls() + [each for each in many if each not in client.acls()])
    wait_until(lambda: client.acls() == rules, client.acls)
    once = ("sync", *place, "--to", directory, "--once")
    assert len(aclog(*once).ok().lines) == len(many)
    with monkeypatch.context() as patch:
        patch.setattr(requests, "decode_listing", not_expected)
        patch.setattr(sync, "recovered_writer", not_expected)
        for _ in range(2):
            assert aclog(*once).ok().out == ""
    client("deleteAcls", acls=many[:50])
    wait_until(lambda: len(client.acls()) == len(rules) - 50, client.acls)
    client("createAcls", acls=many[:50])
    wait_until(lambda: client.acls() == rules, client.acls)
    assert aclog(*once).ok().out == ""
    assert state(directory)[1] == rules
    return state(directory)


def not_expected(*_arguments: object) -> None:
    raise AssertionError("the response is the known one")


def changed(client: AdminClient, rules: list[Row], dice: random.Random, point: int) -> list[Row]:
    """Some rules added, some removed, some of them one after the other; the rules that stand then."""
    new = [
        acl_row(
            dice.choice(("shared", f"topic-{point}-{number}")), principal=f"User:{point}-{number}", operation="WRITE"
        )
        for number in range(dice.randint(0, CHANGES))
    ]
    gone = dice.sample(rules, dice.randint(1, min(CHANGES, len(rules))))
    if new:
        client("createAcls", acls=new)
    client("deleteAcls", acls=gone)
    return ordered([each for each in rules + new if each not in gone])


def state(directory: Path) -> tuple[int, list[Row]]:
    """The end offset and the rules of the log's newest state; none before the first poll."""
    if not directory.exists():
        return 0, []
    with library.open_log(directory) as log:
        image = log.image().state
    return image.end_offset, acl_rows(image)


def assert_history_is_what_was_described(directory: Path, states: list[tuple[int, list[Row]]]) -> None:
    assert list(verify(directory)) == []
    assert CLUSTER_ID in (directory / "sync.properties").read_text()
    standing: dict[str, str] = {}
    with library.open_log(directory) as log:
        for end_offset, rows in states:
            image = log.image(as_of=end_offset).state
            assert acl_rows(image) == rows
            ids = {str(rule.acl): str(rule.id) for rule in image.acls}
            assert all(standing[rule] == ids[rule] for rule in standing.keys() & ids.keys()), "ids are kept"
            standing = ids
