"""What a cluster's nodes tell of the settings of their authorizer (DescribeConfigs)."""

from attrs import frozen

from aclog.authorizer.config import (
    ALLOW_EVERYONE_CONFIG,
    SUPER_USERS_CONFIG,
    parse_allow_everyone,
    parse_super_users,
)
from aclog.authorizer.loader import ACL_AUTHORIZERS, AUTHORIZER_CLASS_NAME_CONFIG, KAFKAS_STANDARD_AUTHORIZER
from aclog.metalog.errors import MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.config_requests import ConfigValue, node_configs
from aclog.nodes.client.peer import Role
from aclog.places.cluster_nodes import ClusterNodes

_KNOWN = frozenset({KAFKAS_STANDARD_AUTHORIZER, "aclog.authorizer.standard.StandardAuthorizer", *ACL_AUTHORIZERS})
"""The authorizers whose properties and their defaults are known: no super users, and nothing open to everyone."""

_ASKED = (SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG, AUTHORIZER_CLASS_NAME_CONFIG)
_NOT_SET = ConfigValue(value="")


@frozen(kw_only=True)
class NodeSettings:
    """super.users and allow.everyone.if.no.acl.found; None for one that is not told."""

    super_users: frozenset[str] | None = None
    allow_everyone: bool | None = None


async def settings_of(nodes: ClusterNodes) -> NodeSettings:
    """Return what all serving brokers tell alike.

    A node of ours tells both. A Kafka leaves out a property that is not set, and hides the value of one that is:
    nobody but its authorizer knows the property. So allow.everyone.if.no.acl.found is known where it is not set, as
    nearly everywhere. Controllers are not asked: clients meet the brokers' settings.

    Raises:
        MetadataError: a broker does not respond.

    """
    if nodes.role is not Role.BROKER:
        return NodeSettings()
    found: set[NodeSettings] = set()
    for node, connection in await nodes.serving():
        try:
            configs = await node_configs(connection, node.node_id, _ASKED)
        except RequestError:  # without DESCRIBE_CONFIGS on the cluster
            return NodeSettings()
        found.add(_settings(configs))
    allow, users = {each.allow_everyone for each in found}, {each.super_users for each in found}
    return NodeSettings(
        super_users=users.pop() if len(users) == 1 else None, allow_everyone=allow.pop() if len(allow) == 1 else None
    )


def _settings(configs: dict[str, ConfigValue]) -> NodeSettings:
    if configs.get(AUTHORIZER_CLASS_NAME_CONFIG, _NOT_SET).value not in _KNOWN:
        return NodeSettings()
    users, allow = (configs.get(key, _NOT_SET).value for key in (SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG))
    try:
        return NodeSettings(
            super_users=None if users is None else parse_super_users(users),
            allow_everyone=None if allow is None else parse_allow_everyone(allow),
        )
    except MetadataError:  # a value that this Kafka's authorizer reads in another way
        return NodeSettings()
