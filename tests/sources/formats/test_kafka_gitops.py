"""States of kafka-gitops: the rules that the tool plans for them, and what is refused."""

import re
from pathlib import Path

import pytest

from tests.support.sources.files_of_rules import read_rules, refused, write_files

_STATE = """\
settings:
  topics:
    defaults: {replication: 3}
    blacklist: {prefixed: [_confluent]}
topics:
  orders: {partitions: 6}
services:
  shop:
    type: application
    principal: User:shop
    group-id: shop-group
    produces: [orders, 007]
    consumes:
      - payments
  silent:
    type: application
  enrich:
    type: kafka-streams
    principal: User:enrich
    consumes: [orders]
users:
  dora:
    principal: User:dora
    roles: [Operator, writer]
customServiceAcls:
  shop:
    all-events: {name: events., type: TOPIC, pattern: PREFIXED, principal: "User:other", operation: READ}
  gone:
    nothing: {name: x, type: TOPIC, pattern: LITERAL, principal: "User:x", operation: READ}
customUserAcls:
  dora:
    keep-out:
      name: secret
      type: TOPIC
      pattern: LITERAL
      host: 10.0.0.1
      operation: ALL
      permission: DENY
"""


def test_a_state_makes_the_rules_that_the_tool_plans(tmp_path: Path) -> None:
    found = read_rules(write_files(tmp_path, {"state.yaml": _STATE}) / "state.yaml")
    assert found.rules == {
        "ALLOW WRITE TOPIC orders to User:shop": [12],
        "ALLOW WRITE TOPIC 007 to User:shop": [12],
        "ALLOW READ TOPIC payments to User:shop": [14],
        "ALLOW READ GROUP shop-group to User:shop": [11],
        "ALLOW READ TOPIC orders to User:enrich": [20],
        **{
            f"ALLOW {operation} TOPIC enrich* to User:enrich": [17]
            for operation in ("READ", "WRITE", "DESCRIBE", "DELETE", "CREATE", "ALTER", "ALTER_CONFIGS")
        },
        "ALLOW DESCRIBE_CONFIGS TOPIC enrich* to User:enrich": [17],
        "ALLOW READ GROUP enrich to User:enrich": [17],
        "ALLOW DESCRIBE GROUP enrich to User:enrich": [17],
        "ALLOW DELETE GROUP enrich to User:enrich": [17],
        "ALLOW DESCRIBE_CONFIGS CLUSTER kafka-cluster to User:enrich": [17],
        "ALLOW DESCRIBE CLUSTER kafka-cluster to User:dora": [24],
        "ALLOW DESCRIBE TOPIC * to User:dora": [24],
        "ALLOW DESCRIBE_CONFIGS TOPIC * to User:dora": [24],
        "ALLOW READ GROUP * to User:dora": [24],
        "ALLOW DESCRIBE GROUP * to User:dora": [24],
        "ALLOW WRITE TOPIC * to User:dora": [24],
        "ALLOW READ TOPIC events.* to User:other": [27],
        "DENY ALL TOPIC secret to User:dora from 10.0.0.1": [32],
    }
    assert found.ignored == {"topic": 1, "custom ACL of an undefined service or user": 1}
    assert refused(tmp_path / "state.yaml", strict=True) == (
        f"{tmp_path}/state.yaml:29: custom ACL nothing of service gone, which is not defined: it makes no rule"
    )


_CONNECT = """\
settings: {services: {acls: {describeTopicEnabled: true}}}
services:
  etl:
    type: kafka-connect
    principal: User:etl
    produces: [direct]
    storage-topics:
      config: my-configs
    connectors:
      sink:
        consumes: [orders]
"""


def test_a_connect_cluster_has_storage_topics_its_group_and_its_connectors(tmp_path: Path) -> None:
    found = read_rules(write_files(tmp_path, {"state.yml": _CONNECT}))
    assert found.rules == {
        "ALLOW WRITE TOPIC direct to User:etl": [6],
        "ALLOW DESCRIBE TOPIC direct to User:etl": [6],
        "ALLOW READ TOPIC my-configs to User:etl": [8],
        "ALLOW WRITE TOPIC my-configs to User:etl": [8],
        "ALLOW READ TOPIC connect-offsets-etl to User:etl": [3],
        "ALLOW WRITE TOPIC connect-offsets-etl to User:etl": [3],
        "ALLOW READ TOPIC connect-status-etl to User:etl": [3],
        "ALLOW WRITE TOPIC connect-status-etl to User:etl": [3],
        "ALLOW READ GROUP etl to User:etl": [3],
        "ALLOW READ TOPIC orders to User:etl": [11],
        "ALLOW DESCRIBE TOPIC orders to User:etl": [11],
        "ALLOW READ GROUP connect-sink to User:etl": [10],
    }


def test_parts_of_a_state_are_read_once_and_replace_what_it_says_itself(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "state.yaml": "settings: {files: {users: parts/users.yaml, services: /parts/services.yaml}}\n"
            "users: {a: {principal: User:old, roles: [reader]}}\n",
            "parts/users.yaml": "users: {a: {principal: User:new, roles: [writer]}}\n"
            "customUserAcls: {a: {x: {name: t, type: TOPIC, pattern: LITERAL, operation: READ}}}\n",
            "parts/services.yaml": "services: {s: {type: application, principal: User:s, produces: [t]}}\n",
        },
    )
    expected = {"ALLOW WRITE TOPIC * to User:new", "ALLOW WRITE TOPIC t to User:s"}
    assert set(read_rules(tmp_path).rules) == expected
    assert set(read_rules(tmp_path / "state.yaml").rules) == expected


def test_a_state_of_topics_only_has_no_rules(tmp_path: Path) -> None:
    found = read_rules(write_files(tmp_path, {"state.yaml": "topics: {t: {partitions: many}, u: {}}\n"}))
    assert found.rules == {}
    assert found.ignored == {"topic": 2}


_ACL = "customUserAcls: {a: {x: {name: t, type: TOPIC, pattern: LITERAL, operation: READ}}}\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("services:\n  s:\n    type: application\n    produces: [t]\n", "2: service s has no principal"),
        ("users:\n  u:\n    roles: [reader]\n", "2: user u has no principal"),
        (
            "users:\n  u:\n    principal: User:u\n    roles:\n      - admin\n",
            "5: user u has the role 'admin': expected",
        ),
        ("users:\n  u:\n    principal: User:u\n    rolls: [reader]\n", "4: user u has an unknown key 'rolls'"),
        ("users: {u: {principal: bob, roles: [reader]}}\n", "1: no Kafka accepts this rule: .*colon"),
        (
            "services:\n  s:\n    type: lambda\n    principal: a\n    produces: [t]\n",
            "3: service s has the type 'lambda': expected one of application",
        ),
        ("services: {s: {type: application, principal: User:s, produces: }}\n", "1: produces is null: expected a list"),
        ("services: {s: {type: application, principal: User:s, produces: t}}\n", "1: produces is 't': expected a list"),
        ("services: {s: {type: kafka-connect, principal: 'User:s', consumes: [t]}}\n", "unknown key 'consumes'"),
        ("users:\n  u: {principal: User:u}\nuser:\n", "3: the state has an unknown key 'user': did you mean users"),
        (
            _ACL.replace("LITERAL", "MATCH"),
            "1: the pattern of custom ACL x is 'MATCH': expected one of LITERAL, PREFIXED",
        ),
        (_ACL.replace("READ", "read"), "the operation of custom ACL x is 'read': expected one of ALL, READ"),
        (_ACL.replace(", operation: READ", ""), "1: custom ACL x has no operation"),
        (_ACL.replace("READ", "READ, permission: "), "custom ACL x has no permission"),
        ("services: {s: {type: application}}\n" + _ACL.replace("UserAcls: {a", "ServiceAcls: {s"), "does not inherit"),
        ("users: {u: {principal: User:u}}\n---\nusers: {}\n", "3: a second document"),
        ("settings: {files: {users: none.yaml}}\n", "1: settings.files.users: .*none.yaml: no such file"),
        ("settings: {files: {users: x.yaml}}\n", "x.yaml: settings.files: these files name each other"),
        ("settings: {ccloud: {enabled: maybe}}\n", "1: enabled is 'maybe': expected true or false"),
        ("settings: {ccloud: {enabled: true}}\nusers:\n  u: {roles: [reader]}\n", "3: .* service account 'user-u'"),
        ("users:\n  u: {principal: User:u}\n  u: {}\n", "3: duplicate key 'u'"),
    ],
)
def test_what_the_tool_refuses_on_the_way_to_a_rule_is_named_with_its_line(
    tmp_path: Path, text: str, error: str
) -> None:
    path = write_files(tmp_path, {"x.yaml": text}) / "x.yaml"
    message = refused(path)
    assert str(tmp_path) in message
    assert re.search(error, message)


def test_a_part_of_a_state_that_is_not_yaml_is_refused_at_its_line(tmp_path: Path) -> None:
    write_files(tmp_path, {"x.yaml": "settings: {files: {users: parts/u.yaml}}\n", "parts/u.yaml": "users:\n  u: [\n"})
    assert re.search(r"parts/u\.yaml:3: not YAML", refused(tmp_path / "x.yaml"))


@pytest.mark.parametrize(
    "text",
    [
        "services: {web: {image: nginx}}\n",
        "users: [{name: a}]\n",
        "- 1\n",
        "settings: {theme: dark}\n",
    ],
)
def test_other_files_with_the_same_words_are_left_alone(tmp_path: Path, text: str) -> None:
    write_files(tmp_path, {"other.yaml": text, "state.yaml": _STATE})
    assert read_rules(tmp_path).ignored["other file"] == 1
