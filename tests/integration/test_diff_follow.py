"""`aclog diff --follow` of a real Kafka 4.3.1 whose rules kafka-acls.sh changes."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kafka.real_node import RealNode
from tests.support.kafka.tools import MAINS, ToolPipe, client_properties
from tests.support.nodes.server_properties import Ports

SECONDS = 60


@pytest.mark.timeout(300)
def test_what_kafkas_own_tool_changes_is_told_as_it_is_committed(tmp_path: Path) -> None:
    ports = Ports.free()
    with RealNode(tmp_path / "node", ports).format(), ToolPipe() as pipe:
        config = client_properties(tmp_path, "admin")
        place = ["--bootstrap-controller", f"localhost:{ports.controller}", "--command-config", str(config)]

        def kafka_acls(*arguments: str) -> None:
            done = pipe.run(
                MAINS["acls"],
                ["--bootstrap-server", f"localhost:{ports.broker}", "--command-config", str(config), *arguments],
            )
            assert done.code == 0, done

        kafka_acls("--add", "--allow-principal", "User:bob", "--operation", "READ", "--topic", "pay.eu")
        command = [sys.executable, "-m", "aclog", "diff", "--follow", *place]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as text:
            assert text.stdout is not None
            assert text.stdout.readline().startswith("following localhost:")
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            as_json = [*command, "--as-of", "0", "--format", "jsonl"]
            with subprocess.Popen(as_json, encoding="utf-8", **pipes) as lines:
                assert lines.stdout is not None
                # It begins at the empty state: the rule from before is told, too.
                assert json.loads(lines.stdout.readline())["names"] == [{"literal": "pay.eu"}]
                prefix = ("--topic", "pay.", "--resource-pattern-type", "prefixed")
                kafka_acls("--add", "--allow-principal", "User:bob", "--operation", "READ", *prefix)
                gained = json.loads(lines.stdout.readline())
                assert (gained["change"], gained["principals"]) == ("GAINED", {"in": ["User:bob"]})
                assert gained["names"] == [{"prefix": "pay.", "exceptPrefixes": [], "exceptLiterals": ["pay.eu"]}]
                assert (
                    text.stdout.readline()
                    .rstrip()
                    .endswith("added ALLOW User:bob READ on TOPIC PREFIXED 'pay.' from *")
                )
                assert "GAINED" in text.stdout.readline()
                kafka_acls("--remove", "--force", "--allow-principal", "User:bob", "--operation", "READ", *prefix)
                lost = json.loads(lines.stdout.readline())
                assert (lost["change"], lost["names"]) == ("LOST", gained["names"])
                for process in (lines, text):
                    process.send_signal(signal.SIGTERM)
                for process in (lines, text):
                    _, err = process.communicate(timeout=SECONDS)
                    assert (process.returncode, err) == (0, "")
