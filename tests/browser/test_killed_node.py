"""A console that follows one of our nodes: the node is killed, and started again, while somebody looks."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.kafka.tools import client_properties
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports
from tests.support.processes.node_zygote import shared_zygote
from tests.support.web.console import ConsoleProcess

STALE = re.compile(r"This state has not been confirmed for \d+ s: \S")
TOPICS = ("orders", "clicks", "payments")
pytestmark = pytest.mark.slow(25)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[AclogNode]:
    with AclogNode(tmp_path / "node", Ports.free()) as started:
        yield started


@pytest.fixture
def place(node: AclogNode, tmp_path: Path) -> list[object]:
    """The flags that name the node."""
    login = client_properties(tmp_path, "admin")
    return ["--bootstrap-controller", f"localhost:{node.ports.controller}", "--command-config", login]


@pytest.fixture
def console(place: list[object]) -> Iterator[ConsoleProcess]:
    for topic in TOPICS:
        allow(place, "User:shop", topic)
    with ConsoleProcess(*place, zygote=shared_zygote()) as started:
        yield started


def allow(place: list[object], principal: str, topic: str) -> None:
    """Add a rule to the node, by a process of its own: the thread of a browser has a running event loop already."""
    rule = ["--allow-principal", principal, "--operation", "READ", "--topic", topic]
    command = [sys.executable, "-m", "aclog", "acls", "add", *map(str, place), *rule]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done


def test_a_killed_node_makes_the_page_stale_and_empties_no_list(visit, node, place):
    visitor = visit()
    visitor.start("/rules")
    visitor.sees("3 rules", *TOPICS)
    trouble = visitor.page.locator("#trouble")
    expect(trouble).to_be_hidden()
    node.kill()
    expect(trouble).to_have_text(STALE)
    visitor.sees("3 rules", *TOPICS)
    first = age(trouble.inner_text())
    expect(trouble).not_to_contain_text(f"for {first} s")
    assert age(trouble.inner_text()) > first
    visitor.page.reload()
    expect(trouble).to_have_text(STALE)
    visitor.sees("3 rules", *TOPICS)
    visitor.start("/resource?type=TOPIC&name=orders&operation=READ")
    visitor.sees("READ on TOPIC orders: 1 principal")
    visitor.start("/rules")
    visitor.sees("3 rules", *TOPICS)
    node.start()
    expect(trouble).to_be_hidden()
    visitor.sees("3 rules", *TOPICS)
    allow(place, "User:new", "orders")
    expect(visitor.part("rules").locator(".changed")).to_contain_text("User:new")
    visitor.sees("4 rules", *TOPICS)


def age(told: str) -> int:
    """The seconds that a page tells."""
    [found] = re.findall(r"for (\d+) s", told)
    return int(found)
