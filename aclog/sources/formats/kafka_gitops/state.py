"""A state of kafka-gitops: one file, and those that its settings name (DesiredStateFile, ParserService)."""

import posixpath
from collections.abc import Mapping, Sequence

from attrs import define, field

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.kafka_gitops.shape import SECTIONS
from aclog.sources.formats.node import Node
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.source_file import SourceFile

_PARTS = ("services", "topics", "users")
"""Sections that a file of their own may hold (SettingsFiles)."""


@define(kw_only=True)
class State:
    """The sections of a state that make rules; each thing by its name."""

    on_confluent_cloud: bool = False
    """Whether principals are the ids of service accounts, which the tool asks the cloud for."""
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
    documents = file.documents
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
    """Take a section of a file; what a later file says of a name replaces what an earlier one said."""
    {"services": state.services, "topics": state.topics, "users": state.users}[section].update(
        _section(document, section)
    )


def _section(document: Node, key: str) -> Mapping[str, Node]:
    found = document.mapping("the state").get(key)
    if found is None:
        return {}
    if key == "topics" and not isinstance(found.value, Mapping):
        return {}  # a fault of topics makes no rule
    return found.mapping(key)


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
