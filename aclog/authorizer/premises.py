"""Premises: what an answer rests on and could not be read, what each could change, and what settles it."""

from collections.abc import Set as AbstractSet
from typing import Self

from attrs import frozen

from aclog.authorizer.audit import Row
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG

UNKNOWN = " is unknown: "
"""What the note of every premise has, and no other note of a command."""


@frozen(kw_only=True)
class Premise:
    """One unknown premise."""

    name: str
    """What is unknown, such as `super.users`."""
    problem: str
    """Why it is unknown, and on which nodes; a clause."""
    unless: str
    """With what the answer would be another one; a clause, such as `the principal is a super user`."""
    settled_by: str
    """What to give so that it is known, such as `--super-users USERS`."""
    allows: bool = True
    """Whether it could allow what is denied without it."""
    denies: bool = False
    """Whether it could deny what is allowed without it."""

    def note(self) -> str:
        """Return the premise as a sentence for stderr."""
        turned = {
            (True, False): "what is DENIED may be allowed",
            (False, True): "what is ALLOWED may be denied",
            (True, True): "any decision may be another one",
        }[self.allows, self.denies]
        return f"{self.name}{UNKNOWN}{self.problem}: {turned}; known with {self.settled_by}"

    def to_dict(self) -> Row:
        """Return the premise for JSON; scripts depend on the keys."""
        return {
            "name": self.name,
            "problem": self.problem,
            "couldAllow": self.allows,
            "couldDeny": self.denies,
            "settledBy": self.settled_by,
        }


@frozen
class Premises:
    """All unknown premises of an answer; none if everything that decides is known."""

    unknown: tuple[Premise, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unknown)

    @property
    def names(self) -> tuple[str, ...]:
        """What is unknown."""
        return tuple(premise.name for premise in self.unknown)

    def turning(self, *, allowed: bool) -> Self:
        """Return those that could turn a request that is allowed, or one that is denied, to the opposite."""
        return type(self)(tuple(each for each in self.unknown if (each.denies if allowed else each.allows)))

    def also(self, more: Self) -> Self:
        """Return these and more of them, each once."""
        return type(self)(tuple(dict.fromkeys((*self.unknown, *more.unknown)))) if more else self

    def without(self, names: AbstractSet[str]) -> Self:
        """Return those that have none of these names."""
        return type(self)(tuple(each for each in self.unknown if each.name not in names))

    def bearing_on(self, *, allowed: bool, has_candidate: bool) -> Self:
        """Return those that could turn one decision; `has_candidate`: whether an ACL covers its resource."""
        turning = self.turning(allowed=allowed)
        return turning.without({ALLOW_EVERYONE_CONFIG}) if has_candidate else turning

    def decided(self, decision: str) -> str:
        """Return a decision with what could turn it: `DENIED unless ...`; `self`: those that bear on it."""
        return f"{decision} unless {self.unless()}" if self.unknown else decision

    def unless(self) -> str:
        """Return with what an answer would be another one, and what settles that, as a clause; empty if nothing."""
        return " or ".join(f"{each.unless} ({each.settled_by})" for each in self.unknown)

    def settled_by(self) -> str:
        """Return all that settles them, as a list in a sentence."""
        return " and ".join(each.settled_by for each in self.unknown)

    def to_dicts(self) -> list[Row]:
        """Return them for JSON."""
        return [premise.to_dict() for premise in self.unknown]

    def key(self) -> dict[str, list[Row]]:
        """Return the key of an object in JSON: left out if everything is known."""
        return {"premises": self.to_dicts()} if self.unknown else {}


ALL_KNOWN = Premises()
