"""Topologies of JulieOps: the rules that it makes with its default configuration, and what is refused."""

import re
from pathlib import Path

import pytest

from tests.support.sources.files_of_rules import read_rules, refused, write_files

_TOPOLOGY = """\
context: acme
company: eu
env: 8
projects:
  - name: shop
    zookeepers: []
    consumers:
      - principal: User:audit
        group: audit-*
    producers:
      - {principal: User:web, idempotence: false}
    streams:
      - principal: User:enrich
        exactlyOnce: true
        topics: {read: [other.topic]}
    connectors:
      access_control:
        - principal: User:connect
          group: my-connect
          offset_topic: my-offsets
          connectors: [sink]
          topics: {write: [sunk]}
      artefacts: {connectors: []}
    ksql:
      - principal: User:ksql
        applicationId: ksql-app
        topics: {read: [k-in], write: [k-out]}
    schemas:
      - {principal: User:web, subjects: [x]}
    rbac:
      - ResourceOwner: [{principal: User:owner}]
    topics:
      - name: orders
        dataType: avro
        plan: gold
        producers:
          - {principal: User:web, transactionId: tx}
        consumers:
          - principal: User:bi
special_topics:
  - {name: raw, dataType: json, consumers: [{principal: User:bi, group: bi}]}
"""


def test_a_topology_makes_the_rules_of_the_access_control_manager(tmp_path: Path) -> None:
    found = read_rules(write_files(tmp_path, {"topology.yaml": _TOPOLOGY}))
    orders, prefix = "acme.eu.8.shop.orders.avro", "acme.eu.8.shop.*"
    assert found.rules == {
        f"ALLOW DESCRIBE TOPIC {orders} to User:bi": [39],
        f"ALLOW READ TOPIC {orders} to User:bi": [39],
        "ALLOW READ GROUP * to User:bi": [39],
        f"ALLOW DESCRIBE TOPIC {orders} to User:audit": [8],
        f"ALLOW READ TOPIC {orders} to User:audit": [8],
        "ALLOW READ GROUP audit-* to User:audit": [9],
        f"ALLOW DESCRIBE TOPIC {orders} to User:web": [37],
        f"ALLOW WRITE TOPIC {orders} to User:web": [37],
        "ALLOW DESCRIBE TRANSACTIONAL_ID tx to User:web": [37],
        "ALLOW WRITE TRANSACTIONAL_ID tx to User:web": [37],
        "ALLOW IDEMPOTENT_WRITE CLUSTER kafka-cluster to User:web": [37],
        "ALLOW READ TOPIC other.topic to User:enrich": [15],
        f"ALLOW ALL TOPIC {prefix} to User:enrich": [13],
        f"ALLOW READ GROUP {prefix} to User:enrich": [13],
        f"ALLOW WRITE TRANSACTIONAL_ID {prefix} to User:enrich": [14],
        f"ALLOW DESCRIBE TRANSACTIONAL_ID {prefix} to User:enrich": [14],
        "ALLOW READ TOPIC k-in to User:ksql": [27],
        "ALLOW WRITE TOPIC k-out to User:ksql": [27],
        "ALLOW ALL TOPIC ksql-app* to User:ksql": [26],
        "ALLOW ALL GROUP ksql-app* to User:ksql": [26],
        "ALLOW READ TOPIC connect-status to User:connect": [18],
        "ALLOW WRITE TOPIC connect-status to User:connect": [18],
        "ALLOW READ TOPIC my-offsets to User:connect": [20],
        "ALLOW WRITE TOPIC my-offsets to User:connect": [20],
        "ALLOW READ TOPIC connect-configs to User:connect": [18],
        "ALLOW WRITE TOPIC connect-configs to User:connect": [18],
        "ALLOW CREATE CLUSTER kafka-cluster to User:connect": [18],
        "ALLOW READ GROUP my-connect to User:connect": [19],
        "ALLOW WRITE TOPIC sunk to User:connect": [22],
        "ALLOW DESCRIBE TOPIC raw to User:bi": [41],
        "ALLOW READ TOPIC raw to User:bi": [41],
        "ALLOW READ GROUP bi to User:bi": [41],
    }
    assert found.ignored == {"RBAC": 3}


_PLATFORM = """\
{"context": "acme", "platform": {
  "kafka": {"quotas": []},
  "schema_registry": {"instances": [{"principal": "User:sr", "topic": "my-schemas"}]},
  "control_center": {"instances": [{"principal": "User:cc", "appId": "cc"}]},
  "ksql": {"instances": [{"principal": "User:ks", "ksqlDbId": "db"}]}}}
"""


def test_components_of_a_platform(tmp_path: Path) -> None:
    found = set(read_rules(write_files(tmp_path, {"platform.json": _PLATFORM})).rules)
    of_topics = ("WRITE", "READ", "CREATE", "DESCRIBE")
    assert found == {
        *(f"ALLOW {each} TOPIC my-schemas to User:sr" for each in (*of_topics, "DESCRIBE_CONFIGS")),
        "ALLOW DESCRIBE TOPIC __consumer_offsets to User:sr",
        "ALLOW READ GROUP schema-registry to User:sr",
        "ALLOW READ GROUP cc* to User:cc",
        "ALLOW READ GROUP cc-command* to User:cc",
        "ALLOW DESCRIBE GROUP * to User:cc",
        *(
            f"ALLOW {operation} TOPIC _confluent-{name} to User:cc"
            for operation in of_topics
            for name in ("monitoring", "command", "metrics", "controlcenter*")
        ),
        "ALLOW CREATE TOPIC * to User:cc",
        "ALLOW DESCRIBE CLUSTER kafka-cluster to User:cc",
        "ALLOW DESCRIBE_CONFIGS CLUSTER kafka-cluster to User:cc",
        "ALLOW DESCRIBE_CONFIGS CLUSTER kafka-cluster to User:ks",
        "ALLOW ALL TOPIC _confluent-ksql-db* to User:ks",
        "ALLOW ALL TOPIC dbksql_processing_log to User:ks",
        "ALLOW ALL GROUP _confluent-ksql-db* to User:ks",
    }


def _file(project: str, more: str = "", context: str = "c") -> str:
    topic = "topics: [{name: t, consumers: [{principal: 'User:a', group: g}]}]"
    stream = "streams: [{principal: 'User:s', topics: {read: [x]}}]"
    return f"context: {context}\n{more}projects: [{{name: {project}, {topic}, {stream}}}]\n"


def test_files_of_one_context_are_put_together_as_the_tool_does(tmp_path: Path) -> None:
    # Files come before the directories beside them; the first one's keys name the prefixes of all applications.
    write_files(
        tmp_path,
        {
            "a/x.yaml": _file("two", "late: l\n"),
            "b.yaml": _file("one", "early: e\n"),
            "z.yml": _file("other", context="d"),
        },
    )
    assert {each.split(" TOPIC ")[1] for each in read_rules(tmp_path).rules if " TOPIC " in each} == {
        "c.e.one.t to User:a",
        "c.l.two.t to User:a",
        "d.other.t to User:a",
        "c.e.null.one.* to User:s",
        "c.e.null.two.* to User:s",
        "d.other.* to User:s",
        "x to User:s",
    }


_ROLES = """\
roles:
  - name: app
    acls:
      - {resourceType: Topic, resourceName: "{{topic}}", patternType: PREFIXED, host: '*', operation: ALL,
         permissionType: ALLOW}
      - {resourceType: group, resourceName: "g-{{ group }}", patternType: LITERAL, host: 10.0.0.1, role: Read}
"""
_WITH_ROLE = """\
context: c
projects:
  - name: p
    app:
      - {principal: User:a, topic: bill., group: x}
"""


def test_roles_of_ones_own_and_plans_are_files_beside_topologies(tmp_path: Path) -> None:
    plans = "plans:\n  gold: {alias: gold, config: {retention.ms: 1}}\n"
    found = read_rules(write_files(tmp_path, {"a.yaml": _WITH_ROLE, "roles.yaml": _ROLES, "plans.yaml": plans}))
    assert found.rules == {
        "ALLOW ALL TOPIC bill.* to User:a": [5],
        "ALLOW READ GROUP g-x to User:a from 10.0.0.1": [5],
    }
    assert found.ignored == {"file of plans": 1}


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("PREFIXED", "MATCH", "roles.yaml:4: patternType is 'MATCH': expected one of LITERAL, PREFIXED"),
        ("ALLOW}", "DENY}", "roles.yaml:5: permissionType is DENY, of which JulieOps makes an ALLOW"),
        ("Topic", "Subject", "roles.yaml:4: resourceType is 'Subject': expected one of TOPIC"),
        ("{{topic}}", "{{ topic | upper }}", "roles.yaml:4: .*of templates, only {{field}} is understood"),
        ("{{topic}}", "{{name}}", "roles.yaml:4: resourceName names 'name': expected one of topic"),
        (
            "name: app",
            "name: boss",
            "a.yaml:4: the project has the key 'app', which is not a role: expected one of boss",
        ),
        ("role: Read", "roll: Read", "roles.yaml:6: an ACL of the role has an unknown key 'roll': did you mean role"),
    ],
)
def test_a_role_that_is_not_understood_is_named_with_its_line(tmp_path: Path, old: str, new: str, error: str) -> None:
    assert old in _ROLES
    message = refused(write_files(tmp_path, {"a.yaml": _WITH_ROLE, "roles.yaml": _ROLES.replace(old, new, 1)}))
    assert re.search(error, message)


_SMALL = """\
context: c
source: s
projects:
  - name: p
    producers:
      - principal: User:a
    streams:
      - principal: User:s
        topics: {read: [x]}
    topics:
      - name: t
"""


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("context: c", "contex: c", "1: the topology has no context"),
        ("projects:", "project:", "3: project, a part of the names of topics, is a list: expected text"),
        ("source: s", "source: 1.10", "2: source, .* is '1.10' without quotes, which is read as 1.1: put it in quotes"),
        ("      - principal: User:a", "      - principle: User:a", "6: this user has no principal"),
        ("User:a", "alice", "6: no Kafka accepts this rule: .*colon"),
        ("{read: [x]}", "{write: [x]}", "8: the streams application reads no topics"),
        ("{read: [x]}", "{read: [x], writes: [y]}", "9: topics has an unknown key 'writes': did you mean write"),
        ("      - name: t", "      - {name: t, consumer: []}", "11: the topic has an unknown key 'consumer'"),
        ("name: t", "name: tö", "11: the name of topic 'c.s.p.tö' is not ASCII"),
        ("name: p\n", "names: p\n", "4: the project has no name"),
        ("- principal: User:a", "-", "6: an item of producers is null"),
        ("producers:", "boss:", "5: the project has the key 'boss', which is not a role: no file of roles"),
        ("[x]}", "[x]}\n        exactlyOnce: ", "10: exactlyOnce is null: expected true or false"),
        ("producers:\n", "connectors: {acl: []}\n    producers:\n", "5: connectors has an unknown key 'acl'"),
        ("projects:", "---\nprojects:", "2 documents: JulieOps reads a topology from a file of one"),
    ],
)
def test_what_is_not_understood_on_the_way_to_a_rule_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, error: str
) -> None:
    assert old in _SMALL
    text = _SMALL.replace(old, new) if "---" not in new else f"platform:\n{_SMALL.replace(old, new)}"
    message = refused(write_files(tmp_path, {"x.yaml": text}))
    assert re.search(error, message)
