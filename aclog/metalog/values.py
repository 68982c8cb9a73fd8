"""`frozen` and `define` of attrs, whose comparisons and texts are compiled when they are first used.

attrs compiles the methods of each class as its module is imported: a fifth of the time of a short command, which has
hundreds of classes, compares values of a few and prints those of none. Here a class begins with placeholders for
`__eq__`, `__hash__` and `__repr__`; the first call of one replaces all of them by those of attrs, which therefore
have attrs' answers and its speed. `__init__` and everything else is attrs' from the start.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

__all__ = ["define", "frozen"]

_EQUALITY = ("__eq__", "__ne__", "__hash__")
_TEXT = "__repr__"
_OF_ATTRS = {"cache_hash", "order", "unsafe_hash"}
"""Options of classes that attrs completes itself."""


class _Later:
    """The methods of one class that are not compiled yet."""

    def __init__(self, *, is_frozen: bool) -> None:
        self.cls: type = object
        """The class, once attrs has made it."""
        self.placeholders: dict[str, Callable[..., Any]] = {}
        self._is_frozen = is_frozen

    def add(self, cls: type, *names: str) -> None:
        """Give a class, of which attrs makes the final one, placeholders for these methods."""
        for name in names:
            self.placeholders[name] = self._placeholder(name)
            setattr(cls, name, self.placeholders[name])

    def _placeholder(self, name: str) -> Callable[..., Any]:
        def compile_and_call(*arguments: Any) -> Any:
            return self._compiled(name)(*arguments)

        return compile_and_call

    def _compiled(self, name: str) -> Callable[..., Any]:
        """Replace the placeholders, and return the method of this name. Threads that do so at once make equal ones."""
        fields = {
            each.name: attrs.field(eq=each.eq_key or each.eq, hash=each.hash, repr=each.repr, init=False)
            for each in attrs.fields(self.cls)
        }
        made = attrs.make_class(self.cls.__name__, fields, eq=True, order=False, frozen=self._is_frozen, init=False)
        for each in self.placeholders:
            setattr(self.cls, each, vars(made)[each])
        method: Callable[..., Any] = vars(made)[name]
        return method


def _lazy(decorate: Callable[..., Any], *, is_frozen: bool) -> Callable[..., Any]:
    def decorator(cls: type | None = None, **options: Any) -> Any:
        if cls is None:
            return lambda decorated: decorator(decorated, **options)
        if options.keys() & _OF_ATTRS:
            return decorate(cls, **options)
        own, later = set(vars(cls)), _Later(is_frozen=is_frozen)
        if options.get("eq", True) and own.isdisjoint(_EQUALITY):
            options["eq"] = False
            later.add(cls, "__eq__", *(("__hash__",) if is_frozen else ()))
            if not is_frozen:
                cls.__hash__ = None  # type: ignore[assignment]
        if options.get("repr", True) and _TEXT not in own:
            options["repr"] = False
            later.add(cls, _TEXT)
        later.cls = decorate(cls, **options)
        return later.cls

    return decorator


if TYPE_CHECKING:
    from attrs import define, frozen
else:
    define, frozen = _lazy(attrs.define, is_frozen=False), _lazy(attrs.frozen, is_frozen=True)
