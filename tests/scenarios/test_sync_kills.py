"""`aclog sync` is killed at random points, again and again, while the rules change at each poll."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import aclog as library
from aclog.metalog.filelog.verify import verify
from aclog.snapshots.history import ChangeKind, history
from tests.support.builders.acls import acl
from tests.support.fakes.broker import FakeBroker
from tests.support.processes.sync_zygote import MOST_RECORDS
from tests.support.processes.waiting import SECONDS

pytestmark = pytest.mark.slow(8)

ROUNDS, KILLS = 4, 12
LASTING = [acl("lasting-1"), acl("lasting-2", "User:bob")]


@pytest.fixture
def zygote():
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.processes.sync_zygote"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        cwd=Path(__file__).parents[2],
    ) as process:
        yield process
        process.stdin.close()


def ask(zygote, *words):
    zygote.stdin.write(" ".join(map(str, words)) + "\n")
    return zygote.stdout.readline().strip()


@pytest.fixture
def broker():
    """It never tells the same rules twice, but for two that last."""
    numbers = random.Random(7)
    with FakeBroker() as running:
        running.next_rules = lambda: [
            *LASTING,
            *(acl(f"poll-{len(running.told)}-{number}") for number in range(numbers.randint(1, 3 * MOST_RECORDS))),
        ]
        yield running


def states(directory):
    """The rules after each visible change of the log, and the ids that the lasting ones had."""
    rules, found, ids = {}, [], set()
    end = 0
    for change in history(directory):
        if change.end_offset != end and end:
            found.append(frozenset(rules))
        end = change.end_offset
        if change.kind is ChangeKind.ADDED:
            rules[change.rule.acl] = change.rule.id
        else:
            del rules[change.rule.acl]
        if change.rule.acl in LASTING:
            ids.add(change.rule.id)
    return [*found, frozenset(rules)], ids


def assert_is_what_was_told(directory, told):
    """Each state of the log is a whole answer, and they stand in the order of the answers, each once."""
    found, ids = states(directory)
    places = [told.index(state) for state in found]
    assert places == sorted(set(places))
    assert len(ids) == len(LASTING), "a rule that stays keeps its id"
    assert list(verify(directory)) == []
    return len(found)


def killed(zygote, broker, directory, numbers):
    """Run one until it has asked a few times, now and then not even once, and kill it in whatever it does then."""
    asked = len(broker.told) + numbers.randint(0, 4)
    assert ask(zygote, "start", directory, broker.address) == "started"
    deadline = time.monotonic() + SECONDS
    while len(broker.told) < asked:
        assert time.monotonic() < deadline, Path(f"{directory}.out").read_text()
        time.sleep(0.001)
    time.sleep(numbers.uniform(0, 0.01))
    assert ask(zygote, "kill") == "killed", Path(f"{directory}.out").read_text()


def test_a_poll_is_recorded_whole_or_not_at_all(zygote, broker, tmp_path):
    numbers = random.Random(11)
    recorded = 0
    for round_ in range(ROUNDS):
        directory, begun = tmp_path / f"history-{round_}", len(broker.told)
        for _ in range(KILLS):
            killed(zygote, broker, directory, numbers)
            if directory.exists():
                assert_is_what_was_told(directory, broker.told[begun:])
        assert ask(zygote, "once", directory, broker.address) == "0", Path(f"{directory}.out").read_text()
        recorded += assert_is_what_was_told(directory, broker.told[begun:])
        with library.open_log(directory) as log:
            assert {rule.acl for rule in log.image().acls()} == broker.told[-1]
    assert recorded > KILLS
