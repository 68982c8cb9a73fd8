"""Where an expression stands: what its names mean."""

from collections.abc import Mapping
from typing import Protocol

from attrs import define, field, frozen

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.terraform.errors import EvaluationError
from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.hcl.syntax import Traversal
from aclog.sources.formats.terraform.values.errors import TooLargeError
from aclog.sources.formats.terraform.values.value import Value


class Names(Protocol):
    """What the names of a module mean: `var`, `local`, `module`, resources."""

    def resolve(self, reference: Traversal, scope: "Scope") -> tuple[Value, int]:
        """Return the value at the beginning of a reference, and how many of its steps led there.

        Raises:
            ConfigError: it refers to nothing that is declared, or to itself.

        """
        ...


MOST_ROUNDS = 1_000_000
"""Of all loops of a root module: a few seconds."""


@define
class Budget:
    """How many rounds of loops there were; owned by the evaluation of one root module."""

    rounds: int = 0

    def spend(self) -> None:
        """Count one. Raises TooLargeError: there were too many."""
        self.rounds += 1
        if self.rounds > MOST_ROUNDS:
            raise TooLargeError(f"loops of more than {MOST_ROUNDS:,} rounds in a root module")


@frozen
class Scope:
    """What the names in one expression mean. Immutable; `with_local` returns another one."""

    file: str
    names: Names
    functions: Mapping[str, Function]
    local: Mapping[str, Value] = field(factory=dict)
    """`each`, `count`, and the variables of `for`."""
    budget: Budget = field(factory=Budget)

    def with_local(self, local: Mapping[str, Value]) -> "Scope":
        """Return a scope with more variables; they hide those of the same name."""
        return Scope(self.file, self.names, self.functions, {**self.local, **local}, self.budget)

    def error(self, line: int, what: str) -> EvaluationError:
        """Return an error at a line: this has no value."""
        return EvaluationError(f"{self.file}:{line}: {what}")

    def refusal(self, line: int, what: str) -> ConfigError:
        """Return an error at a line that `try` does not catch."""
        return ConfigError(f"{self.file}:{line}: {what}")


class NoNames:
    """Of expressions that may refer to nothing: types, defaults, files of variables."""

    def resolve(self, reference: Traversal, scope: Scope) -> tuple[Value, int]:
        """Raise ConfigError."""
        raise scope.refusal(reference.line, f"{reference.root}: no reference is possible here")
