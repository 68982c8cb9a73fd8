"""Rules that stand in another file after a change."""

from collections import Counter
from collections.abc import Callable, Iterable

from attrs import frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.origin import NO_ORIGINS, FileOrigin, Origins


@frozen(kw_only=True)
class Move:
    """How many rules that are the same before and after stand in other files."""

    old: str
    new: str
    rules: int

    def text(self) -> str:
        """Return such as `3 rules moved from kafka/a.yaml to kafka/b.yaml`."""
        return f"{self.rules:,} rule{'s' * (self.rules != 1)} moved from {self.old} to {self.new}"


@frozen(eq=False, kw_only=True)
class Placement:
    """Where the rules of one side stand."""

    origins: Origins = NO_ORIGINS
    path_of: Callable[[str], str] = str
    """Returns the path of a file from the top of the repository, of the file as origins show it."""

    def files(self, rule: StandardAcl) -> tuple[str, ...]:
        """Return the files that state a rule, as paths from the top of the repository."""
        found = {self.path_of(each.file) for each in self.origins.of(rule) if isinstance(each, FileOrigin)}
        return tuple(sorted(found))


def moves(rules: Iterable[StandardAcl], before: Placement, after: Placement) -> list[Move]:
    """Return the moves of some rules, the largest first."""
    counted: Counter[tuple[str, str]] = Counter()
    for rule in rules:
        old, new = before.files(rule), after.files(rule)
        left, reached = [each for each in old if each not in new], [each for each in new if each not in old]
        if left and reached:  # else it is stated in fewer or in more files than before, and moved nowhere
            counted[", ".join(left), ", ".join(reached)] += 1
    ordered = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    return [Move(old=old, new=new, rules=count) for (old, new), count in ordered]
