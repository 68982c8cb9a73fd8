"""The same configurations, JAAS lines and names, read by us and by a real Kafka 4.3.1."""

import pytest

from aclog.config.node_config import NodeConfig
from aclog.config.security import parse_jaas
from aclog.config.server_properties import KNOWN_KEYS, parse_config
from aclog.metalog.errors import ConfigError
from tests.support.kafka.configs import ask
from tests.support.nodes.node_properties import CASES, changed

pytestmark = pytest.mark.server

JAAS_LINES = (
    'a.b.Module required username="admin" password="admin-secret";',
    "a.b.Module REQUIRED;",
    "a.b.Module required a=b c='d e';",
    'a.b.Module required a="b\\"c\\\\d\\n\\101\\7z\\q" user_x-1="";',
    'a.b.Module optional\n  a="1" // said\n  /* and\n more */ b="2"\n;',
    'M$1 sufficient _a="x" a.b="y";',
    'a.b.Module required "quoted name"="x";',
    'a.b.Module required a="x" a="y";',
    'a.b.Module required a="caf\u00e9";',
    "",
    ";",
    "a.b.Module",
    "a.b.Module;",
    "a.b.Module maybe;",
    "a.b.Module required",
    'a.b.Module required a="x"',
    "a.b.Module required a;",
    "a.b.Module required a=;",
    "a.b.Module required a=12;",
    "a.b.Module required a=-1;",
    'a.b.Module required a = "x" , b="y";',
    'a.b.Module required a="x"; c.d.Module required;',
    'a.b.Module required a="x";;',
)


def described(config: NodeConfig) -> dict:
    """What the Java side reports of a KafkaConfig."""
    return {
        "nodeId": config.node_id,
        "metadataLogDir": str(config.metadata_log_dir),
        "logDirs": [str(directory) for directory in config.log_dirs],
        "early": sorted(listener.name for listener in config.listeners if listener.early_start),
        "listeners": [
            f"{listener.name} {listener.security_protocol.value} {listener.bind.host} {listener.bind.port}"
            for listener in config.listeners
        ],
    }


def advertised(config: NodeConfig) -> dict[str, str]:
    """Listener names and their advertised addresses."""
    return {
        listener.name: f"{listener.name} {listener.security_protocol.value} {listener.advertised}"
        for listener in config.listeners
    }


def kafkas_advertised(answer: dict) -> dict[str, str]:
    """The same of a KafkaConfig, with this machine's name if no host is set."""
    found = {}
    for text in answer["advertised"] + answer["controllers"]:
        name, protocol, host, port = text.split(" ")
        host = host or "this-machine"
        found[name] = f"{name} {protocol} [{host}]:{port}" if ":" in host else f"{name} {protocol} {host}:{port}"
    return found


def test_the_same_configurations_are_accepted_with_the_same_values() -> None:
    cases = [changed(base, changes) for base, changes in CASES]
    answers = ask([{"op": "config", "properties": properties} for properties in cases])
    for (_, changes), properties, answer in zip(CASES, cases, answers, strict=True):
        if "error" in answer:
            with pytest.raises(ConfigError):
                print(changes, answer, parse_config(properties, "it"))
            continue
        config = parse_config(properties, "it", host_name=lambda: "this-machine")
        told = answer["ok"] | {"early": sorted(answer["ok"]["early"])}
        assert described(config) == {key: told[key] for key in described(config)}, changes
        wanted = kafkas_advertised(told)
        assert {name: text for name, text in advertised(config).items() if name in wanted} == {
            name: text for name, text in wanted.items() if name in advertised(config)
        }, changes
        if config.is_broker:
            assert config.inter_broker_listener_name == told["interBroker"], changes
    assert sum("ok" in answer for answer in answers) > 40
    assert sum("error" in answer for answer in answers) > 40


def test_the_same_jaas_lines_are_accepted_with_the_same_values() -> None:
    answers = ask([{"op": "jaas", "text": text} for text in JAAS_LINES])
    for text, answer in zip(JAAS_LINES, answers, strict=True):
        if "error" in answer:
            with pytest.raises(ConfigError):
                print(text, parse_jaas(text))
            continue
        entry = parse_jaas(text)
        assert {"module": entry.module, "options": entry.options} == answer["ok"], text
    assert sum("ok" in answer for answer in answers) >= 8


def test_all_of_kafkas_keys_are_known() -> None:
    (answer,) = ask([{"op": "keys"}])
    assert {*answer["ok"], "super.users", "allow.everyone.if.no.acl.found"} == KNOWN_KEYS
