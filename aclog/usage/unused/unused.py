"""Which rules of a state a window of accesses does not need, and which of them can go together."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.answer import Answer
from aclog.usage.unread import UnreadAccesses
from aclog.usage.unused.access_sets import AccessSets
from aclog.usage.unused.fewest_kept import fewest_kept
from aclog.usage.unused.judgement import Judgement, RuleLives, Unjudged
from aclog.usage.unused.keep_clauses import keep_clauses, presence_clauses
from aclog.usage.unused.openings import MOST_PAIRS, may_open
from aclog.usage.unused.silence import HeardHours, Silence, silences
from aclog.usage.unused.state_rules import StateRules
from aclog.usage.window import DAY

_Item = TypeVar("_Item", bound=np.generic)


@frozen(kw_only=True)
class JudgedWindow:
    """A window of whole days (UTC), and which silence in it is a hole; times in us since 1970."""

    start: int
    until: int
    gap: int

    @classmethod
    def ending(cls, until: int, days: int, *, gap: int) -> "JudgedWindow":
        """Return the window from the beginning of the day that is `days` before `until`."""
        return cls(start=(until - days * DAY) // DAY * DAY, until=until, gap=gap)

    @property
    def first_day(self) -> int:
        """The first day, since 1970."""
        return self.start // DAY

    @property
    def last_day(self) -> int:
        """The day of the end, which counts as a whole."""
        return self.until // DAY


@frozen(eq=False, kw_only=True)
class WindowUse:
    """What the accesses of a window say, by the number of a life."""

    matched: Bools
    needed: Bools
    worth: Callable[[Int64s], Int64s]
    """Returns what these lives are worth, to choose which of them to keep: how many accesses they matched."""
    sets: AccessSets
    heard: Mapping[str | None, HeardHours]
    """By expected broker, at any time."""
    first_access: int | None
    """In the window, us since 1970."""
    allow_everyone: bool = False
    """Whether any access was judged with allow.everyone.if.no.acl.found."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """Accesses that may lie in the window and could not be read or decided."""


@frozen(eq=False, kw_only=True)
class Unused:
    """The answers, by the number of a rule in `rules`."""

    rules: StateRules
    lives: RuleLives
    window: JudgedWindow
    judgement: Judgement
    removable: Bools
    """These can go together: no access of the window is decided otherwise, by the rules of its time or of now."""
    silences: Sequence[Silence]
    unread: UnreadAccesses
    by_presence: bool
    """Whether an ACL decides by its mere presence."""

    @cached_property
    def unread_counts(self) -> Int64s:
        """How many accesses that could not be read or decided may have needed each rule that is not judged for them."""
        counts = np.zeros(len(self.rules), np.int64)
        numbers = np.flatnonzero(self.judgement.unjudged == Unjudged.UNREAD)
        who, denies = self.rules.principals(numbers), self.rules.denies[numbers]
        counts[numbers] = self.unread.counts(who, denies, by_presence=self.by_presence)
        return counts

    @classmethod
    def of(cls, rules: StateRules, lives: RuleLives, use: WindowUse, window: JudgedWindow) -> "Unused":
        """Judge the rules of a state."""
        silent = list(silences(use.heard, window.start, window.until, gap=window.gap))
        old = lives.older_than(window.start, use.first_access)
        matched, needed = (_of_rules(each, lives) for each in (use.matched, use.needed))
        unread = _concerned(rules, use, needed)
        judgement = Judgement.of(lives, matched=matched, needed=needed, old=old, silent=bool(silent), unread=unread)
        # without a rule that it throws on, Kafka's authorizer would decide what it has not decided so far
        may_go = judgement.unused & ~rules.throwing
        may_go[_kept_shut(rules, judgement.is_(Answer.NEVER_NEEDED), young=~old)] = False
        return cls(
            rules=rules,
            lives=lives,
            window=window,
            judgement=judgement,
            removable=_removable(rules, lives, use, old=old, may_go=may_go),
            silences=silent,
            unread=use.unread,
            by_presence=use.allow_everyone,
        )


def _concerned(rules: StateRules, use: WindowUse, needed: Bools) -> Bools:
    """Return which rules an unread access may have needed, of those that are not known to be needed."""
    found = np.zeros(len(rules), np.bool_)
    if use.unread and (use.allow_everyone or use.unread.may_be_anybodys):
        found = ~needed  # without an object for each of a million rules
    elif use.unread:
        numbers = np.flatnonzero(~needed)
        who, denies = rules.principals(numbers), rules.denies[numbers]
        found[numbers] = use.unread.concerned(who, denies, by_presence=use.allow_everyone)
    return found


def _removable(rules: StateRules, lives: RuleLives, use: WindowUse, *, old: Bools, may_go: Bools) -> Bools:
    count = len(use.matched)
    present, going = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    present[lives.number[lives.number >= 0]] = True
    going[lives.number[may_go]] = True
    clauses = keep_clauses(use.sets, present=present, may_go=going)
    if use.allow_everyone:
        clauses |= presence_clauses(rules.patterns[old], lives.number[old], may_go[old])
    named = np.array(sorted({number for clause in clauses for number in clause.members}), np.int64)
    worth = dict(zip(named.tolist(), use.worth(named).tolist(), strict=True)) if len(named) else {}
    kept = fewest_kept(clauses, lambda number: worth.get(number, 0))
    going[list(kept)] = False
    return may_go & _of_rules(going, lives)


def _kept_shut(rules: StateRules, never_needed: Bools, *, young: Bools) -> Int64s:
    """Return the DENY rules that stay: they may keep a younger ALLOW from opening something, or there are too many."""
    denies = rules.denies
    denying, younger = np.flatnonzero(never_needed & denies), np.flatnonzero(young & ~denies)
    if not len(denying) or not len(younger):
        return np.zeros(0, np.int64)
    if len(denying) * len(younger) > MOST_PAIRS:
        return denying
    opened = may_open([rules.rule(at).acl for at in denying.tolist()], (rules.rule(at).acl for at in younger.tolist()))
    return denying[np.array(opened, np.bool_)]


def _of_rules(by_life: Bools, lives: RuleLives) -> Bools:
    """Return by rule what is known by life; False for a rule without a life."""
    return _taken(by_life, lives.number) & (lives.number >= 0)


def _taken(values: NDArray[_Item], at: Int64s) -> NDArray[_Item]:
    """Return the value at each place, any for -1."""
    return values[at] if len(values) else np.zeros(len(at), values.dtype)
