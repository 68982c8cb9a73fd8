"""A synthetic year of an estate: teams come and go, topics are added, jobs run daily, weekly, monthly or once."""

from collections.abc import Iterator
from random import Random

from attrs import frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType

DAYS = 365
_TEAMS, _NEW_TEAMS = 36, 10
_FOREVER = 10_000
_READ, _WRITE = AclOperation.READ, AclOperation.WRITE
_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP


@frozen(kw_only=True)
class Use:
    """What a principal does again and again, from a day on until another one (exclusive)."""

    principal: str
    host: str
    operation: int
    resource_type: int
    name: str
    begin: int
    end: int
    every: int
    """1: all the time; 7 or 30: on one day of so many; 365: for 20 days of the year."""
    phase: int

    def on(self, day: int) -> int:
        """Return how many accesses are made on a day."""
        if not self.begin <= day < self.end:
            return 0
        if self.every == 1:
            return 500
        if self.every == DAYS:
            return 500 if (day - self.phase) % DAYS < 20 else 0
        return 50 if day % self.every == self.phase else 0


@frozen(kw_only=True)
class PresentRule:
    """A rule, from a day on until another one (exclusive)."""

    acl: StandardAcl
    begin: int
    end: int


@frozen(kw_only=True)
class Year:
    """All that is done, and the rules that allow it."""

    uses: tuple[Use, ...]
    rules: tuple[PresentRule, ...]

    @classmethod
    def of(cls, seed: int) -> "Year":
        """Make a year up."""
        random = Random(seed)
        teams = [_Team.of(number, random) for number in range(_TEAMS + _NEW_TEAMS)]
        uses, rules = [], []
        for team in teams:
            rules += team.rules()
            for topic, begin in team.topics(random):
                uses += team.uses(topic, begin, teams, random)
        readers = {
            (use.principal, use.name.rpartition(".")[0] + ".", use.begin)
            for use in uses
            if use.every and use.operation == _READ and use.resource_type == _TOPIC
        }
        first: dict[tuple[str, str], int] = {}
        for principal, prefix, begin in readers:
            first[principal, prefix] = min(begin, first.get((principal, prefix), begin))
        rules += [
            PresentRule(acl=_allow(principal, _READ, _TOPIC, prefix), begin=begin, end=_FOREVER)
            for (principal, prefix), begin in sorted(first.items())
        ]
        return cls(uses=tuple(uses), rules=tuple(rules))

    def present(self, day: int) -> list[StandardAcl]:
        """Return the rules on a day, each once."""
        return list(dict.fromkeys(rule.acl for rule in self.rules if rule.begin <= day < rule.end))


@frozen(kw_only=True)
class _Team:
    name: str
    services: tuple[str, ...]
    begin: int
    end: int

    @classmethod
    def of(cls, number: int, random: Random) -> "_Team":
        begin = -_FOREVER if number < _TEAMS else random.randrange(DAYS)
        end = random.randrange(DAYS) if number < _TEAMS and random.random() < 1 / 6 else _FOREVER
        services = tuple(f"svc{each}" for each in range(random.randrange(1, 5)))
        return cls(name=f"team{number}", services=services, begin=begin, end=end)

    def rules(self) -> Iterator[PresentRule]:
        """Yield what is usual: each service may do everything under the prefix of its team, and with its groups."""
        for service in self.services:
            who = f"User:{self.name}-{service}"
            for acl in (
                _allow(who, AclOperation.ALL, _TOPIC, f"{self.name}."),
                _allow(who, _READ, _GROUP, f"{self.name}-{service}"),
            ):
                yield PresentRule(acl=acl, begin=self.begin, end=self.end)

    def topics(self, random: Random) -> Iterator[tuple[str, int]]:
        """Yield topics and the days on which they are made: some at first, then one in about six weeks a service."""
        for service in self.services:
            for number in range(random.randrange(4, 14)):
                yield f"{self.name}.{service}.t{number}", self.begin
            day, number = max(self.begin, -90), 100
            while (day := day + int(random.expovariate(1 / 45)) + 1) < min(self.end, DAYS):
                yield f"{self.name}.{service}.t{number}", day
                number += 1

    def uses(self, topic: str, begin: int, teams: "list[_Team]", random: Random) -> Iterator[Use]:
        """Yield who writes a topic, and who reads it: services of the team, and now and then another team's."""
        _, service, _ = topic.split(".")
        every = random.choices((1, 7, 30, DAYS), (85, 8, 5, 2))[0]
        phase = random.randrange(every)
        end = self.end if random.random() < 0.9 else begin + random.randrange(30, 400) if begin > 0 else self.end

        def use(principal: str, operation: int, kind: int, name: str, start: int) -> Use:
            host = f"10.{random.randrange(4)}.{random.randrange(250)}.{random.randrange(250)}"
            return Use(
                principal=principal, host=host, operation=operation, resource_type=kind, name=name, begin=start,
                end=end, every=every, phase=phase,
            )  # fmt: skip

        yield use(f"User:{self.name}-{service}", _WRITE, _TOPIC, topic, begin)
        readers = [f"{self.name}-{each}" for each in self.services if each == service or random.random() < 0.3]
        others = random.sample(teams, 2) if random.random() < 0.15 else []
        readers += [f"{each.name}-{each.services[0]}" for each in others if each.begin < 0 and each.end > DAYS]
        for reader in readers:
            start = begin if begin > 0 or random.random() < 0.95 else random.randrange(DAYS)
            yield use(f"User:{reader}", _READ, _TOPIC, topic, start)
            yield use(f"User:{reader}", _READ, _GROUP, f"{reader}", start)


def _allow(principal: str, operation: int, kind: int, prefix: str) -> StandardAcl:
    return StandardAcl(
        resource_type=kind,
        resource_name=prefix,
        pattern_type=PatternType.PREFIXED,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=AclPermissionType.ALLOW,
    )
