"""Executes a StorePlan: writes ACLs, credentials and tokens to ZooKeeper, several znodes in parallel."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from aclog.authorizer.acl import ResourcePattern
from aclog.zkstore.acl_store import AclStore
from aclog.zkstore.migration.store_plan import EntryChange, StorePlan
from aclog.zkstore.scram_store import ScramStore
from aclog.zkstore.token_store import TokenStore
from aclog.zkstore.znodes.paths import resource_path

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient

_PARALLEL_WRITES = 16
_T = TypeVar("_T")


def execute_plan(plan: StorePlan, client: "ZkClient") -> None:
    """Execute a plan. Each znode changes atomically, the whole does not.

    Raises:
        DecodeError: a znode cannot be decoded; it is left unchanged.
        StoreError: ZooKeeper is unavailable. Completed writes stay; running the command again does the rest.

    """
    store, users, tokens = AclStore(client=client), ScramStore(client), TokenStore(client)
    if plan.first or plan.second:
        store.create_paths()
    with ThreadPoolExecutor(_PARALLEL_WRITES, thread_name_prefix="store") as pool:

        def each(work: Callable[[_T], object], items: Iterable[_T]) -> None:
            for _ in pool.map(work, items):  # waits for all, and raises the first error
                pass

        def change(changes: Mapping[ResourcePattern, EntryChange]) -> None:
            each(lambda item: store.update(resource_path(item[0]), item[1].apply), changes.items())

        # Each step ends before the next begins: whatever is interrupted, nothing is allowed before what denies it is
        # written.
        change(plan.first)
        each(tokens.remove, plan.removed_tokens)
        each(lambda item: users.put(*item), plan.users.items())
        each(tokens.put, plan.tokens)
        change(plan.second)
