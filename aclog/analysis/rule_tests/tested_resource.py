"""Resources as tests name them: `topic:bill.in`, `topic:bill.*`, `cluster` (aclog.authorizer.name_notation)."""

from aclog.analysis.regions.names import Literal, Names, Subtree
from aclog.authorizer.acl import CLUSTER_NAME, WILDCARD, PatternType, ResourcePattern, ResourceType
from aclog.authorizer.name_notation import parse_pattern, pattern_text
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


def parse_resource(text: str) -> ResourcePattern:
    """Return what a text names: LITERAL for one name, PREFIXED for all that begin so.

    Raises:
        ConfigError: no known type, no name, or a star that is neither at the end nor escaped.

    """
    word, colon, name = text.partition(":")
    kind = TYPES.get(word.strip().lower().replace("_", "-")) if word.isascii() else None
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
    if not text:
        raise ConfigError("an empty name: expected a name, PREFIX* or * for all")
    return parse_pattern(kind, text)


def resource_text(resource: ResourcePattern) -> str:
    """Return the text that parse_resource reads as this resource."""
    word = ResourceType(resource.resource_type).name.lower().replace("_", "-")
    return _CLUSTER if resource.resource_type == ResourceType.CLUSTER else f"{word}:{pattern_text(resource)}"


def is_every_name(resource: ResourcePattern) -> bool:
    """Return whether it is a star alone: `topic:*`."""
    return resource.pattern_type != PatternType.LITERAL and not resource.name
