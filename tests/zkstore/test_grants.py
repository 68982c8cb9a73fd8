"""`aclog grant` and `aclog revoke` on a ZooKeeper, as the authorizer of a Kafka 3.9 sees it."""

import pytest

from aclog.authorizer.codes import AclOperation, ResourceType
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.processes.waiting import wait_until

pytestmark = pytest.mark.server

READ, WRITE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE
ALTER_CONFIGS = AclOperation.ALTER_CONFIGS
TRANSACTION, GROUP = ResourceType.TRANSACTIONAL_ID, ResourceType.GROUP


def test_granted_and_revoked(connect, real):
    place = ("--authorizer-properties", f"zookeeper.connect={connect}", "--no-allow-everyone-if-no-acl-found", "--yes")
    transact = ("--principal", "User:app", "--intent", "transact", "--topic", "t", "--transactional-id", "x")
    aclog("grant", *place, *transact, "--group", "g").ok()
    least = {
        acl("t", operation=WRITE),
        acl("x", operation=WRITE, resource_type=TRANSACTION),
        acl("g", operation=READ, resource_type=GROUP),
    }
    wait_until(lambda: real.acls() == least)
    everything = ("--operation", "ALL", "--transactional-id", "x", "--group", "g")
    aclog("acls", "add", *place[:2], "--allow-principal", "User:app", *everything).ok()
    # What ALL gave a group besides is kept; Kafka 3.9 knows nothing that it gave a transactional id besides.
    aclog("revoke", *place, *transact, "--group", "g").ok()
    kept = {acl("g", operation=each, resource_type=GROUP) for each in (DELETE, ALTER_CONFIGS)}
    wait_until(lambda: real.acls() == kept)
