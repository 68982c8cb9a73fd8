"""Resources of Terraform that no schema reads: known to make no rule, or unread."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from attrs import evolve

from aclog.authorizer.acl import FileOrigin
from aclog.sources.formats.nodes import Node, scalars
from aclog.sources.formats.rule import ReadContext
from aclog.sources.formats.terraform.hcl import (
    Block,
    Body,
    Call,
    Expression,
    Literal,
    LocatedObject,
    ObjectOf,
    Template,
    TupleOf,
)
from aclog.sources.formats.unread import UnreadKind
from aclog.sources.formats.verdicts import embedded_in, rule_in

_PROVIDERS = frozenset(
    {
        *(
            "archive",
            "acme",
            "akamai",
            "auth0",
            "aws",
            "awscc",
            "azuread",
            "azurerm",
            "bitbucket",
            "boundary",
            "circleci",
        ),
        *(
            "cloudflare",
            "cloudinit",
            "consul",
            "datadog",
            "dns",
            "docker",
            "elasticstack",
            "external",
            "fastly",
            "github",
        ),
        *(
            "gitlab",
            "google",
            "googleworkspace",
            "grafana",
            "http",
            "keycloak",
            "local",
            "mysql",
            "newrelic",
            "nomad",
            "null",
        ),
        *(
            "okta",
            "opsgenie",
            "pagerduty",
            "postgresql",
            "proxmox",
            "random",
            "rancher2",
            "sentry",
            "slack",
            "snowflake",
        ),
        *(
            "sops",
            "spacelift",
            "splunk",
            "statuscake",
            "tailscale",
            "template",
            "terraform",
            "tfe",
            "time",
            "tls",
            "vault",
        ),
        *("vsphere",),
    }
)
"""Providers, by the first word of their resources, that have no resource for ACLs of Kafka except those below."""
_PARTS = ("aws_msk_", "azurerm_eventhub", "google_managed_kafka_", "awscc_msk_")
"""Resources of these providers that have to do with Kafka: each must be known itself."""
_TYPES = frozenset(
    {
        *("aws_msk_cluster", "aws_msk_cluster_policy", "aws_msk_configuration", "aws_msk_replicator"),
        *("aws_msk_scram_secret_association", "aws_msk_single_scram_secret_association", "aws_msk_serverless_cluster"),
        *(
            "aws_msk_vpc_connection",
            "azurerm_eventhub",
            "azurerm_eventhub_namespace",
            "azurerm_eventhub_consumer_group",
        ),
        *("azurerm_eventhub_authorization_rule", "azurerm_eventhub_namespace_authorization_rule"),
        *("azurerm_eventhub_namespace_schema_group", "azurerm_eventhub_cluster", "google_managed_kafka_cluster"),
        *("google_managed_kafka_topic", "google_managed_kafka_connect_cluster", "google_managed_kafka_connector"),
        *(
            "kafka_topic",
            "kafka_quota",
            "kafka_user_scram_credential",
            "kafka-connect_connector",
            "kafkaconnect_connector",
        ),
        *("confluent_api_key", "confluent_business_metadata", "confluent_byok_key", "confluent_catalog_integration"),
        *("confluent_certificate_authority", "confluent_cluster_link", "confluent_connector", "confluent_dns_record"),
        *("confluent_environment", "confluent_flink_compute_pool", "confluent_flink_statement", "confluent_gateway"),
        *("confluent_identity_pool", "confluent_identity_provider", "confluent_invitation", "confluent_ip_filter"),
        *("confluent_kafka_client_quota", "confluent_kafka_cluster", "confluent_kafka_cluster_config"),
        *("confluent_kafka_mirror_topic", "confluent_kafka_topic", "confluent_ksql_cluster", "confluent_network"),
        *("confluent_network_link_endpoint", "confluent_network_link_service", "confluent_peering"),
        *("confluent_private_link_access", "confluent_private_link_attachment", "confluent_role_binding"),
        *("confluent_private_link_attachment_connection", "confluent_schema", "confluent_schema_exporter"),
        *("confluent_schema_registry_cluster", "confluent_schema_registry_cluster_config"),
        *("confluent_schema_registry_cluster_mode", "confluent_service_account", "confluent_subject_config"),
        *("confluent_subject_mode", "confluent_tag", "confluent_tag_binding", "confluent_tableflow_topic"),
        *("confluent_transit_gateway_attachment", "confluentcloud_kafka_topic", "confluentcloud_environment"),
        *("confluentcloud_api_key", "confluentcloud_kafka_cluster", "confluentcloud_service_account"),
        *(
            "confluentcloud_connector",
            "redpanda_cluster",
            "redpanda_network",
            "redpanda_resource_group",
            "redpanda_topic",
        ),
        *("redpanda_user", "redpanda_serverless_cluster", "aiven_kafka", "aiven_kafka_topic", "aiven_kafka_connect"),
        *("aiven_kafka_connector", "aiven_kafka_schema", "aiven_kafka_schema_configuration", "aiven_kafka_mirrormaker"),
        *("aiven_mirrormaker_replication_flow", "aiven_service_integration", "aiven_project", "aiven_project_vpc"),
        *(
            "yandex_mdb_kafka_topic",
            "yandex_mdb_kafka_connector",
            "rhoas_kafka",
            "rhoas_topic",
            "rhoas_service_account",
        ),
        *("warpstream_virtual_cluster", "warpstream_agent_key", "warpstream_topic", "warpstream_pipeline"),
        *("digitalocean_database_kafka_topic", "digitalocean_database_cluster", "schemaregistry_schema"),
    }
)
"""Resources that have to do with Kafka and make no ACL."""
HOLDERS: Mapping[str, str] = MappingProxyType(
    {
        "kubernetes_manifest": "manifest",
        "kubectl_manifest": "yaml_body",
        "kubectl_server_side_manifest": "yaml_body",
        "k8s_manifest": "content",
    }
)
"""The attribute with the resource, by the kind of Terraform's resource: an object, or YAML."""
_HOLDERS = frozenset({*HOLDERS, "helm_release", "kustomization_resource"})
"""Resources that may hold any other resource of Kubernetes."""
_SUSPICIOUS = re.compile(r"acl|kafka|redpanda|warpstream|msk|event_?stream|principal", re.IGNORECASE)
"""What a type of an unknown provider may be about: a type of none of these words is judged by its keys."""
_ELSEWHERE = "${...}"
"""The text of a value that is not stated in place."""
_CALL = "call"
"""The tag of the arguments of a function."""


def judge_block(kind: str, block: Block, context: ReadContext) -> None:
    """Count a resource of a configuration, or report it as unread."""
    _judge(kind, node_of(block.file, block.line, block.body), context)


def may_hold_rules(block: Block) -> bool:
    """Return whether one of HOLDERS may make rules: its manifest has one, or is not stated in place as a whole."""
    attribute = block.body.attributes.get(HOLDERS[block.labels[0]])
    if attribute is None:
        return False
    node = _expression(attribute.file, attribute.line, attribute.value)
    return not _holds_none(Node(file=node.file, line=node.line, value=MappingProxyType({attribute.name: node})))


def judge_object(kind: str, file: str, resource: LocatedObject, values: object, context: ReadContext) -> None:
    """Count a resource of a plan or a state, or report it as unread."""
    _judge(kind, _node_of_value(file, resource.line, values), context)


def _judge(kind: str, node: Node, context: ReadContext) -> None:
    place = FileOrigin(file=node.file, line=node.line)
    if not _is_known(kind) and (kind in _HOLDERS or _SUSPICIOUS.search(kind) or rule_in(node) is not None):
        if kind in _HOLDERS and _holds_none(node):
            context.ignore(kind)
            return
        context.not_read(
            UnreadKind.TERRAFORM, place, f"a {kind[:60]} may make rules, and no format reads it", name=kind[:60]
        )
    elif embedded_in(node) is not None or any(rule_in(each) is not None for each in _arguments(node)):
        why = f"text inside of a {kind[:60]} that states rules, or a command that does"
        context.not_read(UnreadKind.EMBEDDED, place, why, name=kind[:60])
    else:
        context.ignore(kind)


def _is_known(kind: str) -> bool:
    """Return whether a type of resource is known to make no rule."""
    return kind in _TYPES or (kind.partition("_")[0] in _PROVIDERS and not kind.startswith(_PARTS))


def _holds_none(node: Node) -> bool:
    """Return whether the manifest in a resource is stated in place, and makes no rule."""
    if any(_ELSEWHERE in str(each.value) for each in scalars(node)):
        return False
    return rule_in(node) is None and embedded_in(node) is None


def _arguments(node: Node) -> Iterable[Node]:
    """Yield the arguments of calls at any depth, such as of yamlencode, without policies of access to clouds."""
    if isinstance(node.value, Mapping):
        for member in node.value.values():
            yield from _arguments(member)
    elif isinstance(node.value, tuple):
        if node.tag == _CALL:
            yield _without_policies(node)
            return
        for item in node.value:
            yield from _arguments(item)


def _without_policies(node: Node) -> Node:
    """Return a value without its objects that have the form of a policy of IAM, whose principals are not Kafka's."""
    if isinstance(node.value, tuple):
        return evolve(node, value=tuple(map(_without_policies, node.value)))
    if isinstance(node.value, Mapping):
        members = {key: _without_policies(item) for key, item in node.value.items() if key.lower() != "statement"}
        return evolve(node, value=MappingProxyType(members))
    return node


# Blocks and values as nodes.


def node_of(file: str, line: int, body: Body) -> Node:
    """Return the attributes and blocks of a body as a node; what is not stated in place has a text of its own."""
    members: dict[str, Node] = {}
    for name, attribute in body.attributes.items():
        members[name] = _expression(attribute.file, attribute.line, attribute.value)
    inner: dict[str, list[Node]] = {}
    for block in body.blocks:
        name = block.labels[0] if block.type == "dynamic" and block.labels else block.type
        inner.setdefault(name, []).append(node_of(block.file, block.line, _content(block)))
    for name, nodes in inner.items():
        members[name] = Node(file=file, line=nodes[0].line, value=tuple(nodes))
    return Node(file=file, line=line, value=MappingProxyType(members))


def _content(block: Block) -> Body:
    """Return the body of a block; that of a dynamic one is in its block `content`."""
    content = [each for each in block.body.blocks if each.type == "content"] if block.type == "dynamic" else []
    return content[0].body if content else block.body


def _expression(file: str, line: int, expression: Expression) -> Node:
    if isinstance(expression, Literal):
        payload = expression.value.payload
        value = payload if isinstance(payload, str | bool) or payload is None else 0
        return Node(file=file, line=line, value=value, raw=str(payload))
    if isinstance(expression, TupleOf):
        return Node(file=file, line=line, value=tuple(_expression(file, each.line, each) for each in expression.items))
    if isinstance(expression, ObjectOf):
        members = {}
        for key, item in expression.items:
            members[_text(key)] = _expression(file, item.line, item)
        return Node(file=file, line=line, value=MappingProxyType(members))
    if isinstance(expression, Call):
        parts = tuple(_expression(file, each.line, each) for each in expression.arguments)
        result = Node(file=file, line=line, value=_ELSEWHERE, raw=_ELSEWHERE)
        return Node(file=file, line=line, value=(*parts, result), tag=_CALL)
    return Node(file=file, line=line, value=_text(expression), raw=_text(expression))


def _text(expression: Expression) -> str:
    """Return the text of a literal or a template; what is not stated in place has a text of its own."""
    if isinstance(expression, Literal):
        return str(expression.value.payload)
    if isinstance(expression, Template):
        return "".join(map(_text, expression.parts))
    steps = getattr(expression, "steps", None)
    root = getattr(expression, "root", None)
    return root if isinstance(root, str) and not steps else _ELSEWHERE


def _node_of_value(file: str, line: int, value: object) -> Node:
    if isinstance(value, Mapping):
        at = value.line if isinstance(value, LocatedObject) else line
        return Node(file=file, line=at, value={str(key): _node_of_value(file, at, each) for key, each in value.items()})
    if isinstance(value, list):
        return Node(file=file, line=line, value=tuple(_node_of_value(file, line, each) for each in value))
    scalar = value if isinstance(value, str | bool | int | float) or value is None else str(value)
    return Node(file=file, line=line, value=scalar, raw=str(value))
