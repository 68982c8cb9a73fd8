"""Random cases of plan and apply: who owns what of what is there, what is wanted, and what must come of it."""

from collections.abc import Iterable
from random import Random

from attrs import field, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import RuleChange, content_of
from aclog.authorizer.control import refusal
from aclog.authorizer.settings import Settings
from aclog.planning.plan import Batching
from aclog.planning.planner import Holdings, PlannedChange, change_as_asked, change_to_want
from tests.support.analysis.policies import distinct, random_rule
from tests.support.planning.changes import close_rule


@frozen(kw_only=True)
class Case:
    """What is there and whose it is, and either all that a source wants or changes that it asks for."""

    there: frozenset[StandardAcl]
    owned: frozenset[StandardAcl]
    """By the journal; some of it may be gone from the place."""
    others: frozenset[StandardAcl]
    """By other journals."""
    goal: frozenset[StandardAcl] | None
    changes: tuple[tuple[bool, StandardAcl], ...] = ()
    """Whether it is to be added, and the rule; if nothing is wanted."""
    adopt: bool = False
    batching: Batching
    settings: Settings
    seed: int = field(default=0)

    def change(self) -> PlannedChange:
        """What the product makes of it."""
        ownership = Holdings(there=_contents(self.there), owned=_contents(self.owned), others=_contents(self.others))
        if self.goal is not None:
            return change_to_want(ownership, _contents(self.goal), adopt=self.adopt)
        changes = [RuleChange(added=added, acl=rule) for added, rule in self.changes]
        return change_as_asked(ownership, changes, adopt=self.adopt)

    @property
    def asks_for_shared(self) -> bool:
        """Whether it asks to remove what others own, too: released once, it is no longer the source's to ask for."""
        return any(not added and rule in self.others for added, rule in self.changes)

    @property
    def target(self) -> frozenset[StandardAcl]:
        """All that the source wants."""
        if self.goal is not None:
            return self.goal
        rules = set(self.owned & self.there)
        for added, rule in self.changes:
            rules = rules | {rule} if added else rules - {rule}
        return frozenset(rules)

    @property
    def foreign(self) -> frozenset[StandardAcl]:
        """What is there and must stay whatever is wanted, for it is not the source's, or not its alone."""
        removed = {rule for added, rule in self.changes if not added} if self.adopt else set()
        return frozenset((self.there - self.owned - removed) | (self.there & self.owned & self.others))

    @property
    def end(self) -> frozenset[StandardAcl]:
        """What must be there at last."""
        return self.target | self.foreign

    @property
    def owned_at_last(self) -> frozenset[StandardAcl]:
        """What the journal must own at last."""
        if self.goal is not None:
            present = (self.goal & self.there) - self.owned
            return self.goal if self.adopt else self.goal - present
        owned = set(self.owned)
        for added, rule in self.changes:
            if not added:
                owned.discard(rule)
            elif self.adopt or rule not in self.there:
                owned.add(rule)
        return frozenset(owned)


def random_case(seed: int, *, allow_everyone: bool) -> Case:
    """A case that a plan accepts; with the same seed the same rules, whatever the setting."""
    random = Random(seed)
    cidr = random.random() < 0.1
    there = _rules(random, random.choice([0, 2, 5, 10]), cidr=cidr)
    owned = {rule for rule in there if random.random() < random.choice([0.4, 0.8])}
    stale = set(_rules(random, random.choice([0, 0, 1]), cidr=cidr)) - set(there)
    new = _rules(random, random.choice([0, 2, 4, 8]), cidr=cidr)
    goal = {rule for rule in sorted(owned | stale, key=str) if random.random() < random.choice([0, 0.5, 0.9])}
    goal |= {rule for rule in there if rule not in owned and random.random() < 0.2} | set(new)
    others = {rule for rule in there if random.random() < random.choice([0, 0, 0.2])}
    adopt, asks = random.random() < 0.3, random.random() < 0.2
    changes = [(True, rule) for rule in goal - owned] + [(False, rule) for rule in owned - goal]
    if adopt:
        changes += [(False, rule) for rule in there if rule not in owned | goal | others and random.random() < 0.3]
    changes.sort(key=str)
    random.shuffle(changes)
    return Case(
        there=frozenset(there),
        owned=frozenset(owned | stale),
        others=frozenset(others),
        goal=None if asks else frozenset(goal),
        changes=tuple(changes) if asks else (),
        adopt=adopt,
        batching=random.choice(list(Batching)),
        settings=Settings(
            super_users=frozenset(random.choice([(), (), ("User:a",)])),
            allow_everyone=allow_everyone,
            documented=random.random() < 0.1,
            cidr=cidr,
        ),
        seed=seed,
    )


def _rules(random: Random, count: int, *, cidr: bool) -> list[StandardAcl]:
    drawn = (
        close_rule(random) if random.random() < 0.7 else random_rule(random, odd=0, cidr=cidr) for _ in range(count)
    )
    return [rule for rule in distinct(list(drawn)) if refusal(rule, cidr=cidr) is None]


def _contents(rules: Iterable[StandardAcl]) -> frozenset[bytes]:
    return frozenset(map(content_of, rules))
