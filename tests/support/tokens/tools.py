"""Kafka's own kafka-delegation-tokens.sh through a token's whole life, on any node, and clients that log in by tokens.

python -m tests.support.tokens.tools --record   # on a real Kafka; writes the golden file
python -m tests.support.tokens.tools --aclog    # on aclog; prints the differences
"""

import argparse
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import confluent_kafka as ck
import confluent_kafka.admin as cka
from attrs import frozen

from tests.support.kafka.jvm import ROOT
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import free_port
from tests.support.kafka.tools import client_properties, in_order, neutral
from tests.support.kafka.warm_jvms import ToolPipe
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.barrier import Barrier
from tests.support.nodes.server_properties import SCRAM, Ports
from tests.support.processes.waiting import wait_until
from tests.support.tokens.client import token_password
from tests.support.tokens.script import Row, differences, token_properties

GOLDEN = ROOT / "tests" / "data" / "kafka-4.3.1-admin" / "token-tools.jsonl"
TOKENS, ACLS = "org.apache.kafka.tools.DelegationTokenCommand", "org.apache.kafka.tools.AclCommand"
ADD = "--add --allow-principal User"
Config: TypeAlias = str
"""A user, or a token's name after a `@`: who logs in."""


@frozen
class Command:
    """A command line without the address; a token that it makes gets the name. HMAC(name) stands for a token's HMAC."""

    who: Config
    line: str
    makes: str = ""
    main: str = TOKENS


COMMANDS = (
    Command("alice", "--create --max-life-time-period -1 --renewer-principal User:bob", "own"),
    Command("alice", "--create --max-life-time-period 1800000", "plain"),
    Command("alice", "--create --max-life-time-period -1 --owner-principal User:carol"),
    Command("admin", f"{ADD}:alice --operation CreateTokens --user-principal User:carol", "", ACLS),
    Command(
        "alice",
        "--create --max-life-time-period -1 --owner-principal User:carol --renewer-principal User:bob "
        "--renewer-principal User:dave",
        "carols",
    ),
    Command("alice", "--create --max-life-time-period -1 --renewer-principal Group:g"),
    Command("alice", "--create --max-life-time-period -1 --renewer-principal bob"),
    Command("alice", "--create"),
    Command("alice", "--create --describe --max-life-time-period -1"),
    Command("bob", "--describe"),
    Command("bob", "--describe --owner-principal User:bob"),
    Command("carol", "--describe --owner-principal User:carol"),
    Command("dave", "--describe --owner-principal User:alice"),
    Command("admin", f"{ADD}:dave --operation DescribeTokens --user-principal User:alice", "", ACLS),
    Command("dave", "--describe --owner-principal User:alice"),
    Command("bob", "--renew --renew-time-period -1 --hmac HMAC(own)"),
    Command("alice", "--renew --renew-time-period 600000 --hmac HMAC(carols)"),
    Command("alice", "--renew --renew-time-period 600000 --hmac bm8="),
    Command("alice", "--renew --renew-time-period 600000"),
    Command("@own", "--list --topic orders", "", ACLS),
    Command("@own", "--create --max-life-time-period -1"),
    Command("@own", "--describe --owner-principal User:alice"),
    Command("@own", "--renew --renew-time-period -1 --hmac HMAC(own)"),
    Command("admin", f"{ADD}:alice --operation Describe --cluster", "", ACLS),
    Command("@own", "--list --cluster", "", ACLS),
    Command("dave", "--expire --expiry-time-period -1 --hmac HMAC(own)"),
    Command("alice", "--expire --expiry-time-period 600000 --hmac HMAC(own)"),
    Command("alice", "--expire --expiry-time-period -1 --hmac HMAC(own)"),
    Command("alice", "--expire --expiry-time-period -1 --hmac HMAC(own)"),
    Command("@own", "--list --cluster", "", ACLS),
    Command("alice", "--describe --owner-principal User:alice"),
)  # fmt: skip


class TokenTools:
    """The commands on one node."""

    def __init__(self, pipe: ToolPipe, ports: Ports, home: Path) -> None:
        self._pipe, self._ports, self._home = pipe, ports, home
        self._barrier = Barrier(ports)
        self.ids: dict[str, str] = {}

    def run(self) -> Iterator[Row]:
        """Every command in order, then another client."""
        try:
            for number, command in enumerate(COMMANDS):
                row = self._row(command)
                yield {"step": f"{number:02d} {command.who} {command.line}", "found": row}
            yield {"step": "confluent-kafka by a token", "found": self._confluent()}
        finally:
            self._barrier.close()

    def _row(self, command: Command) -> Any:
        line = re.sub(r"HMAC\((\w+)\)", lambda name: token_password(self.ids[name[1]]), command.line)
        where = [
            "--bootstrap-server",
            f"localhost:{self._ports.broker}",
            "--command-config",
            str(self._config(command.who)),
        ]
        printed = self._pipe.run(command.main, [*where, *shlex.split(line)])
        match = re.search(r"with tokenId : (\S+)", printed.out)
        if match:
            self.ids[command.makes] = match[1]
        if "--describe" not in command.line and "--list" not in command.line:
            self._barrier.wait(leave_nothing=True)
        err = [text for text in self._neutral(printed.err).splitlines() if text and not text.startswith("\tat ")]
        return {"code": printed.code, "out": self._out(printed.out), "err": err[:1]}

    def _out(self, text: str) -> list[str]:
        """The lines; what follows a table's head has no order."""
        lines = self._neutral(text).splitlines()
        head = next((number for number, line in enumerate(lines) if line.startswith("TOKENID")), None)
        if head is None:
            return in_order(lines)
        return [*lines[: head + 1], *sorted(lines[head + 1 :])]

    def _neutral(self, text: str) -> str:
        for name, token_id in self.ids.items():
            text = text.replace(token_password(token_id), f"HMAC({name})").replace(token_id, f"ID({name})")
        return neutral(re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", "DATE", text), self._ports)

    def _config(self, who: Config) -> Path:
        if not who.startswith("@"):
            return client_properties(self._home, who)
        path, token_id = self._home / f"{who}.properties", self.ids[who[1:]]
        path.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
            f'sasl.jaas.config={SCRAM} required username="{token_id}" password="{token_password(token_id)}" '
            f'tokenauth="true";\ndefault.api.timeout.ms=20000\nrequest.timeout.ms=20000\n',
            encoding="utf-8",
        )
        return path

    def _confluent(self) -> Any:
        """librdkafka cannot say that what it logs in with is a token (tokenauth): nobody lets it in, Kafka neither."""
        token_id = self.ids["plain"]
        config = {
            "bootstrap.servers": f"localhost:{self._ports.broker}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": token_id,
            "sasl.password": token_password(token_id),
            "log_level": 0,
        }
        errors: list[str] = []
        admin = cka.AdminClient(config | {"error_cb": lambda error: errors.append(error.name())})
        try:
            return len(admin.list_topics(timeout=1).brokers)
        except ck.KafkaException as error:
            wait_until(lambda: admin.poll(0.05) + errors.count("_AUTHENTICATION"), "a failed login")
            return [error.args[0].name(), "_AUTHENTICATION"]


def run(kind: type[AclogNode] | type[RealNode], home: Path) -> list[Row]:
    """Every command on a new node."""
    ports = Ports.free()
    properties = token_properties(ports, free_port())
    with kind(home, ports, properties).format():
        return list(TokenTools(ToolPipe(), ports, home).run())


def recorded() -> list[Row]:
    """What the real Kafka's run was."""
    return [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Record, or compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--aclog", action="store_true")
    flags = parser.parse_args()
    rows = run(AclogNode if flags.aclog else RealNode, Path(tempfile.mkdtemp(prefix="aclog-token-tools-")))
    if flags.record:
        GOLDEN.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return
    texts = differences(recorded(), rows)
    print("\n".join(texts))
    sys.exit(f"{len(texts)} differences" if texts else 0)


if __name__ == "__main__":
    main()
