"""A real Kafka, 4.3.1 and 4.4.0, hides the values of its settings, and no command takes them for the defaults."""

import asyncio
import json
from pathlib import Path

import pytest

import aclog as library
from aclog.authorizer.standard import READ_CONFIGS
from aclog.client.connection import connect
from aclog.config.client_config import load_client_security
from aclog.config.node_config import HostPort
from aclog.protocol.api_keys import DESCRIBE_CONFIGS
from aclog.protocol.messages import build
from tests.support.cli.command import aclog
from tests.support.kafka.jvm import KAFKA_44, KAFKA_VERSION
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import KafkaServer, with_properties
from tests.support.kafka.tools import client_properties
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import ADMIN_SCRAM, CLUSTER_ID, Ports, server_properties

SETTINGS = {"allow.everyone.if.no.acl.found": "true", "super.users": "User:admin;User:bob"}
GIVEN = ("--super-users", SETTINGS["super.users"], "--allow-everyone-if-no-acl-found")
UNKNOWN = ["super.users", "allow.everyone.if.no.acl.found"]
BOB = ("--principal", "User:bob", "--operation", "READ", "--topic", "orders")
CAROL = ("--principal", "User:carol", "--operation", "READ", "--group", "g")
ALICE = ("--principal", "User:alice", "--operation", "READ", "--topic", "orders")


def properties(ports: Ports) -> str:
    return server_properties(ports, **SETTINGS)


@pytest.fixture(scope="module", params=[KAFKA_VERSION, KAFKA_44])
def node(request, tmp_path_factory):
    home, ports = tmp_path_factory.mktemp("live"), Ports.free()
    with RealNode(home / "kafka", ports, properties(ports), version=request.param).format():
        config = client_properties(home, "admin")
        place = ("--bootstrap-server", f"localhost:{ports.broker}", "--command-config", config)
        for rule in (
            ("--allow-principal", "User:alice", "--operation", "READ", "--topic", "orders"),
            ("--allow-principal", "User:alice", "--operation", "DESCRIBE", "--cluster"),
            ("--deny-principal", "User:dave", "--operation", "ALL", "--topic", "shut"),
        ):
            aclog("acls", "add", *place, *rule).ok()
        yield home, ports


@pytest.fixture(params=["server", "controller"])
def live(request, node):
    home, ports = node
    port = ports.broker if request.param == "server" else ports.controller
    place = (f"--bootstrap-{request.param}", f"localhost:{port}", "--command-config", client_properties(home, "admin"))
    return lambda *words: aclog(*words, *place)


def unknown(result) -> list[str]:
    return [text for text in UNKNOWN if f"note: {text} is unknown: " in result.err]


@pytest.mark.sample(2)
@pytest.mark.tier("test")
def test_each_command_says_what_is_unknown_and_proves_nothing(live, tmp_path):
    bob, carol = live("authorize", *BOB), live("authorize", *CAROL)  # Kafka allows both
    for found in (bob, carol, live("explain", *BOB)):
        assert found.out.startswith("DENIED unless ")
        assert unknown(found) == UNKNOWN
    assert "--super-users" in bob.out
    assert "--allow-everyone-if-no-acl-found" not in bob.out  # there is an ACL on the topic
    assert "--allow-everyone-if-no-acl-found" in carol.out
    assert live("authorize", *ALICE).ok().out.startswith("ALLOWED MatchingAcl")

    for check in (
        ("no-public",),
        ("not-granted", "--operation", "WRITE", "--topic", "orders"),
        ("only", "--operation", "READ", "--topic", "orders", "--principal", "User:alice"),
    ):
        found = live("check", *check, "--format", "jsonl")
        assert found.code == 1
        head = json.loads(found.lines[0])
        assert head["verdict"] == "UNKNOWN"
        assert [each["name"] for each in head["premises"]] == UNKNOWN
    refuted = live("check", "not-granted", "--operation", "READ", "--topic", "orders")
    assert (refuted.code, refuted.out.split(":")[0]) == (1, "REFUTED")

    assert live("who-can", "--operation", "READ", "--topic", "orders").ok().lines[-1].startswith("and more if ")
    assert live("what-can", "--principal", "User:zoe").ok().out.startswith("nothing unless ")

    file = tmp_path / "rules.yaml"
    file.write_text('tests:\n- {name: t, principal: "User:bob", cannot: {READ: ["topic:orders"]}}\n', encoding="utf-8")
    tested = live("test", file)
    assert tested.code == 1
    assert "not proven: it fails if" in tested.out
    assert unknown(live("lint")) == UNKNOWN

    rules = tmp_path / "rules.jsonl"
    rules.write_text(live("acls", "list", "--format", "jsonl").ok().out, encoding="utf-8")
    assert live("check", "equal", "--to-acls", rules).code == 0  # whatever the settings are, both have them
    kept = [line for line in rules.read_text(encoding="utf-8").splitlines() if '"shut"' not in line]
    rules.write_text("\n".join(kept) + "\n", encoding="utf-8")
    for words in (("check", "equal"), ("check", "no-new-access"), ("diff",)):
        found = live(*words, "--to-acls", rules)  # the topic may be open to all without its DENY
        assert found.code == 1
        assert "unless a resource without ACLs is open to everyone" in found.out


def test_a_plan_says_what_depends_on_it(node, tmp_path):
    home, ports = node
    config = client_properties(home, "admin")
    place = ("--bootstrap-server", f"localhost:{ports.broker}", "--command-config", config)
    revoked = aclog("revoke", *place, "--principal", "User:alice", "--intent", "produce", "--topic", "orders")
    assert unknown(revoked) == UNKNOWN[:1]
    assert "still allowed if the principal is a super user (--super-users USERS)" in revoked.out
    assert "still allowed if names without ACLs are open" not in revoked.out  # others have rules there
    change, journal = tmp_path / "change.jsonl", tmp_path / "journal"
    rule = {"resourceType": "TOPIC", "resourceName": "shut", "patternType": "LITERAL", "principal": "User:dave",
            "host": "*", "operation": "ALL", "permissionType": "DENY"}  # fmt: skip
    change.write_text(json.dumps({"action": "REMOVE", "rule": rule}) + "\n", encoding="utf-8")
    planned = ("plan", *place, "--change", change, "--journal", journal, "--adopt")
    found = aclog(*planned)
    assert "GAINED  everyone" in found.out  # if names without rules are open, as they are here
    assert "allow.everyone.if.no.acl.found is unknown" in found.out
    closed = aclog(*planned, "--no-allow-everyone-if-no-acl-found", "--super-users", "")
    assert "no difference: every request is decided the same\n" in closed.out
    assert "no effect: the access it denied is not allowed anyway" in closed.out


def described(address: HostPort, node_id: int, config: Path) -> dict[str, dict[str, object]]:
    """What a node answers to DescribeConfigs about itself."""

    async def ask():
        async with await connect(address, load_client_security(config)) as connection:
            asked = build(
                *(DESCRIBE_CONFIGS, 4, "request", "DescribeConfigsResource"),
                resource_type=4, resource_name=str(node_id), configuration_keys=READ_CONFIGS,
            )  # fmt: skip
            return await connection.ask(build(DESCRIBE_CONFIGS, 4, "request", resources=(asked,)))

    [result] = asyncio.run(ask()).results
    assert result.error_code == 0
    return {
        each.name: {key: getattr(each, key) for key in ("value", "read_only", "config_source", "is_sensitive")}
        for each in result.configs
    }


def test_a_node_of_ours_answers_as_a_kafka_but_shows_its_values(node, tmp_path):
    home, ports = node
    own = Ports.free()
    config = client_properties(home, "admin")
    with AclogNode(tmp_path / "aclog", own, properties(own)).format():
        for kafkas, ours in ((ports.broker, own.broker), (ports.controller, own.controller)):
            theirs = described(HostPort(host="localhost", port=kafkas), 1, config)
            found = described(HostPort(host="localhost", port=ours), 1, config)
            assert found.keys() == theirs.keys() == {*SETTINGS, "authorizer.class.name"}
            for name, each in found.items():
                if name in SETTINGS:
                    assert theirs[name].pop("value") is None
                    assert each.pop("value") == SETTINGS[name]
                    assert (theirs[name].pop("is_sensitive"), each.pop("is_sensitive")) == (True, False)
                assert each == theirs[name]
        for place in (
            ("--bootstrap-server", f"localhost:{own.broker}"),
            ("--bootstrap-controller", f"localhost:{own.controller}"),
        ):
            asked = ("check", "no-public", *place, "--command-config", config)
            told = aclog(*asked)
            assert (told.code, unknown(told)) == (1, UNKNOWN)
            assert " 1 it is 'User:admin;User:bob', which no flag or context sets" in told.err
            given = aclog(*asked, *GIVEN)
            assert (given.code, given.err) == (1, "")  # refuted, by what is known


def test_what_is_given_is_not_asked_for_and_the_answers_are_kafkas(live):
    for request, rule in ((BOB, "SuperUser"), (CAROL, "DefaultAllow")):
        found = live("authorize", *request, *GIVEN)
        assert (found.code, found.out, found.err) == (0, f"ALLOWED {rule}\n", "")
    public = live("check", "no-public", *GIVEN)
    assert (public.code, public.out.split(":")[0], public.err) == (1, "REFUTED", "")


def test_the_library_has_the_premises_with_its_answers(node):
    home, ports = node
    with library.open_log(
        bootstrap_server=f"localhost:{ports.broker}", command_config=client_properties(home, "admin")
    ) as log:
        image = log.image()
        answer = image.authorizer().check("User:bob", "READ", "orders")
        assert not answer
        assert answer.premises.names == ("super.users",)
        assert str(answer).startswith("DENIED unless the principal is a super user (--super-users USERS): ")
        assert answer.to_dict()["premises"][0]["name"] == "super.users"
        known = image.authorizer(super_users="User:bob", allow_everyone_if_no_acl_found=True)
        assert not known.premises
        assert known.check("User:bob", "READ", "orders")


def test_a_login_without_the_right_is_told_which_one_it_needs(node):
    home, ports = node
    place = ("--bootstrap-server", f"localhost:{ports.broker}", "--command-config", client_properties(home, "alice"))
    found = aclog("check", "no-public", *place)
    assert found.code == 1
    assert "cannot be read on broker 1: the user of --command-config needs DESCRIBE_CONFIGS on the cluster" in found.err


def without_authorizer(text: str) -> str:
    kept = (line for line in text.splitlines() if not line.startswith(("authorizer.class.name", "super.users")))
    return "\n".join(kept) + "\n"


def test_a_cluster_without_an_authorizer_denies_nothing(tmp_path: Path) -> None:
    ports = Ports.free()
    config = client_properties(tmp_path, "admin")
    with RealNode(tmp_path / "kafka", ports, without_authorizer(server_properties(ports))).format():
        for place in (
            ("--bootstrap-server", f"localhost:{ports.broker}"),
            ("--bootstrap-controller", f"localhost:{ports.controller}"),
        ):
            for words in (("authorize", *BOB), ("explain", *BOB), ("check", "no-public")):
                found = aclog(*words, *place, "--command-config", config)
                assert (found.code, found.out) == (2, "")
                assert "a cluster without authorizer.class.name has no ACLs" in found.err


def test_a_controller_answers_for_no_broker_that_is_another_process(tmp_path: Path) -> None:
    ports = Ports.free()
    config, text = client_properties(tmp_path, "admin"), server_properties(ports)
    controller = with_properties(
        "\n".join(line for line in text.splitlines() if not line.startswith(("inter.broker", "advertised"))),
        process_roles="controller",
        listeners=f"CONTROLLER://localhost:{ports.controller}",
    )
    place = f"SASL_PLAINTEXT://localhost:{ports.broker}"
    broker = with_properties(text, process_roles="broker", node_id="2", listeners=place, advertised_listeners=place)
    for name in ("controller", "broker"):
        (tmp_path / name).mkdir()
    first = KafkaServer(tmp_path / "controller", controller, port=ports.controller)
    second = KafkaServer(tmp_path / "broker", broker, port=ports.broker)
    first.format(CLUSTER_ID, "--standalone", "--add-scram", ADMIN_SCRAM)
    second.format(CLUSTER_ID)
    with first, second:
        asked = ("check", "no-public", "--command-config", config)
        found = aclog(*asked, "--bootstrap-controller", f"localhost:{ports.controller}")
        assert (found.code, unknown(found)) == (1, UNKNOWN)
        assert "broker 2: a controller does not return the settings of a broker in another process" in found.err
        told = aclog(*asked, "--bootstrap-server", f"localhost:{ports.broker}")
        assert unknown(told) == UNKNOWN[:1]  # the other one is not set
