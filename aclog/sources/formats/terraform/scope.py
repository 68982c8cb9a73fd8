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


MOST_STEPS = 1_000_000
"""Of all root modules of a tree: some seconds."""


@define
class Budget:
    """How much was evaluated, in rounds of loops and what takes as long; owned by the reading of one tree."""

    steps: int = 0

    def spend(self, steps: int = 1) -> None:
        """Count steps. Raises TooLargeError: there were too many."""
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise TooLargeError(
                f"more than {MOST_STEPS:,} steps to evaluate these files: rounds of loops, instances, long values"
            )

    def spend_on(self, result: Value, *operands: Value) -> None:
        """Count what it takes to make a large value, and to look through large ones. Raises as `spend`."""
        self.spend((result.size >> 4) + (sum([operand.size for operand in operands]) >> 8))


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
