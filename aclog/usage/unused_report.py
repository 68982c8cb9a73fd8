"""The report of unused ACLs: a state's ACLs that the days of an index do not need, with details."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import numpy as np
from attrs import evolve
from pyroaring import BitMap

from aclog.authorizer.acl import is_cidr
from aclog.authorizer.codes import WILDCARD_PRINCIPAL
from aclog.metalog.columns import Bools, Bytes, Int64s
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.usage.index.lives import BEGIN_IS_EXACT, HAS_ID, Lives, digests
from aclog.usage.index.usage_index import KAFKA, RunRecord, UsageIndex
from aclog.usage.index.used import LastUse, Used
from aclog.usage.unused import (
    HeardHours,
    JudgedWindow,
    RuleLives,
    StateRules,
    Unused,
    WindowUse,
    first_heard,
    places_of,
)
from aclog.usage.window import DAY, EARLIEST, LATEST, Coverage

NO_BROKER = "none"
"""The name of lines without a broker, where brokers are named."""

_LATELY = 7
"""In days: of ACLs of which one must stay, the one with the most matches in these days is kept."""


@frozen(kw_only=True)
class UnusedQuestion:
    """The window, and the definition of a gap; times in us."""

    days: int
    gap: int
    until: int | None = None
    """Since 1970; None for the latest access."""
    ignored: Collection[str] = ()
    """Brokers whose gaps are ignored."""


@frozen(eq=False, kw_only=True)
class UnusedReport:
    """The answers, with access to further details."""

    unused: Unused
    index: UsageIndex
    expected: Sequence[str | None]
    """The brokers that are expected to log."""
    unknown: str = ""
    """Why no ACL counts as removable, if what decides is unknown."""

    @classmethod
    def of(cls, index: UsageIndex, rules: StateRules, question: UnusedQuestion) -> "UnusedReport":
        """Judge the ACLs of a state.

        Raises:
            ConfigError: the index has no accesses, an unknown broker, or the index is damaged.

        """
        coverage = index.coverage()
        if not len(coverage):
            raise ConfigError(f"{index.database.name}: no accesses yet: add some with `aclog accesses index`")
        until = _latest(index, coverage) if question.until is None else question.until
        window = JudgedWindow.ending(until, question.days, gap=question.gap)
        expected = _expected(coverage, question.ignored)
        lives, use = index.lives(), index.window(window.first_day, window.last_day)
        runs = index.runs()
        broker_hours = {broker: _hours(coverage, broker) for broker in coverage.brokers}
        window_use = WindowUse(
            matched=_mask(use.matched, len(lives)),
            needed=_mask(use.needed, len(lives)),
            worth=lambda numbers: _matched(index.used(window.last_day - _LATELY, window.last_day), numbers),
            sets=index.sets(use.sets),
            broker_hours={broker: broker_hours[broker] for broker in expected},
            first_access=first_heard(broker_hours.values(), window.start),
            allow_everyone=any(run.settings.get("allow_everyone") for run in runs),
            unread=index.unread(window.start, (window.last_day + 1) * DAY - 1),
        )
        rule_lives = resettled(lives_of(rules, lives), rules, runs, window.start)
        unused = Unused.of(rules, rule_lives, window_use, window)
        return cls(unused=unused, index=index, expected=expected)

    def without_removals(self, unknown: str = "") -> "UnusedReport":
        """Return the report without removable ACLs: if a setting is unknown, there is no proof that any is."""
        none = np.zeros_like(self.unused.removable)
        return evolve(self, unused=evolve(self.unused, removable=none), unknown=unknown)

    @cached_property
    def used(self) -> Used:
        """The number of uses of each life in the window."""
        window = self.unused.window
        return self.index.used(window.first_day, window.last_day)

    def last_use(self, numbers: Int64s) -> LastUse:
        """Return the first and last uses of some ACLs, by number, with their users; by the numbers of their lives."""
        lives = self.unused.lives.number[numbers]
        return self.index.last_use(np.unique(lives[lives >= 0]))


def lives_of(rules: StateRules, lives: Lives) -> RuleLives:
    """Return the open lives of the ACLs of a state.

    An ACL with an id is identified by it; if the sources of the index have no ids, by its text.
    """
    open_ = lives.is_open
    if rules.has_ids:
        number = _life_numbers(rules.ids, lives.keys, open_ & lives.has(HAS_ID))
        nameless = open_ & ~lives.has(HAS_ID)
        if nameless.any() and (number < 0).any():
            number = np.where(number < 0, _life_numbers(digests(rules.acls.records()), lives.digests, nameless), number)
    else:
        number = _life_numbers(digests(rules.acls.records()), lives.digests, open_)
    if not len(lives):
        return RuleLives(number=number, begin=np.zeros(len(rules), np.int64), exact=np.zeros(len(rules), np.bool_))
    begin, since = lives.begins[number], lives.judged_since[number]
    return RuleLives(
        number=number,
        begin=np.maximum(begin, since),
        exact=lives.has(BEGIN_IS_EXACT)[number] | (since > begin),
    )


def resettled(lives: RuleLives, rules: StateRules, runs: Sequence[RunRecord], start: int) -> RuleLives:
    """Return the lives without the time before the settings of the last run, for ACLs that these settings concern.

    An access of a former super user was decided without ACLs, and a host that is a range matches only in some versions
    of Kafka: such an access would be decided differently now, and the index does not have it. Runs that end before
    `start` (us since 1970) do not count.
    """
    present = runs[-1].settings if runs else {}
    ended, ranges_ended = dict[str, int](), EARLIEST
    for run in runs:
        if run.last is None or run.last < start:
            continue
        for principal in _super_users(run.settings) - _super_users(present):
            ended[principal] = max(ended.get(principal, EARLIEST), run.last)
        if _ranges(run.settings) != _ranges(present):
            ranges_ended = max(ranges_ended, run.last)
    if not ended and ranges_ended == EARLIEST:
        return lives
    latest = max(ended.values(), default=EARLIEST)
    by_presence = any(run.settings.get("allow_everyone") for run in runs)
    since = np.full(len(rules), EARLIEST, np.int64)
    for number, (principal, host) in enumerate(rules.subjects(np.arange(len(rules)))):
        is_for_all = by_presence or principal == WILDCARD_PRINCIPAL or ":" not in principal
        since[number] = max(
            latest if is_for_all else ended.get(principal, EARLIEST), ranges_ended if is_cidr(host) else EARLIEST
        )
    is_later = (since > EARLIEST) & (since >= lives.begin)
    return evolve(
        lives,
        begin=np.where(is_later, since + 1, lives.begin),
        exact=lives.exact | is_later,
        resettled=is_later,
    )


def _ranges(settings: Mapping[str, object]) -> tuple[bool, object]:
    """Return whether hosts that are ranges match, and whether that depends on the time of an access."""
    return bool(settings.get("cidr")), settings.get(KAFKA)


def _super_users(settings: Mapping[str, object]) -> frozenset[str]:
    principals = settings.get("super_users")
    return frozenset(map(str, principals)) if isinstance(principals, list) else frozenset()


def _life_numbers(keys: Bytes, among: Bytes, eligible: Bools) -> Int64s:
    """Return the number of the eligible life with each key, or -1."""
    numbers = np.flatnonzero(eligible)
    if not len(numbers):
        return np.full(len(keys), -1, np.int64)
    at = places_of(keys, among[numbers])
    return np.where(at < 0, -1, numbers[at])


def _latest(index: UsageIndex, coverage: Coverage) -> int:
    """Return the time of the latest access, including unreadable ones."""
    latest = int(coverage.last.max())
    return max(latest, index.unread(latest, LATEST).latest or latest)


def _expected(coverage: Coverage, ignored: Collection[str]) -> list[str | None]:
    names = {NO_BROKER if broker is None else broker: broker for broker in coverage.brokers}
    for name in ignored:
        if name not in names:
            raise ConfigError(f"--ignore-broker {name[:80]!r}: expected one of {', '.join(names)}")
    return [broker for name, broker in names.items() if name not in ignored]


def _hours(coverage: Coverage, broker: str | None) -> HeardHours:
    hours = coverage.of_broker(broker)
    return HeardHours(first=hours.first, last=hours.last)


def _mask(numbers: BitMap, count: int) -> Bools:
    mask = np.zeros(count, np.bool_)
    mask[np.frombuffer(numbers.to_array(), np.uint32)] = True
    return mask


def _matched(used: Used, numbers: Int64s) -> Int64s:
    """Return how many accesses matched these lives."""
    if not len(used):
        return np.zeros(len(numbers), np.int64)
    at = np.minimum(np.searchsorted(used.numbers, numbers), len(used) - 1)
    return np.where(used.numbers[at] == numbers, used.matched[at], 0)
