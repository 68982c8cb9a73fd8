"""Leaders of an older epoch: one that is cut off, and one whose voters have forgotten the newer epoch."""

from aclog.client.fetching import OlderLeaders
from aclog.config.node_config import HostPort

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
