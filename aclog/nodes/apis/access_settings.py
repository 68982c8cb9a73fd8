"""DescribeConfigs, as far as it asks a node by name for the settings of its own authorizer."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from aclog.authorizer.acl import AclOperation
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.loader import AUTHORIZER_CLASS_NAME_CONFIG
from aclog.nodes.apis.authorization import AuthHelper
from aclog.nodes.apis.request import Request, RequestError
from aclog.nodes.config.access_warnings import access_property, has_kafkas_semantics
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.wire.api_keys import DESCRIBE_CONFIGS
from aclog.nodes.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION
from aclog.nodes.wire.message_builder import build, build_response

TOLD = frozenset({SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG, AUTHORIZER_CLASS_NAME_CONFIG})
"""The properties that are told, which a Kafka hides but for the class, as it does not know them."""

_BROKER = 4
_STATIC, _STRING = 4, 2
"""A value from server.properties, and its type (DescribeConfigsResponse)."""

NO_OTHER_CONFIGS: Final = "aclog keeps no dynamic configuration: see each node's server.properties"
"""Why nothing else is told."""


@frozen(kw_only=True)
class AccessSettingsApi:
    """Answers DescribeConfigs about this node: of a broker and of a controller, which may be one process."""

    auth: AuthHelper
    node_id: int
    settings: Mapping[str, str] = field(factory=dict)
    """The properties of its authorizer that are told (access_settings)."""

    async def describe_configs(self, request: Request) -> bytes:
        """Return the encoded response.

        Raises:
            RequestError: the client lacks DESCRIBE_CONFIGS on the cluster, or asks for something else.

        """
        if not asks_for_access_settings(request, self.node_id):
            raise RequestError(UNSUPPORTED_VERSION, NO_OTHER_CONFIGS)
        if not self.auth.on_cluster(request, AclOperation.DESCRIBE_CONFIGS):
            raise RequestError(CLUSTER_AUTHORIZATION_FAILED)
        return describe_access_settings(self.settings, request)


def access_settings(config: NodeConfig) -> dict[str, str]:
    """Return those of the told properties that are set, with the values that the authorizer goes by."""
    name = config.authorizer_class_name
    found = {AUTHORIZER_CLASS_NAME_CONFIG: name}
    if has_kafkas_semantics(config):
        found |= {key: access_property(config, key) for key in (SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG)}
    return {key: value for key, value in found.items() if value is not None}


def asks_for_access_settings(request: Request, node_id: int) -> bool:
    """Return whether a request names nothing but told properties of this node: all that is asked can be told."""
    return all(
        each.resource_type == _BROKER
        and each.resource_name == str(node_id)
        and each.configuration_keys is not None
        and set(each.configuration_keys) <= TOLD
        for each in request.body.resources
    )


def describe_access_settings(settings: Mapping[str, str], request: Request) -> bytes:
    """Return the encoded response; a property that is not set is left out, as by Kafka."""
    version = request.header.api_version

    def result(resource: Any) -> Any:
        """Return the answer for a resource, which is this node."""
        configs = tuple(
            build(
                DESCRIBE_CONFIGS,
                version,
                "response",
                "DescribeConfigsResourceResult",
                name=key,
                value=settings[key],
                read_only=True,
                config_source=_STATIC,
                config_type=_STRING,
            )
            for key in sorted(set(resource.configuration_keys) & settings.keys())
        )
        return build(
            DESCRIBE_CONFIGS,
            version,
            "response",
            "DescribeConfigsResult",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=configs,
        )

    return build_response(DESCRIBE_CONFIGS, version, results=tuple(map(result, request.body.resources)))
