"""ns4kafka: namespaces, access control entries and streams, and their ACLs."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from attrs import field

from aclog.authorizer.acl import FileOrigin, StatedCluster, origin_text
from aclog.authorizer.codes import WILDCARD_PRINCIPAL, AclOperation, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.nodes import Node
from aclog.sources.formats.rule import (
    LocatedRule,
    ReadContext,
    Resource,
    SourceFile,
    Statement,
    resources,
)
from aclog.sources.formats.verdicts import judge_resource

# Access control entries: permissions on a resource, in ns4kafka's own terms.


CLUSTER = "metadata.cluster of ns4kafka"
"""The basis of a cluster."""
PUBLIC = "*"
"""The grantee that means everyone."""
_TYPES = ("TOPIC", "GROUP", "CONNECT", "CONNECT_CLUSTER", "SCHEMA", "TRANSACTIONAL_ID")
_PERMISSIONS = ("OWNER", "READ", "WRITE")
_PATTERNS = (PatternType.LITERAL.name, PatternType.PREFIXED.name)
_KEYS = ("resourceType", "resource", "resourcePatternType", "permission", "grantedTo")


@frozen(kw_only=True)
class Entry:
    """An entry (com.michelin.ns4kafka.model.AccessControlEntry)."""

    node: Node
    """Its spec."""
    namespace: str
    """The granting namespace; empty if it is set by the applying command."""
    resource_type: str
    resource: str
    pattern_type: PatternType
    permission: str
    granted_to: str

    @property
    def makes_rules(self) -> bool:
        """Whether ns4kafka makes ACLs from this entry: for a topic, a group, or owned connectors."""
        return self.resource_type in ("TOPIC", "GROUP") or (self.resource_type, self.permission) == ("CONNECT", "OWNER")


def parse_entry(resource: Resource) -> Entry:
    """Return an entry. Raises ConfigError: an entry that ns4kafka refuses, with its line."""
    spec, namespace = resource.spec, resource.namespace
    spec.check_keys(_KEYS, "the spec of an AccessControlEntry")
    entry = Entry(
        node=spec,
        namespace="" if namespace is None else namespace.text("metadata.namespace"),
        resource_type=_choice(spec, "resourceType", _TYPES),
        resource=_text(spec, "resource"),
        pattern_type=PatternType[_choice(spec, "resourcePatternType", _PATTERNS)],
        permission=_choice(spec, "permission", _PERMISSIONS),
        granted_to=_text(spec, "grantedTo"),
    )
    _check_grant(entry)
    return entry


def _check_grant(entry: Entry) -> None:
    """Refuse a grant that only an owner may have (AclService.validate)."""
    to_others = entry.granted_to == PUBLIC or entry.namespace not in ("", entry.granted_to)
    if to_others and (entry.resource_type not in ("TOPIC", "CONNECT_CLUSTER") or entry.permission == "OWNER"):
        raise entry.node.error(
            f"{entry.permission} of a {entry.resource_type} is granted to another: only READ and WRITE of TOPIC and "
            "CONNECT_CLUSTER can be"
        )


def _text(spec: Node, key: str) -> str:
    node = spec.required(key, "the spec of an AccessControlEntry")
    if not node.text(key).strip():
        raise node.error(f"{key} is empty")
    return node.raw


def _choice(spec: Node, key: str, choices: Collection[str]) -> str:
    text = _text(spec, key)
    if text not in choices:
        raise spec.required(key).error(f"{key} {text[:40]!r} is not one of {', '.join(choices)}")
    return text


# Namespaces: each has the Kafka user that receives its grants.


@frozen(kw_only=True)
class Namespace:
    """A namespace (com.michelin.ns4kafka.model.Namespace)."""

    name: str
    principal: str
    cluster: str
    """Empty if it is left to the server."""
    transactions: bool
    """Whether its groups come with transactional ids for connectors."""
    origin: FileOrigin


def parse_namespace(resource: Resource) -> Namespace:
    """Return a namespace. Raises ConfigError: it has no name or no Kafka user, with its line."""
    user = resource.spec.required("kafkaUser", "the spec of a Namespace")
    if not user.text("kafkaUser").strip():
        raise user.error("kafkaUser is empty")
    transactions = resource.spec.get("transactionsEnabled")
    cluster = resource.node.required("metadata").get("cluster")
    return Namespace(
        name=resource.name,
        principal=f"User:{user.raw}",
        cluster="" if cluster is None else cluster.text("metadata.cluster"),
        transactions=transactions is not None and transactions.boolean("transactionsEnabled"),
        origin=resource.node.origin,
    )


@define
class Namespaces:
    """All namespaces of the files."""

    _by_name: dict[str, Namespace] = field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._by_name)

    def add(self, namespace: Namespace) -> None:
        """Add one. Raises ConfigError: there is one of its name."""
        first = self._by_name.setdefault(namespace.name, namespace)
        if first is not namespace:
            where, name = origin_text(namespace.origin), namespace.name[:60]
            raise ConfigError(
                f"{where}: Namespace {name} is in {origin_text(first.origin)} already: read the files of one server of "
                "ns4kafka at a time"
            )

    def get(self, name: str) -> Namespace | None:
        """Return the namespace of a name."""
        return self._by_name.get(name)

    def granted_to(self, entry: Entry) -> Namespace | None:
        """Return the grantee namespace of an entry; None for everyone.

        Raises:
            ConfigError: that, or the one it belongs to, is not in the files; with the line of the entry.

        """
        if entry.namespace and entry.namespace not in self._by_name:
            raise entry.node.error(f"its namespace {entry.namespace[:60]!r} is not in the files")
        if entry.granted_to == PUBLIC:
            return None
        namespace = self._by_name.get(entry.granted_to)
        if namespace is None:
            raise entry.node.error(
                f"it is granted to the namespace {entry.granted_to[:60]!r}, which is not in the files"
            )
        return namespace


# The ACLs of an entry (com.michelin.ns4kafka.service.executor.AccessControlEntryAsyncExecutor).


_OF_OWNER = {
    ResourceType.TOPIC: (AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE_CONFIGS),
    ResourceType.GROUP: (AclOperation.READ,),
}


def rules_of_entry(entry: Entry, granted: Namespace | None, *, has_streams: bool) -> Iterator[LocatedRule]:
    """Yield the rules of an entry that makes some.

    `granted` is the namespace that it is granted to, None for everyone; `has_streams` is whether that namespace has a
    Kafka Streams application, whose transactional ids begin with the name of its group. Raises ConfigError: a rule that
    no Kafka accepts.
    """
    principal = WILDCARD_PRINCIPAL if granted is None else granted.principal
    for statement in _statements(entry, granted, has_streams=has_streams):
        yield statement.rule(principal)


def _statements(entry: Entry, granted: Namespace | None, *, has_streams: bool) -> Iterator[Statement]:
    def of(kind: ResourceType, name: str, operation: AclOperation, pattern_type: PatternType) -> Statement:
        return Statement(
            where=entry.node, resource_type=kind, name=name, operation=operation, pattern_type=pattern_type
        )

    if entry.resource_type == "CONNECT":
        yield of(ResourceType.GROUP, f"connect-{entry.resource}", AclOperation.READ, entry.pattern_type)
        return
    kind = ResourceType[entry.resource_type]
    for operation in _OF_OWNER[kind] if entry.permission == "OWNER" else (AclOperation[entry.permission],):
        yield of(kind, entry.resource, operation, entry.pattern_type)
    if kind == ResourceType.GROUP and granted is not None:
        for prefix in _transactional_ids(entry, granted, has_streams=has_streams):
            for operation in (AclOperation.WRITE, AclOperation.DESCRIBE):
                yield of(ResourceType.TRANSACTIONAL_ID, prefix, operation, PatternType.PREFIXED)


def _transactional_ids(entry: Entry, granted: Namespace, *, has_streams: bool) -> Iterable[str]:
    """Return the prefixes of transactional ids that come with a group, for any pattern of the group."""
    if granted.transactions:
        return (f"connect-cluster-{entry.resource}", entry.resource)
    return (entry.resource,) if has_streams else ()


# Kafka Streams applications: whose they are, and the ACLs for their internal topics.


def owner_of_stream(stream: Resource, entries: Sequence[Entry], namespaces: Namespaces) -> Namespace:
    """Return the namespace of an application.

    Without one in its metadata, it is the only one that owns topics and groups of its name: ns4kafka refuses others,
    and lets no two namespaces own a name (StreamService.isNamespaceOwnerOfKafkaStream, AclService).

    Raises:
        ConfigError: that namespace is not in the files, or there is not one; with the line of the application.

    """
    namespace = stream.namespace
    names = {namespace.text("metadata.namespace")} if namespace is not None else _owners(stream.name, entries)
    owners = [owner for owner in map(namespaces.get, sorted(names)) if owner is not None]
    if len(owners) == 1:
        return owners[0]
    if namespace is not None:
        raise namespace.error(f"its namespace {namespace.raw[:60]!r} is not in the files")
    raise stream.node.error(
        f"KafkaStream {stream.name[:60]} names no namespace, and {len(owners)} namespaces in the files own prefixes "
        "of its name as TOPIC and as GROUP: expected metadata.namespace"
    )


def _owners(name: str, entries: Sequence[Entry]) -> set[str]:
    def of(kind: str) -> set[str]:
        return {
            entry.granted_to
            for entry in entries
            if (entry.resource_type, entry.permission, entry.pattern_type) == (kind, "OWNER", PatternType.PREFIXED)
            and name.startswith(entry.resource)
        }

    return of("TOPIC") & of("GROUP")


def rules_of_stream(stream: Resource, owner: Namespace) -> Iterator[LocatedRule]:
    """Yield the rules for changelog and repartition topics, which begin with the name of the application."""
    for operation in (AclOperation.CREATE, AclOperation.DELETE):
        statement = Statement(
            where=stream.node,
            resource_type=ResourceType.TOPIC,
            name=stream.name,
            operation=operation,
            pattern_type=PatternType.PREFIXED,
        )
        yield statement.rule(owner.principal)


# Which files are ns4kafka's, and the ACLs of all of them together: an entry needs the namespace it is granted to.


_VERSION = "v1"
_MARKS = (b"AccessControlEntry", b"KafkaStream", b"kafkaUser")
_OTHERS = ("KafkaPrincipalAuthorization", "KafkaPrincipalRole", "KafkaUser")
"""Kinds that other tools make ACLs of: beside an entry, they would be left out."""


def claims(file: SourceFile) -> bool:
    """Return whether an entry, a Kafka Streams application or a namespace with a Kafka user is in the file.

    Raises:
        ConfigError: it may be and is not YAML; OSError: it cannot be read.

    """
    if not file.has_suffix(".yaml", ".yml", ".json") or not file.mentions(*_MARKS):
        return False
    return any(_makes_rules(each) for each in resources(file.documents))


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of the entries and of Kafka Streams applications; everything else is counted.

    Raises:
        ConfigError: what ns4kafka refuses, or a namespace that is not in the files; with file and line.
        OSError: a file cannot be read.

    """
    entries: list[Entry] = []
    streams: list[Resource] = []
    namespaces = Namespaces()
    for resource in (each for file in files for each in resources(file.documents)):
        if not _makes_rules(resource):
            if resource.kind in _OTHERS:
                raise resource.node.error(f"a {resource.kind} beside ns4kafka's resources: move it to a separate file")
            judge_resource(resource, context)
        elif resource.kind == "Namespace":
            namespaces.add(parse_namespace(resource))
        elif resource.kind == "KafkaStream":
            streams.append(resource)
        else:
            entries.append(parse_entry(resource))
    if not (entries or streams or namespaces):  # files that were not claimed, but given with the format
        raise ConfigError(f"{', '.join(file.name for file in files)}: expected a Namespace or an AccessControlEntry")
    yield from _rules(entries, streams, namespaces, context)


def _rules(
    entries: Sequence[Entry], streams: Sequence[Resource], namespaces: Namespaces, context: ReadContext
) -> Iterator[LocatedRule]:
    owned = [(stream, owner_of_stream(stream, entries, namespaces)) for stream in streams]
    with_streams = {owner.name for _, owner in owned}
    for entry in entries:
        granted: Namespace | None = namespaces.granted_to(entry)
        if entry.makes_rules:
            has_streams = granted is not None and granted.name in with_streams
            owner = granted or namespaces.get(entry.namespace)
            yield from _in_cluster(rules_of_entry(entry, granted, has_streams=has_streams), owner)
        else:
            context.ignore(f"AccessControlEntry of {entry.resource_type}")
    for stream, owner in owned:
        yield from _in_cluster(rules_of_stream(stream, owner), owner)


def _in_cluster(rules: Iterable[LocatedRule], namespace: Namespace | None) -> Iterator[LocatedRule]:
    """Yield rules as those of the cluster of a namespace, if it names one."""
    name = "" if namespace is None else namespace.cluster
    cluster = StatedCluster(basis=CLUSTER, name=name) if name else None
    yield from (each.of_cluster(cluster) for each in rules)


def _makes_rules(resource: Resource) -> bool:
    """Return whether a resource is ns4kafka's and can make ACLs. Kubernetes also has a Namespace of this version."""
    if resource.api_version != _VERSION:
        return False
    if resource.kind != "Namespace":
        return resource.kind in ("AccessControlEntry", "KafkaStream")
    spec, metadata = resource.node.get("spec"), resource.node.get("metadata")
    has_user = spec is not None and spec.get("kafkaUser") is not None
    return has_user or (metadata is not None and metadata.get("cluster") is not None)
