"""Kafka's own kafka-acls and kafka-configs on aclog: they print and exit as on a real Kafka 4.3.1."""

import subprocess
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ListConsumerGroupsResult

from tests.support.cli.command import aclog
from tests.support.kafka import tools as kafka_tools
from tests.support.kafka.commands import COMMANDS
from tests.support.kafka.warm_jvms import ToolPipe
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports, password
from tests.support.processes.waiting import SECONDS, wait_until


def test_every_flag_is_tried_on_both_addresses() -> None:
    lines = [command.line for command in COMMANDS if command.tool == "acls"]
    flags = {word for line in lines for word in line.split() if word.startswith("--")}
    wanted = "add list remove force producer consumer idempotent transactional-id group topic cluster delegation-token"
    wanted += " user-principal resource-pattern-type allow-principal allow-host deny-principal deny-host operation"
    assert flags >= {f"--{name}" for name in f"{wanted} principal".split()}
    assert {command.to for command in COMMANDS} == {"broker", "controller", "nowhere"}
    assert len(kafka_tools.recorded()) == len(COMMANDS)


def test_a_difference_names_its_command() -> None:
    found = kafka_tools.recorded()
    found[3] = found[3] | {"code": 7}
    (text,) = kafka_tools.differences(kafka_tools.recorded(), found)
    assert found[3]["command"] in text
    assert "aclog: 7" in text


@pytest.mark.tier("test")
def test_they_print_on_aclog_what_they_print_on_kafka(tmp_path: Path) -> None:
    ports = Ports.free()
    with AclogNode(tmp_path, ports).format():
        texts = kafka_tools.differences(kafka_tools.recorded(), kafka_tools.Tools(ToolPipe(), ports, tmp_path).run())
        assert not texts, f"{len(texts)} differences\n" + "\n".join(texts)


ODD = "o'b\x1b[2J \u202e!$(touch x)é"
"""A name that steers a terminal, and a shell."""


@pytest.mark.parametrize("flag", ["--bootstrap-server", "--bootstrap-controller"])
def test_what_explain_advises_is_done_by_the_real_tool(tmp_path: Path, flag: str) -> None:
    """The command in the last line of an explanation, pasted into a bash, reverses the answer."""
    ports = Ports.free()
    with AclogNode(tmp_path, ports).format():
        port = ports.broker if flag == "--bootstrap-server" else ports.controller
        config = kafka_tools.client_properties(tmp_path, "admin")
        source = (flag, f"localhost:{port}", "--command-config", config)
        asked = ("--principal", f"User:{ODD}", "--operation", "READ", "--topic", ODD)
        for expected in (0, 1):
            assert aclog("authorize", *source, *asked).code == 1 - expected
            explained = aclog("explain", *source, *asked)
            assert explained.code == 1 - expected
            line = explained.lines[-1]
            assert line.isprintable()
            words = _words_of_bash(line.strip())
            assert words[:3] == ["kafka-acls.sh", flag, f"localhost:{port}"]
            printed = ToolPipe().run(kafka_tools.MAINS["acls"], words[1:])
            assert printed.code == 0, printed
            assert ODD in printed.out
            wait_until(lambda: aclog("authorize", *source, *asked).code == expected, "another answer")  # noqa: B023


def _words_of_bash(line: str) -> list[str]:
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True, env={"LC_ALL": "C"}
    )
    return done.stdout.decode().split("\0")[:-1]


def test_what_aclog_does_not_have_is_refused_in_words(tmp_path: Path) -> None:
    """AlterClientQuotas, DescribeConfigs and ListGroups, as administration tools ask them."""
    configs, groups = "kafka.admin.ConfigCommand", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    quota = ("--alter", "--entity-type", "users", "--entity-name", "bob", "--add-config", "producer_byte_rate=1024")
    asked = (
        (configs, ("--describe", "--entity-type", "brokers", "--entity-name", "1"), "no dynamic configuration"),
        (configs, quota, "enforces no client quotas"),
        (groups, ("--list",), "UnsupportedVersionException: Error listing groups"),
    )
    ports = Ports.free()
    with AclogNode(tmp_path, ports).format():
        client = kafka_tools.client_properties(tmp_path, "admin")
        at = ["--bootstrap-server", f"127.0.0.1:{ports.broker}", "--command-config", str(client)]
        for main, arguments, text in asked:
            printed = ToolPipe().run(main, [*at, *arguments])
            assert text in printed.out + printed.err, printed
        config, listed = asked_by_confluent(ports.broker)
        assert config.code() == KafkaError.UNSUPPORTED_VERSION
        assert "no dynamic configuration" in config.str()
        assert [each.code() for each in listed.errors] == [KafkaError.UNSUPPORTED_VERSION]
        assert listed.valid == []


def asked_by_confluent(port: int) -> tuple[KafkaError, ListConsumerGroupsResult]:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "admin"}
    client = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", **login, "sasl.password": password("admin")})
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    with pytest.raises(KafkaException) as refused:
        client.describe_configs([resource], request_timeout=SECONDS)[resource].result(SECONDS)
    return refused.value.args[0], client.list_consumer_groups(request_timeout=SECONDS).result(SECONDS)
