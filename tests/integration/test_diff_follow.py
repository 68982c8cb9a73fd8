"""`aclog diff --follow` and `aclog test --follow` of a real Kafka 4.3.1 whose rules kafka-acls.sh changes."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

from tests.support.kafka.real_node import RealNode
from tests.support.kafka.tools import MAINS, client_properties
from tests.support.kafka.warm_jvms import ToolPipe
from tests.support.nodes.server_properties import Ports
from tests.support.processes.waiting import SECONDS

pytestmark = [pytest.mark.xdist_group("followed_kafka")]

SETTINGS = ("--super-users", "User:admin")
"""As the server has them: it hides their values."""


@frozen
class FollowedKafka:
    """A Kafka, and Kafka's own tool that changes its rules."""

    ports: Ports
    pipe: ToolPipe
    config: Path

    @property
    def place(self) -> list[str]:
        """The flags that name it."""
        return ["--bootstrap-controller", f"localhost:{self.ports.controller}", "--command-config", str(self.config)]

    def acls(self, *arguments: str) -> None:
        """Run kafka-acls.sh."""
        login = ["--bootstrap-server", f"localhost:{self.ports.broker}", "--command-config", str(self.config)]
        done = self.pipe.run(MAINS["acls"], [*login, *arguments])
        assert done.code == 0, done


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FollowedKafka]:
    directory, ports = tmp_path_factory.mktemp("followed"), Ports.free()
    with RealNode(directory / "node", ports).format():
        yield FollowedKafka(ports, ToolPipe(), client_properties(directory, "admin"))


def test_what_kafkas_own_tool_changes_is_told_as_it_is_committed(kafka: FollowedKafka) -> None:
    kafka.acls("--add", "--allow-principal", "User:bob", "--operation", "READ", "--topic", "pay.eu")
    command = [sys.executable, "-m", "aclog", "diff", "--follow", *kafka.place, *SETTINGS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as text:
        assert text.stdout is not None
        assert text.stdout.readline().startswith("following localhost:")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        as_json = [*command, "--as-of", "0", "--format", "jsonl"]
        with subprocess.Popen(as_json, encoding="utf-8", **pipes) as lines:
            assert lines.stdout is not None
            # It begins at the empty state: the rule from before is told, too.
            gained = json.loads(lines.stdout.readline())
            while gained["names"] != [{"literal": "pay.eu"}]:  # those of another test come first
                gained = json.loads(lines.stdout.readline())
            prefix = ("--topic", "pay.", "--resource-pattern-type", "prefixed")
            kafka.acls("--add", "--allow-principal", "User:bob", "--operation", "READ", *prefix)
            gained = json.loads(lines.stdout.readline())
            assert (gained["change"], gained["principals"]) == ("GAINED", {"in": ["User:bob"]})
            assert gained["names"] == [{"prefix": "pay.", "exceptPrefixes": [], "exceptLiterals": ["pay.eu"]}]
            assert text.stdout.readline().rstrip().endswith("added ALLOW User:bob READ on TOPIC PREFIXED 'pay.' from *")
            assert "GAINED" in text.stdout.readline()
            kafka.acls("--remove", "--force", "--allow-principal", "User:bob", "--operation", "READ", *prefix)
            lost = json.loads(lines.stdout.readline())
            assert (lost["change"], lost["names"]) == ("LOST", gained["names"])
            for process in (lines, text):
                process.send_signal(signal.SIGTERM)
            for process in (lines, text):
                _, err = process.communicate(timeout=SECONDS)
                assert (process.returncode, err) == (0, "")


def test_a_test_of_rules_turns_red_with_the_change_and_green_again(kafka: FollowedKafka, tmp_path: Path) -> None:
    guard = tmp_path / "guard.yaml"
    guard.write_text("tests:\n- name: pii\n  principal: User:*\n  cannot: {ALL: [topic:pii.*]}\n")
    rule = ("--allow-principal", "User:eve", "--operation", "READ", "--topic", "pii.card")
    command = [sys.executable, "-m", "aclog", "test", str(guard), "--follow", *kafka.place, *SETTINGS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith(": 1 green, 0 red; stop with Ctrl-C\n")
        kafka.acls("--add", *rule)
        red = process.stdout.readline()
        assert red.startswith("RED     ")
        assert red.endswith(f": pii: everyone cannot ALL topic:pii.* ({guard}:4)\n")
        assert "User:eve: READ, DESCRIBE on TOPIC pii.card is allowed" in process.stdout.readline()
        assert "by: added ALLOW User:eve READ on TOPIC LITERAL 'pii.card' from *" in process.stdout.readline()
        kafka.acls("--remove", "--force", *rule)
        assert process.stdout.readline().startswith("GREEN   ")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, err) == (0, "")
