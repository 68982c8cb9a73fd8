"""A dict of bounded size that forgets by generations."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from attrs import Factory, define

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


@define(eq=False)
class Generations(Generic[_Key, _Value]):
    """Holds up to twice `limit` entries: a young generation, which grows, and an old one.

    When the young one is full it becomes the old one, and the former old one is dropped, but for the entries that were
    asked for in the meantime: those are in the young one again. So nothing is ever lost at once, and an entry that is
    in use is never lost.

    Threads need no lock: reading and setting one attribute or one key are atomic. Two threads that race lose an entry,
    or drop a generation early, which costs time and nothing else; values follow from their keys.
    """

    limit: int
    young: dict[_Key, _Value] = Factory(dict)
    old: dict[_Key, _Value] = Factory(dict)

    def get(self, key: _Key) -> _Value | None:
        """Return the value, which is now young, or None."""
        found = self.young.get(key)
        if found is None:
            found = self.old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: _Key, value: _Value) -> None:
        """Add an entry."""
        if len(self.young) >= self.limit:
            self.age()
        self.young[key] = value

    def age(self) -> None:
        """Make the young generation the old one, and drop the former old one."""
        # New dicts instead of clear(): another thread may be reading the old ones.
        self.old, self.young = self.young, {}
