"""Sets of resource names: single ones, and all that begin with a prefix but for parts of them."""

from typing import TypeAlias

from attrs import frozen


@frozen(kw_only=True)
class Literal:
    """One name."""

    name: str

    def __contains__(self, name: str) -> bool:
        return name == self.name


@frozen(kw_only=True)
class Subtree:
    """Every non-empty name that begins with `prefix`, but for those that an exception covers; "" begins every name."""

    prefix: str
    except_prefixes: tuple[str, ...] = ()
    except_literals: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return (
            bool(name)
            and name.startswith(self.prefix)
            and not name.startswith(self.except_prefixes)
            and name not in self.except_literals
        )


NamePart: TypeAlias = Literal | Subtree
Names: TypeAlias = tuple[NamePart, ...]
"""A union of parts, in the order of their names."""

ANY_NAME: Names = (Subtree(prefix=""),)


def contains(names: Names, name: str) -> bool:
    """Return whether one of the parts contains a name."""
    return any(name in part for part in names)
