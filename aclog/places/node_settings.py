"""What a cluster's nodes tell of the settings of their authorizer (DescribeConfigs)."""

from collections.abc import Callable
from typing import TypeVar

from aclog.authorizer.cluster_settings import KNOWN_AUTHORIZERS, READ_CONFIGS, ClusterSettings, NodeSettings
from aclog.authorizer.config import (
    ALLOW_EVERYONE_CONFIG,
    SUPER_USERS_CONFIG,
    parse_allow_everyone,
    parse_super_users,
)
from aclog.metalog.errors import MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.config_requests import node_configs
from aclog.nodes.client.peer import Role
from aclog.places.cluster_nodes import ClusterNodes
from aclog.sources.live_settings import refusal_text

_T = TypeVar("_T")

_NOT_ASKED = "controllers do not answer for brokers; --bootstrap-server asks brokers"


async def settings_of(nodes: ClusterNodes) -> ClusterSettings:
    """Return what all serving brokers answer.

    A node of ours shows all values. A Kafka leaves out a property that is not set, and hides the value of one that is:
    nobody but its authorizer knows the property. So allow.everyone.if.no.acl.found is known where it is not set, as
    nearly everywhere. Controllers are not asked: clients meet the brokers' settings.

    Raises:
        MetadataError: a broker does not respond.

    """
    if nodes.role is not Role.BROKER:
        return ClusterSettings(nodes=(NodeSettings(node="the brokers", problem=_NOT_ASKED),), serves_acls=True)
    found = []
    for node, connection in await nodes.serving():
        name = f"broker {node.node_id}"
        try:
            configs = await node_configs(connection, node.node_id, READ_CONFIGS)
        except RequestError as error:
            found.append(NodeSettings(node=name, problem=refusal_text(error, "DESCRIBE_CONFIGS")))
        else:
            found.append(NodeSettings(node=name, values={key: config.value for key, config in configs.items()}))
    return ClusterSettings(nodes=tuple(found), serves_acls=True)


def super_users_of(settings: ClusterSettings) -> frozenset[str] | None:
    """Return super.users as all nodes show it; None if one does not, or shows others."""
    return _alike(settings, SUPER_USERS_CONFIG, parse_super_users)


def allow_everyone_of(settings: ClusterSettings) -> bool | None:
    """Return allow.everyone.if.no.acl.found as all nodes show it; None if one does not, or shows another."""
    return _alike(settings, ALLOW_EVERYONE_CONFIG, parse_allow_everyone)


def _alike(settings: ClusterSettings, name: str, parse: Callable[[str], _T]) -> _T | None:
    shown: set[_T | None] = set()
    for node in settings.nodes:
        value = node.values.get(name, "")
        if node.authorizer not in KNOWN_AUTHORIZERS or value is None:  # of another one nobody knows the defaults
            return None
        try:
            shown.add(parse(value))
        except MetadataError:  # a value that this Kafka's authorizer reads in another way
            return None
    return shown.pop() if len(shown) == 1 else None
