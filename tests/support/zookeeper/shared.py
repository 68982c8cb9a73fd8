"""A real ZooKeeper that another process has started and will stop, for tests that leave it running."""

from attrs import frozen


@frozen
class SharedZooKeeper:
    """Named like ZooKeeperServer; `connect` is what zookeeper.connect takes."""

    connect: str
