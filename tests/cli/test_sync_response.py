"""The file `sync.response`: with it, `aclog sync` records what it records without it, whatever happens to either."""

import asyncio
import shutil
from functools import partialmethod
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import aclog as library
from aclog.authorizer.acls_image import content_of
from aclog.client import requests
from aclog.config.node_config import ClientSecurity
from aclog.metalog.filelog import open_log
from aclog.ops import sync
from aclog.ops.removal_limit import RemovalLimit
from aclog.ops.sync import ClusterPoller, Poll, RemovalTrust, SyncLog, create_sync_log, open_sync_log
from aclog.ops.sync_response import RESPONSE_FILE, acls_digest, log_digest
from aclog.sources.logs import SYNC_FILE
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.fakes.broker import FakeBroker, older_apis
from tests.support.models import estates
from tests.support.runs.profiles import examples

RULES = [acl("orders"), acl("orders", "User:bob", operation=4), acl("pay", host="10.0.0.1")]
FEW = [acl("orders"), acl("pay"), acl("ö")]


def contents(rules):
    return frozenset(map(content_of, rules))


def response_of(rules, order):
    return sha256(repr((order, sorted(contents(rules)))).encode()).hexdigest()


class Copy:
    """A log of sync and what happens to its directory; `rules` is what it must have, by the polls alone."""

    def __init__(self, home):
        self.directory = home / "copy"
        self.saved = home / "saved"
        self.rules, self.saved_rules = frozenset(), frozenset()
        self.polls = 0
        self.log = None
        create_sync_log(self.directory, self.polled((), 0))
        self.reopen()
        self.save()

    @property
    def file(self):
        return self.directory / RESPONSE_FILE

    def polled(self, rules, order):
        """A poll as ClusterPoller returns it: without contents if the response is the known one."""
        self.polls += 1
        digest = response_of(rules, order)
        is_known = self.log is not None and self.log.response == digest
        return Poll(
            cluster_id="c", contents=None if is_known else contents(rules), response=digest, timestamp=self.polls
        )

    def poll(self, rules, order, keeps):
        polled = self.polled(rules, order)
        assert self.log.differs_from(polled) == (set(rules) != self.rules)
        assert self.log.removed_by(polled) == len(self.rules - set(rules))
        changes = [(each.kind.value, each.rule.acl) for each in self.log.record(polled)]
        assert len(changes) == len(set(changes))
        assert set(changes) == {
            *(("REMOVED", each) for each in self.rules - set(rules)),
            *(("ADDED", each) for each in set(rules) - self.rules),
        }
        self.rules = frozenset(rules)
        assert self.log.count == len(self.rules)
        if keeps:
            self.log.keep_response(least=0)

    def reopen(self):
        if self.log is not None:
            self.log.close()
        self.log = open_sync_log(self.directory)
        assert self.log.count == len(self.rules)

    def save(self):
        """Copy the directory, as a backup does."""
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(self.directory, self.saved)
        self.saved_rules = self.rules

    def damage(self, at):
        data = bytearray(self.file.read_bytes() if self.file.exists() else b"")
        if data:
            data[at // 8 % len(data)] ^= 1 << at % 8
            self.file.write_bytes(data)
        self.reopen()

    def put_older_file(self):
        """As after a crash between the append and the file."""
        if (self.saved / RESPONSE_FILE).exists():
            shutil.copy(self.saved / RESPONSE_FILE, self.file)
        self.reopen()

    def put_older_log(self):
        """Put the saved log beside the present file."""
        present = self.file.read_bytes() if self.file.exists() else None
        self.log.close()
        shutil.rmtree(self.directory)
        shutil.copytree(self.saved, self.directory)
        if present is not None:
            self.file.write_bytes(present)
        self.rules, self.log = self.saved_rules, None
        self.reopen()

    def remove(self):
        self.file.unlink(missing_ok=True)
        self.reopen()


ACTIONS = st.one_of(
    st.tuples(st.just("poll"), st.frozensets(st.sampled_from(FEW)), st.integers(0, 1), st.booleans()),
    st.tuples(st.just("poll"), st.frozensets(estates.rules(), max_size=3), st.just(0), st.booleans()),
    st.tuples(st.just("damage"), st.integers(0, 5_000)),
    st.sampled_from([("reopen",), ("reopen",), ("save",), ("put_older_file",), ("put_older_log",), ("remove",)]),
)


@settings(max_examples=examples(60))
@given(st.lists(ACTIONS, max_size=16))
def test_what_is_recorded_does_not_depend_on_the_file(actions):
    with TemporaryDirectory() as home:
        copy = Copy(Path(home))
        for name, *arguments in actions:
            getattr(copy, name)(*arguments)
        copy.reopen()
        assert copy.log.recorded.keys() == contents(copy.rules)
        copy.log.close()


@pytest.fixture
def broker():
    with FakeBroker(RULES) as running:
        yield running


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr("aclog.ops.sync._SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(SyncLog, "keep_response", partialmethod(SyncLog.keep_response, least=0))


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "history"


def polled(broker, directory, *flags):
    return aclog("sync", "--bootstrap-server", broker.address, "--to", directory, "--once", *flags)


def recorded_acls(directory):
    with library.open_log(directory) as log:
        return {rule.acl for rule in log.image().acls()}


def fail(*_arguments, **_named):
    raise AssertionError("not expected to be called")


class TestCommand:
    def test_an_unchanged_response_is_not_decoded_and_the_log_not_replayed(self, broker, directory, monkeypatch):
        polled(broker, directory).ok()
        monkeypatch.setattr(requests, "decode_listing", fail)
        monkeypatch.setattr(sync, "recovered_writer", fail)
        result = polled(broker, directory).ok()
        assert result.out == ""
        assert result.err == f"aclog: note: 1 poll, 0 failed; 0 ACLs added, 0 removed; {directory}: ends at offset 4\n"

    def test_the_same_acls_in_another_order_are_not_compared_with_the_log(self, broker, directory, monkeypatch):
        polled(broker, directory).ok()
        broker.rules.reverse()
        with monkeypatch.context() as patch:
            patch.setattr(sync, "recovered_writer", fail)
            assert polled(broker, directory).ok().out == ""
        monkeypatch.setattr(requests, "decode_listing", fail)  # the file has the new order
        assert polled(broker, directory).ok().out == ""

    def test_a_running_command_decodes_a_response_once(self, broker, directory, monkeypatch):
        polled(broker, directory).ok()
        decoded, real = [], requests.decode_listing
        monkeypatch.setattr(requests, "decode_listing", lambda *given: decoded.append(1) or real(*given))
        with open_sync_log(directory) as log:
            counts = []
            for rules in (RULES, RULES[:2], RULES[:2], RULES, RULES):
                broker.rules, before = rules, len(decoded)
                changes = log.record(poll_once(broker, log, RemovalLimit(percent=100.0)))
                counts.append((len(changes), len(decoded) - before))
        # A response that differs is requested again, from a broker that has settled, and is the same.
        assert counts == [(0, 0), (1, 1), (0, 0), (1, 1), (0, 0)]

    @pytest.mark.parametrize("change", ["removed", "added"])
    def test_changes_are_recorded(self, broker, directory, change):
        polled(broker, directory).ok()
        polled(broker, directory).ok()
        broker.rules = RULES[1:] if change == "removed" else [*RULES, acl("later")]
        assert len(polled(broker, directory).ok().lines) == 1
        assert recorded_acls(directory) == set(broker.rules)
        assert polled(broker, directory).ok().out == ""

    def test_a_change_and_its_reversal_are_recorded(self, broker, directory):
        for _ in range(3):
            for rules in (RULES, RULES[1:]):
                broker.rules = rules
                polled(broker, directory).ok()
                assert recorded_acls(directory) == set(rules)

    def test_the_file_of_another_cluster_is_ignored(self, broker, directory):
        polled(broker, directory).ok()
        text = (directory / SYNC_FILE).read_text().replace("the-cluster", "another")
        (directory / SYNC_FILE).write_text(text)
        result = polled(broker, directory)
        assert (result.code, "belongs to cluster the-cluster" in result.complaint) == (2, True)
        with open_sync_log(directory) as log:
            assert log.response is None

    def test_an_append_of_another_program_is_seen(self, broker, directory):
        polled(broker, directory).ok()
        kept = (directory / RESPONSE_FILE).read_bytes()
        broker.rules = RULES[1:]
        polled(broker, directory).ok()
        (directory / RESPONSE_FILE).write_bytes(kept)
        broker.rules = RULES
        assert len(polled(broker, directory).ok().lines) == 1
        assert recorded_acls(directory) == set(RULES)

    def test_the_file_of_a_log_of_the_same_length_is_ignored(self, broker, tmp_path):
        states = {tmp_path / "one": RULES, tmp_path / "two": [acl("other"), *RULES[1:]]}
        for directory, rules in states.items():
            broker.rules = rules
            polled(broker, directory).ok()
        one, two = (directory / RESPONSE_FILE for directory in states)
        one.write_bytes(two.read_bytes())
        assert len(polled(broker, tmp_path / "one").ok().lines) == 2
        assert recorded_acls(tmp_path / "one") == set(broker.rules)

    def test_damage_of_the_log_is_no_less_an_error(self, broker, directory):
        polled(broker, directory).ok()
        [segment] = directory.glob("*.log")
        data = bytearray(segment.read_bytes())
        data[data.index(b"User:bob")] ^= 1
        segment.write_bytes(data)
        result = polled(broker, directory)
        assert (result.code, "checksum" in result.complaint or "CRC" in result.complaint) == (2, True), result.complaint

    def test_a_refused_poll_stays_refused(self, broker, directory):
        polled(broker, directory).ok()
        broker.rules = []
        for _ in range(2):
            assert "is refused" in polled(broker, directory, "--max-removal", "10").complaint
        broker.rules = RULES
        assert polled(broker, directory).ok().out == ""

    def test_an_older_server_has_no_digest(self, directory):
        with FakeBroker(RULES, apis=older_apis(1)) as broker:
            for _ in range(2):
                polled(broker, directory).ok()
            assert not (directory / RESPONSE_FILE).exists()
            broker.rules = RULES[1:]
            polled(broker, directory).ok()
        assert recorded_acls(directory) == set(RULES[1:])

    def test_a_log_with_a_checkpoint_has_no_digest(self, broker, directory):
        polled(broker, directory).ok()
        with open_log(directory) as log:
            assert log_digest(log) is not None
        aclog("snapshot", "create", "--log", directory, "--out", directory).ok()
        with open_log(directory) as log:
            assert log_digest(log) is None
        for rules in (RULES, RULES[1:]):
            broker.rules = rules
            assert len(polled(broker, directory).ok().lines) == len(RULES) - len(rules)

    def test_the_file_cannot_be_written(self, broker, directory, monkeypatch):
        polled(broker, directory).ok()
        (directory / RESPONSE_FILE).unlink()
        (directory / f"{RESPONSE_FILE}.tmp").mkdir()  # its temporary name is taken
        assert polled(broker, directory).ok().out == ""
        assert not (directory / RESPONSE_FILE).exists()


def poll_once(broker, log, limit):
    """One trusted poll with a connection of its own."""

    async def run():
        servers = (broker.address,)
        async with ClusterPoller(servers=servers, security=ClientSecurity(), cluster_id=None) as poller:
            return await RemovalTrust(limit=limit).trusted_poll(poller, log)

    return asyncio.run(run())


def test_few_acls_need_no_file(tmp_path):
    create_sync_log(tmp_path / "copy", poll_of(RULES))
    with open_sync_log(tmp_path / "copy") as log:
        log.record(poll_of(RULES))
        log.keep_response(least=len(RULES) + 1)
        assert not (tmp_path / "copy" / RESPONSE_FILE).exists()
        log.keep_response(least=len(RULES))
        assert (tmp_path / "copy" / RESPONSE_FILE).exists()


def poll_of(rules):
    return Poll(cluster_id="c", contents=contents(rules), response=response_of(rules, 0), timestamp=1)


def test_a_poll_without_contents_of_another_response_is_a_mistake(tmp_path):
    create_sync_log(tmp_path / "copy", poll_of(RULES))
    with open_sync_log(tmp_path / "copy") as log, pytest.raises(ValueError, match="without contents"):
        log.record(evolve(poll_of(RULES), contents=None, response="other"))


@given(st.lists(estates.rules(odd=True), max_size=8), st.lists(estates.rules(odd=True), max_size=8))
def test_digests_are_equal_for_equal_sets(first, second):
    one, two = contents(first), contents(second)
    assert (acls_digest(one) == acls_digest(two)) == (one == two)
    assert acls_digest(sorted(one)) == acls_digest(sorted(one, reverse=True))
