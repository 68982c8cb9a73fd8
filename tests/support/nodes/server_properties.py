"""The server.properties that starts a real Kafka and aclog alike: a controller and a broker in one process."""

from typing import Self

from attrs import frozen

from tests.support.kafka.server import free_port, with_properties

CLUSTER_ID = "c2FtZS1zY3JpcHQtMDAwMQ"
USERS = ("admin", "alice", "bob", "carol", "dave")
"""Who may log in by PLAIN, on both listeners; `admin` is the super user. A password is the name and `-secret`."""
ADMIN_SCRAM = "SCRAM-SHA-256=[name=admin,iterations=4096,password=admin-secret]"
"""What --add-scram of the format command takes."""
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@frozen(kw_only=True)
class Ports:
    """The TCP ports of a node on 127.0.0.1: its two listeners, and aclog's /readyz."""

    broker: int
    controller: int
    http: int

    @classmethod
    def free(cls) -> Self:
        """Ports that nobody listens on now, all different."""
        ports: list[int] = []
        while len(ports) < 3:
            if (port := free_port()) not in ports:
                ports.append(port)
        return cls(broker=ports[0], controller=ports[1], http=ports[2])


def password(user: str) -> str:
    """How a user of `USERS` logs in."""
    return f"{user}-secret"


def server_properties(ports: Ports, **changes: str) -> str:
    """The text; `changes` are keys with dots as underscores."""
    places = f"SASL_PLAINTEXT://localhost:{ports.broker},CONTROLLER://localhost:{ports.controller}"
    login = 'required username="admin" password="admin-secret"'
    users = " ".join(f'user_{user}="{password(user)}"' for user in USERS)
    text = f"""\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:{ports.controller}
listeners={places}
advertised.listeners={places}
controller.listener.names=CONTROLLER
listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT
inter.broker.listener.name=SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.controller.sasl.enabled.mechanisms=PLAIN
sasl.mechanism.controller.protocol=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={PLAIN} {login} {users};
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config={SCRAM} {login};
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config={SCRAM} {login};
listener.name.controller.plain.sasl.jaas.config={PLAIN} {login} {users};
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin
log.dirs=data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
metadata.max.idle.interval.ms=5000
connection.failed.authentication.delay.ms=10
aclog.http.listener=127.0.0.1:{ports.http}
"""
    return with_properties(text, **changes)
