"""Admin clients of other makes, confluent-kafka's and kafka-python's, doing the same small script on any node.

    python -m tests.support.admin.client_scripts --record   # on a real Kafka; writes the golden file
    python -m tests.support.admin.client_scripts --aclog    # on aclog; prints the differences

Create, describe and delete ACLs, good and bad; SCRAM users; what the cluster is. An outcome is a value, or the error.
"""

import argparse
import contextlib
import gc
import json
import logging
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import confluent_kafka.admin as cka

from tests.support.kafka.jvm import ROOT
from tests.support.kafka.real_node import RealNode
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.barrier import Barrier
from tests.support.nodes.server_properties import Ports, password

with warnings.catch_warnings():  # kafka-python reads its schemas in a way that is deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    import kafka.admin as kpa

GOLDEN = ROOT / "tests" / "data" / "kafka-4.3.1-admin" / "clients.json"
SECONDS = 30
RULES = [
    ("TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW"),
    ("TOPIC", "orders.", "PREFIXED", "User:alice", "*", "WRITE", "ALLOW"),
    ("GROUP", "*", "LITERAL", "User:bob", "10.0.0.1", "ALL", "DENY"),
    ("CLUSTER", "kafka-cluster", "LITERAL", "User:alice", "*", "DESCRIBE", "ALLOW"),
    ("TRANSACTIONAL_ID", "tx", "LITERAL", "User:päul", "*", "WRITE", "ALLOW"),
]
BAD_RULES = [
    ("TOPIC", "", "LITERAL", "User:alice", "*", "READ", "ALLOW"),
    ("TOPIC", "x", "LITERAL", "alice", "*", "READ", "ALLOW"),
    ("CLUSTER", "another", "LITERAL", "User:alice", "*", "ALTER", "ALLOW"),
]
FILTERS = [
    ("ANY", None, "ANY", None, None, "ANY", "ANY"),
    ("TOPIC", "orders.eu", "MATCH", None, None, "ANY", "ANY"),
    ("TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW"),
    ("GROUP", None, "ANY", None, None, "ANY", "DENY"),
    ("TOPIC", "nothing", "ANY", None, None, "ANY", "ANY"),
]
Row = tuple[str | None, ...]


class Confluent:
    """confluent-kafka's AdminClient (librdkafka)."""

    def __init__(self, port: int, user: str) -> None:
        self._admin = cka.AdminClient(
            {
                "bootstrap.servers": f"localhost:{port}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": user,
                "sasl.password": password(user),
                "log_level": 0,
            }
        )

    def close(self) -> None:
        """It has nothing to close."""

    def _binding(self, kind: type, row: Row) -> Any:
        resource, name, pattern, principal, host, operation, permission = row
        return kind(
            cka.ResourceType["BROKER" if resource == "CLUSTER" else resource],
            name,
            cka.ResourcePatternType[pattern],
            principal,
            host,
            cka.AclOperation[operation],
            cka.AclPermissionType[permission],
        )

    def _row(self, binding: Any) -> list[str]:
        resource, pattern = binding.restype.name, binding.resource_pattern_type.name
        names = [binding.operation.name, binding.permission_type.name]
        return [resource, binding.name, pattern, binding.principal, binding.host, *names]

    def create(self, row: Row) -> Any:
        (future,) = self._admin.create_acls([self._binding(cka.AclBinding, row)], request_timeout=SECONDS).values()
        return future.result()

    def describe(self, row: Row) -> Any:
        bindings = self._admin.describe_acls(self._binding(cka.AclBindingFilter, row), request_timeout=SECONDS).result()
        return sorted(self._row(binding) for binding in bindings)

    def delete(self, row: Row) -> Any:
        acl_filter = self._binding(cka.AclBindingFilter, row)
        (future,) = self._admin.delete_acls([acl_filter], request_timeout=SECONDS).values()
        return sorted(self._row(binding) for binding in future.result())

    def upsert(self, user: str, mechanism: int, iterations: int) -> Any:
        info = cka.ScramCredentialInfo(cka.ScramMechanism(mechanism), iterations)
        return self._alter(cka.UserScramCredentialUpsertion(user, info, b"secret", b"salt-of-script"))

    def remove(self, user: str, mechanism: int) -> Any:
        return self._alter(cka.UserScramCredentialDeletion(user, cka.ScramMechanism(mechanism)))

    def _alter(self, alteration: Any) -> Any:
        (future,) = self._admin.alter_user_scram_credentials([alteration], request_timeout=SECONDS).values()
        return future.result()

    def users(self) -> Any:
        descriptions = self._admin.describe_user_scram_credentials(request_timeout=SECONDS).result()
        return {
            user: sorted([int(info.mechanism.value), info.iterations] for info in about.scram_credential_infos)
            for user, about in sorted(descriptions.items())
        }

    def cluster(self) -> Any:
        answer = self._admin.describe_cluster(include_authorized_operations=True, request_timeout=SECONDS).result()
        operations = sorted(operation.name for operation in answer.authorized_operations)
        topics = sorted(self._admin.list_topics(timeout=SECONDS).topics)
        return [answer.cluster_id, answer.controller.id, [node.id for node in answer.nodes], operations, topics]

    @staticmethod
    def error(error: Exception) -> str:
        if not isinstance(error, ck.KafkaException):
            return f"{type(error).__name__}: {error}"
        return f"{error.args[0].name()}: {error.args[0].str()}"


class KafkaPython:
    """kafka-python's KafkaAdminClient."""

    ERROR = kafka.errors.KafkaError
    """The base class of what it raises."""

    def __init__(self, port: int, user: str) -> None:
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self._admin = kafka.KafkaAdminClient(
            bootstrap_servers=f"localhost:{port}",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username=user,
            sasl_plain_password=password(user),
            request_timeout_ms=SECONDS * 1000,
        )

    def close(self) -> None:
        """Close its connections; those that were refused it forgets to close."""
        self._admin.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del self._admin
            gc.collect()

    def _binding(self, row: Row, *, asks: bool) -> Any:
        resource, name, pattern, principal, host, operation, permission = row
        place = (kpa.ResourcePatternFilter if asks else kpa.ResourcePattern)(
            kpa.ResourceType[resource], name, kpa.ACLResourcePatternType[pattern]
        )
        kind = kpa.ACLFilter if asks else kpa.ACL
        return kind(principal, host, kpa.ACLOperation[operation], kpa.ACLPermissionType[permission], place)

    def _row(self, acl: Any) -> list[str]:
        place = acl.resource_pattern
        names = [place.resource_type.name, place.resource_name, place.pattern_type.name]
        return [*names, acl.principal, acl.host, acl.operation.name, acl.permission_type.name]

    def create(self, row: Row) -> Any:
        outcome = self._admin.create_acls([self._binding(row, asks=False)])
        if outcome["failed"]:
            raise outcome["failed"][0]

    def describe(self, row: Row) -> Any:
        acls, error = self._admin.describe_acls(self._binding(row, asks=True))
        if error is not kafka.errors.NoError:
            raise error
        return sorted(self._row(acl) for acl in acls)

    def delete(self, row: Row) -> Any:
        ((_, acls, error),) = self._admin.delete_acls([self._binding(row, asks=True)])
        if error is not kafka.errors.NoError:
            raise error
        return sorted(self._row(acl) for acl in acls)

    def upsert(self, user: str, mechanism: int, iterations: int) -> Any:
        upsertion = kpa.UserScramCredentialUpsertion(
            user, kpa.ScramMechanism(mechanism), "secret", iterations=iterations, salt=b"salt-of-script"
        )
        return self._alter(upsertion)

    def remove(self, user: str, mechanism: int) -> Any:
        return self._alter(kpa.UserScramCredentialDeletion(user, kpa.ScramMechanism(mechanism)))

    def _alter(self, alteration: Any) -> Any:
        results = self._admin.alter_user_scram_credentials([alteration])
        return {user: error and neutral(error) for user, error in results.items()}

    def users(self) -> Any:
        return {
            user: sorted([int(info["mechanism"].value), info["iterations"]] for info in about["credential_infos"])
            for user, about in sorted(self._admin.describe_user_scram_credentials().items())
        }

    def cluster(self) -> Any:
        description = self._admin.describe_cluster()
        nodes = [node.get("node_id", node.get("broker_id")) for node in description["brokers"]]
        return [description["cluster_id"], description["controller_id"], nodes, sorted(self._admin.list_topics())]

    @staticmethod
    def error(error: Exception) -> str:
        return f"{type(error).__name__}: {error}"


CLIENTS = {"confluent-kafka": Confluent, "kafka-python": KafkaPython}


def outcomes(make: type[Confluent] | type[KafkaPython], ports: Ports) -> list[list[Any]]:
    """What came of each call: its name and arguments, and the value or the error."""
    calls: list[list[Any]] = []
    with contextlib.closing(make(ports.broker, "admin")) as admin, contextlib.closing(Barrier(ports)) as barrier:

        def call(what: Callable[..., Any], *arguments: Any) -> None:
            barrier.wait(leave_nothing=True)
            try:
                value = what(*arguments)
            except (ck.KafkaException, kafka.errors.KafkaError, ValueError) as error:
                value = neutral(make.error(error))
            calls.append([what.__name__, *arguments, value])

        for row in (*RULES, *BAD_RULES, RULES[0]):
            call(admin.create, row)
        for row in FILTERS:
            call(admin.describe, row)
        for user, mechanism, iterations in (("sue", 1, 4096), ("sue", 2, 8192), ("few", 1, 100), ("", 1, 4096)):
            call(admin.upsert, user, mechanism, iterations)
        call(admin.users)
        for user, mechanism in (("sue", 1), ("sue", 1), ("nobody", 2)):
            call(admin.remove, user, mechanism)
        call(admin.users)
        call(admin.cluster)
        with contextlib.closing(make(ports.broker, "dave")) as dave:
            call(dave.create, RULES[0])
            call(dave.describe, FILTERS[0])
            call(dave.delete, FILTERS[0])
            call(dave.remove, "sue", 2)
        for row in FILTERS[1:]:
            call(admin.delete, row)
        call(admin.describe, FILTERS[0])
        call(admin.delete, FILTERS[0])
        call(admin.remove, "sue", 2)
    return json.loads(json.dumps(calls))


def neutral(text: str) -> str:
    """Kafka's own request object by one name; librdkafka cuts the message after 512 bytes, within that object."""
    return re.sub(r"Request Request\(.*", "Request Request(...)", text)


def recorded() -> dict[str, list[list[Any]]]:
    """What came of it on the real Kafka, by client."""
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


def differences(expected: list[list[Any]], actual: list[list[Any]]) -> list[str]:
    """One text for each call with another outcome."""
    assert [row[:-1] for row in expected] == [row[:-1] for row in actual], "record the golden file again"
    pairs = zip(expected, actual, strict=True)
    return [f"{a[:-1]}\n  kafka: {a[-1]}\n  aclog: {b[-1]}" for a, b in pairs if a != b]


def main() -> None:
    """Record, or compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--aclog", action="store_true")
    flags = parser.parse_args()
    home, ports = Path(tempfile.mkdtemp(prefix="aclog-clients-")), Ports.free()
    with (AclogNode if flags.aclog else RealNode)(home, ports).format():
        calls = {name: outcomes(make, ports) for name, make in CLIENTS.items()}
    if flags.record:
        lines = [f"{json.dumps(name)}: [\n{_rows(rows)}\n]" for name, rows in calls.items()]
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return
    texts = [f"{name} {text}" for name in CLIENTS for text in differences(recorded()[name], calls[name])]
    print("\n".join(texts))
    sys.exit(f"{len(texts)} differences; output in {home}" if texts else 0)


def _rows(rows: list[list[Any]]) -> str:
    return ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


if __name__ == "__main__":
    main()
