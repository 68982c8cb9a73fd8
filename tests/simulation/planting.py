"""Mutations that are planted in aclog: how they are listed, and how they are undone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Patch = Callable[[Any, str, Any], None]
MUTATIONS: dict[str, Callable[[Patch], None]] = {}
WORLD_OF: dict[str, str] = {}
"""The world that finds a mutation."""


def mutation_of(world: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Return a decorator that lists a mutation, by its name, of a world."""

    def decorate(function: Callable[[Patch], None]) -> Callable[[Patch], None]:
        name = function.__name__.replace("_", " ")
        MUTATIONS[name], WORLD_OF[name] = function, world
        return function

    return decorate


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Break aclog while the context lasts."""
    undo: list[Callable[[], None]] = []

    def patch(target: Any, name: str, value: Any) -> None:
        before = target.__dict__[name] if isinstance(target, type) else getattr(target, name)
        undo.append(lambda: setattr(target, name, before))
        setattr(target, name, value)

    try:
        MUTATIONS[name](patch)
        yield
    finally:
        for each in reversed(undo):
            each()
