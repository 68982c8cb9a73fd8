"""What the recorder counts, by image and day, and what changed between images."""

from random import Random

import pytest

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.server.usage_index import AccessRecorder, image_changes
from tests.support.builders.acls import acl, record_of, removal_of
from tests.support.builders.images import by_changes, with_ids

SECOND, DAY = 1_000_000_000, 86_400_000_000_000
ALICE = RequestContext(principal="User:alice", host="10.0.0.1")
READ = Action(operation=AclOperation.READ, resource_pattern=ResourcePattern(resource_type=ResourceType.TOPIC, name="t"))


def counted(times):
    """(day, count, first, last) of accesses at these times, in ns."""
    clock = iter([0, *times])
    recorder = AccessRecorder(lambda: True, clock=lambda: next(clock))
    tally = recorder.begin(AclsImage.empty())
    for _ in times:
        tally.decided(ALICE, [READ], [AuthorizationResult.ALLOWED])
    (image,) = recorder.drain().images
    return [each[1:] for each in image.counts]


def test_an_access_counts_by_day():
    times = [DAY - 2 * SECOND, DAY - SECOND, DAY, DAY + 5 * SECOND]
    ends = DAY // 1000
    assert counted(times) == [(0, 2, ends - 2_000_000, ends - 1_000_000), (1, 2, ends, ends + 5_000_000)]


def test_a_clock_that_is_set_back():
    assert counted([9 * SECOND, 5 * SECOND]) == [(0, 2, 5_000_000, 9_000_000)]
    assert [each[0] for each in counted([DAY, DAY - SECOND, DAY])] == [1, 0, 1]


def test_a_drain_takes_all_once():
    recorder = AccessRecorder(lambda: True)
    first = recorder.begin(AclsImage.empty())
    first.decided(ALICE, [READ], [AuthorizationResult.DENIED])
    second = recorder.begin(AclsImage.empty())
    assert [(each.number, len(each.counts)) for each in recorder.drain().images] == [(1, 1), (2, 0)]
    first.decided(ALICE, [READ], [AuthorizationResult.DENIED])
    third = recorder.begin(AclsImage.empty())
    third.decided(ALICE, [READ], [AuthorizationResult.DENIED])
    assert [each.number for each in (first, second, third)] == [1, 2, 3]
    assert [(each.number, len(each.counts)) for each in recorder.drain().images] == [(1, 1), (2, 0), (3, 1)]
    assert [(each.number, len(each.counts)) for each in recorder.drain().images] == [(3, 0)]


def test_images_that_are_not_drained_are_limited():
    """Each keeps the rules by which it decided: while the index cannot be written, they would fill the memory."""
    recorder = AccessRecorder(lambda: True, most_images=4)
    for drained in range(2):
        full = []
        tallies = [recorder.begin(AclsImage.empty()) for _ in range(6)]
        for tally in tallies:
            for _ in range(2):
                tally.decided(ALICE, [READ], [AuthorizationResult.ALLOWED])
            full.append(recorder.half_full.is_set())
        assert full == [False, False, True, True, True, True]
        first, last = 6 * drained, 6 * drained + 6
        done = recorder.drain()
        expected = dict.fromkeys(range(first + 1, first + 5), 2) | {last: 0}
        counts = {each.number: sum(count.times for count in each.counts) for each in done.images}
        assert counts == expected | ({first: 0} if drained else {})
        assert done.uncounted.dropped == 4


@pytest.mark.parametrize("seed", range(6))
def test_changes_between_images(seed):
    random = Random(seed)
    rules = with_ids([acl(f"t{n}", f"User:{n % 3}") for n in range(30)])
    image = by_changes(rules, random)
    images = [image]
    for _ in range(12):
        change = random.random()
        present = list(images[-1])
        if change < 0.2:
            images.append(images[-1].merged())
        elif change < 0.6 and len(present) > 2:
            images.append(images[-1].apply(map(removal_of, random.sample(present, 2))))
        else:
            absent = [rule for rule in rules if rule not in present]
            images.append(images[-1].apply(map(record_of, absent[:3])))
    for _ in range(40):
        old, new = random.choice(images), random.choice(images)
        changes = image_changes(old, new)
        assert set(changes.removed) == set(old.ids()) - set(new.ids())
        assert set(changes.added) == {rule for rule in new if rule.id not in set(old.ids())}
        assert len(changes.removed) == len(set(changes.removed))
