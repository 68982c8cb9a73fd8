"""`aclog tokens` prints what Kafka's tool prints, command by command, and reports errors in one line."""

from collections.abc import Iterator, Sequence

import pytest

from tests.support.cli.command import Result, aclog
from tests.support.kafka.server import free_port
from tests.support.kafka.tools import client_properties
from tests.support.kafka.warm_jvms import Printed
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports
from tests.support.tokens.script import Row, token_properties
from tests.support.tokens.tools import ACLS, TOKENS, TokenTools, recorded

FLAGS = ("--bootstrap-server", "localhost:1", "--command-config")


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Iterator[AclogNode]:
    ports = Ports.free()
    home = tmp_path_factory.mktemp("node")
    with AclogNode(home, ports, token_properties(ports, free_port())).format() as started:
        yield started


class OurTools:
    """Runs aclog commands instead of Kafka's tools."""

    def run(self, main: str, arguments: Sequence[str]) -> Printed:
        actions = {"--create", "--renew", "--expire", "--describe", "--add", "--list"}
        words = [word.removeprefix("--") for word in arguments if word in actions]
        rest = [word for word in arguments if word not in actions]
        found = aclog({TOKENS: "tokens", ACLS: "acls"}[main], *words, *rest)
        return Printed(code=found.code, out=found.out, err=found.err)


@pytest.mark.server
def test_the_output_is_that_of_kafkas_tool(node: AclogNode) -> None:
    rows = list(TokenTools(OurTools(), node.ports, node.home).run())[:-1]  # the last row is not a command
    compared = 0
    for ours, theirs in zip(rows, recorded()[:-1], strict=True):
        assert ours["step"] == theirs["step"]
        assert bool(ours["found"]["code"]) == bool(theirs["found"]["code"]), ours
        if "--list" in ours["step"] or "--add" in ours["step"] or ours["step"].endswith("bob --describe"):
            continue
        assert ours["found"]["out"] == theirs["found"]["out"], ours
        assert_one_line(ours)
        compared += 1
    assert compared > 20


def assert_one_line(row: Row) -> None:
    """Nothing on stderr, or one line and exit code 2."""
    code, err = row["found"]["code"], row["found"]["err"]
    assert (code, len(err)) in {(0, 0), (2, 1)}
    assert all(line.startswith("aclog: ") for line in err)


@pytest.mark.server
def test_without_an_owner_all_visible_tokens_are_described(node: AclogNode) -> None:
    """Kafka's tool asks for the tokens of an empty list of owners here."""
    where = ("--bootstrap-server", f"localhost:{node.ports.broker}")
    where = (*where, "--command-config", client_properties(node.home, "admin"))
    flags = ("--max-life-time-period", "-1", "--renewer-principal", "User:erin")
    aclog("tokens", "create", *where, *flags).ok()
    told = aclog("tokens", "describe", *where).ok()
    assert "Calling describe token operation for current user." in told.out
    assert " User:admin      User:admin      [User:erin] " in told.out


def complaint(*arguments: object) -> str:
    found: Result = aclog("tokens", *arguments)
    assert found.code == 2
    return found.complaint


def test_bad_arguments(tmp_path) -> None:
    config = client_properties(tmp_path, "alice")
    create = ("create", *FLAGS, config, "--max-life-time-period")
    assert "--renewer-principal: Could not parse" in complaint(*create, "1", "--renewer-principal", "bob")
    assert "--owner-principal: Could not parse" in complaint(*create, "1", "--owner-principal", "bob")
    assert "--max-life-time-period" in complaint("create", *FLAGS, config)
    assert "expected ms as a 64-bit integer" in complaint(*create, 1 << 64)
    told = complaint("renew", *FLAGS, config, "--hmac", "hush!", "--renew-time-period", "-1")
    assert "--hmac: its value (not shown) is not base64" in told
    assert "hush" not in told
    assert "--command-config" in complaint("describe", *FLAGS[:2])
