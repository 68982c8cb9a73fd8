r"""Resources as tests name them: `topic:bill.in`, `topic:bill.*`, `cluster`; a last `*` is a prefix, `\*` a star."""

import re

from aclog.analysis.regions.names import Literal, Names, Subtree
from aclog.authorizer.acl import CLUSTER_NAME, WILDCARD, PatternType, ResourcePattern, ResourceType
from aclog.metalog.errors import ConfigError

TYPES = {
    kind.name.lower().replace("_", "-"): kind
    for kind in (
        ResourceType.TOPIC,
        ResourceType.GROUP,
        ResourceType.CLUSTER,
        ResourceType.TRANSACTIONAL_ID,
        ResourceType.DELEGATION_TOKEN,
        ResourceType.USER,
    )
}
"""The resource types by the word before the colon."""

USUAL_NAMES: Names = (Subtree(prefix="", except_prefixes=(WILDCARD,)), Literal(name=WILDCARD))
"""What an ACL on `*` covers in Kafka: every name but longer ones that begin with `*`."""

_CLUSTER = "cluster"
_TOKEN = re.compile(r"\\[\\*]|[^\\*]+|\*(?=\Z)")
r"""An escaped star or backslash, characters that mean themselves, or the star at the end."""


def parse_resource(text: str) -> ResourcePattern:
    r"""Return what a text names: LITERAL for one name, PREFIXED for all that begin with what precedes its last `*`.

    Raises:
        ConfigError: no known type, no name, a star before the end, or a backslash that escapes neither `*` nor `\`.

    """
    word, colon, name = text.partition(":")
    kind = TYPES.get(word.strip().lower().replace("_", "-"))
    if kind is None:
        known = ", ".join(each if each == _CLUSTER else f"{each}:NAME" for each in TYPES)
        raise ConfigError(f"{text[:80]!r} is no resource: expected one of {known}")
    if kind is ResourceType.CLUSTER:
        if name not in ("", CLUSTER_NAME):
            raise ConfigError(f"{text[:80]!r}: a cluster has the name {CLUSTER_NAME}: expected {_CLUSTER}")
        return ResourcePattern(resource_type=kind, name=CLUSTER_NAME)
    if not colon or not name:
        raise ConfigError(f"{text[:80]!r} has no name: expected {word}:NAME, {word}:PREFIX* or {word}:* for all")
    return parse_names(kind, name)


def parse_names(kind: ResourceType, text: str) -> ResourcePattern:
    """Return the resource of a type with a name as tests write it, without the type. Raises as parse_resource."""
    parts = _TOKEN.findall(text)
    if sum(map(len, parts)) < len(text) or not text:
        what = r"a * at the end is a prefix, \* is a star, and \\ is a backslash; expected no other * or backslash"
        raise ConfigError(f"{text[:80]!r}: {what}")
    prefixed = parts[-1] == "*"
    name = "".join(part[1:] if part[0] == "\\" else part for part in (parts[:-1] if prefixed else parts))
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    return ResourcePattern(resource_type=kind, name=name, pattern_type=pattern)


def resource_text(resource: ResourcePattern) -> str:
    """Return the text that parse_resource reads as this resource."""
    word = ResourceType(resource.resource_type).name.lower().replace("_", "-")
    if resource.resource_type == ResourceType.CLUSTER:
        return _CLUSTER
    escaped = resource.name.replace("\\", "\\\\").replace("*", "\\*")
    return f"{word}:{escaped}{'' if resource.pattern_type == PatternType.LITERAL else '*'}"


def is_every_name(resource: ResourcePattern) -> bool:
    """Return whether it is a star alone: `topic:*`."""
    return resource.pattern_type != PatternType.LITERAL and not resource.name
