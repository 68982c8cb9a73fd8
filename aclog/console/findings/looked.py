"""What a look at a state has found."""

from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import field, frozen

from aclog.analysis.policy import Policy
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.premises import Premises
from aclog.console.findings.item import Item
from aclog.snapshots.image import Image


class Subject(Protocol):
    """A state that is looked at."""

    @property
    def image(self) -> Image:
        """All of it."""
        ...

    @property
    def policy(self) -> Policy:
        """Its rules, and what decides besides them."""
        ...

    @property
    def premises(self) -> Premises:
        """What decides and is unknown."""
        ...


@frozen(kw_only=True)
class Use:
    """What accesses say of a rule."""

    is_unused: bool
    """Whether it is known that none of them needed it."""
    text: str
    """Such as `never matched`, or why nobody can tell."""


@frozen(eq=False, kw_only=True)
class Uses:
    """What accesses say of the rules of a state."""

    by_rule: Mapping[StandardAcl, Use]
    """Of all rules but those that were needed."""
    is_judged: Callable[[StandardAcl], bool]
    """Whether a rule was in that state."""

    def of(self, acl: StandardAcl) -> Use | None:
        """Return what is known of a rule; None if it was not among those that were judged."""
        found = self.by_rule.get(acl)
        if found is None and self.is_judged(acl):
            return Use(is_unused=False, text="needed")
        return found


@frozen(eq=False, kw_only=True)
class Looked:
    """What was found of one kind."""

    items: tuple[Item, ...]
    archived: tuple[Item, ...] = ()
    summary: str = ""
    """Such as `2 of 40 tests fail`, or what `none` was proved over."""
    notes: tuple[str, ...] = ()
    """What could not be judged, and what else must be known to read it rightly."""
    uses: Uses | None = None


class Finder(Protocol):
    """Finds what is wrong of one kind. Called from one thread."""

    def look(self, subject: Subject) -> Looked:
        """Return what is wrong with a state. Raises MetadataError, OSError: nobody can tell; the text says why."""
        ...

    def had(self, then: Subject, found: Looked) -> frozenset[str]:
        """Return the keys of what was found that an earlier state had as well. Raises as `look`."""
        ...

    def signature(self) -> object:
        """Return what changes when that which it reads besides the state does. Raises OSError: it is gone."""
        ...


@frozen(eq=False, kw_only=True)
class Kept:
    """The newest look of one kind, and what came of it."""

    looked: Looked | None
    """The newest that succeeded."""
    error: str | None = None
    """Why the newest one failed."""
    acls: AclsImage | None = None
    """The rules of the state of `looked`."""
    offset: int = 0
    """The end offset of the state of `looked`."""
    at: float = 0.0
    """When that look began, by the clock of who looked."""
    had: Mapping[int, frozenset[str] | str] = field(factory=dict)
    """By end offset of an earlier state: what it had of `looked`, or why nobody can tell."""
