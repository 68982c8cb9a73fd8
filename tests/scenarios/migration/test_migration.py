"""Short versions of the scenarios: a migration during changes (live.py), and kills (kills.py)."""

import random
import uuid

import pytest

from tests.scenarios.migration.estate import fill, in_store
from tests.scenarios.migration.kills import kill_at_call, kill_at_random
from tests.scenarios.migration.live import migrate_live
from tests.scenarios.migration.running import Dying
from tests.support.zookeeper.server import zookeeper_client
from tests.support.zookeeper.shared import SharedZooKeeper

SECONDS = 4
"""Slightly longer than a migration of this size."""


@pytest.fixture
def connect(zookeeper: SharedZooKeeper) -> str:
    chroot = uuid.uuid4().hex
    with zookeeper_client(zookeeper.connect) as client:
        client.ensure_path(chroot)
    return f"{zookeeper.connect}/{chroot}"


def test_a_log_equals_the_store_at_the_switchover(connect, tmp_path):
    assert "entries equal: compared: contents the same" in migrate_live(
        connect, tmp_path / "log", acls=1000, others=20, seconds=1
    )


def test_a_kill_in_any_call_leaves_nothing_or_everything_visible(connect, tmp_path):
    with zookeeper_client(connect) as client, Dying() as dying:
        fill(client, acls=1000, users=5, tokens=5)
        wanted, number, seen = in_store(client), 3, set()
        while "transaction open" not in seen:
            what = kill_at_call(dying, connect, tmp_path / "log", number, wanted)
            assert what is not None, f"no call inside a transaction: {seen}"
            seen.add(what)
            number += 50 if number == 3 else 4


def test_a_kill_at_a_random_moment_leaves_nothing_or_everything_visible(connect, tmp_path):
    with zookeeper_client(connect) as client:
        fill(client, acls=1000, users=5, tokens=5)
        kill_at_random(client, connect, tmp_path / "log", random.Random(7), SECONDS)
