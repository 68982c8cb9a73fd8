"""Chroots of a ZooKeeper, which a broker makes when it starts."""

from aclog.zookeeper.client import zk_settings
from aclog.zookeeper.connect import open_client


def made_chroot(connect: str) -> str:
    """Make the chroot of a connect string, and return the string."""
    open_client(zk_settings({"zookeeper.connect": connect})).close()
    return connect
