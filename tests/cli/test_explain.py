"""The command that `aclog explain` and the shell's `why` advise works on the source of the question."""

import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.cli.command import aclog

DATA = Path(__file__).parents[1] / "data" / "kafka-4.3.1-small"
ASKED = ("--principal", "User:bob", "--operation", "WRITE", "--topic", "payments.eu")


@pytest.fixture
def copy(tmp_path):
    """A copy of a Kafka log without its meta.properties: it belongs to no Kafka node."""
    return Path(shutil.copytree(DATA / "__cluster_metadata-0", tmp_path / "a copy"))


def advised(*arguments):
    """Return the command in the last line of an explanation."""
    return aclog(*arguments).ok().lines[-1].strip()


@pytest.mark.parametrize("why", [False, True])
def test_on_a_log_the_advised_command_reverses_the_decision(copy, why):
    assert aclog("authorize", "--log", copy, *ASKED).code == 1
    asked = ("shell", "--log", copy, "why", "User:bob", "WRITE", "topic:payments.eu")
    command = shlex.split(advised(*asked) if why else advised("explain", "--log", copy, *ASKED))
    assert command[:5] == ["aclog", "acls", "remove", "--log", str(copy)]
    assert aclog(*command[1:], stdin=b"y\n").code == 0
    assert aclog("authorize", "--log", copy, *ASKED).code == 0


def test_for_a_kafka_log_and_a_checkpoint_kafka_acls_is_advised():
    log = DATA / "__cluster_metadata-0"
    for source in (("--log", log), ("--snapshot", log / "00000000000000000211-0000000002.checkpoint")):
        command = advised("explain", *source, *ASKED)
        assert command.startswith("kafka-acls.sh --bootstrap-server HOST:PORT --remove --deny-principal User:bob ")
        assert "--force" not in command
