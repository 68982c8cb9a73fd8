"""`aclog explain` and the shell's `why`: the command that they advise works, on the source that was asked."""

import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.cli.command import aclog

DATA = Path(__file__).parents[1] / "data" / "kafka-4.3.1-small"
ASKED = ("--principal", "User:bob", "--operation", "WRITE", "--topic", "payments.eu")


@pytest.fixture
def copy(tmp_path):
    """A copy of a Kafka's log, alone: it belongs to no Kafka."""
    return Path(shutil.copytree(DATA / "__cluster_metadata-0", tmp_path / "a copy"))


def advised(*arguments):
    """The command in an explanation's last line."""
    return aclog(*arguments).ok().lines[-1].strip()


@pytest.mark.parametrize("why", [False, True])
def test_on_a_log_it_can_be_pasted_and_gives_the_other_answer(copy, why):
    assert aclog("authorize", "--log", copy, *ASKED).code == 1
    asked = ("shell", "--log", copy, "why", "User:bob", "WRITE", "topic:payments.eu")
    command = shlex.split(advised(*asked) if why else advised("explain", "--log", copy, *ASKED))
    assert command[:5] == ["aclog", "acls", "remove", "--log", str(copy)]
    assert aclog(*command[1:], stdin=b"y\n").code == 0
    assert aclog("authorize", "--log", copy, *ASKED).code == 0


def test_a_kafkas_log_and_a_checkpoint_are_changed_by_kafka_acls():
    log = DATA / "__cluster_metadata-0"
    for source in (("--log", log), ("--snapshot", log / "00000000000000000211-0000000002.checkpoint")):
        command = advised("explain", *source, *ASKED)
        assert command.startswith("kafka-acls.sh --bootstrap-server HOST:PORT --remove --deny-principal User:bob ")
        assert "--force" not in command
