"""Resources as literal patterns, by short names (docs/library.md)."""

from aclog.authorizer.acl import CLUSTER_NAME, ResourcePattern, ResourceType
from aclog.metalog.errors import ConfigError


def topic(name: str) -> ResourcePattern:
    """Return a topic as a literal resource pattern. Raises ConfigError, here and below: the name is no text."""
    return _literal(ResourceType.TOPIC, name)


def group(name: str) -> ResourcePattern:
    """Return a consumer group as a literal resource pattern."""
    return _literal(ResourceType.GROUP, name)


def cluster() -> ResourcePattern:
    """Return the cluster resource."""
    return ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME)


def transactional_id(name: str) -> ResourcePattern:
    """Return a transactional id as a literal resource pattern."""
    return _literal(ResourceType.TRANSACTIONAL_ID, name)


def delegation_token(token_id: str) -> ResourcePattern:
    """Return a delegation token, named by its id."""
    return _literal(ResourceType.DELEGATION_TOKEN, token_id)


def user(principal: str) -> ResourcePattern:
    """Return a user as a resource (`User:alice`), for CREATE_TOKENS and DESCRIBE_TOKENS."""
    return _literal(ResourceType.USER, principal)


def _literal(resource_type: ResourceType, name: str) -> ResourcePattern:
    if not isinstance(name, str):
        raise ConfigError(f"the name of a {resource_type} is of type {type(name).__name__}: expected text")
    return ResourcePattern(resource_type=resource_type, name=name)
