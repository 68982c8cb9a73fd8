"""A set of principals: some that are named, or all but some."""

from attrs import frozen


@frozen(kw_only=True)
class Principals:
    """Exactly those named, or, if `complement`, everybody of any type but those."""

    named: tuple[str, ...]
    """Sorted, distinct."""
    complement: bool = False

    def __contains__(self, principal: str) -> bool:
        return (principal in self.named) is not self.complement


EVERYONE = Principals(named=(), complement=True)


def only(*principals: str) -> Principals:
    """Return the set of these."""
    return Principals(named=tuple(sorted(set(principals))))


def everyone_but(*principals: str) -> Principals:
    """Return the set of all others."""
    return Principals(named=tuple(sorted(set(principals))), complement=True)
