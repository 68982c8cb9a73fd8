"""Plans and states of Terraform."""

import json
from pathlib import Path

from tests.support.sources.files_of_rules import read_rules, refused, write_files

_VALUES = {
    "acl_host": "*",
    "acl_operation": "Read",
    "acl_permission_type": "Allow",
    "acl_principal": "User:a",
    "id": "User:a|*|Read|Allow|Topic|t|Literal",
    "resource_name": "t",
    "resource_pattern_type_filter": "Prefixed",
    "resource_type": "Topic",
}


def _resource(address: str, kind: str = "kafka_acl", **values: object) -> dict[str, object]:
    return {"address": address, "mode": "managed", "type": kind, "name": "x", "values": {**_VALUES, **values}}


def _plan(*resources: dict[str, object], **more: object) -> str:
    child = {"resources": [_resource("module.m.kafka_acl.x[0]", resource_name="m")], "address": "module.m"}
    root = {"resources": list(resources), "child_modules": [child]}
    return json.dumps(
        {"format_version": "1.2", "terraform_version": "1.9.0", "planned_values": {"root_module": root}, **more},
        indent=1,
    )


def test_a_plan_with_child_modules(tmp_path: Path) -> None:
    text = _plan(_resource("kafka_acl.x"), {"address": "t", "mode": "managed", "type": "kafka_topic", "values": {}})
    found = read_rules(write_files(tmp_path, {"plan.json": text}))
    assert found.rules == {"ALLOW READ TOPIC t* to User:a": [7], "ALLOW READ TOPIC m* to User:a": [33]}
    assert found.ignored == {"kafka_topic": 1}
    lines = text.splitlines()
    assert lines[6].strip() == "{"
    assert '"kafka_acl.x"' in lines[7]


def test_what_is_known_after_apply_only_is_refused(tmp_path: Path) -> None:
    change = {"address": "kafka_acl.x", "change": {"after_unknown": {"acl_principal": True, "id": True}}}
    values = {key: value for key, value in _VALUES.items() if key != "acl_principal"}
    resource = {**_resource("kafka_acl.x"), "values": values}
    told = refused(write_files(tmp_path, {"plan.json": _plan(resource, resource_changes=[change])}))
    assert "plan.json:12: kafka_acl.x: acl_principal is known after apply only" in told
    told = refused(write_files(tmp_path, {"plan.json": _plan(errored=True)}))
    assert "the plan failed" in told


def test_a_shown_state_and_a_state_file(tmp_path: Path) -> None:
    shown = {
        "format_version": "1.0",
        "terraform_version": "1.9.0",
        "values": {"root_module": {"resources": [_resource("kafka_acl.x")]}},
    }
    state = {
        "version": 4,
        "terraform_version": "1.9.0",
        "serial": 3,
        "lineage": "6a",
        "outputs": {},
        "resources": [
            {
                "module": "module.m",
                "mode": "managed",
                "type": "confluent_kafka_acl",
                "name": "x",
                "instances": [
                    {
                        "index_key": "k",
                        "attributes": {
                            "resource_type": "GROUP",
                            "resource_name": "g",
                            "pattern_type": "LITERAL",
                            "principal": "User:sa-1",
                            "host": "*",
                            "operation": "READ",
                            "permission": "ALLOW",
                            "kafka_cluster": [{"id": "lkc-1"}],
                            "credentials": [],
                            "rest_endpoint": None,
                            "id": "x",
                        },
                    }
                ],
            },
            {"mode": "data", "type": "kafka_topic", "name": "x", "instances": [{}]},
        ],
    }
    write_files(tmp_path, {"shown.json": json.dumps(shown), "terraform.tfstate": json.dumps(state, indent=2)})
    found = read_rules(tmp_path)
    assert found.rules == {"ALLOW READ TOPIC t* to User:a": [1], "ALLOW READ GROUP g to User:sa-1": [14]}


def test_a_state_beside_a_configuration_does_not_count(tmp_path: Path) -> None:
    found = read_rules(write_files(tmp_path, {"plan.json": _plan(_resource("kafka_acl.x")), "main.tf": ""}))
    assert found.rules == {}
    assert found.ignored == {"plan or state beside a configuration": 1}


def test_damaged_files(tmp_path: Path) -> None:
    acl = '{"version": 4, "resources": [{"mode": "managed", "type": "kafka_acl", "instances": [{"attributes": %s}]}]}'
    for text, what in (
        ('{"version": 4, "lineage": "x",\n "resources": [}', "terraform.tfstate:2: not JSON"),
        ('{"version": 3, "modules": []}', "terraform.tfstate:1: neither"),
        ('{"version": 4, "resources": [1]}', "terraform.tfstate:1: resources is not a list of objects"),
        ('{"version": 4,\n "version": 4}', "terraform.tfstate:2: duplicate key 'version'"),
        ("[" * 100_000, "terraform.tfstate: nested too deeply"),
        ('{"format_version": "9.0"}', "expected 0.x or 1.x"),
        (acl % '{"x": 1}', "'x', which is unknown"),
        (acl % '{"acl_host": 1}', "is missing, or not text"),
    ):
        assert what in refused(write_files(tmp_path, {"terraform.tfstate": text}))
