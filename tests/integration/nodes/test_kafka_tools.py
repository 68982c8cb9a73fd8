"""Kafka's own kafka-acls and kafka-configs on aclog: they print and exit as on a real Kafka 4.3.1."""

from pathlib import Path

import pytest

from tests.support.kafka import tools as kafka_tools
from tests.support.kafka.commands import COMMANDS
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports


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


@pytest.mark.timeout(300)
def test_they_print_on_aclog_what_they_print_on_kafka(tmp_path: Path) -> None:
    ports = Ports.free()
    with AclogNode(tmp_path, ports).format(), kafka_tools.ToolPipe() as pipe:
        texts = kafka_tools.differences(kafka_tools.recorded(), kafka_tools.Tools(pipe, ports, tmp_path).run())
        assert not texts, f"{len(texts)} differences\n" + "\n".join(texts)
