"""The keeper of a node's index of last use, if its configuration wants one."""

from aclog.authorizer.interface import Authorizer
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, Settings
from aclog.authorizer.standard import StandardAuthorizer
from aclog.config.node_config import NodeConfig
from aclog.config.server_properties import USAGE_INDEX
from aclog.installation import install_command
from aclog.metalog.errors import ConfigError
from aclog.server.telemetry import Metrics
from aclog.snapshots.publisher import Publisher

try:
    from aclog.server.usage_index import AccessRecorder, UsageKeeper
except ImportError as error:
    raise ConfigError(
        f"{USAGE_INDEX}: {error}: an index of last use needs pyarrow and pyroaring: {install_command('usage')}"
    ) from error


def usage_keeper(
    config: NodeConfig, cluster_id: str, authorizer: Authorizer | None, publisher: Publisher, metrics: Metrics
) -> UsageKeeper:
    """Return the keeper, which receives all decisions of the authorizer from now on; the node starts and closes it.

    Raises:
        ConfigError: the authorizer is not the StandardAuthorizer.

    """
    if config.usage_index is None or not isinstance(authorizer, StandardAuthorizer):
        raise ConfigError(
            f"{USAGE_INDEX}: {config.authorizer_class_name} does not report its decisions: expected the "
            "StandardAuthorizer, or the key to be left out"
        )
    recorder = AccessRecorder(lambda: authorizer.ready)
    authorizer.set_observer(recorder)
    properties = config.properties
    return UsageKeeper(
        directory=config.usage_index,
        broker=str(config.node_id),
        cluster_id=cluster_id,
        settings=Settings.of_texts(
            properties.get(SUPER_USERS_CONFIG), properties.get(ALLOW_EVERYONE_CONFIG), cidr=config.cidr
        ),
        recorder=recorder,
        registry=metrics.registry,
        brokers=lambda: [str(each.broker_id) for each in publisher.current.cluster.brokers()],
    )
