"""kafka-gitops: states, and the ACLs that it plans for them."""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType

from attrs import field

from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define
from aclog.sources.formats.nodes import Node
from aclog.sources.formats.rule import LocatedRule, ReadContext, SourceFile, Statement, named_value, on_cluster

# Custom ACLs of kafka-gitops, which state every field (CustomAclDetails).


_TYPES = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.DELEGATION_TOKEN,
)
_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
_OPERATIONS = tuple(each for each in AclOperation if AclOperation.ALL <= each <= AclOperation.IDEMPOTENT_WRITE)
_PERMISSIONS = (AclPermissionType.DENY, AclPermissionType.ALLOW)
"""The operations of the tool's Kafka client, 2.4; without the pattern MATCH, on which Kafka fails."""

_KEYS = ("name", "type", "pattern", "principal", "host", "operation", "permission")


def custom_acl(name: str, acl: Node) -> Statement:
    """Return the statement of a custom ACL; its principal is the caller's to find.

    Raises:
        ConfigError: a key is missing or unknown, or its value is not one of Kafka's names; with file and line.

    """
    what = f"custom ACL {name}"
    acl.check_keys(_KEYS, what)
    host = acl.mapping().get("host")
    return Statement(
        where=acl,
        resource_type=named_value(acl.required("type", what), f"the type of {what}", _TYPES),
        name=acl.required("name", what).text("name"),
        pattern_type=named_value(acl.required("pattern", what), f"the pattern of {what}", _PATTERNS),
        operation=named_value(acl.required("operation", what), f"the operation of {what}", _OPERATIONS),
        permission_type=_permission(acl, what),
        host=WILDCARD if host is None else host.text("host"),
    )


def _permission(acl: Node, what: str) -> AclPermissionType:
    if "permission" not in acl.mapping():
        return AclPermissionType.ALLOW
    return named_value(acl.required("permission", what), f"the permission of {what}", _PERMISSIONS)


# The permissions of kafka-gitops services (ApplicationService, KafkaStreamsService, KafkaConnectService).


_SERVICE_KEYS = {
    "application": ("type", "principal", "group-id", "produces", "consumes"),
    "kafka-streams": ("type", "principal", "application-id", "produces", "consumes"),
    "kafka-connect": ("type", "principal", "group-id", "storage-topics", "produces", "connectors"),
}
_STORAGE = {"config": "connect-configs-", "offset": "connect-offsets-", "status": "connect-status-"}
"""The storage topics of a Connect cluster, and the prefix of their default names."""
_OF_STREAMS = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.ALTER_CONFIGS,
    AclOperation.DESCRIBE_CONFIGS,
)
"""The operations of a Kafka Streams application on topics whose names begin with its id."""


def service_statements(name: str, service: Node, *, describes_topics: bool) -> Iterator[Statement]:
    """Yield the statements of a service.

    Raises:
        ConfigError: its type or one of its keys is unknown, or a value is of the wrong kind; with file and line.

    """
    what = f"service {name}"
    kind = service.required("type", what).text("type")
    if kind not in _SERVICE_KEYS:
        raise service.required("type").error(
            f"{what} has the type {kind[:60]!r}: expected one of {', '.join(_SERVICE_KEYS)}"
        )
    service.check_keys(_SERVICE_KEYS[kind], what)
    yield from _topics(service, describes_topics=describes_topics)
    if kind == "application":
        yield from _consumer_group(service, _group(service, "group-id", name))
    elif kind == "kafka-streams":
        yield from _streams(service, _group(service, "application-id", name))
    else:
        yield from _connect(name, service, describes_topics=describes_topics)


def _topics(of: Node, *, describes_topics: bool) -> Iterator[Statement]:
    for key, operation in (("produces", AclOperation.WRITE), ("consumes", AclOperation.READ)):
        for topic in _listed(of, key):
            yield _on_topic(topic, topic.text("topic"), operation)
            if describes_topics:
                yield _on_topic(topic, topic.text("topic"), AclOperation.DESCRIBE)


def _listed(of: Node, key: str) -> Iterator[Node]:
    """Yield the items of a list, which may be missing, but not null: kafka-gitops fails on that."""
    member = of.mapping().get(key)
    if member is not None:
        yield from member.items(key)


def _group(service: Node, key: str, name: str) -> tuple[Node, str]:
    """Return the group or application id, and where it is stated; the name of the service unless it is given."""
    member = service.get(key)
    return (service, name) if member is None else (member, member.text(key))


def _consumer_group(of: Node, group: tuple[Node, str]) -> Iterator[Statement]:
    if any(True for _ in _listed(of, "consumes")):
        yield _on_group(*group, AclOperation.READ)


def _streams(service: Node, application: tuple[Node, str]) -> Iterator[Statement]:
    where, name = application
    for operation in _OF_STREAMS:
        yield _on_topic(where, name, operation, PatternType.PREFIXED)
    for operation in (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE):
        yield _on_group(where, name, operation)
    yield on_cluster(service, AclOperation.DESCRIBE_CONFIGS)


def _connect(name: str, service: Node, *, describes_topics: bool) -> Iterator[Statement]:
    storage = service.get("storage-topics")
    if storage is not None:
        storage.check_keys(tuple(_STORAGE), f"storage-topics of service {name}")
    for key, prefix in _STORAGE.items():
        member = None if storage is None else storage.get(key)
        topic = prefix + name if member is None else member.text(key)
        for operation in (AclOperation.READ, AclOperation.WRITE):
            yield _on_topic(member or service, topic, operation)
    yield _on_group(*_group(service, "group-id", name), AclOperation.READ)
    connectors = service.mapping().get("connectors")
    if connectors is None:
        return
    for connector_name, connector in connectors.mapping("connectors").items():
        connector.check_keys(("produces", "consumes"), f"connector {connector_name}")
        yield from _topics(connector, describes_topics=describes_topics)
        yield from _consumer_group(connector, (connector, f"connect-{connector_name}"))


def _on_topic(
    where: Node, name: str, operation: AclOperation, pattern_type: PatternType = PatternType.LITERAL
) -> Statement:
    return Statement(
        where=where, resource_type=ResourceType.TOPIC, name=name, pattern_type=pattern_type, operation=operation
    )


def _on_group(where: Node, name: str, operation: AclOperation) -> Statement:
    return Statement(where=where, resource_type=ResourceType.GROUP, name=name, operation=operation)


# Which files are states of kafka-gitops.


SECTIONS = ("settings", "topics", "services", "users", "customServiceAcls", "customUserAcls")
"""The top-level keys (DesiredStateFile)."""

_MARKS = (b"settings", b"topic", b"service", b"user", b"customServiceAcl", b"customUserAcl")
_MEMBERS = {
    "topics": (("partitions",), ("replication",)),
    "services": (("principal", "produces"), ("principal", "consumes")),
    "users": (("principal",),),
}
"""For a section of named things: sets of keys that only these have; `users` of KSM have neither."""
_VALUES = {"services": ("type", tuple(_SERVICE_KEYS)), "users": ("roles", ("reader", "writer", "operator"))}
"""For a section: a key that other tools have as well, and the values by which it is meant."""
_NEAR = 0.8
_SETTINGS = (
    ("ccloud", "enabled"),
    ("services", "acls"),
    ("topics", "defaults"),
    ("topics", "blacklist"),
    *(("files", section) for section in ("services", "topics", "users")),
)
"""Keys of settings, and a key in each: `settings.services` alone is of many tools."""


def claims(file: SourceFile) -> bool:
    """Return whether a YAML or JSON file looks like a state, or a part of one. Raises ConfigError: not YAML."""
    # Reads the bytes first: a file that is not YAML, such as a template, is skipped if it cannot be a state.
    if not file.has_suffix(".yaml", ".yml", ".json") or not file.mentions(*_MARKS):
        return False
    return any(isinstance(document.value, dict) and _is_state(document) for document in file.documents)


def _is_state(document: Node) -> bool:
    settings = document.get("settings")
    if settings is not None and any(
        (member := settings.get(section)) is not None and member.get(key) is not None for section, key in _SETTINGS
    ):
        return True
    # A misspelled key is also claimed: the reader of the state refuses it.
    named = ((key, _section_meant(key), value) for key, value in document.mapping().items())
    return any(_is_section(key, section, value) for key, section, value in named if section is not None)


def _section_meant(key: str) -> str | None:
    return key if key in SECTIONS else next(iter(get_close_matches(key, SECTIONS, 1, _NEAR)), None)


def _is_section(key: str, section: str, value: Node) -> bool:
    if section in ("customServiceAcls", "customUserAcls"):
        return not value.is_null
    members = value.value.values() if isinstance(value.value, dict) else ()
    shapes = _MEMBERS.get(section, ())
    if key != section:  # of a slip, what nothing else has: `topic` and `user` are words of many
        shapes = tuple(keys for keys in shapes if len(keys) > 1)
    has_shape = any(all(member.get(key) is not None for key in keys) for member in members for keys in shapes)
    return has_shape or (key == section and any(_has_value(section, member) for member in members))


def _has_value(section: str, member: Node) -> bool:
    """Return whether a thing is of the tool by a value that it has, with slips."""
    key, values = _VALUES.get(section, ("", ()))
    node = member.get(key)
    nodes = () if node is None else node.value if isinstance(node.value, tuple) else (node,)
    return any(get_close_matches(each.raw.lower(), values, 1, _NEAR) for each in nodes)


# A state of kafka-gitops: one file, and those that its settings name (DesiredStateFile, ParserService).


_PARTS = ("services", "topics", "users")
"""Sections that a file of their own may hold (SettingsFiles)."""


@define(kw_only=True)
class State:
    """The sections of a state that make rules; each thing by its name."""

    on_confluent_cloud: bool = False
    """Whether principals are the ids of service accounts, which the tool looks up in the cloud."""
    describes_topics: bool = False
    """Whether each service may also DESCRIBE its topics."""
    topics: dict[str, Node] = field(factory=dict)
    services: dict[str, Node] = field(factory=dict)
    users: dict[str, Node] = field(factory=dict)
    service_acls: dict[str, Node] = field(factory=dict)
    user_acls: dict[str, Node] = field(factory=dict)


def read_states(files: Sequence[SourceFile], context: ReadContext) -> list[State]:
    """Return the states of files; a file that another one names in its settings is a part of that.

    Raises:
        ConfigError: a part is missing, a key is unknown, or a setting cannot be read; with file and line.
        OSError: a part cannot be read.

    """
    documents = {file.path: _document(file) for file in files}
    named = {path for file in files for path, _ in _part_paths(file, documents[file.path]).values()}
    roots = [file for file in files if posixpath.normpath(file.path) not in named]
    if files and not roots:
        raise ConfigError(f"{files[0].name}: settings.files: these files name each other")
    return [_state(file, documents[file.path], context) for file in roots]


def _document(file: SourceFile) -> Node:
    documents = file.whole_documents()
    if not documents:
        raise ConfigError(f"{file.name}: empty: expected a state of kafka-gitops")
    if len(documents) > 1:
        raise documents[1].error("a second document: kafka-gitops reads the first one only")
    documents[0].check_keys(SECTIONS, "the state")
    return documents[0]


def _part_paths(file: SourceFile, document: Node) -> dict[str, tuple[str, Node]]:
    """Return the path of each part that a state names, from the root of the tree."""
    settings = document.get("settings")
    files = None if settings is None else settings.get("files")
    if files is None:
        return {}
    files.check_keys(_PARTS, "settings.files")
    return {part: (_beside(file, node), node) for part in _PARTS if (node := files.get(part)) is not None}


def _beside(file: SourceFile, node: Node) -> str:
    """Return a path that is meant from the directory of a file; to the tool, a slash before it changes nothing."""
    path = node.text("the file of a section").lstrip("/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(file.path), path))


def _state(file: SourceFile, document: Node, context: ReadContext) -> State:
    state = State()
    _read_settings(document.get("settings"), state)
    for section in _PARTS:
        _add(state, section, document)
    state.service_acls.update(_section(document, "customServiceAcls"))
    state.user_acls.update(_section(document, "customUserAcls"))
    for part, (path, node) in _part_paths(file, document).items():
        if not context.tree.is_file(path):
            raise node.error(f"settings.files.{part}: {context.tree.display(path)}: no such file")
        _add(state, part, _document(SourceFile(context.tree, path)))  # of its sections, the tool takes this one only
    for _ in state.topics:
        context.ignore("topic")
    return state


def _add(state: State, section: str, document: Node) -> None:
    """Add a section of a file; a later file overrides the entry of a name in an earlier one."""
    {"services": state.services, "topics": state.topics, "users": state.users}[section].update(
        _section(document, section)
    )


def _section(document: Node, key: str) -> Mapping[str, Node]:
    section = document.mapping("the state").get(key)
    if section is None:
        return {}
    if key == "topics" and not isinstance(section.value, Mapping):
        return {}  # a fault of topics makes no rule
    return section.mapping(key)


def _read_settings(settings: Node | None, state: State) -> None:
    if settings is None:
        return
    settings.check_keys(("ccloud", "topics", "services", "files"), "settings")
    cloud = settings.get("ccloud")
    if cloud is not None:
        cloud.check_keys(("enabled",), "settings.ccloud")
        state.on_confluent_cloud = cloud.required("enabled", "settings.ccloud").boolean("enabled")
    services = settings.get("services")
    if services is None:
        return
    services.check_keys(("acls",), "settings.services")
    acls = services.get("acls")
    if acls is None:
        return
    acls.check_keys(("describeTopicEnabled",), "settings.services.acls")
    describes = acls.get("describeTopicEnabled")
    state.describes_topics = describes is not None and describes.boolean("describeTopicEnabled")


# The permissions of kafka-gitops users' roles (RoleService).


_ROLES: Mapping[str, tuple[tuple[ResourceType, AclOperation], ...]] = MappingProxyType(
    {
        "reader": ((ResourceType.TOPIC, AclOperation.READ), (ResourceType.GROUP, AclOperation.READ)),
        "writer": ((ResourceType.TOPIC, AclOperation.WRITE),),
        "operator": (
            (ResourceType.CLUSTER, AclOperation.DESCRIBE),
            (ResourceType.TOPIC, AclOperation.DESCRIBE),
            (ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS),
            (ResourceType.GROUP, AclOperation.READ),
            (ResourceType.GROUP, AclOperation.DESCRIBE),
        ),
    }
)
"""Statements on all resources of the type."""


def user_statements(name: str, user: Node) -> Iterator[Statement]:
    """Yield the statements of a user's roles. Raises ConfigError: an unknown key or role, with file and line."""
    user.check_keys(("principal", "roles"), f"user {name}")
    roles = user.mapping().get("roles")
    for role in () if roles is None else roles.items("roles"):
        grants = _ROLES.get(role.text("role").lower())
        if grants is None:
            names = ", ".join(_ROLES)
            raise role.error(f"user {name} has the role {role.raw[:60]!r}: expected one of {names}")
        for resource_type, operation in grants:
            on = CLUSTER_NAME if resource_type == ResourceType.CLUSTER else WILDCARD
            yield Statement(where=role, resource_type=resource_type, name=on, operation=operation)


# The rules that kafka-gitops plans for its states (StateManager).


__all__ = ["claims", "read"]


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of states. Topics make none, nor do custom ACLs of a service or user that is not defined.

    Raises:
        ConfigError: something on the way to a rule that kafka-gitops would refuse, or a principal that only Confluent
            Cloud knows; with file and line.
        OSError: a file cannot be read.

    """
    for state in read_states(files, context):
        for name, topic in state.topics.items():
            context.declare_topic(name, topic)
        yield from _of_services(state, context)
        yield from _of_users(state, context)


def _of_services(state: State, context: ReadContext) -> Iterator[LocatedRule]:
    for name, service in state.services.items():
        _refuse_cloud(state, service, name)
        statements = list(service_statements(name, service, describes_topics=state.describes_topics))
        principal = service.get("principal")
        if statements and principal is None:
            raise service.error(f"service {name} has no principal")
        for statement in statements:
            yield statement.rule("" if principal is None else principal.text("principal"))
    for name, acls in state.service_acls.items():
        yield from _custom(acls, None, context, owner=f"service {name}", exists=name in state.services)


def _of_users(state: State, context: ReadContext) -> Iterator[LocatedRule]:
    principals: dict[str, str] = {}
    for name, user in state.users.items():
        _refuse_cloud(state, user, f"user-{name}")
        statements = list(user_statements(name, user))
        principals[name] = user.required("principal", f"user {name}").text("principal")
        for statement in statements:
            yield statement.rule(principals[name])
    for name, acls in state.user_acls.items():
        principal = principals.get(name)
        yield from _custom(acls, principal, context, owner=f"user {name}", exists=principal is not None)


def _custom(
    acls: Node, principal: str | None, context: ReadContext, *, owner: str, exists: bool
) -> Iterator[LocatedRule]:
    """Yield custom ACLs; the principal of one that has none is its owner's, if that is a user."""
    for name, acl in acls.mapping(f"the custom ACLs of {owner}").items():
        statement = custom_acl(name, acl)
        own = acl.get("principal")
        if not exists:
            kind = "custom ACL of an undefined service or user"
            context.makes_nothing(kind, acl, f"custom ACL {name} of {owner}, which is not defined: it makes no rule")
        elif own is not None:
            yield statement.rule(own.text("principal"))
        elif principal is not None:
            yield statement.rule(principal)
        else:
            raise acl.error(f"custom ACL {name} of {owner} has no principal: it does not inherit one")


def _refuse_cloud(state: State, node: Node, account: str) -> None:
    if state.on_confluent_cloud:
        raise node.error(
            f"the principal of this is the id of the service account {account[:60]!r}, which only Confluent Cloud "
            "knows (settings.ccloud.enabled): read the cluster instead, with --bootstrap-server"
        )
