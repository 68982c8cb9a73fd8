"""Whether a leader has the log that was followed: leaders of an older epoch, and the voters of a snapshot."""

from uuid import UUID

import pytest

from aclog.client.errors import CommittedRecordsLostError, check_same_voters
from aclog.client.fetching import OlderLeaders
from aclog.config.node_config import HostPort
from aclog.metalog.control_records import KRaftVoters, SupportedVersions, Voter

ONE, TWO = HostPort(host="one", port=1), HostPort(host="two", port=2)


def test_time_counts_from_the_first_response_of_an_uninterrupted_row():
    leaders = OlderLeaders()
    assert [leaders.note(ONE, leads=True, now=now) for now in (5.0, 6.0, 9.5)] == [0.0, 1.0, 4.5]
    assert leaders.note(TWO, leads=True, now=10.0) == 0.0


def test_any_other_response_ends_the_row_of_its_server():
    leaders = OlderLeaders()
    for server in (ONE, TWO):
        leaders.note(server, leads=True, now=1.0)
    assert leaders.note(ONE, leads=False, now=2.0) == 0.0
    assert [leaders.note(server, leads=True, now=3.0) for server in (ONE, TWO)] == [0.0, 2.0]


def test_a_leader_of_the_newest_epoch_ends_all_rows():
    leaders = OlderLeaders()
    leaders.note(ONE, leads=True, now=1.0)
    leaders.clear()
    assert leaders.note(ONE, leads=True, now=9.0) == 0.0


def voters(*directories: int) -> KRaftVoters:
    versions = SupportedVersions(min_supported_version=0, max_supported_version=1)
    return KRaftVoters(
        voters=tuple(
            Voter(voter_id=number, voter_directory_id=UUID(int=each), endpoints=(), kraft_version_feature=versions)
            for number, each in enumerate(directories)
        )
    )


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (voters(1, 2, 3), voters(3, 4, 5)),
        (voters(1), voters(1)),
        (None, voters(1)),
        (voters(1), None),
        (voters(0, 0), voters(7, 8)),  # kraft.version 0 has no ids of directories
    ],
)
def test_a_quorum_with_a_voter_in_common_may_be_the_same(before, now):
    check_same_voters(before, now, 10)


def test_a_snapshot_of_other_voters_is_another_quorums():
    with pytest.raises(CommittedRecordsLostError, match="the snapshot of offset 10 has no voter"):
        check_same_voters(voters(1, 2, 3), voters(4, 5, 6), 10)
