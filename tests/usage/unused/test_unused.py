"""The answers about rules that come and go, and what can go together, against the engine over all accesses."""

from random import Random

import numpy as np
import pytest

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.usage.unused import (
    ANSWERS,
    Answer,
    HeardHours,
    JudgedWindow,
    RuleLives,
    StateRules,
    Unused,
    WindowUse,
    first_heard,
)
from aclog.usage.window import AccessSets
from tests.support.builders.images import with_ids
from tests.support.models.estates import Request
from tests.support.usage.timelines import DAY, HOUR, Access, Life, Timeline, matches, random_timeline


def heard_of(timeline: Timeline) -> dict[str | None, HeardHours]:
    found = {}
    for broker in {each.broker for each in timeline.accesses}:
        times = [each.time for each in timeline.accesses if each.broker == broker]
        hours = [[time for time in times if time // HOUR == hour] for hour in sorted({time // HOUR for time in times})]
        first, last = ([pick(each) for each in hours] for pick in (min, max))
        found[broker] = HeardHours(first=np.array(first, np.int64), last=np.array(last, np.int64))
    return found


def use_of(timeline: Timeline, window: JudgedWindow) -> WindowUse:
    """What an index would know of the days of the window, by whole days."""
    start, until = window.start, (window.last_day + 1) * DAY - 1
    uses = [timeline.use(life, start, until) for life in timeline.lives]
    sets = set()
    for each in timeline.between(start, until):
        found = [
            number
            for number, life in enumerate(timeline.lives)
            if life.holds(each.time) and matches(life.rule, each.request)
        ]
        denying = frozenset(at for at in found if timeline.lives[at].rule.acl.permission_type == AclPermissionType.DENY)
        if len(found) > 1:
            sets.add((denying, frozenset(found) - denying))
    heard = heard_of(timeline)
    return WindowUse(
        matched=np.array([matched > 0 for matched, _ in uses], np.bool_),
        needed=np.array([needed > 0 for _, needed in uses], np.bool_),
        worth=lambda numbers: np.array([uses[number][0] for number in numbers], np.int64),
        sets=AccessSets.of(sets),
        broker_hours=heard,
        first_access=first_heard(heard.values(), start),
    )


def lives_of(timeline: Timeline, rules: StateRules) -> RuleLives:
    number_of = {life.rule: number for number, life in enumerate(timeline.lives) if life.end is None}
    numbers = [number_of[rules.rule(number)] for number in range(len(rules))]
    return RuleLives(
        number=np.array(numbers, np.int64),
        begin=np.array([timeline.lives[number].begin for number in numbers], np.int64),
        exact=np.ones(len(rules), np.bool_),
    )


def expected_answer(timeline: Timeline, life, window: JudgedWindow, *, begin: int | None = None) -> Answer:
    """`begin`: since when the life counts, if that is not when it began."""
    until = (window.last_day + 1) * DAY - 1
    matched, needed = timeline.use(life, window.start, until)
    if needed:
        return Answer.NEEDED
    brokers = {each.broker for each in timeline.accesses}
    silent = any(timeline.silences(each, window.start, window.until, window.gap) for each in brokers)
    if silent or (life.begin if begin is None else begin) > window.start:
        return Answer.NOT_JUDGED
    return Answer.NEVER_NEEDED if matched else Answer.NEVER_MATCHED


def greedy(timeline: Timeline, candidates, window: JudgedWindow) -> frozenset:
    """What goes one by one, from what matched least, as long as nothing flips."""
    until = (window.last_day + 1) * DAY - 1
    gone = frozenset()
    for life in sorted(candidates, key=lambda each: timeline.use(each, window.start, until)):
        if not timeline.flips(gone | {life.rule}, window.start, until):
            gone |= {life.rule}
    return gone


@pytest.mark.parametrize("seed", range(12))
def test_rules_that_come_and_go(seed):
    random = Random(seed)
    timeline = random_timeline(random)
    window = JudgedWindow.ending(timeline.accesses[-1].time, random.randint(1, 12), gap=random.choice([1, 2, 5]) * DAY)
    rules = StateRules.of(AclsImage.from_acls(timeline.now()))
    lives = lives_of(timeline, rules)
    found = Unused.of(rules, lives, use_of(timeline, window), window)
    life_of = {life.rule: life for life in timeline.lives}
    gone, unused = set(), []
    for number in range(len(rules)):
        life = life_of[rules.rule(number)]
        answer = ANSWERS[found.judgement.answer[number]]
        assert answer == expected_answer(timeline, life, window), life
        if answer in {Answer.NEVER_MATCHED, Answer.NEVER_NEEDED}:
            unused.append(life)
        if found.removable[number]:
            gone.add(life.rule)
    assert gone <= {life.rule for life in unused}
    assert not timeline.flips(frozenset(gone), window.start, (window.last_day + 1) * DAY - 1)
    # what a younger rule makes of older accesses, only they themselves tell, which the index does not keep
    if all(life.begin <= window.start for life in timeline.lives if life.end is None):
        assert len(gone) >= len(greedy(timeline, unused, window))


def of_history(*lives: Life, accesses: list[tuple[int, Request]]) -> tuple[Unused, dict[StandardAclWithId, int]]:
    """The answers to a window of ten days, and the numbers of rules."""
    lines = [Access(time=day * DAY, broker="1", request=request) for day, request in accesses]
    timeline = Timeline(lives=list(lives), accesses=lines)
    window = JudgedWindow.ending(10 * DAY, 10, gap=20 * DAY)
    rules = StateRules.of(AclsImage.from_acls(timeline.now()))
    found = Unused.of(rules, lives_of(timeline, rules), use_of(timeline, window), window)
    return found, {rules.rule(number): number for number in range(len(rules))}


def acl(principal: str, operation=AclOperation.READ, *, denies: bool = False) -> StandardAcl:
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name="orders",
        pattern_type=PatternType.LITERAL,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=AclPermissionType.DENY if denies else AclPermissionType.ALLOW,
    )


READ = Request(
    principal="User:a", host="10.0.0.1", operation=AclOperation.READ, resource_type=ResourceType.TOPIC,
    resource_name="orders",
)  # fmt: skip


def test_a_deny_that_keeps_a_younger_allow_shut():
    """It was never needed, since nothing allowed the access then; without it, the access would be allowed now."""
    deny, young = with_ids([acl("User:a", denies=True), acl("User:*")])
    lives = [Life(rule=deny, begin=0, end=None), Life(rule=young, begin=5 * DAY, end=None)]
    found, number = of_history(*lives, accesses=[(1, READ)])
    assert ANSWERS[found.judgement.answer[number[deny]]] == Answer.NEVER_NEEDED
    assert ANSWERS[found.judgement.answer[number[young]]] == Answer.NOT_JUDGED
    assert not found.removable.any()
    found, number = of_history(lives[0], accesses=[(1, READ)])
    assert found.removable[number[deny]]


def test_an_allow_whose_cover_went():
    rule, cover = with_ids([acl("User:a"), acl("User:*")])
    lives = [Life(rule=rule, begin=0, end=None), Life(rule=cover, begin=0, end=5 * DAY)]
    found, number = of_history(*lives, accesses=[(1, READ)])
    assert ANSWERS[found.judgement.answer[number[rule]]] == Answer.NEVER_NEEDED
    assert not found.removable.any()


def test_an_allow_that_a_deny_overruled_which_went():
    rule, deny = with_ids([acl("User:a"), acl("User:*", denies=True)])
    lives = [Life(rule=rule, begin=0, end=None), Life(rule=deny, begin=0, end=5 * DAY)]
    found, number = of_history(*lives, accesses=[(1, READ)])
    assert ANSWERS[found.judgement.answer[number[rule]]] == Answer.NEVER_NEEDED
    assert not found.removable.any()


def test_a_deny_may_go_with_what_it_overrules():
    overruled, one, other = with_ids([acl("User:a"), acl("User:a", denies=True), acl("User:*", denies=True)])
    lives = [Life(rule=rule, begin=0, end=None) for rule in (overruled, one, other)]
    found, _ = of_history(*lives, accesses=[(1, READ)])
    assert found.removable.all()


def test_a_rule_that_kafka_throws_on_stays():
    """It matches nobody, but without it accesses would be decided that fail with it."""
    odd, other = with_ids([acl("anybody"), acl("User:b")])
    lives = [Life(rule=rule, begin=0, end=None) for rule in (odd, other)]
    found, number = of_history(*lives, accesses=[])
    assert found.judgement.is_(Answer.NEVER_MATCHED).all()
    assert (found.removable[number[odd]], found.removable[number[other]]) == (False, True)
