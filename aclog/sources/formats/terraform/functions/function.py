"""A function of Terraform's language."""

from collections.abc import Callable, Sequence

from attrs import frozen

from aclog.sources.formats.terraform.values.conversion import convert
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.types import DYNAMIC, Type
from aclog.sources.formats.terraform.values.value import Value, first_unknown, with_sensitivity


@frozen(kw_only=True)
class Function:
    """The types of its parameters, and what it does with arguments of these types."""

    body: Callable[..., Value]
    parameters: tuple[Type, ...] = ()
    rest: Type | None = None
    """Of all arguments after those, if there may be more."""
    optional: int = 0
    """How many of the last parameters may be left out."""
    nulls: bool = False
    """Whether an argument may be null."""
    unknowns: bool = False
    """Whether an argument may be unknown."""
    structural: bool = False
    """Whether elements of an argument may be unknown: it moves them and does not look at them."""

    def call(self, arguments: Sequence[Value]) -> Value:
        """Return the result; unknown if an argument is.

        Raises:
            ValueFault: the arguments are too few, too many, or not what it takes.

        """
        count, given = len(self.parameters), len(arguments)
        if given < count - self.optional or (given > count and self.rest is None):
            raise ValueFault(f"takes {self._count_text()}, and {given} are given")
        types = (*self.parameters[:given], *([self.rest or DYNAMIC] * (given - count)))
        ready = [
            self._argument(n, value, kind) for n, (value, kind) in enumerate(zip(arguments, types, strict=True), 1)
        ]
        if not self.unknowns:
            for value in ready:
                missing = value.unknown if self.structural else first_unknown(value)
                if missing is not None:
                    return with_sensitivity(Value(DYNAMIC, missing), *arguments)
        return with_sensitivity(self.body(*ready), *arguments)

    def _argument(self, position: int, value: Value, kind: Type) -> Value:
        if value.is_null and not self.nulls:
            raise ValueFault(f"argument {position} is null")
        try:
            return convert(value, kind)
        except ValueFault as fault:
            raise ValueFault(f"argument {position}: {fault}") from fault

    def _count_text(self) -> str:
        count = len(self.parameters)
        least = count - self.optional
        if self.rest is not None:
            return f"at least {least} arguments"
        return f"{count} arguments" if not self.optional else f"{least} to {count} arguments"
