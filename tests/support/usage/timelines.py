"""Rules that come and go, and accesses by brokers that fall silent; and what is true of them, by the engine alone."""

from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from random import Random

from attrs import evolve, field, frozen

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from tests.support.builders.images import with_ids
from tests.support.models.engine_answers import decided, engine
from tests.support.models.estates import Request

HOUR = 3_600_000_000
DAY = 24 * HOUR
USERS = ["User:a", "User:b"]
NAMES = ["orders", "orders.eu", "pay"]
HOSTS = ["10.0.0.1", "10.0.0.2"]
OPERATIONS = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]


@frozen(kw_only=True)
class Access:
    """A line of a log; us since 1970."""

    time: int
    broker: str | None
    request: Request


@frozen(kw_only=True)
class Life:
    """A rule in force from one time (us since 1970) to before another; None: it still is."""

    rule: StandardAclWithId
    begin: int
    end: int | None

    def holds(self, time: int) -> bool:
        return self.begin <= time and (self.end is None or time < self.end)


@frozen(kw_only=True)
class Timeline:
    """Lives and accesses."""

    lives: list[Life]
    accesses: list[Access]
    settings: Settings = field(factory=Settings)

    def letter(self, rules: Iterable[StandardAclWithId], request: Request) -> str:
        """A or D."""
        if self.settings.allow_everyone:
            return _letter(tuple(sorted(rules, key=repr)), request, self.settings)
        return letter(rules, request)

    def at(self, time: int) -> frozenset[StandardAclWithId]:
        """The rules in force."""
        return frozenset(life.rule for life in self.lives if life.holds(time))

    def now(self) -> frozenset[StandardAclWithId]:
        return frozenset(life.rule for life in self.lives if life.end is None)

    def between(self, start: int, until: int) -> list[Access]:
        return [each for each in self.accesses if start <= each.time <= until]

    def use(self, life: Life, start: int, until: int) -> tuple[int, int]:
        """How many accesses match the life, and how many would be decided otherwise without it."""
        matched = needed = 0
        for each in self.between(start, until):
            if life.holds(each.time):
                rules = self.at(each.time)
                matched += matches(life.rule, each.request)
                needed += self.letter(rules, each.request) != self.letter(rules - {life.rule}, each.request)
        return matched, needed

    def flips(self, removed: frozenset[StandardAclWithId], start: int, until: int) -> list[Access]:
        """The accesses decided otherwise without the rules that are gone, by the rules of their time or of now."""
        return [
            each
            for each in self.between(start, until)
            for rules in (self.at(each.time), self.now())
            if self.letter(rules, each.request) != self.letter(rules - removed, each.request)
        ]

    def silences(self, broker: str | None, start: int, until: int, gap: int) -> list[tuple[int, int]]:
        """The times in the window without a line of a broker."""
        lines = sorted(each.time for each in self.accesses if each.broker == broker)
        times = [start, *(time for time in lines if start <= time <= until), until]
        return [(one, other) for one, other in pairwise(times) if other - one >= gap]


@cache
def matches(rule: StandardAclWithId, request: Request) -> bool:
    """Whether a rule matches a request: whether it decides, or is overruled, alone."""
    allows = evolve(rule, acl=evolve(rule.acl, permission_type=AclPermissionType.ALLOW))
    if rule.acl.permission_type == AclPermissionType.ALLOW:
        return _letter((rule,), request) == "A"
    # a DENY of an operation denies no other, so the ALLOW beside it must be of the same one
    anything = evolve(allows.acl, operation=AclOperation.ALL, principal="User:*", host="*", resource_name="*")
    other = StandardAclWithId(id=None, acl=evolve(anything, pattern_type=PatternType.LITERAL))
    return _letter((other,), request) == "A" and _letter((evolve(rule, id=None), other), request) == "D"


def letter(rules: Iterable[StandardAclWithId], request: Request) -> str:
    """A or D: only rules that match make a difference."""
    return _letter(tuple(sorted((rule for rule in rules if matches(rule, request)), key=repr)), request)


@cache
def _letter(rules: tuple[StandardAclWithId, ...], request: Request, settings: Settings = Settings()) -> str:  # noqa: B008
    authorizer = engine(AclsImage.from_acls(rules), settings)
    return decided(
        authorizer,
        request.principal,
        request.host,
        AclOperation(request.operation).name,
        ResourceType(request.resource_type).name,
        request.resource_name,
    )[0]


def random_acl(random: Random) -> StandardAcl:
    """A rule that has something in common with many others."""
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=random.choice([*NAMES, "ord", "*"]),
        pattern_type=PatternType.PREFIXED if random.random() < 0.3 else PatternType.LITERAL,
        principal=random.choice([*USERS, "User:*"]),
        host=random.choice(["*", "*", *HOSTS]),
        operation=random.choice([*OPERATIONS, AclOperation.ALL]),
        permission_type=AclPermissionType.DENY if random.random() < 0.3 else AclPermissionType.ALLOW,
    )


def random_request(random: Random) -> Request:
    return Request(
        principal=random.choice([*USERS, "User:c"]),
        host=random.choice(HOSTS),
        operation=random.choice(OPERATIONS),
        resource_type=ResourceType.TOPIC,
        resource_name=random.choice([*NAMES, "orders.us"]),
    )


def random_timeline(random: Random, *, days: int = 12, rules: int = 12, brokers: int = 2) -> Timeline:
    """Most rules are there all the while; a few come later, go, or come back under another id."""
    lives: list[Life] = []
    acls = list(dict.fromkeys(random_acl(random) for _ in range(rules)))
    comings = [(acl, begin, end) for acl in acls for begin, end in _spans(random, days)]
    for rule, (_, begin, end) in zip(with_ids([acl for acl, *_ in comings]), comings, strict=True):
        lives.append(Life(rule=rule, begin=begin, end=end))
    accesses = []
    requests = [random_request(random) for _ in range(random.choice([2, 5, 12]))]
    for number in range(brokers):
        silent = {day for day in range(days) if random.random() < 0.1 * number}
        for day in set(range(days)) - silent:
            for _ in range(random.randint(1, 4)):
                time = day * DAY + random.randrange(DAY)
                accesses.append(Access(time=time, broker=f"{number}", request=random.choice(requests)))
    return Timeline(lives=lives, accesses=sorted(accesses, key=lambda each: each.time))


def _spans(random: Random, days: int) -> list[tuple[int, int | None]]:
    if random.random() < 0.7:
        return [(0, None)]
    times = sorted(random.randrange(days * DAY // 1000) * 1000 for _ in range(random.randint(1, 4)))  # whole ms
    if random.random() < 0.5:
        times.insert(0, 0)
    return [(begin, times[at + 1] if at + 1 < len(times) else None) for at, begin in enumerate(times) if at % 2 == 0]
