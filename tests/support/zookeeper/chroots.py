"""Chroots of a ZooKeeper, which a broker makes when it starts."""

from aclog.zkstore.client.connect import open_client
from aclog.zkstore.client.settings import zk_settings


def made_chroot(connect: str) -> str:
    """Make the chroot of a connect string, and return the string."""
    open_client(zk_settings({"zookeeper.connect": connect})).close()
    return connect
