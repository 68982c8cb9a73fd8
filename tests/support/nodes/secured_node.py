"""`aclog serve` with a listener of each security protocol, and the files and settings by which clients come in."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from attrs import frozen
from cryptography import x509
from cryptography.x509.oid import NameOID

from tests.support.kafka.server import free_port
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.certificates import Authority, Issued
from tests.support.nodes.server_properties import PLAIN, SCRAM, Ports

STORE = "store-5ecret"
PASSWORDS = {
    "admin": "admin-5ecret",
    "alice": "alice-5ecret",
    "bob": "bob-5ecret",
    "carol": "carol-5ecret",
    "dora": "dora-5ecret",
    "node": "node-5ecret",
}
"""No secret stands anywhere but in the files that hold it: who finds `5ecret` elsewhere has found a leak."""
SECRET = "5ecret"
PLAIN_USERS = ("admin", "alice", "bob")
FORMATTED = ("SCRAM-SHA-256=[name=admin,iterations=4096,password=admin-5ecret]",)
FORMATTED += ("SCRAM-SHA-512=[name=carol,iterations=4096,password=carol-5ecret]",)
FORMATTED += ("SCRAM-SHA-256=[name=node,iterations=4096,password=node-5ecret]",)
SUPER_USERS = "User:admin;User:node;User:CN=root,OU=Admins"
RULES = r"RULE:^CN=([A-Za-z]+),OU=Users$/$1/L,RULE:^(CN=.*,OU=Admins)$/$1/"
LISTENERS = {
    "CONTROLLER": "SASL_SSL",
    "OPEN": "SSL",
    "ASKED": "SSL",
    "MUST": "SSL",
    "CHANGED": "SSL",
    "BASIC": "SASL_PLAINTEXT",
    "SCRAM": "SASL_SSL",
}


def subject(name: str, unit: str = "Users") -> list[tuple[x509.ObjectIdentifier, str]]:
    """A name that Java prints as CN=<name>,OU=<unit>."""
    return [(NameOID.ORGANIZATIONAL_UNIT_NAME, unit), (NameOID.COMMON_NAME, name)]


@frozen(kw_only=True)
class Estate:
    """The files of the authorities, the node and its clients; `home` holds them all."""

    home: Path
    authority: Authority
    issued: dict[str, Issued]

    @classmethod
    def make(cls, home: Path) -> Self:
        """One authority, one that nobody trusts, and who they know."""
        home.mkdir(parents=True, exist_ok=True)
        authority, stranger = Authority.make("root"), Authority.make("another root")
        over = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC))
        issued = {
            "server": authority.issue("server"),
            "changed": authority.issue("first"),
            "alice": authority.issue(subject("Alice")),
            "root": authority.issue(subject("root", "Admins")),
            "nobody": authority.issue(subject("Nobody", "Elsewhere")),
            "expired": authority.issue(subject("root", "Admins"), period=over),
            "sly": authority.issue("root,OU=Admins"),
            "sly-rdn": authority.issue([*subject("x", "Admins"), (NameOID.SURNAME, "CN=root,OU=Admins")]),
            "sly-nul": authority.issue(subject("root\0", "Admins")),
            "mallory": stranger.issue(subject("root", "Admins")),
        }
        issued["forged"] = Authority(issued["alice"]).issue(subject("root", "Admins"))
        for name, one in issued.items():
            one.write_pkcs12(home / f"{name}.p12", STORE)
            one.write_pem(home / f"{name}.pem", STORE)
        authority.write_pkcs12(home / "trusted.p12", STORE)
        authority.write_pem(home / "trusted.pem")
        stranger.write_pkcs12(home / "strange.p12", STORE)
        stranger.write_pem(home / "strange.pem")
        return cls(home=home, authority=authority, issued=issued)

    def store(self, name: str) -> Path:
        """The PKCS 12 store of this name."""
        return self.home / f"{name}.p12"

    def pem(self, name: str) -> Path:
        """The same as PEM."""
        return self.home / f"{name}.pem"


def free_ports() -> dict[str, int]:
    """A port for each listener and for HTTP, all different."""
    ports: dict[str, int] = {}
    while len(ports) < len(LISTENERS) + 1:
        if (port := free_port()) not in ports.values():
            ports[[*LISTENERS, "HTTP"][len(ports)]] = port
    return ports


def jaas(module: str, user: str, users: tuple[str, ...] = ()) -> str:
    """A JAAS line by which `user` logs in, and which knows `users`."""
    users_text = "".join(f' user_{name}="{PASSWORDS[name]}"' for name in users)
    return f'{module} required username="{user}" password="{PASSWORDS[user]}"{users_text};'


def node_properties(estate: Estate, ports: dict[str, int]) -> str:
    """A controller and a broker in one process."""
    where = ",".join(f"{name}://localhost:{ports[name]}" for name in LISTENERS)
    return f"""\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:{ports["CONTROLLER"]}
listeners={where}
advertised.listeners={where}
controller.listener.names=CONTROLLER
listener.security.protocol.map={",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items())}
inter.broker.listener.name=BASIC
sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
listener.name.basic.sasl.enabled.mechanisms=PLAIN
listener.name.controller.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.basic.plain.sasl.jaas.config={jaas(PLAIN, "admin", PLAIN_USERS)}
listener.name.controller.plain.sasl.jaas.config={jaas(PLAIN, "admin", ("admin", "bob"))}
{tls_properties(estate, "server")}
ssl.client.auth=none
listener.name.asked.ssl.client.auth=requested
listener.name.asked.ssl.enabled.protocols=TLSv1.2
listener.name.must.ssl.client.auth=required
listener.name.must.ssl.enabled.protocols=TLSv1.3
listener.name.must.ssl.principal.mapping.rules={RULES}
listener.name.changed.ssl.keystore.location={estate.store("changed")}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users={SUPER_USERS}
log.dirs=data
metadata.max.idle.interval.ms=5000
aclog.http.listener=127.0.0.1:{ports["HTTP"]}
"""


def tls_properties(estate: Estate, key: str | None, trusted: str = "trusted") -> str:
    """ssl.* of a node or of a Java client; PKCS 12 both."""
    stores = {"truststore": trusted} | ({} if key is None else {"keystore": key})
    values = {f"ssl.{kind}.location": estate.store(name) for kind, name in stores.items()}
    values |= {f"ssl.{kind}.{key}": text for kind in stores for key, text in (("type", "PKCS12"), ("password", STORE))}
    return "".join(f"{key}={value}\n" for key, value in values.items())


def broker_properties(estate: Estate, ports: dict[str, int], mechanism: str, *, broker: int, http: int) -> str:
    """A broker alone, which logs in to the controllers by SASL_SSL."""
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    user = "admin" if mechanism == "PLAIN" else "node"
    return f"""\
process.roles=broker
node.id=2
controller.quorum.bootstrap.servers=localhost:{ports["CONTROLLER"]}
listeners=BASIC://localhost:{broker}
controller.listener.names=CONTROLLER
listener.security.protocol.map=BASIC:SASL_PLAINTEXT,CONTROLLER:SASL_SSL
inter.broker.listener.name=BASIC
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.basic.plain.sasl.jaas.config={jaas(PLAIN, "admin", PLAIN_USERS)}
sasl.mechanism.controller.protocol={mechanism}
listener.name.controller.{mechanism.lower()}.sasl.jaas.config={jaas(module, user)}
{tls_properties(estate, None)}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users={SUPER_USERS}
log.dirs=data
aclog.http.listener=127.0.0.1:{http}
"""


class SecuredNode(AclogNode):
    """A node of `node_properties`; `at` are its ports by the listeners' names."""

    scram = FORMATTED

    def __init__(self, home: Path, estate: Estate) -> None:
        self.estate, self.at = estate, free_ports()
        ports = Ports(broker=self.at["BASIC"], controller=self.at["CONTROLLER"], http=self.at["HTTP"])
        super().__init__(home, ports, node_properties(estate, self.at))

    @classmethod
    def beside(cls, node: "SecuredNode", ports: Ports) -> Self:
        """Another node of the same estate, whose process is none of ours: for clients to find its ports."""
        other = cls.__new__(cls)
        other.estate, other.at = node.estate, node.at | {"BASIC": ports.broker, "HTTP": ports.http}
        return other


def java_client(estate: Estate, protocol: str, **more: Any) -> str:
    """A --command-config: `key` and `trusted` name stores, `user`, `password` and `mechanism` are for SASL.

    `extra` are further properties.
    """
    text = f"security.protocol={protocol}\ndefault.api.timeout.ms=60000\nrequest.timeout.ms=60000\n"
    if "SSL" in protocol.split("_"):
        text += tls_properties(estate, more.get("key"), more.get("trusted", "trusted"))
    if user := more.get("user"):
        mechanism = more.get("mechanism", "PLAIN")
        module = PLAIN if mechanism == "PLAIN" else SCRAM
        word = more.get("password", PASSWORDS.get(user))
        text += f"sasl.mechanism={mechanism}\n"
        text += f'sasl.jaas.config={module} required username="{user}" password="{word}";\n'
    return text + more.get("extra", "")


def confluent_client(estate: Estate, port: int, protocol: str, **more: Any) -> dict[str, Any]:
    """The same for librdkafka."""
    config: dict[str, Any] = {"bootstrap.servers": f"localhost:{port}", "security.protocol": protocol, "log_level": 0}
    if "SSL" in protocol.split("_"):
        config["ssl.ca.location"] = str(estate.pem(more.get("trusted", "trusted")))
        if key := more.get("key"):
            config |= {"ssl.keystore.location": str(estate.store(key)), "ssl.keystore.password": STORE}
    if user := more.get("user"):
        config |= {"sasl.mechanism": more.get("mechanism", "PLAIN"), "sasl.username": user}
        config["sasl.password"] = more.get("password", PASSWORDS.get(user))
    return config | more.get("extra", {})
