"""A chroot of the shared ZooKeeper for each test, and one JVM per process with the real AclAuthorizer."""

import uuid
from collections.abc import Iterator

import pytest

from aclog.zookeeper.acl_store import AclStore
from aclog.zookeeper.authorizer import AclAuthorizer
from aclog.zookeeper.client import zk_settings
from aclog.zookeeper.connect import open_client
from tests.support.zookeeper.chroots import made_chroot
from tests.support.zookeeper.differential import our_authorizer
from tests.support.zookeeper.real_acl_authorizer import RealAclAuthorizer
from tests.support.zookeeper.shared import SharedZooKeeper


@pytest.fixture
def connect(zookeeper: SharedZooKeeper) -> str:
    """The connect string of an empty store, whose chroot is there."""
    return made_chroot(f"{zookeeper.connect}/{uuid.uuid4().hex}")


@pytest.fixture(scope="session")
def java() -> Iterator[RealAclAuthorizer]:
    """The JVM, without a configured authorizer."""
    with RealAclAuthorizer() as process:
        yield process


@pytest.fixture
def real(java: RealAclAuthorizer, connect: str) -> Iterator[RealAclAuthorizer]:
    """The real AclAuthorizer on the test's store."""
    java.configure({"zookeeper.connect": connect})
    yield java
    java.close()


@pytest.fixture
def ours(connect: str) -> Iterator[AclAuthorizer]:
    """Our AclAuthorizer on the test's store."""
    with our_authorizer(connect) as authorizer:
        yield authorizer


@pytest.fixture
def store(connect: str) -> Iterator[AclStore]:
    """The ACLs of the test's store."""
    client = open_client(zk_settings({"zookeeper.connect": connect}))
    yield AclStore(client=client)
    client.close()
