"""`aclog pdp` on a running node: it follows the node's rules, and decides nothing once the node is long gone."""

import json
import re

import pytest

from tests.cli.test_pdp import QUESTION, Served
from tests.cli.test_running_node import places
from tests.support.cli.command import aclog
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports
from tests.support.processes.waiting import wait_until

pytestmark = pytest.mark.server

QUORUM_AGE, POLLED_AGE = 6, 12
"""Seconds without a confirmation until nothing is decided: a quorum confirms all the time, a poll every ten seconds."""


@pytest.mark.slow(25)
def test_a_rule_is_followed_and_a_killed_node_is_believed_no_more(tmp_path):
    with AclogNode(tmp_path, Ports.free()).format() as node:
        by_quorum, by_polls = (places(node, f"--bootstrap-{kind}") for kind in ("controller", "server"))
        follower, poller = Served(*by_quorum, "--max-age", QUORUM_AGE), Served(*by_polls, "--max-age", POLLED_AGE)
        with follower, poller:
            wait_until(lambda: follower.decision() is False and poller.decision() is False)
            rule = ("--allow-principal", "User:a", "--topic", "t", "--operation", "READ")
            aclog("acls", "add", *by_polls, *rule).ok()
            wait_until(lambda: follower.decision() is True)
            wait_until(lambda: poller.decision() is True, every=0.1)
            context = json.loads(follower.ask("/access/v1/evaluation", QUESTION)[1])["context"]
            assert context["rule"].startswith("MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=t, ")
            node.kill()
            for point, age in ((follower, QUORUM_AGE), (poller, POLLED_AGE)):
                refuses(point, age)
            node.start()
            wait_until(lambda: follower.decision() is True)


def refuses(point: Served, age: int) -> None:
    """Wait until a decision point decides nothing, and see that it says how old its state is."""
    wait_until(lambda: point.decision() == 503, every=0.1)
    status, why = point.ask("/readyz")
    assert status == 503
    assert int(re.search(rb"not been confirmed for (\d+) s: ", why)[1]) >= age
    metric = re.search(rb"^aclog_age_seconds (\S+)$", point.ask("/metrics")[1], re.MULTILINE)
    assert float(metric[1]) > age
    assert point.ask("/healthz")[0] == 200
