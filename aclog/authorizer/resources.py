"""Resources as literal patterns, by short names (docs/library.md)."""

from aclog.authorizer.acl import CLUSTER_NAME, ResourcePattern, ResourceType


def topic(name: str) -> ResourcePattern:
    """Return a topic as a literal resource pattern."""
    return ResourcePattern(resource_type=ResourceType.TOPIC, name=name)


def group(name: str) -> ResourcePattern:
    """Return a consumer group as a literal resource pattern."""
    return ResourcePattern(resource_type=ResourceType.GROUP, name=name)


def cluster() -> ResourcePattern:
    """Return the cluster resource."""
    return ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME)


def transactional_id(name: str) -> ResourcePattern:
    """Return a transactional id as a literal resource pattern."""
    return ResourcePattern(resource_type=ResourceType.TRANSACTIONAL_ID, name=name)


def delegation_token(token_id: str) -> ResourcePattern:
    """Return a delegation token, named by its id."""
    return ResourcePattern(resource_type=ResourceType.DELEGATION_TOKEN, name=token_id)


def user(principal: str) -> ResourcePattern:
    """Return a user as a resource (`User:alice`), for CREATE_TOKENS and DESCRIBE_TOKENS."""
    return ResourcePattern(resource_type=ResourceType.USER, name=principal)
