"""A plan carried out: rules, credentials and tokens into a ZooKeeper, several nodes at a time."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from aclog.authorizer.acl import ResourcePattern
from aclog.zkstore.migration.store_plan import EntryChange, StorePlan
from aclog.zkstore.paths import resource_path
from aclog.zkstore.scram_store import ScramStore
from aclog.zkstore.store import ZkStore
from aclog.zkstore.token_store import TokenStore

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient

_AT_A_TIME = 16
_T = TypeVar("_T")


def carry_out(plan: StorePlan, client: "ZkClient") -> None:
    """Write a plan: what takes away first, then what gives. Each node is written whole or not at all.

    Raises:
        DecodeError: a node that says nothing clear: it is left as it is.
        StoreError: ZooKeeper did not answer; what is done is done, and the same plan made anew does the rest.

    """
    store, users, tokens = ZkStore(client=client), ScramStore(client), TokenStore(client)
    if plan.first or plan.second:
        store.create_paths()
    with ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="store") as pool:

        def each(work: Callable[[_T], object], items: Iterable[_T]) -> None:
            for _ in pool.map(work, items):
                pass

        def change(changes: Mapping[ResourcePattern, EntryChange]) -> None:
            each(lambda item: store.update(resource_path(item[0]), item[1].apply), changes.items())

        change(plan.first)
        each(tokens.remove, plan.removed_tokens)
        each(lambda item: users.put(*item), plan.users.items())
        each(tokens.put, plan.tokens)
        change(plan.second)
