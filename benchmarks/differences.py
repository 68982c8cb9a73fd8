"""The exact difference of two policies, and its rows: beside deciding the same cells one by one, and beside a replay.

The cells are those that a changed rule can have changed: one name of each class beneath it, its principal (or all that
are named, and one that is not), one host, all 13 operations. Of very many cells a sample is decided, and the time is
that of all in proportion. Replay reads both states from records in memory.
"""

import time
import tracemalloc
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from random import Random
from statistics import median

from attrs import define, evolve, field, frozen

from aclog.analysis.comparison import differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions import REQUESTED, Difference, operations_of
from aclog.analysis.rows.folding import rows
from aclog.authorizer.acl import ResourcePattern, StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.settings import Settings
from aclog.metalog.columns import AclColumns
from aclog.metalog.records import RemoveAccessControlEntryRecord
from benchmarks.report import Row
from benchmarks.shapes import columns, million, record, with_id

ONE_RULE_TARGET_MS, PERCENT_TARGET_MS, ROWS_TARGET = 5.0, 300.0, 20
_DECIDED = 2_000
_OPERATIONS = tuple(operations_of(REQUESTED))


@frozen(kw_only=True)
class _Change:
    """Two policies and the rules that only one of them has."""

    old: Policy
    new: Policy
    changed: Sequence[tuple[bool, StandardAcl]] = ()

    def regions(self) -> list[Difference]:
        return list(differences(self.old, self.new, changed=[rule for _, rule in self.changed]))


@define
class _Estate:
    """The rules of `million`, loaded, and what they are made of."""

    rules: list[StandardAcl]
    encoded: AclColumns
    policy: Policy
    names: list[tuple[int, str]] = field(init=False)
    principals: list[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.names = sorted({(rule.resource_type, rule.resource_name) for rule in self.rules})
        self.principals = [*{rule.principal for rule in self.rules}, "User:other"]

    @classmethod
    def of(cls, count: int) -> "_Estate":
        encoded = columns(million(count))
        return cls(list(million(count)), encoded, Policy(AclsImage.from_columns(encoded)))

    def change(self, added: Sequence[StandardAcl], removed: Sequence[int] = ()) -> _Change:
        """Add rules, and remove some by their numbers."""
        new = [record(with_id(len(self.rules) + number, rule)) for number, rule in enumerate(added)]
        gone = [RemoveAccessControlEntryRecord(id=record(with_id(n, self.rules[n])).id) for n in removed]
        changed = [*((True, rule) for rule in added), *((False, self.rules[n]) for n in removed)]
        return _Change(old=self.policy, new=Policy(self.policy.acls.apply([*gone, *new])), changed=changed)

    def replay(self) -> object:
        return [AclsImage.from_columns(self.encoded) for _ in range(2)]

    def cells(self, rule: StandardAcl) -> tuple[int, list[tuple[str, int, str]]]:
        """Return how many cells a rule can have changed, and some of them."""
        stem = "" if rule.resource_name == "*" else rule.resource_name
        low = bisect_left(self.names, (rule.resource_type, stem))
        high = bisect_left(self.names, (rule.resource_type, stem + "\U0010ffff"))
        only = rule.pattern_type == PatternType.LITERAL and stem
        names = [stem] if only else [name for _, name in self.names[low:high]] + [stem + "?"]
        who = self.principals if rule.principal == "User:*" else [rule.principal]
        count, random = len(names) * len(who), Random(1)
        some = ((random.choice(who), rule.resource_type, random.choice(names)) for _ in range(_DECIDED))
        every = ((principal, rule.resource_type, name) for principal in who for name in names)
        return count, list(some if count > _DECIDED else every)


def _milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def _decided(estate: _Estate, change: _Change) -> float:
    """Return the milliseconds of deciding the cells of all changed rules, in both policies."""
    count, some = 0, []
    for _, rule in change.changed:
        found, cells = estate.cells(rule)
        count += found
        some += cells[: max(1, _DECIDED // len(change.changed))]

    def decide() -> None:
        for principal, kind, name in some:
            context = RequestContext(principal=principal, host="10.0.0.1")
            resource = ResourcePattern(resource_type=kind, name=name)
            actions = [Action(operation=operation, resource_pattern=resource) for operation in _OPERATIONS]
            change.old.authorizer.authorize(context, actions)
            change.new.authorizer.authorize(context, actions)

    decide()
    return _milliseconds(decide) / len(some) * count


def _folded(change: _Change) -> tuple[int, float]:
    """Return how many rows a difference has, and the milliseconds of folding it."""
    found, start = change.regions(), time.perf_counter()
    count = len(rows(found, change.old, change.new, change.changed))
    return count, (time.perf_counter() - start) * 1000


def _random_changes(estate: _Estate, count: int) -> Iterator[_Change]:
    """Yield changes of one rule each: a new one on the resource of another, a new prefix, or a removal."""
    random = Random(5)
    for number in range(count):
        rule = random.choice(estate.rules)
        new = evolve(rule, principal=random.choice(estate.rules).principal, operation=AclOperation(3 + number % 3))
        if number % 3 == 0:
            yield estate.change([], [random.randrange(len(estate.rules))])
        elif number % 3 == 1:
            yield estate.change([new])
        else:
            stem = evolve(new, resource_name=rule.resource_name[:-4], pattern_type=PatternType.PREFIXED)
            yield estate.change([stem])


def _one_rule(count: int, changes: int) -> Iterator[Row]:
    estate = _Estate.of(count)
    for change in _random_changes(estate, 3):
        change.regions()  # what is made once for an image
    timed = list(_random_changes(estate, changes))
    taken = [_milliseconds(change.regions) for change in timed]
    decided = [_decided(estate, change) for change in timed]
    what, ours = f"one rule of {count:,} changed, p50", median(taken)
    yield Row(what=what, ours=ours, unit="ms", target=ONE_RULE_TARGET_MS)
    yield Row(what=f"{what}; p99", ours=sorted(taken)[len(taken) * 99 // 100], unit="ms")
    yield Row(what=f"{what}; deciding its cells", ours=ours, theirs=median(decided), unit="ms")
    yield Row(what=f"{what}; replaying both", ours=ours, theirs=_milliseconds(estate.replay), unit="ms")
    yield Row(what=f"{what}; its rows", ours=median(_folded(change)[1] for change in timed), unit="ms")
    tracemalloc.start()
    timed[0].regions()
    yield Row(what="memory of one such difference, at most", ours=tracemalloc.get_traced_memory()[1] / 1024, unit="KiB")
    tracemalloc.stop()


def _percent(estate: _Estate) -> Iterator[Row]:
    count, random = len(estate.rules), Random(7)
    added = [evolve(rule, operation=AclOperation.READ, principal="User:new") for rule in estate.rules[: count // 200]]
    change = estate.change(list(dict.fromkeys(added)), random.sample(range(count), count // 200))
    ours = min(_milliseconds(change.regions) for _ in range(5))
    what = f"1% of {count:,} rules changed"
    yield Row(what=what, ours=ours, unit="ms", target=PERCENT_TARGET_MS)
    yield Row(what=f"{what}; deciding their cells", ours=ours, theirs=_decided(estate, change), unit="ms")
    yield Row(what=f"{what}; replaying both", ours=ours, theirs=_milliseconds(estate.replay), unit="ms")
    yield Row(what=f"{what}; its rows", ours=_folded(change)[1], unit="ms")


def _wide(estate: _Estate) -> Iterator[Row]:
    deny = evolve(
        estate.rules[1],
        resource_name="*",
        pattern_type=PatternType.LITERAL,
        principal="User:*",
        operation=AclOperation.ALL,
        permission_type=AclPermissionType.DENY,
    )
    change = estate.change([deny])
    regions: list[Difference] = []
    ours = _milliseconds(lambda: regions.extend(change.regions()))
    what = f"User:* denied on * of {len(estate.rules):,} rules"
    yield Row(what=what, ours=ours, theirs=_decided(estate, change), unit="ms")
    yield Row(what=f"{what}: regions", ours=len(regions), unit="")
    settings = (
        ("allow.everyone.if.no.acl.found", Settings(allow_everyone=True)),
        ("a super user", Settings(super_users=frozenset({estate.rules[1].principal}))),
    )
    flips = [(name, _Change(old=estate.policy, new=Policy(estate.policy.acls, new))) for name, new in settings]
    for name, each in ((what, change), *flips):
        count, taken = _folded(each)
        yield Row(what=f"{name}: rows", ours=count, unit="", target=ROWS_TARGET)
        yield Row(what=f"{name}: folding", ours=taken, unit="ms")


def run(large: int, middle: int, changes: int) -> Iterator[Row]:
    """Yield the figures of so many rules, and of so many changes of one rule."""
    yield from _one_rule(large, changes)
    estate = _Estate.of(middle)
    yield from _percent(estate)
    yield from _wide(estate)
