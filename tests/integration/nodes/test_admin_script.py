"""The script of admin requests on aclog: the answers that a real Kafka 4.3.1 gave to the same requests."""

from pathlib import Path

import pytest

from tests.support.admin import script as admin_script
from tests.support.admin.steps import steps
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports


def test_the_script_is_long_enough_and_the_same_each_time() -> None:
    assert steps() == steps()
    assert sum(len(step.sends) for step in steps()) >= 900
    assert len(admin_script.recorded()) == len(steps())


def test_a_difference_names_its_request() -> None:
    found = admin_script.recorded()
    found[700] = found[700] | {"answers": ["closed"]}
    (text,) = admin_script.differences(admin_script.recorded(), found)
    assert found[700]["step"] in text
    assert 'aclog: ["closed"]' in text


@pytest.mark.slow(5)
def test_aclog_answers_as_kafka_did(tmp_path: Path) -> None:
    ports = Ports.free()
    with AclogNode(tmp_path, ports).format():
        texts = admin_script.differences(admin_script.recorded(), admin_script.run_script(ports))
        assert not texts, f"{len(texts)} steps differ\n" + "\n".join(texts)
