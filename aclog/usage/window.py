"""The window of a usage report, in us since 1970, and the accesses that could not be read or decided."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple, Self

import numpy as np
from attrs import field

from aclog.authorizer.codes import WILDCARD_PRINCIPAL
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.errors import ConfigError, plural
from aclog.metalog.values import define, frozen

# The window of a usage report, and times in us since 1970.


MOST_DAYS = 36_600
"""The longest window."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400_000_000
"""In us."""
HOUR: Final = 3_600_000_000
"""In us."""


@frozen(kw_only=True)
class Window:
    """From `start` to `until`, both included."""

    start: datetime
    until: datetime

    @classmethod
    def ending(cls, until: datetime, days: int) -> Self:
        """Return the window of `days` up to `until`; a naive time is UTC.

        Raises:
            ConfigError: `days` is out of bounds.

        """
        check_days(days)
        end = of_micros(micros_of(until))  # in UTC, for any input zone
        return cls(start=of_micros(micros_of(end) - days * DAY), until=end)

    @property
    def days(self) -> list[date]:
        """The days (UTC) in the window, in whole or in part."""
        count = (self.until.date() - self.start.date()).days + 1
        return [self.start.date() + timedelta(days=n) for n in range(count)]


def check_days(days: int) -> None:
    """Check the length of a window. Raises ConfigError: it is out of bounds."""
    if not 1 <= days <= MOST_DAYS:
        raise ConfigError(f"a window of {days} days: expected 1 to {MOST_DAYS}")


def micros_of(time: datetime) -> int:
    """Return us since 1970; a naive time is UTC."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)


def of_micros(micros: int) -> datetime:
    """Return the time at us since 1970.

    Raises:
        ConfigError: it is outside the years 1 to 9999.

    """
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise ConfigError(f"a window that begins or ends {micros} us after 1970: expected years 1 to 9999") from None


# The counts of the rows of an access log.


@frozen(kw_only=True)
class Counts:
    """The number of rows of the log, by outcome."""

    total: int
    without_time: int
    outside: int
    """Outside the window."""
    before_log: int
    """In the window, but not evaluated: before the ACLs are known."""
    super_users: int
    errors: dict[str, int]
    """In the window, by the reason why there is no decision."""
    decided: int
    """The other rows, which alone count for ACLs."""


# The sets of ACLs that matched accesses together.


@frozen(eq=False, kw_only=True)
class AccessSets:
    """Each set has the lives that matched an access at its own time: those that deny, and those that allow.

    An access that a single ACL allows is in no set: that ACL is needed.
    """

    starts: Int64s
    """The position of the first member of each set, and at the end the number of members."""
    members: Int64s
    """Numbers of lives, each once per set."""
    denies: Bools
    """By member."""

    @classmethod
    def of(cls, sets: Iterable[tuple[Iterable[int], Iterable[int]]]) -> Self:
        """Return the sets of these pairs: lives that deny, lives that allow."""
        starts, members, denies = [0], list[int](), list[bool]()
        for denying, allowing in sets:
            for each, is_denying in ((denying, True), (allowing, False)):
                numbers = list(each)
                members += numbers
                denies += [is_denying] * len(numbers)
            starts.append(len(members))
        return cls(
            starts=np.array(starts, np.int64), members=np.array(members, np.int64), denies=np.array(denies, np.bool_)
        )

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self.starts) - 1


# Accesses of a log that could not be read or decided: their principals and times, as far as their lines have them.
#
# Such an access may have needed any ACL of its principal, so these ACLs are never reported as unused.


DENIED: Final = "DENIED"
OLDER_INDEX: Final = "OLDER_INDEX"
"""The reason for unread accesses of an index that did not record them."""
LOST_RECORDS: Final = "LOST_RECORDS"
"""The reason for records of a topic that were removed before they were read."""
LOST_DECISIONS: Final = "LOST_DECISIONS"
"""The reason for decisions of a node that did not get into its index."""

EARLIEST, LATEST = -(1 << 62), 1 << 62
"""Times before and after all others, in us since 1970."""

_MOST_KEYS: Final = 1 << 16
"""The most keys with a broker and an hour; as many more have neither. Beyond them a new principal counts as unknown,
since clients choose principals and memory is bounded.
"""


class UnreadKey(NamedTuple):
    """The common attributes of unread accesses."""

    principal: str | None
    """None if the line has none: the access may be of any principal."""
    decision: str | None
    """The logged decision, ALLOWED or DENIED; None if the log has none."""
    reason: str
    """A Reason of a line, or the name of a DecisionCode."""
    broker: str | None
    """The broker that logged them, as the lines or the path of their file name it; None if unknown."""
    hour: int | None
    """The hour of the first of them, since 1970 in UTC; None if unknown."""


class UnreadSpan(NamedTuple):
    """The number of accesses, and their times, in us since 1970."""

    accesses: int
    """0 if their number is unknown."""
    first: int | None
    """None: at any time up to `last`."""
    last: int | None
    """None: at any time from `first` on."""

    def meets(self, start: int, until: int) -> bool:
        """Return whether some of them may lie between two times, both included."""
        return (self.first is None or self.first <= until) and (self.last is None or self.last >= start)


class UnreadStretch(NamedTuple):
    """Unread accesses of a principal on a broker, in consecutive hours."""

    principal: str | None
    broker: str | None
    hours: int
    """The hours in which some of them begin; 0 if unknown."""
    span: UnreadSpan


def _nothing() -> Mapping[UnreadKey, UnreadSpan]:
    return {}


def _is_open(last: int | None, first: int | None) -> bool:
    return first is not None and last is not None and first <= last


@frozen(kw_only=True)
class UnreadAccesses:
    """Unread accesses, added up."""

    spans: Mapping[UnreadKey, UnreadSpan] = field(factory=_nothing)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self.spans)

    @classmethod
    def sum_of(cls, parts: Iterable[Self]) -> Self:
        """Return the sum of several."""
        counter = UnreadCounter()
        for part in parts:
            for key, span in part.spans.items():
                counter.add(key.principal, key.decision, key.reason, span, broker=key.broker)
        return cls(spans=counter.spans)

    @property
    def total(self) -> int:
        """How many there are, as far as their number is known."""
        return sum(span.accesses for span in self.spans.values())

    @property
    def may_be_anybodys(self) -> bool:
        """Whether some of them have an unknown principal, and may have needed any ACL."""
        return any(key.principal is None and key.decision != DENIED for key in self.spans)

    @property
    def latest(self) -> int | None:
        """The latest known time of an access, in us since 1970; None if no time is known."""
        return max((span.first for span in self.spans.values() if span.first is not None), default=None)

    def by_reason(self) -> Counter[str]:
        """Return the number of accesses for each reason."""
        counts: Counter[str] = Counter()
        for key, span in self.spans.items():
            counts[key.reason] += span.accesses
        return counts

    def stretches(self) -> list["UnreadStretch"]:
        """Return them by principal and broker, consecutive hours together; unknown principals, brokers and hours first.

        A stretch without hours has those of unknown hours.
        """
        spans_of = dict[tuple[str | None, str | None], dict[int | None, list[UnreadSpan]]]()
        for key, span in self.spans.items():
            spans_of.setdefault((key.principal, key.broker), {}).setdefault(key.hour, []).append(span)
        stretches = list[UnreadStretch]()
        for principal, broker in sorted(spans_of, key=lambda each: [(name is not None, name or "") for name in each]):
            hours = {hour: _joined(spans) for hour, spans in spans_of[principal, broker].items()}
            if None in hours:
                stretches.append(UnreadStretch(principal, broker, 0, hours.pop(None)))
            stated = sorted(hour for hour in hours if hour is not None)
            cuts = [0, *(at for at in range(1, len(stated)) if stated[at] > stated[at - 1] + 1), len(stated)]
            for start, end in pairwise(dict.fromkeys(cuts)):
                spans = [hours[hour] for hour in stated[start:end]]
                stretches.append(UnreadStretch(principal, broker, end - start, _joined(spans)))
        return stretches

    def on_broker(self, broker: str | None) -> Self:
        """Return the same, with this broker where it is unknown."""
        if broker is None or not self.spans:
            return self
        counter = UnreadCounter()
        for key, span in self.spans.items():
            counter.add(key.principal, key.decision, key.reason, span, broker=key.broker or broker)
        return type(self)(spans=counter.spans)

    def after(self, time: int | None) -> Self:
        """Return the same, where the accesses without a first time were logged after another one at this time."""
        return self._filled(lambda span: span._replace(first=time) if _is_open(span.last, time) else span)

    def before(self, time: int | None) -> Self:
        """Return the same, where the accesses without a last time were logged before another one at this time."""
        return self._filled(lambda span: span._replace(last=time) if _is_open(time, span.first) else span)

    def _filled(self, fill: Callable[["UnreadSpan"], "UnreadSpan"]) -> Self:
        if not any((span.first is None) != (span.last is None) for span in self.spans.values()):
            return self
        counter = UnreadCounter()
        for key, span in self.spans.items():
            is_half = (span.first is None) != (span.last is None)
            counter.add(key.principal, key.decision, key.reason, fill(span) if is_half else span, broker=key.broker)
        return type(self)(spans=counter.spans)

    def between(self, start: int, until: int) -> Self:
        """Return those that may lie between two times (us since 1970), both included."""
        return type(self)(spans={key: span for key, span in self.spans.items() if span.meets(start, until)})

    def but_of(self, principals: Collection[str]) -> Self:
        """Return those that may be of other principals than these, such as super users, who need no ACL."""
        return type(self)(spans={key: span for key, span in self.spans.items() if key.principal not in principals})

    def until(self, latest: int) -> Self:
        """Return the same with times up to this one: that of their reading, after which no line was written."""
        ended = {key: span._replace(last=latest) if span.last is None else span for key, span in self.spans.items()}
        return type(self)(spans=ended)

    def of_principals(self, principals: Collection[str]) -> Self:
        """Return those that may be of one of these principals."""
        spans = {key: span for key, span in self.spans.items() if key.principal is None or key.principal in principals}
        return type(self)(spans=spans)

    def may_be_refusals(self) -> Self:
        """Return those that were not logged as allowed."""
        return type(self)(spans={key: span for key, span in self.spans.items() if key.decision in {None, DENIED}})

    def concerned(self, principals: Sequence[str], denies: Bools, *, by_presence: bool) -> Bools:
        """Return which ACLs some of them may have needed, given by ACL its principal and whether it denies.

        A denied access needs no ALLOW. `by_presence`: with allow.everyone.if.no.acl.found, the mere presence of an ACL
        can decide, so any access may have needed any ACL.
        """
        of_kind = [_Whose.of(self, deny=deny, by_presence=by_presence) for deny in (False, True)]
        pairs = zip(principals, denies.tolist(), strict=True)
        return np.fromiter((of_kind[deny].meets(each) for each, deny in pairs), np.bool_, len(principals))

    def counts(self, principals: Sequence[str], denies: Bools, *, by_presence: bool) -> Int64s:
        """Return by ACL how many of them may have needed it (`concerned`), as far as their number is known."""
        of_kind = [_Whose.of(self, deny=deny, by_presence=by_presence) for deny in (False, True)]
        pairs = zip(principals, denies.tolist(), strict=True)
        return np.fromiter((of_kind[deny].count(each) for each, deny in pairs), np.int64, len(principals))


@frozen(kw_only=True)
class _Whose:
    """The number of unread accesses by principal."""

    total: int
    named: Mapping[str, int]
    unknown: int | None
    """The number of accesses of unknown principals, or None."""

    @classmethod
    def of(cls, unread: UnreadAccesses, *, deny: bool, by_presence: bool) -> Self:
        """Count the accesses that may have needed ACLs that deny, or that allow."""
        spans = {key: span for key, span in unread.spans.items() if deny or by_presence or key.decision != DENIED}
        named: Counter[str] = Counter()
        for key, span in spans.items():
            if key.principal is not None and not by_presence:
                named[key.principal] += span.accesses
        of_unknown = [span.accesses for key, span in spans.items() if by_presence or key.principal is None]
        total = sum(span.accesses for span in spans.values())
        return cls(total=total, named=dict(named), unknown=sum(of_unknown) if of_unknown else None)

    def meets(self, principal: str) -> bool:
        """Return whether an ACL for this principal may apply to any unread access."""
        return self.unknown is not None or principal in self.named or (bool(self.named) and _is_for_all(principal))

    def count(self, principal: str) -> int:
        """Return the number of accesses to which an ACL for this principal may apply."""
        if _is_for_all(principal):
            return self.total
        return (self.unknown or 0) + self.named.get(principal, 0)


def _is_for_all(principal: str) -> bool:
    # an ACL without a colon makes Kafka's authorizer throw for every principal
    return principal == WILDCARD_PRINCIPAL or ":" not in principal


@define(eq=False)
class UnreadCounter:
    """Adds up unread accesses."""

    spans: dict[UnreadKey, UnreadSpan] = field(factory=dict, init=False)

    def add(
        self, principal: str | None, decision: str | None, reason: str, span: UnreadSpan, *, broker: str | None = None
    ) -> None:
        """Add accesses of one principal."""
        hour = None if span.first is None else span.first // HOUR
        whose = principal_of(principal)
        key = UnreadKey(whose, decision, reason, broker or None, hour)
        if key not in self.spans and len(self.spans) >= _MOST_KEYS:
            # where and when is less than whose: it is dropped first
            key = UnreadKey(whose, decision, reason, None, None)
            if key not in self.spans and len(self.spans) >= 2 * _MOST_KEYS:
                key = UnreadKey(None, None, reason, None, None)
        previous = self.spans.get(key)
        self.spans[key] = span if previous is None else _joined([previous, span])

    @property
    def total(self) -> UnreadAccesses:
        """The sum of the added accesses."""
        return UnreadAccesses(spans=dict(self.spans))


def principal_of(text: str | None) -> str | None:
    """Return the principal of an access that may be malformed; None if no client can have it."""
    return text if text is not None and text != WILDCARD_PRINCIPAL and ":" in text else None


def _joined(spans: Sequence[UnreadSpan]) -> UnreadSpan:
    firsts, lasts = [span.first for span in spans], [span.last for span in spans]
    return UnreadSpan(
        accesses=sum(span.accesses for span in spans),
        first=None if None in firsts else min(first for first in firsts if first is not None),
        last=None if None in lasts else max(last for last in lasts if last is not None),
    )


# What could not be read, in words.


def unread_text(unread: UnreadAccesses) -> str:
    """Return how many accesses could not be read or decided, and why."""
    parts = []
    if unread.total:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in unread.by_reason().most_common() if count)
        where = f"{reasons}; {_places_text(unread)}"
        parts.append(f"{plural(unread.total, 'access')} could not be read or decided ({where})")
    uncounted = {key.reason for key, span in unread.spans.items() if not span.accesses}
    if uncounted - {LOST_RECORDS}:
        parts.append("an older aclog made this index, and what it could not read is not known")
    if LOST_RECORDS in uncounted:
        parts.append("records of a topic were lost before they were read, and their number is not known")
    return "; ".join(parts)


_NAMED_BROKERS: Final = 3


def _places_text(unread: UnreadAccesses) -> str:
    """Return on which brokers, and in which hours they are."""
    spans_of = dict[str | None, list[UnreadSpan]]()
    for key, span in unread.spans.items():
        if span.accesses:
            spans_of.setdefault(key.broker, []).append(span)
    ordered = sorted(spans_of.items(), key=lambda each: (-sum(span.accesses for span in each[1]), each[0] or ""))
    named = ordered if len(ordered) == _NAMED_BROKERS + 1 else ordered[:_NAMED_BROKERS]
    texts = [f"{broker or 'unknown broker'} {_hours_text(spans)}" for broker, spans in named]
    more = len(ordered) - len(named)
    return ", ".join([*texts, *([f"{more:,} more brokers"] if more else [])])


def _hours_text(spans: Sequence[UnreadSpan]) -> str:
    """Return the first and the last known hour, and whether some are unknown."""
    dated = [(span.first, span.last) for span in spans if span.first is not None and span.last is not None]
    first = _hour_text(min((each for each, _ in dated), default=None))
    last = _hour_text(max((each for _, each in dated), default=None))
    unknown = "" if len(dated) == len(spans) else "at an unknown hour" if not dated else " and at unknown hours"
    return f"{first if first == last else f'{first} to {last}'}{unknown}"


def _hour_text(micros: int | None) -> str:
    return "" if micros is None else f"{of_micros(micros):%Y-%m-%d %H}:00"


# Coverage: the brokers and hours of an access log.


_DENSE: Final = 1 << 22
"""The largest product of brokers and hours for which lines are counted without sorting."""


@frozen(eq=False, kw_only=True)
class Coverage:
    """The lines of a log by broker and hour: columns by row, in order of broker and hour."""

    brokers: tuple[str | None, ...]
    """Sorted, None first: for lines without a broker."""
    broker: Int64s
    """The position in `brokers`."""
    hour: Int64s
    """Since 1970, UTC."""
    rows: Int64s
    """The number of lines."""
    first: Int64s
    last: Int64s
    """The times of the first and the last line, in us since 1970."""

    def __len__(self) -> int:
        """Return the number of hours, counted per broker."""
        return len(self.hour)

    @classmethod
    def nothing(cls) -> Self:
        """Return the coverage of an empty log."""
        none = np.zeros(0, np.int64)
        return cls(brokers=(), broker=none, hour=none, rows=none, first=none, last=none)

    @classmethod
    def of_lines(cls, times: Int64s, broker: Int64s, brokers: tuple[str | None, ...]) -> Self:
        """Return the coverage of lines, given their times in us since 1970 and the positions of their brokers."""
        if not len(times):
            return cls.nothing()
        hour = times // HOUR
        least, hours = int(hour.min()), int(hour.max()) - int(hour.min()) + 1
        keys = broker * hours + (hour - least)
        if len(brokers) * hours > _DENSE:
            return cls._added_up(broker, hour, np.ones(len(times), np.int64), times, times, brokers)
        rows = np.bincount(keys, minlength=len(brokers) * hours)
        limits = np.iinfo(np.int64)
        first, last = np.full(len(rows), limits.max), np.full(len(rows), limits.min)
        np.minimum.at(first, keys, times)
        np.maximum.at(last, keys, times)
        at = np.flatnonzero(rows)
        return cls._added_up(at // hours, at % hours + least, rows[at], first[at], last[at], brokers)

    @classmethod
    def sum(cls, parts: Iterable[Self]) -> Self:
        """Add up the coverage of parts of a log."""
        all_parts = [part for part in parts if len(part)]
        if not all_parts:
            return cls.nothing()
        names = list[str | None]()
        broker = []
        for part in all_parts:
            broker.append(part.broker + len(names))
            names += part.brokers
        hour, rows, first, last = (
            np.concatenate([getattr(part, name) for part in all_parts]) for name in ("hour", "rows", "first", "last")
        )
        return cls._added_up(np.concatenate(broker), hour, rows, first, last, tuple(names))

    @classmethod
    def _added_up(
        cls, broker: Int64s, hour: Int64s, rows: Int64s, first: Int64s, last: Int64s, brokers: tuple[str | None, ...]
    ) -> Self:
        used = {brokers[at] for at in np.unique(broker).tolist()}
        names = sorted(used, key=lambda name: (name is not None, name or ""))
        place = {name: at for at, name in enumerate(names)}
        rank = np.array([place.get(name, -1) for name in brokers], np.int64)[broker] if len(broker) else broker
        order = np.lexsort((hour, rank))
        rank, hour = rank[order], hour[order]
        # ranks begin at 0, so that the first row begins a run
        starts = np.flatnonzero((np.diff(rank, prepend=-1) != 0) | (np.diff(hour, prepend=0) != 0))
        if not len(starts):
            return cls.nothing()
        return cls(
            brokers=tuple(names),
            broker=rank[starts],
            hour=hour[starts],
            rows=np.add.reduceat(rows[order], starts),
            first=np.minimum.reduceat(first[order], starts),
            last=np.maximum.reduceat(last[order], starts),
        )

    def of_broker(self, broker: str | None) -> Self:
        """Return the rows of one broker."""
        which = self.broker == self.brokers.index(broker)
        return type(self)(
            brokers=(broker,),
            broker=np.zeros(int(which.sum()), np.int64),
            hour=self.hour[which],
            rows=self.rows[which],
            first=self.first[which],
            last=self.last[which],
        )
