"""DescribeConfigs requests: what a node was configured with."""

from collections.abc import Sequence

from attrs import frozen

from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.connection import Connection
from aclog.nodes.wire.api_keys import DESCRIBE_CONFIGS
from aclog.nodes.wire.message_builder import build

_BROKER = 4
_OLDEST, _NEWEST = 1, 4


@frozen(kw_only=True)
class ConfigValue:
    """A property that is set; None for a value that the server hides."""

    value: str | None


async def node_configs(connection: Connection, node_id: int, names: Sequence[str]) -> dict[str, ConfigValue]:
    """Return those of the named properties that this node is configured with, or has a default for.

    A Kafka hides the value of every property that it does not know itself: those of its authorizer. It leaves out one
    that is not set.

    Raises:
        RequestError: the server refuses, or is another node.
        UnreachableError, DecodeError: as Connection.ask; ConfigError: the server is too old.

    """
    version = connection.version(DESCRIBE_CONFIGS, _OLDEST, _NEWEST)
    resource = build(
        DESCRIBE_CONFIGS,
        version,
        "request",
        "DescribeConfigsResource",
        resource_type=_BROKER,
        resource_name=str(node_id),
        configuration_keys=tuple(names),
    )
    response = await connection.ask(build(DESCRIBE_CONFIGS, version, "request", resources=(resource,)))
    for result in response.results:
        if result.error_code:
            raise RequestError(int(result.error_code), result.error_message)
    return {each.name: ConfigValue(value=each.value) for result in response.results for each in result.configs}
