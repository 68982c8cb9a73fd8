"""The rules that JulieOps makes of topologies with its default configuration (AccessControlManager)."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from aclog.sources.formats.julie.clients import (
    connect_statements,
    consumer_statements,
    ksql_statements,
    producer_statements,
    streams_statements,
)
from aclog.sources.formats.julie.custom_roles import read_roles, role_statements
from aclog.sources.formats.julie.grants import listed
from aclog.sources.formats.julie.platform import platform_statements
from aclog.sources.formats.julie.shape import claims, is_plans, is_roles
from aclog.sources.formats.julie.topologies import Project, Topic, Topology, read_topologies
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.node import Node
from aclog.sources.formats.plain_text import plain_text
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.source_file import SourceFile
from aclog.sources.formats.statement import Statement

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
    roles = read_roles([each for each in documents if is_roles(each)])
    for _ in filter(is_plans, documents):
        context.ignore("file of plans")
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
    seen: set[str] = set()
    for producer in (each for owner in owners for each in listed(owner, "producers")):
        principal = _principal(producer)
        if principal not in seen:  # to the tool, producers of one principal are the same: it takes the first
            seen.add(principal)
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
    """Return what is under a key, or under `access_control` there, beside which artefacts stand."""
    found = project.get(key)
    if found is None or isinstance(found.value, tuple):
        return listed(project, key)
    found.check_keys(("access_control", *_ARTEFACTS), key)
    return listed(found, "access_control")


def _of_roles(project: Node, roles: dict[str, tuple[Node, ...]]) -> Iterator[LocatedRule]:
    """Yield the rules of those who have a role of one's own: what stands under a key that is none of the tool's."""
    for key, holders in project.mapping("the project").items():
        if key in _OWN_KEYS or key.lower() == "rbac" or holders.value in ((), None):
            continue  # nobody has a role in an empty list, such as `zookeepers` of older topologies
        if key not in roles:
            known = f"expected one of {', '.join(roles)}" if roles else "there is no file of roles beside it"
            raise holders.error(f"the project has the key {key[:60]!r}, which is no role: {known}")
        for holder in holders.items(key):
            yield from _of_user(holder, role_statements(holder, roles[key]))


def _of_user(user: Node, statements: Iterable[Statement]) -> Iterator[LocatedRule]:
    for statement in statements:
        yield _rule(user, statement)


def _rule(user: Node, statement: Statement) -> LocatedRule:
    return statement.rule(_principal(user))


def _principal(user: Node) -> str:
    return plain_text(user.required("principal", "this user"), "principal")
