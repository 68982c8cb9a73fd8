"""The same script of admin requests against a real Kafka 4.3.1 and against aclog: the same answers, the same ACLs."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.admin import script as admin_script
from tests.support.admin.steps import steps
from tests.support.kafka.real_node import RealNode
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


@pytest.mark.slow(25)
@pytest.mark.timeout(300)
def test_both_answer_alike(tmp_path: Path) -> None:
    """Both live, at the same time; and the real Kafka answers what it did when the golden file was made."""
    kafka, aclog = Ports.free(), Ports.free()
    with (
        RealNode(tmp_path / "kafka", kafka).format(),
        AclogNode(tmp_path / "aclog", aclog).format(),
        ThreadPoolExecutor() as threads,
    ):
        wanted, found = (threads.submit(admin_script.run_script, ports) for ports in (kafka, aclog))
        assert admin_script.differences(admin_script.recorded(), wanted.result()) == []
        texts = admin_script.differences(wanted.result(), found.result())
        assert not texts, f"{len(texts)} steps differ\n" + "\n".join(texts)
