"""Values that are costly to make, kept by key, and made once however many ask at the same time."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from attrs import define, field

_Value = TypeVar("_Value")


@define(eq=False)
class Kept(Generic[_Value]):
    """At most so many values; the one that was not asked for the longest is given up. Thread-safe."""

    most: int
    _values: "OrderedDict[Hashable, _Value]" = field(factory=OrderedDict, init=False)
    _making: "dict[Hashable, threading.Lock]" = field(factory=dict, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def has(self, key: Hashable) -> bool:
        """Return whether a value is there."""
        with self._lock:
            return key in self._values

    def get(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """Return a value, made if it is not there; who asks for it meanwhile waits. Raises what `make` raises."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._values:  # another one has made it
                    return self._values[key]
            try:
                made = make()
                with self._lock:
                    self._values[key] = made
                    while len(self._values) > self.most:
                        self._values.popitem(last=False)
                return made
            finally:
                with self._lock:
                    self._making.pop(key, None)
