"""The answers from a real index, made day by day, against the engine over all accesses."""

from random import Random

import pytest
from attrs import evolve

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Settings
from aclog.usage.index.usage_index import Batch, UsageIndex
from aclog.usage.unused import ANSWERS, Answer, StateRules
from aclog.usage.unused_report import UnusedQuestion, UnusedReport
from tests.support.usage.indexed_timelines import history_of, state_of, take
from tests.support.usage.timelines import DAY, Life, Timeline, random_timeline
from tests.usage.unused.test_unused import expected_answer, greedy

DAYS = 12


def days_of(timeline: Timeline) -> list[list]:
    found = [timeline.between(day * DAY, (day + 1) * DAY - 1) for day in range(DAYS)]
    return [each for each in found if each]


def check(index: UsageIndex, timeline: Timeline, now: AclsImage, question: UnusedQuestion, *, exact: bool) -> Answer:
    """Check every answer of a report; `timeline` is what the index should have made of it."""
    rules = StateRules.of(now)
    report = UnusedReport.of(index, rules, question)
    found, window = report.unused, report.unused.window
    until = (window.last_day + 1) * DAY - 1
    first_access = min((each.time for each in timeline.between(window.start, until)), default=window.start)
    life_of = {life.rule.acl: life for life in timeline.lives if life.end is None}
    gone, unused, answers = set(), [], set()
    for number in range(len(rules)):
        life = life_of[rules.rule(number).acl]
        answer = ANSWERS[found.judgement.answer[number]]
        begin = window.start if not exact and life.begin <= first_access else life.begin
        assert answer == expected_answer(timeline, life, window, begin=begin), life
        answers.add(answer)
        if answer in {Answer.NEVER_MATCHED, Answer.NEVER_NEEDED}:
            unused.append(life)
        if found.removable[number]:
            gone.add(life.rule)
        at = report.used.numbers.tolist().index(found.lives.number[number]) if life_used(report, number) else None
        matched, needed = timeline.use(life, window.start, until)
        counted = (report.used.matched[at], report.used.needed[at]) if at is not None else (0, 0)
        assert counted == (matched, needed)
    assert gone <= {life.rule for life in unused}
    assert not timeline.flips(frozenset(gone), window.start, until)
    # what a younger rule makes of older accesses, only they themselves tell, which the index does not keep
    is_greedy_known = all(life.begin <= window.start for life in timeline.lives if life.end is None)
    if is_greedy_known and not timeline.settings.allow_everyone:
        assert len(gone) >= len(greedy(timeline, unused, window))
    return answers


def life_used(report: UnusedReport, number: int) -> bool:
    return int(report.unused.lives.number[number]) in report.used.numbers.tolist()


def questions(random: Random) -> list[UnusedQuestion]:
    return [
        UnusedQuestion(days=days, gap=random.choice([1, 2, 5]) * DAY)
        for days in sorted({1, DAYS - 1, DAYS, random.randint(2, DAYS - 2)})
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.sample(1)
@pytest.mark.tier("test")
def test_a_log_of_rules_that_come_and_go(seed, tmp_path):
    """Days in any order, some of them twice, each with the log as it is at the end."""
    random = Random(seed)
    timeline = random_timeline(random, days=DAYS)
    parts = list(enumerate(days_of(timeline)))
    random.shuffle(parts)
    with UsageIndex.create(tmp_path / "index") as index:
        for number, part in parts:
            for _ in range(2):
                take(index, part, history_of(timeline), own_time=True, batch=Batch(f"day {number}", 0))
        for question in questions(random):
            check(index, timeline, AclsImage.from_acls(timeline.now()), question, exact=True)


@pytest.mark.parametrize("seed", range(4, 8))
@pytest.mark.sample(1)
@pytest.mark.tier("test")
def test_a_log_that_grows_with_the_days(seed, tmp_path):
    """Each day with the log as it was at its end; the last of the rules come after the last day."""
    random = Random(seed)
    timeline = random_timeline(random, days=DAYS)
    with UsageIndex.create(tmp_path / "index") as index:
        for part in days_of(timeline):
            day = part[0].time // DAY
            take(index, part, history_of(timeline, (day + 1) * DAY - 1), own_time=True)
        take(index, timeline.accesses[-1:], history_of(timeline), own_time=True, batch=Batch("last", 0))
        timeline = evolve(timeline, accesses=[*timeline.accesses, timeline.accesses[-1]])
        for question in questions(random):
            check(index, timeline, AclsImage.from_acls(timeline.now()), question, exact=True)


@pytest.mark.parametrize("seed", [18, 19, 217])
@pytest.mark.sample(1)
@pytest.mark.tier("test")
def test_allow_everyone_if_no_acl_found(seed, tmp_path):
    """The last ACL on a resource keeps others out, even if it matches nothing."""
    random = Random(seed)
    settings = Settings(allow_everyone=True)
    timeline = evolve(random_timeline(random, days=DAYS, rules=7), settings=settings)
    with UsageIndex.create(tmp_path / "index") as index:
        for part in days_of(timeline):
            take(index, part, history_of(timeline), settings, own_time=True)
        for question in questions(random):
            check(index, timeline, AclsImage.from_acls(timeline.now()), question, exact=True)


def by_day(timeline: Timeline) -> Timeline:
    """What is known of the rules by a run a day, each with the state at the end of its day."""
    parts, lives = days_of(timeline), list[Life]()
    for part in parts:
        state = timeline.at((part[0].time // DAY + 1) * DAY - 1)
        seen = {rule.acl: rule for rule in state}
        for at, life in enumerate(lives):
            if life.end is None and life.rule.acl not in seen:
                lives[at] = evolve(life, end=part[0].time // DAY * DAY)
        known = {life.rule.acl for life in lives if life.end is None}
        lives += [Life(rule=rule, begin=part[0].time, end=None) for acl, rule in seen.items() if acl not in known]
    return Timeline(lives=lives, accesses=timeline.accesses)


@pytest.mark.parametrize("seed", range(8, 14))
@pytest.mark.sample(2)
def test_states_without_ids(seed, tmp_path):
    """A rule that goes and comes back has two lives, and no rule has an id."""
    random = Random(seed)
    timeline = random_timeline(random, days=DAYS)
    known = by_day(timeline)
    with UsageIndex.create(tmp_path / "index") as index:
        for part in days_of(timeline):
            state = timeline.at((part[0].time // DAY + 1) * DAY - 1)
            take(index, part, state_of([evolve(rule, id=None) for rule in state]), own_time=False)
        now = AclsImage.from_acls(evolve(rule, id=None) for rule in known.now())
        for question in questions(random):
            check(index, known, now, question, exact=False)


@pytest.mark.parametrize("seed", range(14, 18))
def test_files_of_the_past_taken_later(seed, tmp_path):
    """Rules of today for files in any order: what an earlier run did not know has not been judged in its days."""
    random = Random(seed)
    timeline = random_timeline(random, days=DAYS)
    parts = days_of(timeline)
    random.shuffle(parts)
    now = sorted(timeline.now(), key=repr)
    late = now[::3]
    with UsageIndex.create(tmp_path / "index") as index:
        for at, part in enumerate(parts):
            state = now if at >= len(parts) // 2 else [rule for rule in now if rule not in late]
            take(index, part, state_of(state), own_time=False)
        judged_without = max(each.time for part in parts[: len(parts) // 2] for each in part)
        for question in questions(random):
            rules = StateRules.of(AclsImage.from_acls(now))
            found = UnusedReport.of(index, rules, question).unused
            for number in range(len(rules)):
                if rules.rule(number) in late and judged_without >= found.window.start:
                    answer = ANSWERS[found.judgement.answer[number]]
                    assert answer in {Answer.NOT_JUDGED, Answer.NEEDED}
