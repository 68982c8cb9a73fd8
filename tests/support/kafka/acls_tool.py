"""Kafka's kafka-acls as a user runs it, with Kafka's own patience, against brokers or controllers."""

from pathlib import Path
from typing import Self

from attrs import frozen

from tests.support.kafka.tools import MAINS
from tests.support.kafka.warm_jvms import Printed, ToolPipe
from tests.support.nodes.server_properties import PLAIN, password

TO_BROKERS, TO_CONTROLLERS = "--bootstrap-server", "--bootstrap-controller"


@frozen
class AclsTool:
    """Runs in the JVM of `pipe`, one command line after the other."""

    pipe: ToolPipe
    config: Path

    @classmethod
    def of(cls, pipe: ToolPipe, home: Path, user: str = "admin") -> Self:
        """As a user who logs in by PLAIN."""
        config = home / f"{user}.properties"
        config.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={PLAIN} required username="{user}" password="{password(user)}";\n',
            encoding="utf-8",
        )
        return cls(pipe, config)

    def run(self, to: str, addresses: str, *arguments: str) -> Printed:
        """One command line."""
        return self.pipe.run(MAINS["acls"], [to, addresses, "--command-config", str(self.config), *arguments])

    def add(self, to: str, addresses: str, topic: str) -> Printed:
        """Allow User:app to read a topic."""
        rule = ("--allow-principal", "User:app", "--operation", "Read", "--topic", topic)
        return self.run(to, addresses, "--add", *rule)

    def remove(self, to: str, addresses: str, topic: str) -> Printed:
        """Remove that rule."""
        rule = ("--allow-principal", "User:app", "--operation", "Read", "--topic", topic)
        return self.run(to, addresses, "--remove", "--force", *rule)
