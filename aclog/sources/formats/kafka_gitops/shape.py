"""Which files are states of kafka-gitops."""

from aclog.sources.formats.node import Node
from aclog.sources.formats.source_file import SourceFile

SECTIONS = ("settings", "topics", "services", "users", "customServiceAcls", "customUserAcls")
"""The top-level keys (DesiredStateFile)."""

_MEMBERS = {
    "topics": ("partitions", "replication"),
    "services": ("type",),
    "users": ("principal", "roles"),
}
"""For a section of named things: keys that only these have; `users` of KSM have neither."""
_SETTINGS = ("ccloud", "topics", "services", "files")


def claims(file: SourceFile) -> bool:
    """Return whether a YAML or JSON file looks like a state, or a part of one. Raises ConfigError: not YAML."""
    # A look at the bytes first: what is no YAML, such as a template, stops nobody if it cannot be a state.
    if not file.has_suffix(".yaml", ".yml", ".json") or not any(key.encode() in file.content for key in SECTIONS):
        return False
    if not file.documents:
        return False
    state = file.documents[0]
    if any(state.get(key) is not None for key in ("customServiceAcls", "customUserAcls")):
        return True
    if any(_has_member(state.get(section), keys) for section, keys in _MEMBERS.items()):
        return True
    settings = state.get("settings")
    return settings is not None and any(settings.get(key) is not None for key in _SETTINGS)


def _has_member(section: Node | None, keys: tuple[str, ...]) -> bool:
    if section is None or not isinstance(section.value, dict):
        return False
    return any(member.get(key) is not None for member in section.value.values() for key in keys)
