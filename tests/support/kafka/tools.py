"""Kafka's own kafka-acls.sh and kafka-configs.sh, many command lines in one JVM, against any node.

    python -m tests.support.kafka.tools --record              # runs them on a real Kafka and writes the golden file
    python -m tests.support.kafka.tools --aclog [--home DIR]  # runs them on aclog and prints the differences

What is kept of a run: its exit code, what it printed (blocks of lines in the order of their text), and the first line
of what it said on stderr, where the rest is the usage.
"""

import argparse
import json
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.kafka.commands import COMMANDS, Command
from tests.support.kafka.jvm import ROOT, release_of
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.warm_jvms import Printed, ToolPipe
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.barrier import Barrier
from tests.support.nodes.server_properties import PLAIN, Ports, password

GOLDEN = ROOT / "tests" / "data" / "kafka-4.3.1-admin" / "tools.jsonl"
MAINS = {"acls": "org.apache.kafka.tools.AclCommand", "configs": "kafka.admin.ConfigCommand"}


def main_class(tool: str, version: str) -> str:
    """The main class of a tool in a release: 4.4 moved that of kafka-configs."""
    moved = tool == "configs" and release_of(version) >= (4, 4)
    return "org.apache.kafka.tools.ConfigCommand" if moved else MAINS[tool]


def client_properties(home: Path, user: str) -> Path:
    """A --command-config file with which a user logs in by PLAIN."""
    path = home / f"{user}.properties"
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN} required username="{user}" password="{password(user)}";\n'
        f"default.api.timeout.ms=20000\nrequest.timeout.ms=20000\n",
        encoding="utf-8",
    )
    return path


class Tools:
    """The command lines on one node."""

    def __init__(self, pipe: ToolPipe, ports: Ports, home: Path) -> None:
        self._pipe, self._ports, self._home = pipe, ports, home
        self._barrier = Barrier(ports)

    def run(self, commands: Sequence[Command] = COMMANDS) -> list[dict[str, Any]]:
        """Every command in order; one object each."""
        try:
            return [self._row(number, command) for number, command in enumerate(commands, 1)]
        finally:
            self._barrier.close()

    def _row(self, number: int, command: Command) -> dict[str, Any]:
        printed = self._print(command)
        if "--list" not in command.line and "--describe" not in command.line:
            self._barrier.wait(leave_nothing=True)
        err = [line for line in self._lines(printed.err) if line]
        return {
            "command": f"{number:03d} kafka-{command.tool} {command.line}",
            "to": command.to,
            "code": printed.code,
            "out": in_order(self._lines(printed.out)),
            "err": err if any(line.startswith("Error") for line in err) else err[:1],
        }

    def _lines(self, text: str) -> list[str]:
        text = neutral(text, self._ports).replace(str(self._home), "HOME")
        return [line.rstrip() for line in text.splitlines() if not line.startswith("\tat ") and "... " not in line]

    def _print(self, command: Command) -> Printed:
        where = {
            "broker": ["--bootstrap-server", f"localhost:{self._ports.broker}"],
            "controller": ["--bootstrap-controller", f"localhost:{self._ports.controller}"],
            "nowhere": [],
        }[command.to]
        config = ["--command-config", str(client_properties(self._home, command.user))] if where else []
        arguments = [*where, *config, *shlex.split(command.line)]
        return self._pipe.run(main_class(command.tool, self._pipe.version), arguments)


def in_order(lines: Sequence[str]) -> list[str]:
    """The lines of each block sorted, and the blocks; what Kafka prints of a set has no order."""
    blocks: list[list[str]] = [[]]
    for line in filter(None, lines):
        if line[0] in " \t":
            blocks[-1].append(f"  {line.strip()}")
        else:
            blocks.append([line])
    return [line for block in sorted([*block[:1], *sorted(block[1:])] for block in blocks) for line in block]


def neutral(text: str, ports: Ports) -> str:
    """Addresses and Kafka's own request objects by one name."""
    for port, name in ((ports.broker, "BROKER"), (ports.controller, "CONTROLLER")):
        text = re.sub(rf"(localhost|127\.0\.0\.1|/):?(/127\.0\.0\.1)?:{port}\b", name, text)
    text = re.sub(r"(?<=only supports operations \[)[A-Z_, ]+", lambda names: sorted_names(names[0]), text)
    return re.sub(r"Request Request\(.*\) needs ", "Request Request(...) needs ", text)


def sorted_names(names: str) -> str:
    """What Java prints of a set, in order."""
    return ", ".join(sorted(names.split(", ")))


def recorded() -> list[dict[str, Any]]:
    """What the real Kafka's runs printed."""
    return [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").split("\n") if line]


def differences(expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> list[str]:
    """One text for each command line with another outcome."""
    texts = []
    for kafka, got in zip(expected, actual, strict=True):
        assert kafka["command"] == got["command"], "the golden file belongs to other commands: record it again"
        for key in ("code", "out", "err"):
            if kafka[key] != got[key]:
                both = [json.dumps(side[key], ensure_ascii=False) for side in (kafka, got)]
                texts.append(f"{kafka['command']} ({kafka['to']}): {key}\n  kafka: {both[0]}\n  aclog: {both[1]}")
    return texts


def main() -> None:
    """Record, or compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--aclog", action="store_true")
    parser.add_argument("--home", type=Path)
    flags = parser.parse_args()
    home = flags.home or Path(tempfile.mkdtemp(prefix="aclog-kafka-tools-"))
    ports = Ports.free()
    with (AclogNode if flags.aclog else RealNode)(home, ports).format() as node:
        begun = time.monotonic()
        rows = Tools(ToolPipe(), ports, home).run()
    print(f"{node.kind}: {len(rows)} command lines in {time.monotonic() - begun:.1f} s")
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (home / "tools.jsonl").write_text(text, encoding="utf-8")
    if flags.record:
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text(text, encoding="utf-8")
        return
    texts = differences(recorded(), rows)
    print("\n".join(texts))
    sys.exit(f"{len(texts)} differences; all in {home}" if texts else 0)


if __name__ == "__main__":
    main()
