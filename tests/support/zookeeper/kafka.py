"""A real Kafka 3.9 broker that keeps its metadata in a ZooKeeper."""

import socket
import time
from contextlib import suppress
from pathlib import Path

from tests.support.kafka.server import KafkaError, KafkaServer, free_port
from tests.support.processes.waiting import SECONDS
from tests.support.zookeeper.server import KAFKA_39

SECRET = "secret-of-the-brokers"
_LOGIN = "listener.name.sasl_plaintext"
_MODULES = "org.apache.kafka.common.security"


def broker_properties(home: Path, port: int, connect: str) -> str:
    """One broker, SASL_PLAINTEXT, with the users of the fixtures, tokens, and the old authorizer."""
    values = {
        "broker.id": "0",
        "zookeeper.connect": connect,
        "listeners": f"SASL_PLAINTEXT://localhost:{port}",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        f"{_LOGIN}.plain.sasl.jaas.config": f'{_MODULES}.plain.PlainLoginModule required username="admin" '
        'password="admin-secret" user_admin="admin-secret" user_alice="alice-secret";',
        f"{_LOGIN}.scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
        f"{_LOGIN}.scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:admin",
        "delegation.token.secret.key": SECRET,
        "log.dirs": str(home / "data"),
        "offsets.topic.replication.factor": "1",
        "num.network.threads": "2",
        "num.io.threads": "2",
        "log.cleaner.enable": "false",
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


class ZooKeeperKafka(KafkaServer):
    """The broker on a directory of its own; `connect` is what zookeeper.connect takes. A `with` starts and stops it."""

    def __init__(self, home: Path, connect: str) -> None:
        home.mkdir(parents=True, exist_ok=True)
        port = free_port()
        super().__init__(home, broker_properties(home, port, connect), port=port, version=KAFKA_39)

    def wait_until_started(self) -> None:
        """Wait until it takes connections; a KafkaError with the end of the output if it fails."""
        deadline = time.monotonic() + SECONDS
        while True:
            with suppress(OSError), socket.create_connection(("localhost", self.port), timeout=5):
                return
            if not self.running or time.monotonic() > deadline:
                raise KafkaError(f"Kafka 3.9 did not start: {self._output()[-4000:]}")
            time.sleep(0.1)
