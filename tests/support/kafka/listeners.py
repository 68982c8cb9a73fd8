"""A real Kafka with a listener of each kind that clients mistake for another, and with certificates that are wrong."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from tests.support.kafka.server import KafkaServer, free_port
from tests.support.nodes.certificates import Authority
from tests.support.nodes.server_properties import CLUSTER_ID, PLAIN, SCRAM

STORE = "store-5ecret"
PASSWORD = "admin-5ecret"
LISTENERS = {
    "OPEN": "PLAINTEXT",
    "LOGIN": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
    "BOTH": "SASL_SSL",
    "CONTROLLER": "PLAINTEXT",
}
_OVER = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC))


class ManyListeners:
    """`home` holds the server and the certificates; `at` are its ports by the names in LISTENERS."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home, self.at = home, {name: free_port() for name in LISTENERS}
        self._issue()
        self._server = KafkaServer(home, self._properties(), port=self.at["OPEN"])

    def _issue(self) -> None:
        authority, stranger = Authority.make("root"), Authority.make("another root")
        issued = {
            "server": authority.issue("server"),
            "client": authority.issue("client"),
            "guest": authority.issue("guest"),
            "expired": authority.issue("server", period=_OVER),
            "elsewhere": authority.issue("server", hosts=("kafka.example",)),
        }
        for name, one in issued.items():
            one.write_pkcs12(self.home / f"{name}.p12", STORE)
        authority.write_pkcs12(self.home / "trusted.p12", STORE)
        stranger.write_pkcs12(self.home / "strange.p12", STORE)

    def __enter__(self) -> Self:
        self._server.format(
            CLUSTER_ID, "--standalone", "--add-scram", f"SCRAM-SHA-512=[name=admin,password={PASSWORD}]"
        )
        self._server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def client(self, name: str, protocol: str, **more: str) -> Path:
        """A client's properties file: `mechanism`, `password` for SASL, `trusted` and `key` for TLS."""
        lines = [f"security.protocol={protocol}"]
        if protocol.startswith("SASL"):
            mechanism = more.get("mechanism", "SCRAM-SHA-512")
            module = PLAIN if mechanism == "PLAIN" else SCRAM
            password = more.get("password", PASSWORD)
            lines += [
                f"sasl.mechanism={mechanism}",
                f'sasl.jaas.config={module} required username="admin" password="{password}";',
            ]
        if protocol.endswith("SSL"):
            lines += _store("truststore", self.home / f"{more.get('trusted', 'trusted')}.p12")
            lines += _store("keystore", self.home / f"{more['key']}.p12") if "key" in more else []
        path = self.home / f"{name}.client.properties"
        path.write_text("\n".join(lines) + "\n")
        return path

    def _properties(self) -> str:
        where = ",".join(f"{name}://localhost:{port}" for name, port in self.at.items())
        brokers = ",".join(f"{name}://localhost:{port}" for name, port in self.at.items() if name != "CONTROLLER")
        lines = [
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.bootstrap.servers=localhost:{self.at['CONTROLLER']}",
            f"listeners={where}",
            f"advertised.listeners={brokers}",
            "controller.listener.names=CONTROLLER",
            f"listener.security.protocol.map={','.join(f'{name}:{kind}' for name, kind in LISTENERS.items())}",
            "inter.broker.listener.name=OPEN",
            "sasl.enabled.mechanisms=SCRAM-SHA-512",
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users=User:ANONYMOUS;User:admin;User:CN=client;",
            "log.dirs=data",
            "listener.name.mutual.ssl.client.auth=required",
            *_store("keystore", self.home / "server.p12"),
            *_store("truststore", self.home / "trusted.p12"),
            f"listener.name.expired.ssl.keystore.location={self.home / 'expired.p12'}",
            f"listener.name.elsewhere.ssl.keystore.location={self.home / 'elsewhere.p12'}",
        ]
        login = f'{SCRAM} required username="admin" password="{PASSWORD}";'
        lines += [f"listener.name.{name}.scram-sha-512.sasl.jaas.config={login}" for name in ("login", "both")]
        return "\n".join(lines) + "\n"


def _store(kind: str, path: Path) -> list[str]:
    return [f"ssl.{kind}.location={path}", f"ssl.{kind}.type=PKCS12", f"ssl.{kind}.password={STORE}"]
