"""The flags of kafka-acls.sh mean the same here; error messages are those of kafka-acls 4.3.1."""

import pytest

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.cli.acl_changes import filters_of, plan_to_add, plan_to_remove, rule_of
from aclog.cli.flags.question import ResourceFlags
from aclog.cli.flags.target import Entry, RuleFlags
from aclog.metalog.errors import ConfigError

TOPIC = ResourceFlags(topics=["t"])
ALICE = RuleFlags(allow_principals=["User:alice"])


def texts(plan):
    return {str(pattern): [str(entry) for entry in entries] for pattern, entries in plan.items()}


def pattern_text(kind, name, pattern="LITERAL"):
    return f"ResourcePattern(resourceType={kind}, name={name}, patternType={pattern})"


def entry_text(operation, principal="User:alice", host="*", permission="ALLOW"):
    return f"(principal={principal}, host={host}, operation={operation}, permissionType={permission})"


def test_the_operation_defaults_to_all_and_the_host_to_any():
    assert texts(plan_to_add(TOPIC, ALICE)) == {pattern_text("TOPIC", "t"): [entry_text("ALL")]}


def test_every_principal_operation_and_host_is_combined():
    flags = RuleFlags(
        operations=[AclOperation.READ, AclOperation.WRITE],
        allow_principals=["User:a", " User:b "],
        allow_hosts=["10.0.0.1", " 10.0.0.2 "],
        deny_principals=["User:c"],
    )
    [entries] = plan_to_add(TOPIC, flags).values()
    allowed = [
        entry_text(operation, principal, host)
        for principal in ("User:a", "User:b")
        for operation in ("READ", "WRITE")
        for host in ("10.0.0.1", "10.0.0.2")
    ]
    denied = [entry_text(operation, "User:c", permission="DENY") for operation in ("READ", "WRITE")]
    assert [str(entry) for entry in entries] == allowed + denied


def test_names_except_transactional_ids_are_trimmed():
    resources = ResourceFlags(topics=[" t "], groups=[" g "], transactional_ids=[" x "], user_principals=[" User:u "])
    assert list(texts(plan_to_add(resources, ALICE))) == [
        pattern_text("TOPIC", "t"),
        pattern_text("GROUP", "g"),
        pattern_text("TRANSACTIONAL_ID", " x "),
        pattern_text("USER", "User:u"),
    ]


def test_the_cluster_is_only_literal():
    assert list(texts(plan_to_add(ResourceFlags(cluster=True), ALICE))) == [pattern_text("CLUSTER", "kafka-cluster")]
    with pytest.raises(ConfigError, match="at least one resource"):
        plan_to_add(ResourceFlags(cluster=True, resource_pattern_type=PatternType.PREFIXED), ALICE)


def test_a_producer_writes_describes_and_creates():
    resources = ResourceFlags(topics=["t"], groups=["ignored"], transactional_ids=["x"])
    flags = RuleFlags(allow_principals=["User:alice"], producer=True, idempotent=True)
    assert texts(plan_to_add(resources, flags)) == {
        pattern_text("TOPIC", "t"): [entry_text(each) for each in ("WRITE", "DESCRIBE", "CREATE")],
        pattern_text("TRANSACTIONAL_ID", "x"): [entry_text(each) for each in ("WRITE", "DESCRIBE")],
        pattern_text("CLUSTER", "kafka-cluster"): [entry_text("IDEMPOTENT_WRITE")],
    }


def test_a_consumer_reads_and_describes_and_joins_a_producer_on_the_same_topic():
    resources = ResourceFlags(topics=["t"], groups=["g"], transactional_ids=["x"])
    flags = RuleFlags(allow_principals=["User:alice"], producer=True, consumer=True)
    assert texts(plan_to_add(resources, flags)) == {
        pattern_text("TOPIC", "t"): [entry_text(each) for each in ("WRITE", "DESCRIBE", "CREATE", "READ")],
        pattern_text("TRANSACTIONAL_ID", "x"): [entry_text(each) for each in ("WRITE", "DESCRIBE")],
        pattern_text("GROUP", "g"): [entry_text("READ")],
    }


@pytest.mark.parametrize(
    ("resources", "entries", "message"),
    [
        (ResourceFlags(), ALICE, "You must provide at least one resource"),
        (TOPIC, RuleFlags(), "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs"),
        (TOPIC, RuleFlags(allow_hosts=["1.2.3.4"]), "You must specify one of: --allow-principal, --deny-principal"),
        (TOPIC, RuleFlags(allow_principals=["x"]), "format principalType:principalName but got x"),
        (
            ResourceFlags(topics=["t"], resource_pattern_type=PatternType.MATCH),
            ALICE,
            "A '--resource-pattern-type' value of 'MATCH' is not valid when adding acls",
        ),
        (
            ResourceFlags(groups=["g"]),
            RuleFlags(allow_principals=["User:a"], operations=[AclOperation.WRITE]),
            r"ResourceType GROUP only supports operations \[ALL, READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONF",
        ),
        (ResourceFlags(groups=["g"]), RuleFlags(producer=True), "With --producer you must specify a --topic"),
        (TOPIC, RuleFlags(idempotent=True), "--idempotent option is only available if --producer is set"),
        (TOPIC, RuleFlags(consumer=True), "With --consumer you must specify a --topic and a --group"),
        (
            ResourceFlags(topics=["t"], groups=["g"], cluster=True),
            RuleFlags(consumer=True),
            "no --cluster or --transactional-id option should be specified",
        ),
        (
            TOPIC,
            RuleFlags(producer=True, operations=[AclOperation.READ]),
            r'Option "\[operation\]" can\'t be used with option "\[producer\]"',
        ),
        (
            TOPIC,
            RuleFlags(producer=True, deny_principals=["User:x"]),
            r'Option "\[deny-principal\]" can\'t be used with option "\[producer\]"',
        ),
    ],
)
def test_incompatible_flags(resources, entries, message):
    with pytest.raises(ConfigError, match=message):
        plan_to_add(resources, entries)


def test_without_a_principal_every_acl_of_the_resource_is_removed():
    resources = ResourceFlags(topics=["t"], resource_pattern_type=PatternType.ANY)
    plan = plan_to_remove(resources, RuleFlags(operations=[AclOperation.READ], deny_hosts=["10.0.0.1"]))
    [(pattern, entries)] = plan.items()
    assert list(filters_of(pattern, entries)) == [
        AclBindingFilter(resource_type=ResourceType.TOPIC, resource_name="t", pattern_type=PatternType.ANY)
    ]


def test_with_a_principal_each_entry_makes_one_filter():
    flags = RuleFlags(deny_principals=["User:bob"], operations=[AclOperation.READ])
    [(pattern, entries)] = plan_to_remove(TOPIC, flags).items()
    assert list(filters_of(pattern, entries)) == [
        AclBindingFilter(
            resource_type=ResourceType.TOPIC,
            resource_name="t",
            pattern_type=PatternType.LITERAL,
            principal="User:bob",
            host="*",
            operation=AclOperation.READ,
            permission_type=AclPermissionType.DENY,
        )
    ]


def test_an_entry_on_a_resource_makes_an_acl():
    pattern = ResourcePattern(resource_type=ResourceType.GROUP, name="g", pattern_type=PatternType.PREFIXED)
    entry = Entry(principal="User:a", host="*", operation=AclOperation.READ, permission_type=AclPermissionType.ALLOW)
    assert str(rule_of(pattern, entry)) == (
        "StandardAcl[resourceType=GROUP, resourceName=g, patternType=PREFIXED, principal=User:a, host=*, "
        "operation=READ, permissionType=ALLOW]"
    )
