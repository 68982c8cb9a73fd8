"""From the rules of a run to lives: which rule is which life, which lives are new, longer or over. Pure."""

from typing import NamedTuple

import numpy as np
from attrs import frozen

from aclog.metalog.vectors import Bools, Bytes, Int64s
from aclog.usage.index.lives import BEGIN_IS_EXACT, DENIES, END_IS_EXACT, HAS_ID, Lives, latest_rows
from aclog.usage.index.seen_rules import STILL, UNKNOWN, SeenRules


class AccessTimes(NamedTuple):
    """The times of the first and last access of runs, in us since 1970."""

    first: int
    last: int


@frozen(eq=False, kw_only=True)
class RuleNumbers:
    """The rules of a run as lives."""

    numbers: Int64s
    """By ordinal: the number of the rule's life."""
    new: Int64s
    """The ordinals whose lives are new, in the order of their numbers, which follow those of all others."""


def number_rules(lives: Lives, rules: SeenRules) -> RuleNumbers:
    """Find the lives of the rules of a run, and number those that are new."""
    found = _of_history(lives, rules) if rules.is_history else _of_state(lives, rules)
    unknown = np.flatnonzero(found < 0)
    # a rule that came and went between two batches was never visible, and may be there twice
    first = latest_rows(
        rules.keys, found < 0, rules.keys[unknown], times=rules.begins, wanted_times=rules.begins[unknown]
    )
    new, at = np.unique(first, return_inverse=True)
    numbers = found.copy()
    numbers[unknown] = len(lives) + at
    return RuleNumbers(numbers=numbers, new=new)


def lives_after(
    lives: Lives, rules: SeenRules, found: RuleNumbers, *, run: AccessTimes, before: AccessTimes | None
) -> Lives:
    """Return the lives as they are after a run; `before` are the times of all earlier runs."""
    grown = _grown(lives, rules, found.new)
    begins, ends, flags = grown.begins.copy(), grown.ends.copy(), grown.flags.copy()
    if rules.is_whole:
        unseen = np.ones(len(grown), np.bool_)
        unseen[found.numbers] = False
        # a log that ends before a rule came says nothing about it
        over = unseen & grown.is_open & ~(grown.has(BEGIN_IS_EXACT) & (grown.begins > run.last))
        ends[over] = np.maximum(begins[over], run.first if before is None else before.last)
    _note_begins(begins, flags, found.numbers, rules, run)
    _note_ends(ends, flags, found.numbers, rules)
    return Lives(
        keys=grown.keys,
        digests=grown.digests,
        begins=begins,
        ends=ends,
        flags=flags,
        judged_since=_judged_since(grown, found, before),
    )


def _of_state(lives: Lives, rules: SeenRules) -> Int64s:
    return lives.open_of_digests(rules.digests) if rules.ids is None else lives.newest_of_ids(rules.ids)


def _of_history(lives: Lives, rules: SeenRules) -> Int64s:
    """Find lives by key and begin; what was seen without a log's times is the last life that the log knows."""
    keys = rules.keys
    eligible = lives.has(HAS_ID) if rules.ids is not None else ~lives.has(HAS_ID)
    exact = eligible & lives.has(BEGIN_IS_EXACT)
    found = latest_rows(lives.keys, exact, keys, times=lives.begins, wanted_times=rules.begins)
    # without ids, a rule that went and came back is another life
    adoptable = eligible & ~exact if rules.ids is not None else eligible & ~exact & lives.is_open
    found = np.where((found < 0) & _is_last(rules), latest_rows(lives.keys, adoptable, keys), found)
    # the log begins at a checkpoint: it knows the rule, but no longer since when
    since_ever = (found < 0) & (rules.begins == UNKNOWN)
    return np.where(since_ever, latest_rows(lives.keys, eligible, keys), found)


def _is_last(rules: SeenRules) -> Bools:
    """Return which rules are the last ones of their key."""
    order = np.argsort(rules.begins, kind="stable")
    keys = rules.keys[order]
    last = np.zeros(len(rules), np.bool_)
    last[order[latest_rows(keys, np.ones(len(keys), np.bool_), keys)]] = True
    return last


def _grown(lives: Lives, rules: SeenRules, new: Int64s) -> Lives:
    flags = np.where(rules.denies[new], DENIES, 0) | (0 if rules.ids is None else HAS_ID)
    return Lives(
        keys=np.concatenate((lives.keys, rules.keys[new])),
        digests=np.concatenate((lives.digests, rules.digests[new])),
        begins=np.concatenate((lives.begins, np.full(len(new), STILL, np.int64))),
        ends=np.concatenate((lives.ends, np.full(len(new), STILL, np.int64))),
        flags=np.concatenate((lives.flags, flags.astype(np.uint8))),
        judged_since=np.concatenate((lives.judged_since, np.full(len(new), UNKNOWN, np.int64))),
    )


def _judged_since(grown: Lives, found: RuleNumbers, before: AccessTimes | None) -> Int64s:
    """Return since when each life took part: one that is new, or is back, did not in what was judged before."""
    since = grown.judged_since.copy()
    if before is not None:
        joined = found.numbers[~grown.is_open[found.numbers]]
        since[joined] = before.last + 1
        since[found.numbers[found.new]] = before.last + 1
    return since


def _note_begins(begins: Int64s, flags: Bytes, numbers: Int64s, rules: SeenRules, run: AccessTimes) -> None:
    known = rules.begins != UNKNOWN
    begins[numbers[known]] = rules.begins[known]
    flags[numbers[known]] |= BEGIN_IS_EXACT
    # in force for all accesses of the run, as far as anybody knows
    since = run.first if rules.known_from is None else max(run.first, rules.known_from)
    rest = numbers[~known]
    rest = rest[flags[rest] & BEGIN_IS_EXACT == 0]
    begins[rest] = np.minimum(begins[rest], since)


def _note_ends(ends: Int64s, flags: Bytes, numbers: Int64s, rules: SeenRules) -> None:
    ended = rules.ends != STILL
    ends[numbers[ended]] = rules.ends[ended]
    flags[numbers[ended]] |= END_IS_EXACT
    # what a log has seen go does not come back under its id
    rest = numbers[~ended]
    rest = rest[flags[rest] & END_IS_EXACT == 0]
    ends[rest] = STILL
