"""Opens a ZooKeeper client. kazoo is the extra `zookeeper`; it is imported only when a client is opened."""

from typing import TYPE_CHECKING

from aclog.metalog.errors import ConfigError
from aclog.zkstore.client.settings import ZkSettings

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient


def open_client(settings: ZkSettings) -> "ZkClient":
    """Open a connected client, which the caller closes.

    Raises:
        ConfigError: kazoo is not installed, the chroot is missing, or ZooKeeper rejects the settings.
        StoreError: no server responded within the connection timeout.

    """
    try:
        from aclog.zkstore.client.session import connected_client  # noqa: PLC0415  # kazoo is an extra
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] != "kazoo":
            raise
        raise ConfigError("ZooKeeper needs kazoo, which is not installed: pip install 'aclog[zookeeper]'") from e
    return connected_client(settings)
