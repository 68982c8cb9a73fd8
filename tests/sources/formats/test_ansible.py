"""Tasks of Ansible: literal ACLs are rules, everything else that states rules is unread."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.reading import ReadFiles, read_tree
from aclog.sources.formats.rule import DirectoryTree, ReadContext
from tests.support.runs.profiles import examples
from tests.support.sources.files_of_rules import refused, rule_text, write_files

TASK = """- name: acl
  kafka_acl:
    acl_resource_type: topic
    name: "*"
    acl_principal: "User:*"
    acl_operation: all
    acl_permission: allow
    state: present
    bootstrap_servers: "{{ servers }}"
"""
BROKER = TASK.replace("topic", "broker").replace('name: "*"', "name: kafka-cluster")
SEVERAL = "- kafka_acls:\n    acls:\n    - {name: x, acl_principal: 'User:b', acl_operation: write}\n"
ALL = "ALLOW ALL TOPIC * to User:*"


def read(directory: Path, text: str) -> ReadFiles:
    tree = DirectoryTree(str(write_files(directory, {"play.yml": text})))
    return read_tree(ReadContext(tree=tree), AclsFormat.AUTO)


def rules(found: ReadFiles) -> set[str]:
    return {rule_text(rule.acl) for rule in found.stated.rules()}


def indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TASK, ALL),
        (TASK.replace("kafka_acl:", "stephensorriaux.kafka_admin.kafka_acl:"), ALL),
        (f"- hosts: kafka\n  tasks:\n{indented(TASK, 4)}", ALL),
        (f"- hosts: kafka\n  pre_tasks:\n{indented(TASK, 4)}", ALL),
        (f"- block:\n{indented(TASK, 2)}", ALL),
        (f"- hosts: kafka\n  post_tasks:\n  - block:\n{indented(TASK, 4)}", ALL),
        (TASK.replace("    state: present\n", "").replace("    acl_permission: allow\n", ""), ALL),
        (TASK.replace("acl_operation: all", "acl_operations: [all]"), ALL),
        (TASK.replace("    acl_resource_type: topic\n", ""), ALL),
        (TASK.replace("  kafka_acl:", "  tags: [acls]\n  kafka_acl:"), ALL),
        (TASK.replace('name: "*"', "name: a-\n    acl_pattern_type: prefixed"), "ALLOW ALL TOPIC a-* to User:*"),
        (TASK.replace("allow", "deny"), "DENY ALL TOPIC * to User:*"),
        (TASK.replace("state", 'acl_host: "10.0.0.1"\n    state'), f"{ALL} from 10.0.0.1"),
        (BROKER, "ALLOW ALL CLUSTER kafka-cluster to User:*"),
        (TASK.replace("all\n", "idempotent_write\n", 1), "ALLOW IDEMPOTENT_WRITE TOPIC * to User:*"),
        (SEVERAL, "ALLOW WRITE TOPIC x to User:b"),
    ],
)
def test_a_literal_task_is_a_rule(tmp_path: Path, text: str, expected: str) -> None:
    found = read(tmp_path, text)
    assert rules(found) == {expected}
    assert found.unread == ()


@pytest.mark.parametrize(
    "text",
    [
        TASK.replace('"User:*"', '"User:{{ user }}"'),
        TASK.replace("acl_operation: all", "acl_operation: '{{ operation }}'"),
        TASK.replace("name: acl", "name: acl\n  when: is_prod"),
        TASK.replace("name: acl", "name: acl\n  loop: [1, 2]"),
        TASK.replace("name: acl", "name: acl\n  with_items: [1, 2]"),
        TASK.replace("state: present", "state: absent"),
        "- kafka_acl: name=x acl_principal=User:a acl_operation=read\n",
        "- kafka_acls: {acls: '{{ acls }}'}\n",
        "- kafka_acls:\n    acls: ['{{ one }}']\n",
        f"- when: is_prod\n  block:\n{indented(TASK, 2)}",
        f"- block: []\n  rescue:\n{indented(TASK, 2)}",
        f"- hosts: kafka\n  handlers:\n{indented(TASK, 4)}",
        f"- hosts: kafka\n  module_defaults: {{kafka_acl: {{acl_host: x}}}}\n  tasks:\n{indented(TASK, 4)}",
    ],
)
def test_what_is_not_literal_is_unread(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text)
    assert rules(found) == set()
    assert {each.kind for each in found.unread} == {"document"}


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("acl_operation: all", "acl_operation: Read", "play.yml:6: acl_operation 'Read' is not one of"),
        ("acl_operation: all\n", "x: 1\n", "play.yml:2: expected acl_operation or acl_operations"),
        ("acl_operation: all", "acl_operation: all\n    acl_operations: [read]", "expected acl_operation or"),
        ("topic", "topics", "acl_resource_type 'topics' is not one of"),
        ("state: present", "state: there", "state is 'there'"),
        ('    acl_principal: "User:*"\n', "", "an ACL has no acl_principal"),
        ('    name: "*"\n', "", "an ACL has no name"),
        ("topic", "cluster", "no Kafka accepts this rule"),
    ],
)
def test_what_the_module_refuses(tmp_path: Path, old: str, new: str, what: str) -> None:
    assert what in refused(write_files(tmp_path, {"play.yml": TASK.replace(old, new, 1)}))


_ACL = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["a", "b-", "*"]),
        "acl_principal": st.sampled_from(["User:a", "User:CN=b,O=c"]),
        "acl_operations": st.lists(st.sampled_from(["read", "write", "alter_configs"]), min_size=1, unique=True),
    },
    optional={
        "acl_resource_type": st.sampled_from(["topic", "group", "transactional_id"]),
        "acl_pattern_type": st.sampled_from(["literal", "prefixed"]),
        "acl_permission": st.sampled_from(["allow", "deny"]),
        "acl_host": st.sampled_from(["*", "10.0.0.1"]),
        "state": st.just("present"),
    },
)


@settings(max_examples=examples(100))
@given(acls=st.lists(_ACL, min_size=1, max_size=4))
def test_it_is_as_an_independent_expander(tmp_path_factory, acls) -> None:
    expected = set()
    for each in acls:
        star = "*" if each.get("acl_pattern_type") == "prefixed" else ""
        host = "" if each.get("acl_host", "*") == "*" else f" from {each['acl_host']}"
        kind = each.get("acl_resource_type", "topic").upper()
        for operation in each["acl_operations"]:
            permission = each.get("acl_permission", "allow").upper()
            expected.add(
                f"{permission} {operation.upper()} {kind} {each['name']}{star} to {each['acl_principal']}{host}"
            )
    text = yaml.safe_dump([{"hosts": "x", "tasks": [{"kafka_acls": {"acls": acls}}]}])
    assert rules(read(tmp_path_factory.mktemp("play"), text)) == expected
