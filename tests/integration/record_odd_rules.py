"""Records what a real Kafka 4.3.1 does on a log that holds a rule which only a record can hold.

    python -m tests.integration.record_odd_rules

`aclog import --keep-odd-rules` puts one such rule into a copy of the fixture's log, a Kafka starts on it, and each kind
of request is asked: tests/data/kafka-4.3.1-admin/odd-rules.json, the error code of each (0 is none).
"""

import asyncio
import json
import tempfile
from collections.abc import Awaitable
from pathlib import Path

from attrs import evolve

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.client.requests import create_acls, delete_acls, describe_acls
from aclog.protocol.headers import RequestError
from aclog.sources.live import connect_to_first
from aclog.sources.server_flags import client_security, parse_servers
from tests.integration.conftest import CONTROLLER_PORT, SMALL
from tests.support.builders.acls import acl, acl_row
from tests.support.cli.command import aclog
from tests.support.kafka.jvm import ROOT
from tests.support.kafka.server import ADMIN, AdminClient, KafkaError, KafkaServer, copy_of, free_port, with_properties
from tests.support.models.golden import acl_of

RECORDED = ROOT / "tests" / "data" / "kafka-4.3.1-admin" / "odd-rules.json"
PLAIN = acl_row("zz", principal="User:u")
ODD = [
    PLAIN,
    *(PLAIN | {"resourceType": name} for name in ("ANY", "UNKNOWN")),
    *(PLAIN | {"patternType": name} for name in ("ANY", "MATCH", "UNKNOWN")),
    *(PLAIN | {"operation": name} for name in ("ANY", "UNKNOWN")),
    *(PLAIN | {"permissionType": name} for name in ("ANY", "UNKNOWN")),
    PLAIN | {"resourceType": "CLUSTER", "resourceName": "foo"},
    PLAIN | {"resourceName": ""},
    PLAIN | {"resourceName": "", "patternType": "PREFIXED"},
    PLAIN | {"principal": "u"},
]
"""A rule that a request can create, then the odd ones."""


def main() -> None:
    """Ask one Kafka for each rule, and write what they answered."""
    recorded = [{"rule": row, "answers": answers(row)} for row in ODD]
    RECORDED.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def answers(row: dict[str, str]) -> dict[str, int | str]:
    """Start a Kafka on the fixture's log and this rule, and ask it."""
    home, port = Path(tempfile.mkdtemp(prefix="aclog-odd-")), free_port()
    directory = copy_of(SMALL, home)
    stdin = (json.dumps(row) + "\n").encode()
    aclog("import", "-", "--log", directory, "--force", "--keep-odd-rules", stdin=stdin).ok()
    listeners = f"SASL_PLAINTEXT://localhost:{port},CONTROLLER://localhost:{CONTROLLER_PORT}"
    properties = (SMALL / "expected" / "server.properties").read_text(encoding="utf-8")
    properties = with_properties(properties, listeners=listeners, advertised_listeners=listeners)
    config = home / "client.properties"
    login = "".join(f"{key}={value}\n" for key, value in ADMIN.items()).replace("{user}", "admin")
    config.write_text(login, encoding="utf-8")
    with KafkaServer(home, properties, port=port), AdminClient(port, "alice") as alice:
        try:  # alice may create topics, but for what is asked of the topic's own rules
            alice("createTopic", topic="zz")
            found: dict[str, int | str] = {"decide": 0}
        except KafkaError as error:
            found = {"decide": str(error).partition(": ")[2].partition(":")[0]}
        return asyncio.run(asked(port, config, acl_of(row))) | found


async def asked(port: int, config: Path, rule: StandardAcl) -> dict[str, int | str]:
    """List and remove rules, all, others and this one; and create one."""
    other = AclBindingFilter(
        resource_type=ResourceType.TOPIC, resource_name="nobody-has-it", pattern_type=PatternType.LITERAL
    )
    this = AclBindingFilter(principal=rule.principal)
    servers, security = parse_servers("--bootstrap-server", f"localhost:{port}"), client_security(config)
    async with await connect_to_first(servers, security) as connection:
        return {
            "create": await code(create_acls(connection, [acl("new", "User:new")])),
            "listAll": await code(describe_acls(connection, AclBindingFilter())),
            "listOther": await code(describe_acls(connection, other)),
            "removeOther": await code(delete_acls(connection, [evolve(other, resource_name="nor-this")])),
            "remove": await code(delete_acls(connection, [this])),
            "listAfterwards": await code(describe_acls(connection, AclBindingFilter())),
        }


async def code(asking: Awaitable[list]) -> int:
    """The error code of a request, or of its one result."""
    try:
        errors = [getattr(result, "error", None) for result in await asking]
    except RequestError as error:
        return error.code
    return next((error.code for error in errors if error is not None), 0)


if __name__ == "__main__":
    main()
