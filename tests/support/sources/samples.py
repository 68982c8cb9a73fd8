"""A small file of each format of rules, each shape of it once, and files that look like one."""

from attrs import frozen

from aclog.sources.formats.format import AclsFormat


@frozen
class Sample:
    """A file that makes rules by itself."""

    form: AclsFormat
    name: str
    text: str


_RULE = (
    '{"resourceType":"TOPIC","resourceName":"t","patternType":"LITERAL","principal":"User:a","host":"*",'
    '"operation":"READ","permissionType":"ALLOW"}\n'
)
_KAFKA_ACLS = """\
[2026-11-20 10:00:00,123] WARN something harmless (x)
Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)`:
\t(principal=User:a, host=*, operation=READ, permissionType=ALLOW)

"""
_OLD_KAFKA_ACLS = (
    "Current ACLs for resource `Group:PREFIXED:g`: \n"
    " \tUser:a has Allow permission for operations: Read from hosts: * \n\n"
)
_KSM = """\
KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host
User:a,Topic,LITERAL,t,Read,Allow,*
"User:CN=a,O=b",Group,PREFIXED,g,Describe,Deny,10.0.0.1
"""
_STRIMZI = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: a}
spec:
  authentication: {type: tls}
  authorization:
    type: simple
    acls:
      - resource: {type: topic, name: t, patternType: prefix}
        type: deny
        operations: [Read, Describe]
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: t}
"""
_NS4KAFKA = """\
apiVersion: v1
kind: Namespace
metadata: {name: team, cluster: local}
spec: {kafkaUser: a, transactionsEnabled: true}
---
apiVersion: v1
kind: AccessControlEntry
metadata: {name: e, namespace: team}
spec:
  resourceType: GROUP
  resource: g.
  resourcePatternType: PREFIXED
  permission: OWNER
  grantedTo: team
"""
_KAFKA_GITOPS = """\
topics:
  t: {partitions: 1}
services:
  shop: {type: application, principal: "User:shop", produces: [t], consumes: [u]}
users:
  a: {principal: "User:a", roles: [reader]}
customUserAcls:
  a:
    one: {name: t, type: TOPIC, pattern: PREFIXED, host: "*", operation: READ, permission: ALLOW}
"""
_JULIE = """\
context: shop
company: x
projects:
  - name: one
    consumers:
      - principal: User:a
        group: g
    producers:
      - principal: User:b
    topics:
      - name: t
        config: {num.partitions: "1"}
"""
_JIKKOU = """\
apiVersion: kafka.jikkou.io/v1beta2
kind: KafkaPrincipalAuthorization
metadata: {name: "User:a"}
spec:
  acls:
    - resource: {type: topic, pattern: t, patternType: PREFIXED}
      type: ALLOW
      operations: [READ, WRITE]
      host: "*"
"""
_TERRAFORM = """\
locals {
  readers = ["a", "b"]
}
resource "kafka_acl" "read" {
  for_each                     = toset(local.readers)
  resource_name                = "t-${each.key}"
  resource_type                = "Topic"
  resource_pattern_type_filter = "Prefixed"
  acl_principal                = "User:${each.value}"
  acl_host                     = "*"
  acl_operation                = "Read"
  acl_permission_type          = "Allow"
}
"""

_REDPANDA = """\
apiVersion: cluster.redpanda.com/v1alpha2
kind: User
metadata: {name: a}
spec:
  cluster: {clusterRef: {name: r}}
  authorization:
    acls:
    - {type: allow, resource: {type: topic, name: t}, operations: [Read]}
"""
_ANSIBLE = """\
- hosts: kafka
  tasks:
  - kafka_acl: {name: t, acl_principal: "User:a", acl_operation: read}
"""
_RPK = """\
PRINCIPAL  HOST  RESOURCE-TYPE  RESOURCE-NAME  RESOURCE-PATTERN-TYPE  OPERATION  PERMISSION  ERROR
User:a     *     TOPIC          t              LITERAL                READ       ALLOW
"""
_CONFLUENT = """\
  Principal | Permission | Operation | Host | Resource Type | Resource Name | Pattern Type
------------+------------+-----------+------+---------------+---------------+---------------
  User:a    | ALLOW      | READ      | *    | TOPIC         | t             | LITERAL
"""
_TABLE = """\
TYPE   NAME  PATTERN  PRINCIPAL  HOST  OPERATION  PERMISSION  ID
TOPIC  t     LITERAL  User:a     *     READ       ALLOW       -
"""
_CSV = """\
resourceType,resourceName,patternType,principal,host,operation,permissionType,id
TOPIC,t,LITERAL,User:a,*,READ,ALLOW,
"""
_SHELL = """\
#!/bin/sh
kafka-acls.sh --bootstrap-server b:9092 --add --allow-principal User:a --operation Read --topic t
"""

SAMPLES = (
    Sample(AclsFormat.JSONL, "rules.jsonl", _RULE),
    Sample(AclsFormat.KAFKA_ACLS, "listing.txt", _KAFKA_ACLS),
    Sample(AclsFormat.KAFKA_ACLS, "old-listing", _OLD_KAFKA_ACLS),
    Sample(AclsFormat.KSM, "acls.csv", _KSM),
    Sample(AclsFormat.KSM, "kafka-ui.csv", _KSM[5:].rsplit('"User', 1)[0]),
    Sample(AclsFormat.KSM, "acls.yaml", "users:\n  a:\n    topics:\n      t*:\n        - Read\n        - Produce\n"),
    Sample(AclsFormat.STRIMZI, "user.yaml", _STRIMZI),
    Sample(AclsFormat.NS4KAFKA, "namespace.yml", _NS4KAFKA),
    Sample(AclsFormat.KAFKA_GITOPS, "state.yaml", _KAFKA_GITOPS),
    Sample(AclsFormat.KAFKA_GITOPS, "users.yaml", "users:\n  a:\n    principal: User:a\n    roles: [writer]\n"),
    Sample(AclsFormat.JULIE, "topology.yaml", _JULIE),
    Sample(AclsFormat.JIKKOU, "acls.yaml", _JIKKOU),
    Sample(AclsFormat.TERRAFORM, "main.tf", _TERRAFORM),
    Sample(AclsFormat.REDPANDA, "redpanda.yaml", _REDPANDA),
    Sample(AclsFormat.ANSIBLE, "play.yml", _ANSIBLE),
    Sample(AclsFormat.RPK, "rpk.txt", _RPK),
    Sample(AclsFormat.CONFLUENT, "confluent", _CONFLUENT),
    Sample(AclsFormat.TABLE, "table.txt", _TABLE),
    Sample(AclsFormat.CSV, "list.csv", _CSV),
    Sample(AclsFormat.SHELL, "acls.sh", _SHELL),
)

OTHERS = (
    ("README.md", "Our rules:\n\n" + _KAFKA_ACLS + "\n| KafkaPrincipal | ResourceType | Operation |\n"),
    ("people.csv", "name,principal,operation\na,b,c\n"),
    ("users.yaml", "users:\n  bob: {groups: [wheel], shell: /bin/sh}\n"),
    ("users.yml", "users:\n- name: bob\n  groups: wheel\n"),
    ("namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: kafka, labels: {kafkaUser: a}}\n"),
    ("other-user.yaml", "apiVersion: kafka.banzaicloud.io/v1alpha1\nkind: KafkaUser\nmetadata: {name: a}\n"),
    ("topic.yaml", "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {name: t}\n"),
    ("compose.yaml", "services:\n  kafka:\n    image: apache/kafka\n"),
    ("values.json", '{"users": {"a": 1}, "projects": []}'),
    ("empty.yaml", ""),
    ("empty", ""),
    ("image.bin", "\x00\x01\x02"),
)
