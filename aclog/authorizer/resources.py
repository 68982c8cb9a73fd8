"""Resources of questions, by short names (docs/library.md)."""

from aclog.authorizer.acl import CLUSTER_NAME, PatternType, ResourcePattern, ResourceType, parse_name
from aclog.authorizer.name_notation import asked_pattern
from aclog.metalog.errors import ConfigError

_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)


def topic(name: str, *, pattern: str | PatternType | None = None) -> ResourcePattern:
    """Return a topic, or with `pii-*` all topics that begin with `pii-` (aclog.authorizer.name_notation).

    With a pattern type, LITERAL or PREFIXED, the name is as it is, as in Kafka.

    Raises:
        ConfigError: here and below: the name is no text, or has a star that is neither at the end nor escaped; or the
            pattern type is another one. Of a topic also: a star in its name.

    """
    return _asked(ResourceType.TOPIC, name, pattern)


def group(name: str, *, pattern: str | PatternType | None = None) -> ResourcePattern:
    """Return a consumer group, or all that begin so."""
    return _asked(ResourceType.GROUP, name, pattern)


def cluster() -> ResourcePattern:
    """Return the cluster resource."""
    return ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME)


def transactional_id(name: str, *, pattern: str | PatternType | None = None) -> ResourcePattern:
    """Return a transactional id, or all that begin so."""
    return _asked(ResourceType.TRANSACTIONAL_ID, name, pattern)


def delegation_token(token_id: str, *, pattern: str | PatternType | None = None) -> ResourcePattern:
    """Return a delegation token, named by its id, or all whose ids begin so."""
    return _asked(ResourceType.DELEGATION_TOKEN, token_id, pattern)


def user(principal: str, *, pattern: str | PatternType | None = None) -> ResourcePattern:
    """Return a user as a resource (`User:alice`), or all that begin so, for CREATE_TOKENS and DESCRIBE_TOKENS."""
    return _asked(ResourceType.USER, principal, pattern)


def _asked(resource_type: ResourceType, name: str, pattern: str | PatternType | None) -> ResourcePattern:
    if not isinstance(name, str):
        raise ConfigError(f"the name of a {resource_type} is of type {type(name).__name__}: expected text")
    if isinstance(pattern, str):
        pattern = parse_name(_PATTERNS, pattern)
    if pattern is not None and pattern not in _PATTERNS:
        raise ConfigError(f"pattern {pattern!r}: expected LITERAL or PREFIXED")
    return asked_pattern(resource_type, name, pattern)
