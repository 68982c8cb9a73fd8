"""How old a followed state is, and that an old one is never passed off as new."""

import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from attrs import evolve

import aclog
from aclog.client.errors import CommittedRecordsLostError
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.errors import LogError, StaleError
from aclog.shell.command import ShellState
from aclog.shell.session import run_lines
from aclog.snapshots.image import Freshness
from aclog.sources import live as quorum_source
from aclog.sources.live import QuorumSource
from aclog.sources.server_flags import check_age
from aclog.terminal.notices import AgeWatch, age_text
from tests.nodes.observer.test_follower import acl
from tests.support.nodes.server_properties import Ports
from tests.support.processes.waiting import wait_until


@pytest.fixture
def log(quorum, leader):
    quorum.append([acl(0)])
    with aclog.open_log(bootstrap_controller=str(leader.address)) as opened:
        yield opened


def silence(leader):
    leader.faults.cut = 1 << 30
    leader.cut_all()


@pytest.mark.tier("test")
def test_age_and_lag_of_a_log_that_is_followed(quorum, leader, log):
    assert log.age is None
    assert len(log.image()) == 1
    assert log.lag == 0
    quorum.append([acl(1), acl(2)])
    wait_until(lambda: log.lag == 2)
    assert len(log.image()) == 3
    assert log.lag == 0
    silence(leader)
    wait_until(lambda: log.age > 1.5)
    assert len(log.image()) == 3  # without max_age this is no error
    leader.faults.cut = 0
    wait_until(lambda: log.age < 1.5)


def test_a_time_that_nobody_has_confirmed(quorum, leader, log, monkeypatch):
    now = datetime.now(UTC)
    assert len(log.image(as_of=now)) == 1
    monkeypatch.setattr(quorum_source, "STALE_SECONDS", 1)
    silence(leader)
    wait_until(lambda: log.age > 1.5)
    assert len(log.image(as_of=now - timedelta(seconds=5))) == 1
    with pytest.raises(aclog.StaleError, match=r"as of 20.*Z: the state is unknown: nothing was confirmed since 20"):
        log.image(as_of=datetime.now(UTC))


@pytest.mark.tier("test")
def test_the_age_is_counted_from_the_request(leader, log):
    """An answer may be as old as its request when it is read."""
    log.image()
    leader.faults.delay = 0.6
    wait_until(lambda: log.age > 1)
    ages = [log.age]

    def has_fallen_twice():
        ages.append(log.age)
        return sum(after < before for before, after in pairwise(ages)) >= 2

    wait_until(has_fallen_twice)
    assert min(ages) > 0.55


@pytest.mark.tier("test")
def test_a_state_older_than_max_age_is_refused(quorum, leader):
    quorum.append([acl(0)])
    address = str(leader.address)
    with aclog.open_log(bootstrap_controller=address, max_age=2) as log:
        assert len(log.image()) == 1
        assert len(log.image(as_of=1)) == 1
        silence(leader)
        wait_until(lambda: log.age > 2.1)
        stale = rf"^{address}: the state is \d+\.\d s old: nothing was confirmed since 20.*Z: expected at most 2 s: .*"
        with pytest.raises(aclog.StaleError, match=stale + address):
            log.image()
        with pytest.raises(aclog.StaleError, match=stale):
            log.image(as_of=1)
        leader.faults.cut = 0
        quorum.append([acl(1)])
        wait_until(lambda: log.age < 2)
        assert len(log.image()) in {1, 2}
        wait_until(lambda: len(log.image()) == 2)


@pytest.mark.tier("test")
def test_a_mark_below_the_known_one_confirms_nothing(quorum, leader, log):
    """As of a new leader that does not know yet what is committed."""
    log.image()
    answer = quorum.answer
    quorum.answer = lambda *asked: evolve(answer(*asked), high_watermark=-1)
    wait_until(lambda: log.age > 1.5)
    quorum.answer = answer
    wait_until(lambda: log.age < 1.5)


def test_a_closed_log_raises(log):
    image = log.image()
    log.close()
    log.close()
    for ask in (log.image, lambda: log.image(as_of=1), log.history, lambda: log.age, lambda: log.lag):
        with pytest.raises(aclog.LogError, match="closed"):
            ask()
    assert len(image) == 1


def test_a_source_that_was_closed_unopened_does_not_connect(leader):
    source = QuorumSource(controllers=(leader.address,), security=ClientSecurity(), notify=print)
    source.close()
    for ask in (source.image, lambda: source.image_at(0)):
        with pytest.raises(LogError, match="closed"):
            ask()
    assert source.freshness() is None


def test_a_log_that_is_lost_has_no_newest_state(quorum, leader, log):
    quorum.append([acl(1)])
    log.image()
    silence(leader)
    quorum.lose(1)
    leader.faults.cut = 0

    def lost():
        try:
            log.image()
        except CommittedRecordsLostError:
            return True
        return False

    wait_until(lost)


def test_a_quorum_that_cannot_be_reached_is_an_error_at_once(monkeypatch):
    monkeypatch.setattr(quorum_source, "_KNOWN_SECONDS", 3600)
    ports = Ports.free()
    servers = tuple(HostPort(host="127.0.0.1", port=port) for port in (ports.broker, ports.controller))
    source = QuorumSource(controllers=servers, security=ClientSecurity(), notify=print)
    either = "|".join(map(str, servers))
    with pytest.raises(LogError, match=f"^({either}): no connection: Connection refused: nothing "):
        source.image()


def test_one_server_of_a_quorum_that_can_be_reached_is_enough(quorum, leader):
    quorum.append([acl(0)])
    servers = HostPort(host="127.0.0.1", port=Ports.free().broker), leader.address
    source = QuorumSource(controllers=servers, security=ClientSecurity(), notify=print)
    assert len(source.image().acls) == 1
    source.close()


@pytest.mark.tier("test")
def test_the_shell_says_so(quorum, leader, capsys, monkeypatch):
    quorum.append([acl(0)])
    source = QuorumSource(controllers=(leader.address,), security=ClientSecurity(), notify=print)
    state = ShellState(source=source)
    state.go_to(None)
    silence(leader)
    wait_until(lambda: source.freshness().seconds > 5)
    capsys.readouterr()
    run_lines(state, ["pwd", "at 1", "pwd"], sys.stdout, sys.stderr)
    warnings = [line for line in capsys.readouterr().err.splitlines() if "has not answered" in line]
    assert len(warnings) == 2  # a state of the past does not grow old
    assert warnings[0].startswith("aclog: warning: the cluster has not answered for 5 s; this state is from 20")
    source.close()


def found(seconds, **values):
    return Freshness(**{"seconds": seconds, "time": 0, "server": "k:9093"} | values)


def test_a_watch_warns_again_when_the_age_has_doubled(capsys):
    watch = AgeWatch()
    for seconds in (0, 4.9, 5, 6, 9, 10, 11, 19, 20, 0, 6):
        watch.tell(found(seconds))
    watch.tell(None)
    assert [line.split()[8] for line in capsys.readouterr().err.splitlines()] == ["5", "10", "20", "6"]


def test_the_texts():
    assert age_text(found(7.2, problem="k:9093: gone")) == (
        "the cluster has not answered for 7 s; this state is from 1970-01-01T00:00:00.000Z, by k:9093: k:9093: gone"
    )
    assert (
        age_text(found(60, followed=False)) == "this state was read 60 s ago from k:9093, at 1970-01-01T00:00:00.000Z"
    )


def test_nobody_to_ask_is_stale_too():
    with pytest.raises(StaleError, match="no server has confirmed the state"):
        check_age(None, 3)


@pytest.mark.parametrize("max_age", [0, -1, float("nan")])
def test_a_max_age_that_is_none(max_age):
    with pytest.raises(aclog.ConfigError, match="expected seconds, more than 0"):
        aclog.open_log(bootstrap_controller="h:1", max_age=max_age)


def test_a_path_has_no_age(tmp_path):
    (tmp_path / "acls").write_text("")
    with pytest.raises(aclog.ConfigError, match="the state of a path has no age"):
        aclog.open_log(tmp_path / "acls", max_age=1)
    log = aclog.open_log(tmp_path / "acls")
    assert (log.age, log.lag) == (None, None)
