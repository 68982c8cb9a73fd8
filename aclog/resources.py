"""What a request is about, for users of the library."""

from authorizer.acl import CLUSTER_NAME, ResourcePattern, ResourceType


def topic(name: str) -> ResourcePattern:
    """A topic."""
    return ResourcePattern(resource_type=ResourceType.TOPIC, name=name)


def group(name: str) -> ResourcePattern:
    """A consumer group."""
    return ResourcePattern(resource_type=ResourceType.GROUP, name=name)


def cluster() -> ResourcePattern:
    """The cluster."""
    return ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME)


def transactional_id(name: str) -> ResourcePattern:
    """A transactional id."""
    return ResourcePattern(resource_type=ResourceType.TRANSACTIONAL_ID, name=name)


def delegation_token(token_id: str) -> ResourcePattern:
    """A delegation token, by its id."""
    return ResourcePattern(resource_type=ResourceType.DELEGATION_TOKEN, name=token_id)


def user(principal: str) -> ResourcePattern:
    """A user as the resource (`User:alice`), for CREATE_TOKENS and DESCRIBE_TOKENS."""
    return ResourcePattern(resource_type=ResourceType.USER, name=principal)
