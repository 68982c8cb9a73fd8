"""A ZooKeeper and a JVM with the real AclAuthorizer, for all tests of a process; each test has a chroot of its own."""

import uuid
from collections.abc import Iterator

import pytest

from aclog.zkstore.acl_store import AclStore
from aclog.zkstore.authorizer.acl_authorizer import AclAuthorizer
from aclog.zkstore.client.connect import open_client
from aclog.zkstore.client.settings import zk_settings
from tests.support.zookeeper.differential import our_authorizer
from tests.support.zookeeper.real_acl_authorizer import RealAclAuthorizer
from tests.support.zookeeper.server import ZooKeeperServer


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """Runs all the time: a test that stops or kills it has `own_zookeeper`."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def connect(zookeeper: ZooKeeperServer) -> str:
    """A store that nobody has used, as zookeeper.connect."""
    return f"{zookeeper.connect}/{uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def java() -> Iterator[RealAclAuthorizer]:
    """The JVM, without an authorizer yet."""
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
    """Ours on the test's store."""
    with our_authorizer(connect) as authorizer:
        yield authorizer


@pytest.fixture
def store(connect: str) -> Iterator[AclStore]:
    """The test's store."""
    client = open_client(zk_settings({"zookeeper.connect": connect}))
    yield AclStore(client=client)
    client.close()
