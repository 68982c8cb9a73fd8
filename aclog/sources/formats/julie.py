"""JulieOps: topologies, and the ACLs that it derives."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from attrs import field

from aclog.authorizer.codes import WILDCARD, AclOperation, PatternType, ResourceType
from aclog.metalog.values import define, frozen
from aclog.sources.formats.nodes import Node, plain_text
from aclog.sources.formats.rule import (
    LocatedRule,
    ReadContext,
    SourceFile,
    Statement,
    concrete,
    named_value,
    on_cluster,
)
from aclog.sources.formats.unread import UnreadKind

# Custom roles: their ACLs, with the fields of their holders filled in (JulieRoles, BuildBindingsForRole).


_HOLDER = ("principal", "metadata", "transactionId", "idempotence", "group", "topic", "subject", "connector")
_FIELDS = {"topic": "", "subject": "", "connector": "", "group": WILDCARD, "transactionId": ""}
"""The fields of an ACL, with the default of each if the holder of the role has no value."""
_ACL = ("resourceType", "resourceName", "patternType", "host", "operation", "role", "permissionType")
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_TYPES = concrete(ResourceType)
_PATTERNS = concrete(PatternType)
_OPERATIONS = concrete(AclOperation)


def read_roles(documents: Sequence[Node]) -> dict[str, tuple[Node, ...]]:
    """Return the ACLs of each role.

    Raises:
        ConfigError: a second file of roles, or a role without a name or a duplicate one.

    """
    if len(documents) > 1:
        raise documents[1].error(f"a second file of roles: {documents[0].file} is the first, and JulieOps takes one")
    roles: dict[str, tuple[Node, ...]] = {}
    for role in documents[0].members("roles") if documents else ():
        role.check_keys(("name", "acls"), "the role")
        name = plain_text(role.required("name", "the role"), "name")
        if name in roles:
            raise role.error(f"duplicate role {name[:60]!r}")
        roles[name] = role.required("acls", f"the role {name}").items("acls")
    return roles


def role_statements(holder: Node, acls: Sequence[Node]) -> Iterator[Statement]:
    """Yield the statements of a role's holder. Raises ConfigError: an ACL of the role is invalid."""
    holder.check_keys(_HOLDER, "the holder of the role")
    values = dict(_FIELDS)
    for key in _FIELDS:
        value = holder.get(key)
        if value is not None:
            values[key] = plain_text(value, key)
            if "{" in values[key]:
                raise value.error(f"{key} holds a brace, which JulieOps may take for a template")
    for acl in acls:
        yield _statement(holder, acl, values)


def _statement(holder: Node, acl: Node, values: dict[str, str]) -> Statement:
    acl.check_keys(_ACL, "an ACL of the role")
    permission = acl.get("permissionType")
    if permission is not None and permission.text("permissionType").upper() == "DENY":
        raise permission.error("permissionType is DENY, of which JulieOps makes an ALLOW: state the rule elsewhere")
    operation = acl.get("operation") or acl.required("role", "an ACL of the role")
    return Statement(
        where=holder,
        resource_type=named_value(
            acl.required("resourceType", "an ACL of the role"), "resourceType", _TYPES, any_case=True
        ),
        name=_filled(acl.required("resourceName", "an ACL of the role"), values),
        pattern_type=named_value(
            acl.required("patternType", "an ACL of the role"), "patternType", _PATTERNS, any_case=True
        ),
        operation=named_value(operation, "operation", _OPERATIONS, any_case=True),
        host=plain_text(acl.required("host", "an ACL of the role"), "host"),
    )


def _filled(node: Node, values: dict[str, str]) -> str:
    """Return the name of a resource with the fields of the holder put in."""
    template = plain_text(node, "resourceName")
    for variable in _VARIABLE.findall(template):
        if variable not in values:
            raise node.error(f"resourceName names {variable[:60]!r}: expected one of {', '.join(values)}")
    if "{" in _VARIABLE.sub("", template):
        raise node.error(f"resourceName is {template[:60]!r}: of templates, only {{{{field}}}} is understood")
    return _VARIABLE.sub(lambda match: values[match[1]], template)


# Statements about topics, groups and transactional ids (AclsBindingsBuilder).


def on_topic(
    where: Node, name: str, *operations: AclOperation, pattern_type: PatternType = PatternType.LITERAL
) -> Iterator[Statement]:
    """Yield statements about a topic, or a prefix."""
    yield from _on(where, ResourceType.TOPIC, name, pattern_type, operations)


def on_group(
    where: Node, name: str, *operations: AclOperation, pattern_type: PatternType = PatternType.LITERAL
) -> Iterator[Statement]:
    """Yield statements about a group, or a prefix."""
    yield from _on(where, ResourceType.GROUP, name, pattern_type, operations)


def on_starred(where: Node, resource_type: ResourceType, name: str, *operations: AclOperation) -> Iterator[Statement]:
    """Yield statements about a name, or about a prefix if it ends in a star; a star alone is every name."""
    if len(name) > 1 and name.endswith(WILDCARD):
        yield from _on(where, resource_type, name.removesuffix(WILDCARD), PatternType.PREFIXED, operations)
    else:
        yield from _on(where, resource_type, name, PatternType.LITERAL, operations)


def _on(
    where: Node, resource_type: ResourceType, name: str, pattern_type: PatternType, operations: tuple[AclOperation, ...]
) -> Iterator[Statement]:
    for operation in operations:
        yield Statement(
            where=where, resource_type=resource_type, name=name, pattern_type=pattern_type, operation=operation
        )


def optional_text(of: Node, key: str, default: str) -> tuple[Node, str]:
    """Return a member as text, and its location; the default if it is missing or null. Raises as plain_text."""
    member = of.get(key)
    return (of, default) if member is None else (member, plain_text(member, key))


def listed(of: Node, key: str) -> tuple[Node, ...]:
    """Return the items of a list; none if it is missing or null. Raises ConfigError: no list, or an item is null."""
    member = of.get(key)
    if member is None:
        return ()
    for item in member.items(key):
        if item.is_null:
            raise item.error(f"an item of {key} is null")
    return member.items(key)


# The permissions of consumers, producers and applications (AclsBindingsBuilder).


_USER = ("principal", "metadata")
_CONNECT_TOPICS = {
    "status_topic": "connect-status",
    "offset_topic": "connect-offsets",
    "configs_topic": "connect-configs",
}
_CONNECTOR = (*_USER, "topics", *_CONNECT_TOPICS, "group", "cluster_id", "connectors")
_READ_WRITE = (("read", AclOperation.READ), ("write", AclOperation.WRITE))


def consumer_statements(consumer: Node, topic: str) -> Iterator[Statement]:
    """Yield the statements of a consumer of a topic. Raises ConfigError, as all of these, with file and line."""
    consumer.check_keys((*_USER, "group"), "the consumer")
    yield from on_topic(consumer, topic, AclOperation.DESCRIBE, AclOperation.READ)
    where, group = optional_text(consumer, "group", WILDCARD)
    yield from on_starred(where, ResourceType.GROUP, group, AclOperation.READ)


def producer_statements(producer: Node, topic: str) -> Iterator[Statement]:
    """Yield the statements of a producer to a topic; `idempotence` counts when it is there, though it be false."""
    producer.check_keys((*_USER, "transactionId", "idempotence", "idempotent"), "the producer")
    yield from on_topic(producer, topic, AclOperation.DESCRIBE, AclOperation.WRITE)
    transaction, idempotence = producer.get("transactionId"), producer.get("idempotence")
    if idempotence is not None:
        idempotence.boolean("idempotence")
    if transaction is not None:
        name = plain_text(transaction, "transactionId")
        yield from on_starred(
            transaction, ResourceType.TRANSACTIONAL_ID, name, AclOperation.DESCRIBE, AclOperation.WRITE
        )
    if transaction is not None or idempotence is not None:
        yield on_cluster(producer, AclOperation.IDEMPOTENT_WRITE)


def streams_statements(app: Node, prefix: str) -> Iterator[Statement]:
    """Yield the statements of a Kafka Streams application; `prefix` is that of its project."""
    app.check_keys((*_USER, "topics", "applicationId", "exactlyOnce"), "the streams application")
    where, name = _prefix(app, prefix)
    if not listed(app.required("topics", "the streams application"), "read"):
        raise app.error("the streams application reads no topics: JulieOps requires topics.read")
    yield from _topics(app)
    yield from on_topic(where, name, AclOperation.ALL, pattern_type=PatternType.PREFIXED)
    yield from on_group(where, name, AclOperation.READ, pattern_type=PatternType.PREFIXED)
    exactly_once = app.mapping().get("exactlyOnce")
    if exactly_once is not None and exactly_once.boolean("exactlyOnce"):
        for operation in (AclOperation.WRITE, AclOperation.DESCRIBE):
            yield Statement(
                where=exactly_once,
                resource_type=ResourceType.TRANSACTIONAL_ID,
                name=name,
                pattern_type=PatternType.PREFIXED,
                operation=operation,
            )


def ksql_statements(app: Node, prefix: str) -> Iterator[Statement]:
    """Yield the statements of a ksqlDB application; `prefix` is that of its project."""
    app.check_keys((*_USER, "topics", "applicationId", "ksqlDbId"), "the ksql application")
    where, name = _prefix(app, prefix)
    yield from _topics(app)
    yield from on_topic(where, name, AclOperation.ALL, pattern_type=PatternType.PREFIXED)
    yield from on_group(where, name, AclOperation.ALL, pattern_type=PatternType.PREFIXED)


def connect_statements(worker: Node) -> Iterator[Statement]:
    """Yield the statements of a Connect worker, which may create topics (connector.allow.topic.create is true)."""
    worker.check_keys(_CONNECTOR, "the connector")
    for key, default in _CONNECT_TOPICS.items():
        yield from on_topic(*optional_text(worker, key, default), AclOperation.READ, AclOperation.WRITE)
    yield on_cluster(worker, AclOperation.CREATE)
    yield from on_group(*optional_text(worker, "group", "connect-cluster"), AclOperation.READ)
    yield from _topics(worker)


def _prefix(app: Node, prefix: str) -> tuple[Node, str]:
    where, name = optional_text(app, "applicationId", prefix)
    if not name:
        raise where.error("applicationId is empty")
    return where, name


def _topics(app: Node) -> Iterator[Statement]:
    topics = app.get("topics")
    if topics is None:
        return
    topics.check_keys([key for key, _ in _READ_WRITE], "topics")
    for key, operation in _READ_WRITE:
        for topic in listed(topics, key):
            yield from on_topic(topic, plain_text(topic, "topic"), operation)


# The permissions of a platform's components: schema registries, control centers, ksqlDB servers.


_SECTIONS = ("kafka", "kafka_connect", "schema_registry", "control_center", "ksql")
_CONFLUENT_TOPICS = ("_confluent-monitoring", "_confluent-command", "_confluent-metrics")
_OF_CONTROL_CENTER = (AclOperation.WRITE, AclOperation.READ, AclOperation.CREATE, AclOperation.DESCRIBE)


def platform_statements(platform: Node | None) -> Iterator[tuple[Node, Statement]]:
    """Yield each component and its statements. Raises ConfigError: something in it is not understood."""
    if platform is None:
        return
    platform.check_keys(_SECTIONS, "platform")
    for section, statements in (
        ("schema_registry", _registry),
        ("control_center", _control_center),
        ("ksql", _ksql_server),
    ):
        member = platform.get(section)
        if member is not None:
            member.check_keys(("instances", "rbac"), f"platform.{section}")
            for instance in listed(member, "instances"):
                for statement in statements(instance):
                    yield instance, statement


def _registry(registry: Node) -> Iterator[Statement]:
    registry.check_keys((*_USER, "topic", "consumer_offsets_topic", "group"), "the schema registry")
    yield from on_topic(
        *optional_text(registry, "topic", "_schemas"),
        AclOperation.CREATE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.DESCRIBE,
        AclOperation.WRITE,
        AclOperation.READ,
    )
    offsets = optional_text(registry, "consumer_offsets_topic", "__consumer_offsets")
    yield from on_topic(*offsets, AclOperation.DESCRIBE)
    yield from on_group(*optional_text(registry, "group", "schema-registry"), AclOperation.READ)


def _control_center(center: Node) -> Iterator[Statement]:
    center.check_keys((*_USER, "appId"), "the control center")
    app = center.required("appId", "the control center")
    name = plain_text(app, "appId")
    for group in (name, f"{name}-command"):
        yield from on_group(app, group, AclOperation.READ, pattern_type=PatternType.PREFIXED)
    yield from on_group(center, WILDCARD, AclOperation.DESCRIBE)
    for topic in _CONFLUENT_TOPICS:
        yield from on_topic(center, topic, *_OF_CONTROL_CENTER)
    yield from on_topic(center, "_confluent-controlcenter", *_OF_CONTROL_CENTER, pattern_type=PatternType.PREFIXED)
    yield from on_topic(center, WILDCARD, AclOperation.CREATE)
    yield on_cluster(center, AclOperation.DESCRIBE)
    yield on_cluster(center, AclOperation.DESCRIBE_CONFIGS)


def _ksql_server(server: Node) -> Iterator[Statement]:
    server.check_keys((*_USER, "ksqlDbId", "owner"), "the ksql server")
    identity = server.required("ksqlDbId", "the ksql server")
    name = plain_text(identity, "ksqlDbId")
    internal = f"_confluent-ksql-{name}"
    yield on_cluster(server, AclOperation.DESCRIBE_CONFIGS)
    yield from on_topic(identity, internal, AclOperation.ALL, pattern_type=PatternType.PREFIXED)
    yield from on_topic(identity, f"{name}ksql_processing_log", AclOperation.ALL)
    yield from on_group(identity, internal, AclOperation.ALL, pattern_type=PatternType.PREFIXED)


# Which files are topologies, roles or plans of JulieOps.


_OF_PROJECT = ("topics", "consumers", "producers", "streams", "connectors")
_TOPOLOGY_SECTIONS = ("project", "platform", "special")
"""How the sections of a topology begin; `project` is a misspelled `projects`, which is reported then."""

_MARKS = (b"context", b"projects", b"roles", b"plans")
"""One of them is a key of every file of JulieOps."""


def claims(file: SourceFile) -> bool:
    """Return whether a YAML or JSON file looks like a topology, roles or plans. Raises ConfigError: not YAML."""
    # Reads the bytes first: a file that is not YAML, such as a template, is skipped if it cannot be a topology.
    if not file.has_suffix(".yaml", ".yml", ".json") or not file.mentions(*_MARKS):
        return False
    return any(is_topology(each) or is_roles(each) or is_plans(each) for each in file.documents)


def is_topology(document: Node) -> bool:
    """Return whether a document is a topology: a context and sections, or projects, whose context is missing then."""
    if isinstance(document.value, dict) and "context" in document.value:
        return any(
            (key.startswith(_TOPOLOGY_SECTIONS) and isinstance(value.value, dict | tuple)) or _is_projects(value)
            for key, value in document.value.items()
        )
    projects = document.items_of("projects")
    return any(project.get("name") is not None and _has_clients(project) for project in projects)


def _is_projects(node: Node) -> bool:
    return isinstance(node.value, tuple) and any(map(_has_clients, node.value))


def _has_clients(project: Node) -> bool:
    return any(project.get(key) is not None for key in _OF_PROJECT)


def is_roles(document: Node) -> bool:
    """Return whether a document defines roles (julie.roles in the tool's configuration)."""
    roles = document.get("roles")
    if roles is None or not isinstance(roles.value, tuple):
        return False
    return any(role.get("name") is not None and role.get("acls") is not None for role in roles.value)


def is_plans(document: Node) -> bool:
    """Return whether a document defines plans, which are configurations of topics."""
    plans = document.get("plans")
    if plans is None or not isinstance(plans.value, dict):
        return False
    return any(plan.get("config") is not None for plan in plans.value.values())


# Topologies: files of one context put together, and the names of their topics (TopologyObjectBuilder, ProjectImpl).


_SEPARATOR = "."
"""topology.topic.prefix.separator, unless it is configured."""
_MERGED_SECTIONS = ("context", "projects", "platform", "special_topics")


@define
class Parts:
    """The name parts before a project, in the order of the file."""

    context: str
    order: list[str] = field(factory=list)
    values: dict[str, str] = field(factory=dict)

    def prefix(self, project: str) -> str:
        """Return the name prefix of a project's topics; like the tool, with null for a missing part."""
        parts = [self.context, *(self.values.get(key, "null") for key in self.order), project]
        return _SEPARATOR.join(parts) + _SEPARATOR


@frozen(kw_only=True)
class Topic:
    """A topic, by its whole name."""

    name: str
    node: Node


@frozen(kw_only=True)
class Project:
    """A project."""

    name: str
    node: Node
    topics: tuple[Topic, ...]
    parts: Parts
    """The parts of its context, for all resources but its topics, whose file names them."""

    @property
    def prefix(self) -> str:
        """The name prefix of its applications' resources."""
        return self.parts.prefix(self.name)


@define
class Topology:
    """The topology of a context."""

    parts: Parts
    platform: Node | None
    projects: list[Project] = field(factory=list)
    special_topics: list[Topic] = field(factory=list)


def read_topologies(documents: Iterable[Node]) -> list[Topology]:
    """Return the topology of each context. A further file of a context adds its projects only, as in the tool.

    Raises:
        ConfigError: a missing or invalid name, or a duplicate project; with file and line.

    """
    topologies: dict[str, Topology] = {}
    for document in documents:
        parts = _parts(document)
        projects = [_project(node, parts) for node in listed(document, "projects")]
        main = topologies.get(parts.context)
        if main is None:
            main = topologies[parts.context] = Topology(parts, document.get("platform"))
            main.special_topics = [_topic(node, "") for node in listed(document, "special_topics")]
            main.projects = projects
        else:
            _merge(main, parts, projects)
    return list(topologies.values())


def _merge(main: Topology, parts: Parts, projects: list[Project]) -> None:
    names = {project.name.lower(): project.node for project in main.projects}
    # A project keeps the values that its context had when it came, and the order of keys as it is at the end.
    joined = Parts(main.parts.context, main.parts.order, dict(main.parts.values))
    for project in projects:
        first = names.get(project.name.lower())
        if first is not None:
            raise project.node.error(f"the project {project.name[:60]!r} is in {first.file}:{first.line} already")
        main.projects.append(Project(name=project.name, node=project.node, topics=project.topics, parts=joined))
    added = [key for key in parts.order if key not in main.parts.order]
    main.parts.order += added
    merged = Parts(
        main.parts.context, main.parts.order, {**main.parts.values, **{key: parts.values[key] for key in added}}
    )
    main.parts = merged


def _parts(document: Node) -> Parts:
    parts = Parts(plain_text(document.required("context", "the topology"), "context"))
    for key, node in document.mapping("the topology").items():
        if key not in _MERGED_SECTIONS:
            parts.order.append(key)
            parts.values[key] = plain_text(node, f"{key}, a part of the names of topics,")
    return parts


def _project(node: Node, parts: Parts) -> Project:
    name = plain_text(node.required("name", "the project"), "name")
    prefix = parts.prefix(name)
    topics = tuple(_checked(_topic(topic, prefix)) for topic in listed(node, "topics"))
    return Project(name=name, node=node, topics=topics, parts=parts)


def _topic(node: Node, prefix: str) -> Topic:
    name = plain_text(node.required("name", "the topic"), "name")
    data_type = node.mapping().get("dataType")
    if data_type is not None and prefix:
        name += _SEPARATOR + plain_text(data_type, "dataType")
    return Topic(name=prefix + name, node=node)


def _checked(topic: Topic) -> Topic:
    if not topic.name.isascii():
        raise topic.node.error(f"the name of topic {topic.name[:60]!r} is not ASCII: JulieOps refuses it")
    return topic


# The rules that JulieOps makes of topologies with its default configuration (AccessControlManager).


__all__ = ["claims", "read"]

_OWN_KEYS = ("name", "topics", "consumers", "producers", "connectors", "streams", "schemas", "ksql")
_OF_TOPIC = ("name", "consumers", "producers", "dataType")
_ARTEFACTS = ("artefacts", "artifacts")


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of topologies. Schemas and role bindings of RBAC make none.

    Raises:
        ConfigError: something on the way to a rule is not understood, or JulieOps would refuse it; with file and line.
        OSError: a file cannot be read.

    """
    documents = [_document(file) for file in sorted(files, key=_order)]
    defined, plans = [each for each in documents if is_roles(each)], [each for each in documents if is_plans(each)]
    for _ in plans:
        context.ignore("file of plans")
    if defined and len(defined) + len(plans) == len(documents):
        for each in defined:
            why = "roles without a topology that grants them: give the directory with the topologies"
            context.not_read(UnreadKind.DOCUMENT, each, why, name="roles")
        return
    roles = read_roles(defined)
    topologies = read_topologies(each for each in documents if not is_roles(each) and not is_plans(each))
    for topology in topologies:
        yield from _rules(topology, roles, context)


def _order(file: SourceFile) -> list[tuple[bool, str]]:
    """Return a key that sorts as the tool reads: the files of a directory, then the directories in it."""
    *directories, name = file.path.split("/")
    return [*((True, each) for each in directories), (False, name)]


def _document(file: SourceFile) -> Node:
    if len(file.documents) != 1:
        raise file.error(1, f"{len(file.documents)} documents: JulieOps reads a topology from a file of one")
    return file.documents[0]


def _rules(topology: Topology, roles: dict[str, tuple[Node, ...]], context: ReadContext) -> Iterator[LocatedRule]:
    for topic in (*(each for project in topology.projects for each in project.topics), *topology.special_topics):
        context.declare_topic(topic.name, topic.node)
    for project in topology.projects:
        for topic in project.topics:
            yield from _of_topic(topic, project.node)
        yield from _of_applications(project, context)
        yield from _of_roles(project.node, roles)
    for component, statement in platform_statements(topology.platform):
        yield _rule(component, statement)
    for topic in topology.special_topics:
        yield from _of_topic(topic, None)


def _of_topic(topic: Topic, project: Node | None) -> Iterator[LocatedRule]:
    """Yield the rules of a topic's own clients and of its project's."""
    for key, member in topic.node.mapping("the topic").items():
        near = get_close_matches(key, _OF_TOPIC, 1, 0.8)
        if near and key not in _OF_TOPIC:
            raise member.error(f"the topic has an unknown key {key[:60]!r}: did you mean {near[0]}?")
    owners = (topic.node,) if project is None else (topic.node, project)
    for consumer in (each for owner in owners for each in listed(owner, "consumers")):
        yield from _of_user(consumer, consumer_statements(consumer, topic.name))
    principals: set[str] = set()
    for producer in (each for owner in owners for each in listed(owner, "producers")):
        principal = _principal(producer)
        if principal not in principals:  # to the tool, producers of one principal are the same: it takes the first
            principals.add(principal)
            yield from _of_user(producer, producer_statements(producer, topic.name))


def _of_applications(project: Project, context: ReadContext) -> Iterator[LocatedRule]:
    for app in listed(project.node, "streams"):
        yield from _of_user(app, streams_statements(app, project.prefix))
    for app in _access_control(project.node, "ksql"):
        yield from _of_user(app, ksql_statements(app, project.prefix))
    for worker in _access_control(project.node, "connectors"):
        if worker.get("connectors") is not None:
            context.ignore("RBAC")
        yield from _of_user(worker, connect_statements(worker))
    for kind in ("schemas", "rbac"):
        for _ in listed(project.node, kind):
            context.ignore("RBAC")


def _access_control(project: Node, key: str) -> Sequence[Node]:
    """Return the value under a key, or under `access_control` there, next to which artefacts are listed."""
    member = project.get(key)
    if member is None or isinstance(member.value, tuple):
        return listed(project, key)
    member.check_keys(("access_control", *_ARTEFACTS), key)
    return listed(member, "access_control")


def _of_roles(project: Node, roles: dict[str, tuple[Node, ...]]) -> Iterator[LocatedRule]:
    """Yield the rules of holders of custom roles: those under keys that the tool does not define."""
    for key, holders in project.mapping("the project").items():
        if key in _OWN_KEYS or key.lower() == "rbac" or holders.value in ((), None):
            continue  # an empty list grants no role, such as `zookeepers` of older topologies
        if key not in roles:
            hint = f"expected one of {', '.join(roles)}" if roles else "no file of roles beside it"
            raise holders.error(f"the project has the key {key[:60]!r}, which is not a role: {hint}")
        for holder in holders.items(key):
            yield from _of_user(holder, role_statements(holder, roles[key]))


def _of_user(user: Node, statements: Iterable[Statement]) -> Iterator[LocatedRule]:
    for statement in statements:
        yield _rule(user, statement)


def _rule(user: Node, statement: Statement) -> LocatedRule:
    return statement.rule(_principal(user))


def _principal(user: Node) -> str:
    return plain_text(user.required("principal", "this user"), "principal")
