"""A ZooKeeper of `aclog migrate` that is not on a network: it holds these ACLs, and nothing changes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from unittest import mock

from attrs import frozen

from aclog.authorizer.acl import StandardAcl
from aclog.ops import migrate as migration
from aclog.zookeeper.migration import AccessState, StoreState


@frozen
class FakeStoreWatch:
    """What a migration needs of an `aclog.zookeeper.migration.StoreWatch`."""

    acls: frozenset[StandardAcl]

    def state(self) -> StoreState:
        return StoreState(state=AccessState(acls=self.acls), left_out=())

    def catch_up(self, patience: float) -> int:
        return 0


@contextmanager
def fake_store(acls: Iterable[StandardAcl]) -> Iterator[str]:
    """Let `aclog migrate` read these ACLs; the address for `--zookeeper`."""
    watch = FakeStoreWatch(frozenset(acls))

    @contextmanager
    def connected(_settings: object) -> Iterator[None]:
        yield None

    with (
        mock.patch.object(migration, "connected", connected),
        mock.patch.object(migration, "read_store", return_value=watch),
    ):
        yield "127.0.0.1:1"
