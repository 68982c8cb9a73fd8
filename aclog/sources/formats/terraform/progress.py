"""What is being evaluated, to find references that lead back to themselves."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from attrs import define, field

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.terraform.errors import EvaluationError
from aclog.sources.formats.terraform.scope import Budget
from aclog.sources.formats.terraform.values.errors import TooLargeError

_Result = TypeVar("_Result")
_DEEPEST = 1_000


@define(eq=False)
class Progress:
    """The names whose values are being found, and those that are known; owned by the evaluation of one root module."""

    budget: Budget
    _open: dict[Hashable, str] = field(factory=dict, init=False)
    _done: dict[Hashable, object] = field(factory=dict, init=False)

    def once(self, key: Hashable, name: str, where: str, find: Callable[[], _Result]) -> _Result:
        """Return what `find` returns; it is asked once for each key.

        Raises:
            ConfigError: finding it asks for it again: a cycle; or what `find` raises, which `try` does not catch here.

        """
        if key in self._done:
            return self._done[key]  # type: ignore[return-value]
        with self._opened(key, name, where):
            try:
                found = find()
            except EvaluationError as error:
                raise ConfigError(str(error)) from error
            except TooLargeError as error:
                raise ConfigError(f"{where}: {error}") from error
        self._done[key] = found
        return found

    @contextmanager
    def _opened(self, key: Hashable, name: str, where: str) -> Iterator[None]:
        if key in self._open:
            names = list(self._open.values())
            cycle = names[list(self._open).index(key) :]
            raise ConfigError(f"{where}: a cycle: {' -> '.join([*cycle, name])}")
        if len(self._open) >= _DEEPEST:
            raise ConfigError(f"{where}: references lead to others more than {_DEEPEST:,} deep")
        self._open[key] = name
        try:
            yield
        finally:
            del self._open[key]
