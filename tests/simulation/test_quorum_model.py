"""The modelled quorum of the simulated cluster: what is committed stays, and what is not may go."""

from random import Random

import pytest

from aclog.client.fetching import Position
from aclog.metalog.batches import scan_batches
from aclog.protocol import error_codes
from tests.simulation.quorum_model import UNKNOWN, Quorum, Voter
from tests.simulation.scheduler import Scheduler
from tests.simulation.world import RULES


class Voters:
    """A quorum without a network; messages between `apart` voters and the rest do not arrive."""

    def __init__(self, seed: int) -> None:
        self.scheduler, self.random = Scheduler(seed), Random(seed)
        self.quorum = Quorum(self.scheduler, RULES, lambda: 1)
        self.apart: set[int] = set()
        for number in (1, 2, 3):
            voter = Voter(number, f"10.0.0.{number}")
            voter.reaches = lambda other, own=number: (own in self.apart) == (other.number in self.apart)
            self.quorum.voters.append(voter)
        self.quorum.begin()
        self.run(10)

    def run(self, seconds: float) -> None:
        self.scheduler.run(self.scheduler.now + seconds)
        assert not self.scheduler.failures

    def write(self, voter: Voter, count: int = 1) -> None:
        for _ in range(count):
            self.quorum.write(voter, self.random)


@pytest.fixture(params=range(5))
def voters(request):
    return Voters(request.param)


def test_a_majority_commits(voters):
    leader = voters.quorum.leader()
    voters.write(leader, 3)
    assert leader.mark < leader.last.end
    voters.run(1)
    assert {each.last.end for each in voters.quorum.voters} == {leader.mark} == {voters.quorum.end}
    assert voters.quorum.leader() is leader


def test_the_tail_of_an_isolated_leader_is_never_committed(voters):
    old = voters.quorum.leader()
    voters.write(old, 2)
    voters.run(1)
    before = list(voters.quorum.committed)
    voters.apart = {old.number}
    voters.write(old, 3)
    tail = old.log[-3:]
    voters.quorum.look_again()
    voters.run(10)
    new = voters.quorum.leader()
    assert new is not old
    assert not old.leads
    assert new.epoch > before[-1].epoch
    voters.apart = set()
    voters.run(5)
    assert voters.quorum.committed[: len(before)] == before
    assert not any(each in old.log for each in tail)
    assert old.last is new.last


def test_the_mark_of_a_new_leader_is_unknown_until_it_has_committed_a_record(voters):
    other = next(each for each in voters.quorum.voters if not each.leads)
    voters.quorum.stand(other)
    assert other.leads
    assert other.mark == UNKNOWN
    voters.run(1)
    assert other.mark == other.last.end


def test_a_voter_that_is_behind_a_trimmed_log_loads_the_snapshot(voters):
    leader = voters.quorum.leader()
    voters.apart = {next(each.number for each in voters.quorum.voters if each is not leader)}
    voters.write(leader, 4)
    voters.run(1)
    assert voters.quorum.take_snapshot(leader, voters.random, 1)
    voters.apart = set()
    voters.run(5)
    assert voters.scheduler.covered["voter loads a snapshot"] == 1
    assert len({each.last.end for each in voters.quorum.voters}) == 1


def test_responses_to_a_fetch(voters):
    leader = voters.quorum.leader()
    voters.write(leader, 4)
    voters.run(1)
    end, epoch = leader.last.end, leader.epoch

    def fetch(offset: int, last: int, leader_epoch: int = epoch):
        position = Position(offset=offset, last_fetched_epoch=last, leader_epoch=leader_epoch, high_watermark=-1)
        return leader.answer(position, 1 << 20)

    headers, damage = scan_batches(fetch(0, 0).records)
    assert (damage, int(headers.end_offset[-1])) == (None, end)
    assert fetch(end, epoch).records == b""
    assert fetch(end + 1, epoch).diverging.end_offset == end
    assert fetch(0, 0, epoch - 1).error == error_codes.FENCED_LEADER_EPOCH
    assert fetch(0, 0, epoch + 1).error == error_codes.UNKNOWN_LEADER_EPOCH
    voters.quorum.take_snapshot(leader, voters.random, 0)
    assert fetch(0, 0).snapshot == leader.snapshot.at
    follower = next(each for each in voters.quorum.voters if not each.leads)
    position = Position(offset=0, last_fetched_epoch=0, leader_epoch=epoch, high_watermark=-1)
    assert follower.answer(position, 1).error == error_codes.NOT_LEADER_OR_FOLLOWER
