"""Rules that move from one principal to another: a renamed principal, or a mistyped one."""

from collections import defaultdict
from collections.abc import Iterable

from attrs import evolve, frozen

from aclog.authorizer.acl import WILDCARD_PRINCIPAL, StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.rule_change import RuleChange


@frozen(kw_only=True)
class Rename:
    """All rules that one principal loses are those that another gets."""

    old: str
    new: str
    rules: int
    left: bool
    """Whether the old principal has other rules after the change."""
    known: bool
    """Whether the new principal had rules before it."""

    @property
    def is_whole(self) -> bool:
        """Whether one principal takes the place of another: it is new, or the other one is no more."""
        return not self.left or not self.known

    def text(self) -> str:
        """Return such as `principal renamed: User:a -> User:b: 3 rules; User:a has none left`."""
        what = "principal renamed" if self.is_whole else "rules change hands"
        parts = [f"{what}: {self.old} -> {self.new}: {self.rules:,} rule{'s' * (self.rules != 1)}"]
        if not self.left:
            parts.append(f"{self.old} has none left")
        if not self.known:
            parts.append(f"{self.new} had none before")
        return "; ".join(parts)


def renames(changes: Iterable[RuleChange], old: AclsImage, new: AclsImage) -> list[Rename]:
    """Return the renames among the changes that make one image of another, by principal.

    `User:*` is everyone: who takes rules from there, or gives some to it, took nobody's place.
    """
    removed: dict[str, set[StandardAcl]] = defaultdict(set)
    added: dict[str, set[StandardAcl]] = defaultdict(set)
    for change in changes:
        if change.acl.principal == WILDCARD_PRINCIPAL:
            continue
        (added if change.added else removed)[change.acl.principal].add(evolve(change.acl, principal=""))
    by_rules: dict[frozenset[StandardAcl], list[str]] = defaultdict(list)
    for principal in sorted(added):
        by_rules[frozenset(added[principal])].append(principal)
    found = []
    before, after = (old.principals(), new.principals()) if removed and added else (set[str](), set[str]())
    for principal in sorted(removed):
        takers = by_rules.get(frozenset(removed[principal]), [])
        if len(takers) == 1:  # of several that get the same rules, no one has taken the place
            taker = takers[0]
            found.append(
                Rename(
                    old=principal,
                    new=taker,
                    rules=len(removed[principal]),
                    left=principal in after,
                    known=taker in before,
                )
            )
    return found
