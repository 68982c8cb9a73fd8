"""Which files are states of kafka-gitops."""

from difflib import get_close_matches

from aclog.sources.formats.node import Node
from aclog.sources.formats.source_file import SourceFile

SECTIONS = ("settings", "topics", "services", "users", "customServiceAcls", "customUserAcls")
"""The top-level keys (DesiredStateFile)."""

_MARKS = (b"settings", b"topic", b"service", b"user", b"customServiceAcl", b"customUserAcl")
_MEMBERS = {
    "topics": (("partitions",), ("replication",)),
    "services": (("type",), ("principal", "produces"), ("principal", "consumes")),
    "users": (("principal",), ("roles",)),
}
"""For a section of named things: sets of keys that only these have; `users` of KSM have neither."""
_NEAR = 0.8
_SETTINGS = ("ccloud", "topics", "services", "files")


def claims(file: SourceFile) -> bool:
    """Return whether a YAML or JSON file looks like a state, or a part of one. Raises ConfigError: not YAML."""
    # A look at the bytes first: what is no YAML, such as a template, stops nobody if it cannot be a state.
    if not file.has_suffix(".yaml", ".yml", ".json") or not file.mentions(*_MARKS):
        return False
    return any(isinstance(document.value, dict) and _is_state(document) for document in file.documents)


def _is_state(document: Node) -> bool:
    settings = document.get("settings")
    if settings is not None and any(settings.get(key) is not None for key in _SETTINGS):
        return True
    # A key with a slip is claimed, too: what reads the state refuses it.
    named = ((key, _section_meant(key), value) for key, value in document.mapping().items())
    return any(_is_section(key, meant, value) for key, meant, value in named if meant is not None)


def _section_meant(key: str) -> str | None:
    return key if key in SECTIONS else next(iter(get_close_matches(key, SECTIONS, 1, _NEAR)), None)


def _is_section(key: str, meant: str, value: Node) -> bool:
    if meant in ("customServiceAcls", "customUserAcls"):
        return not value.is_null
    members = value.value.values() if isinstance(value.value, dict) else ()
    wanted = _MEMBERS.get(meant, ())
    if key != meant:  # of a slip, what nothing else has: `topic` and `user` are words of many
        wanted = tuple(keys for keys in wanted if len(keys) > 1)
    return any(all(member.get(key) is not None for key in keys) for member in members for keys in wanted)
