"""Topologies: files of one context put together, and the names of their topics (TopologyObjectBuilder, ProjectImpl)."""

from collections.abc import Iterable

from attrs import define, field, frozen

from aclog.sources.formats.julie.grants import listed
from aclog.sources.formats.node import Node
from aclog.sources.formats.plain_text import plain_text

_SEPARATOR = "."
"""topology.topic.prefix.separator, unless it is configured."""
_SECTIONS = ("context", "projects", "platform", "special_topics")


@define
class Parts:
    """The parts that stand before a project in names, in the order of the file."""

    context: str
    order: list[str] = field(factory=list)
    values: dict[str, str] = field(factory=dict)

    def prefix(self, project: str) -> str:
        """Return what stands before the names of a project's topics; the tool, too, writes null for what it lacks."""
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
    """Those of its context, for all but its topics, which are named in their file."""

    @property
    def prefix(self) -> str:
        """What stands before the names of what its applications make."""
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
        ConfigError: something that has no name or an invalid one, or a project that stands twice; with file and line.

    """
    found: dict[str, Topology] = {}
    for document in documents:
        parts = _parts(document)
        projects = [_project(node, parts) for node in listed(document, "projects")]
        main = found.get(parts.context)
        if main is None:
            main = found[parts.context] = Topology(parts, document.get("platform"))
            main.special_topics = [_topic(node, "") for node in listed(document, "special_topics")]
            main.projects = projects
        else:
            _merge(main, parts, projects)
    return list(found.values())


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
    known = Parts(
        main.parts.context, main.parts.order, {**main.parts.values, **{key: parts.values[key] for key in added}}
    )
    main.parts = known


def _parts(document: Node) -> Parts:
    parts = Parts(plain_text(document.required("context", "the topology"), "context"))
    for key, node in document.mapping("the topology").items():
        if key not in _SECTIONS:
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
