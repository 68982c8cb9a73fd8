"""The quick tier starts no server: a test without the mark cannot."""

import subprocess
import sys

import pytest

from tests.support.runs.tiers import UnmarkedProcessError, starts_server


@pytest.mark.parametrize(
    "command",
    [
        ["java", "-version"],
        ["/usr/lib/jvm/bin/java", "-cp", "x", "kafka.Kafka"],
        ["/site-packages/pyspark/bin/spark-submit", "pyspark-shell"],
        [sys.executable, "-m", "aclog", "serve", "server.properties"],
        [sys.executable, "-m", "tests.support.processes.node_zygote"],
        [sys.executable, "-m", "tests.support.runs.keeper", "kafka", "/tmp", "1"],
    ],
    ids=lambda command: " ".join(command[-2:]),
)
def test_servers_are_recognized(command: list[str]) -> None:
    assert starts_server(command)


@pytest.mark.parametrize("words", [["-m", "aclog", "acls", "list"], ["-m", "aclog", "mirror"], ["-c", "import java"]])
def test_other_commands_are_not(words: list[str]) -> None:
    assert not starts_server([sys.executable, *words])


def test_a_test_without_the_mark_cannot_start_one(request: pytest.FixtureRequest) -> None:
    with pytest.raises(UnmarkedProcessError, match="give it the mark `server`") as raised:
        subprocess.run(["java", "-version"], check=False)
    assert request.node.nodeid in str(raised.value)
