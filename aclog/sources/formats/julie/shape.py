"""Which files are topologies of JulieOps, and which say what its roles and plans are."""

from aclog.sources.formats.node import Node
from aclog.sources.formats.source_file import SourceFile

_OF_PROJECT = ("topics", "consumers", "producers", "streams", "connectors")
_SECTIONS = ("project", "platform", "special")
"""How the sections of a topology begin; `project` for `projects` is a slip, which is told then."""

_MARKS = (b"context", b"projects", b"roles", b"plans")
"""One of them is a key of every file of JulieOps."""


def claims(file: SourceFile) -> bool:
    """Return whether a YAML or JSON file looks like one of them. Raises ConfigError: not YAML."""
    # A look at the bytes first: what is no YAML, such as a template, stops nobody if it cannot be a topology.
    if not file.has_suffix(".yaml", ".yml", ".json") or not file.mentions(*_MARKS):
        return False
    return any(is_topology(each) or is_roles(each) or is_plans(each) for each in file.documents)


def is_topology(document: Node) -> bool:
    """Return whether a document is a topology: a context and sections, or projects, whose context is missing then."""
    if isinstance(document.value, dict) and "context" in document.value:
        return any(key.startswith(_SECTIONS) or _is_projects(value) for key, value in document.value.items())
    projects = document.get("projects")
    found = projects.value if projects is not None and isinstance(projects.value, tuple) else ()
    return any(project.get("name") is not None and _has_clients(project) for project in found)


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
