"""`aclog sync` against a fake broker: what is recorded, what is rejected, and how it ends."""

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import aclog as library
from aclog.cli.spark.spark_session import check_log
from aclog.cli.sync import retry_seconds
from aclog.config.node_config import ClientSecurity
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.verify import verify
from aclog.metalog.records import AccessControlEntryRecord, BeginTransactionRecord
from aclog.ops.sync import ClusterPoller
from aclog.pipeline.source.directory import extent
from aclog.protocol.api_keys import DESCRIBE_ACLS, DESCRIBE_CLUSTER, DESCRIBE_QUORUM
from aclog.protocol.responses import BROKER_APIS
from aclog.snapshots.history import history
from aclog.sources.logs import SYNC_FILE, SyncProperties, read_sync_properties
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.fakes.broker import FakeBroker
from tests.support.kafka.server import free_port

ROOT = Path(__file__).parents[2]
RULES = [acl("orders"), acl("orders", "User:bob", operation=4), acl("pay", host="10.0.0.1")]


@pytest.fixture
def broker():
    with FakeBroker(RULES) as running:
        yield running


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch):
    monkeypatch.setattr("aclog.ops.sync._SETTLE_SECONDS", 0.0)


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "history"


def polled(broker, directory, *flags):
    return aclog("sync", "--bootstrap-server", broker.address, "--to", directory, "--once", *flags)


def recorded_acls(directory, as_of=None):
    """Return the ids of all ACLs of a state."""
    with library.open_log(directory) as log:
        return {rule.acl: rule.id for rule in log.image(as_of).acls()}


def end_offset(directory):
    with library.open_log(directory) as log:
        return log.image().end_offset


def running(broker, directory, polls, *flags, each=None):
    """Sync until this many polls; `each(number)` is called before each poll, counted from 1."""
    asked = 0

    def rules():
        nonlocal asked
        asked += 1
        if asked == polls:
            os.kill(os.getpid(), signal.SIGINT)
        if each is not None:
            each(asked)
        return broker.rules

    broker.next_rules = rules
    flags = flags or ("--interval", "0.01")
    return aclog("sync", "--bootstrap-server", broker.address, "--to", directory, *flags)


class TestPolls:
    def test_the_first_poll_records_all_acls(self, broker, directory):
        result = polled(broker, directory).ok()
        assert len(result.lines) == 3
        assert recorded_acls(directory).keys() == set(RULES)
        assert read_sync_properties(directory).cluster_id == "the-cluster"
        assert result.err == (
            f"aclog: note: 1 poll, 0 failed; 3 ACLs added, 0 removed; {directory}: ends at offset 4\n"
        )

    def test_an_unchanged_poll_writes_nothing(self, broker, directory):
        polled(broker, directory)
        result = polled(broker, directory).ok()
        assert result.out == ""
        assert end_offset(directory) == 4

    def test_removals_come_first_and_unchanged_acls_keep_their_ids(self, broker, directory):
        polled(broker, directory)
        before = recorded_acls(directory)
        broker.rules = [acl("later"), *RULES[1:]]
        polled(broker, directory).ok()
        after = recorded_acls(directory)
        assert after.keys() == set(broker.rules)
        assert all(after[rule] == before[rule] for rule in RULES[1:])
        assert [(each.kind.name, each.offset, each.end_offset) for each in history(directory)][3:] == [
            ("REMOVED", 4, 6), ("ADDED", 5, 6),
        ]  # fmt: skip

    def test_an_acl_that_is_added_again_gets_a_new_id(self, broker, directory):
        polled(broker, directory)
        first = recorded_acls(directory)
        broker.rules = []
        polled(broker, directory, "--accept-removal", 3).ok()
        broker.rules = RULES
        polled(broker, directory)
        assert not set(first.values()) & set(recorded_acls(directory).values())

    def test_a_cluster_without_acls_is_recorded(self, broker, directory):
        broker.rules = []
        assert polled(broker, directory).ok().out == ""
        assert recorded_acls(directory) == {}
        broker.rules = RULES
        polled(broker, directory)
        assert recorded_acls(directory).keys() == set(RULES)

    def test_odd_names(self, broker, directory):
        broker.rules = [acl(name) for name in ("\0", "\ufffd", "x" * 32_767, "😀", "a\nb", "\u2028")]
        result = polled(broker, directory).ok()
        assert len(result.lines) == 6
        assert recorded_acls(directory).keys() == set(broker.rules)
        assert polled(broker, directory).ok().out == ""

    def test_an_operation_of_a_newer_kafka(self, broker, directory):
        broker.rules = [acl("orders", operation=99)]
        polled(broker, directory).ok()
        assert recorded_acls(directory).keys() == set(broker.rules)


class TestOutput:
    def test_text_lines(self, broker, directory):
        broker.rules = RULES[:1]
        (line,) = polled(broker, directory).ok().lines
        time, offset, kind, rule_id, rule = line.split(maxsplit=4)
        assert (offset, kind, rule) == ("1", "ADDED", "ALLOW User:app READ on TOPIC LITERAL 'orders' from *")
        assert json.loads(aclog("acls", "list", "--log", directory, "--format", "jsonl").out)["id"] == rule_id
        (change,) = history(directory)
        assert datetime.fromisoformat(time).timestamp() * 1000 == pytest.approx(change.timestamp)

    def test_json_lines_equal_the_exported_history(self, broker, directory):
        printed = polled(broker, directory, "--format", "jsonl").ok().out
        broker.rules = RULES[:1]
        printed += polled(broker, directory, "--format", "jsonl").ok().out
        assert printed == aclog("export", "--log", directory, "--history", "--format", "jsonl").ok().out
        assert len(printed.splitlines()) == 5

    @pytest.mark.process
    def test_a_closed_stdout_pipe(self, broker, directory):
        broker.rules = [acl(f"topic-{number}") for number in range(5_000)]
        flags = ["--bootstrap-server", str(broker.address), "--to", str(directory), "--once"]
        with subprocess.Popen([sys.executable, "-m", "aclog", "sync", *flags], stdout=subprocess.PIPE, cwd=ROOT) as one:
            one.stdout.readline()
            one.stdout.close()
            assert one.wait() == 141
        assert recorded_acls(directory).keys() == set(broker.rules)


MANY = [acl(f"topic-{number}") for number in range(50)]
WOULD_GO = re.compile(r"newest poll refused at \d{4}-\d\d-\d\dT[\d:.]+Z: (\d+) of (\d+) rules would go")


def warned(result):
    """How many rules would go, as a reader is warned."""
    (line,) = [line for line in result.err.splitlines() if "newest poll refused" in line]
    assert line.startswith("aclog: warning: ")
    return tuple(map(int, WOULD_GO.search(line).groups()))


class TestRemovals:
    @pytest.fixture
    def many(self, broker, directory):
        broker.rules = MANY
        polled(broker, directory).ok()
        return broker

    def test_a_response_without_acls_is_not_believed(self, broker, directory):
        polled(broker, directory)
        broker.rules = []
        result = polled(broker, directory)
        assert (result.code, result.out) == (2, "")
        assert "3 of 3 rules would go" in result.complaint
        assert "--accept-removal 3" in result.complaint
        assert len(broker.told) == 1 + 3, "it is asked again, over the same connection and a new one"
        assert recorded_acls(directory).keys() == set(RULES)

    def test_a_share_is_not_believed_either(self, many, directory):
        many.rules = MANY[:39]
        assert "11 of 50 rules would go" in polled(many, directory).complaint
        assert polled(many, directory, "--max-removal", 21).code == 2
        polled(many, directory, "--max-removal", 22).ok()
        assert recorded_acls(directory).keys() == set(MANY[:39])

    def test_few_removals_are_what_people_do(self, broker, directory):
        broker.rules = MANY[:10]
        polled(broker, directory)
        broker.rules = MANY[9:10]
        polled(broker, directory).ok()
        assert recorded_acls(directory).keys() == set(MANY[9:10])

    def test_a_second_response_that_is_better_is_recorded(self, many, directory):
        answers = iter([[], MANY[1:]])
        many.next_rules = lambda: next(answers)
        assert len(polled(many, directory).ok().lines) == 1
        assert recorded_acls(directory).keys() == set(MANY[1:])

    def test_another_given_broker_is_asked(self, many, directory):
        with FakeBroker(MANY[1:]) as other:
            many.rules = []
            aclog("sync", "--bootstrap-server", f"{many.address},{other.address}", "--to", directory, "--once").ok()
        assert recorded_acls(directory).keys() == set(MANY[1:])

    def test_another_broker_that_the_cluster_names_is_asked(self, many, directory):
        with FakeBroker(MANY[1:]) as other:
            many.rules, many.others = [], [other.address]
            polled(many, directory).ok()
        assert recorded_acls(directory).keys() == set(MANY[1:])

    def test_a_broker_of_another_cluster_is_no_witness(self, many, directory):
        with FakeBroker(MANY[1:], cluster_id="another") as other:
            many.rules, many.others = [], [other.address]
            assert "50 of 50 rules would go" in polled(many, directory).complaint
            assert warned(aclog("acls", "list", "--log", directory)) == (50, 50)
            servers = f"{many.address},{other.address}"
            result = aclog("sync", "--bootstrap-server", servers, "--to", directory, "--once")
            assert "belongs to cluster another" in result.complaint
        assert recorded_acls(directory).keys() == set(MANY)

    @pytest.mark.parametrize("is_odd", [False, True])
    def test_a_broker_that_the_cluster_named_once_is_no_server_later(self, is_odd):
        """Its address may be that of another cluster's broker since, which would end the command."""

        async def scenario(given, named):
            servers = (given.address,)
            async with ClusterPoller(servers=servers, security=ClientSecurity(), cluster_id="the-cluster") as poller:
                assert len((await poller.poll()).contents) == 50
                assert await poller.poll_again(lambda poll: len(poll.contents) == 49)
                if is_odd:
                    named.more = b"\0"
                    with pytest.raises(DecodeError):
                        await poller.poll()
                await poller.close()
                named.cluster_id = "another"
                assert len((await poller.poll()).contents) == 50
                assert poller.servers == servers

        with FakeBroker(MANY) as given, FakeBroker(MANY[1:]) as named:
            given.others = [named.address]
            asyncio.run(scenario(given, named))

    def test_every_reader_is_warned_until_a_good_poll(self, many, directory, tmp_path):
        many.rules = MANY[30:]
        polled(many, directory)
        readers = [
            ("acls", "list"),
            ("acls", "list", "--as-of", "1"),
            ("authorize", "--principal", "User:a", "--operation", "READ", "--topic", "t"),
            ("export", "--format", "jsonl", "--out", tmp_path / "exported"),
            ("export", "--history", "--format", "jsonl"),
        ]
        for words in readers:
            assert warned(aclog(*words, "--log", directory)) == (30, 50), words
        assert warned(aclog("snapshot", "create", "--log", directory, "--out", tmp_path / "checkpoints")) == (30, 50)
        assert warned(aclog("shell", "--log", directory, "ls")) == (30, 50)
        assert warned(aclog("log", "dump", directory)) == (30, 50)
        assert warned(aclog("log", "verify", directory)) == (30, 50)
        assert warned(aclog("log", "copy", directory, tmp_path / "copy")) == (30, 50)
        with library.open_log(directory) as log:
            assert WOULD_GO.search(*log.notes)
            many.rules = MANY
            polled(many, directory).ok()
        assert aclog("acls", "list", "--log", directory).ok().err == ""

    def test_spark_jobs_warn(self, many, directory, capsys, caplog):
        many.rules = []
        polled(many, directory)
        check_log(directory)
        assert WOULD_GO.search(capsys.readouterr().err)
        extent(directory)
        assert WOULD_GO.search(caplog.text)

    def test_an_open_log_tells_of_a_poll_that_is_refused_later(self, many, directory):
        with library.open_log(directory) as log:
            log.image()
            many.rules = []
            polled(many, directory)
            assert log.notes == []
            assert len(log.image()) == 50
            (found,) = log.notes
        assert WOULD_GO.search(found).groups() == ("50", "50")

    def test_a_failed_poll_neither_leaves_nor_withdraws_the_warning(self, many, directory):
        many.rules = []
        polled(many, directory)
        many.more = b"\0"
        polled(many, directory)
        assert warned(aclog("acls", "list", "--log", directory)) == (50, 50)

    def test_a_removal_is_accepted_once(self, many, directory):
        many.rules = MANY[:30]
        assert polled(many, directory, "--accept-removal", 19).code == 2
        result = polled(many, directory, "--accept-removal", 20).ok()
        assert "the removal of 20 of 50 rules is accepted: --accept-removal 20 is spent" in result.err
        assert recorded_acls(directory).keys() == set(MANY[:30])
        assert aclog("acls", "list", "--log", directory).ok().err == ""

    def test_a_service_goes_on_and_spends_what_it_may_accept(self, many, directory):
        def each(number):
            if number == 2:
                many.rules = MANY[:25]  # accepted
            if number == 4:
                many.rules = []  # refused, asked twice each time
            if number == 9:
                many.rules = MANY[:24]

        result = running(many, directory, 12, "--interval", "0.01", "--accept-removal", "30", each=each).ok()
        assert result.err.count("is spent") == 1
        assert "warning: poll failed, nothing recorded: the poll of" in result.err
        assert "25 of 25 rules would go" in result.err
        assert recorded_acls(directory).keys() == set(MANY[:24])
        assert aclog("acls", "list", "--log", directory).ok().err == ""
        assert {change.end_offset for change in history(directory)} == {51, 76, 77}

    @pytest.mark.parametrize(
        ("flag", "value"),
        [("--max-removal", "0"), ("--max-removal", "101"), ("--max-removal", "nan"), ("--accept-removal", "0")],
    )
    def test_invalid_limits(self, broker, directory, flag, value):
        result = polled(broker, directory, flag, value)
        assert (result.code, flag in result.complaint) == (2, True)
        assert broker.requests == {}


class TestOtherBrokers:
    def test_a_broker_that_is_behind_the_one_before_is_given_time(self, broker, directory):
        """It shows an older state at first: neither a removal nor an addition of that is recorded."""
        polled(broker, directory)
        newest = [*RULES[1:], acl("newest")]
        broker.rules = newest
        polled(broker, directory).ok()
        answers = iter([RULES, newest])
        with FakeBroker(cluster_id=broker.cluster_id) as behind:
            behind.next_rules = lambda: next(answers)
            assert polled(behind, directory).ok().out == ""
        assert recorded_acls(directory).keys() == set(newest)

    def test_a_broker_that_does_not_reach_its_controller_is_not_believed(self, broker, directory):
        polled(broker, directory)
        with FakeBroker(RULES[:2]) as cut_off:
            cut_off.refusals[DESCRIBE_QUORUM] = (7, "controller is away")
            result = polled(cut_off, directory)
            assert (result.code, result.out) == (2, "")
            assert f"{cut_off.address}: DescribeQuorum: controller is away: its rules may be old" in result.complaint
            cut_off.refusals[DESCRIBE_QUORUM] = (31, "may not ask")  # as any other error: nothing is known
            polled(cut_off, directory).ok()
        assert recorded_acls(directory).keys() == set(RULES[:2])

    def test_a_log_does_not_begin_with_an_old_state(self, broker, directory):
        """What it had in excess would be recorded as removed later, when the broker catches up."""
        broker.refusals[DESCRIBE_QUORUM] = (7, "controller is away")
        assert "its rules may be old" in polled(broker, directory).complaint
        assert not directory.exists()
        broker.refusals.clear()
        asked = broker.requests[DESCRIBE_QUORUM]
        broker.next_rules = lambda: RULES if broker.requests[DESCRIBE_QUORUM] > asked else [*RULES, acl("removed")]
        polled(broker, directory).ok()
        assert polled(broker, directory).ok().out == ""
        assert {each.kind.name for each in history(directory)} == {"ADDED"}

    def test_polls_over_one_connection_are_in_order(self, broker, directory):
        """Only the first one waits until its broker has caught up."""

        def each(number):
            broker.rules = [*RULES, acl(f"poll-{number}")]

        running(broker, directory, 6, each=each).ok()
        assert broker.requests[DESCRIBE_QUORUM] == 1
        assert len(set(broker.told)) == len(broker.told)

    def test_a_broker_that_was_refused_is_given_time_as_a_new_one(self, broker, directory):
        """It is behind what another one has told: what it catches up with next is no change either."""
        broker.rules = MANY
        polled(broker, directory)
        answers = {2: [], 4: MANY[:45], 5: MANY}

        def each(number):
            broker.rules = answers.get(number, broker.rules)

        result = running(broker, directory, 6, each=each).ok()
        assert "1 failed; 0 ACLs added, 0 removed" in result.err
        assert recorded_acls(directory).keys() == set(MANY)


class TestWatched:
    def test_metrics_and_readiness(self, broker, directory):
        port, seen = free_port(), {}

        def asked(path):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            try:
                connection.request("GET", path)
                response = connection.getresponse()
                return response.status, response.read().decode()
            finally:
                connection.close()

        def each(number):
            if number == 2:
                seen["good"] = asked("/readyz"), asked("/healthz"), asked("/metrics")
                broker.rules = []
            if number == 4:
                seen["refused"] = asked("/readyz"), asked("/healthz"), asked("/metrics")

        running(broker, directory, 6, "--interval", "0.01", "--http", f"127.0.0.1:{port}", each=each).ok()
        ready, healthy, metrics = seen["good"]
        assert (ready[0], healthy[0]) == (200, 200)
        assert "aclog_acls 3.0" in metrics[1]
        assert "aclog_refused_removals 0.0" in metrics[1]
        ready, healthy, metrics = seen["refused"]
        assert (ready[0], healthy[0]) == (503, 200)
        assert "3 of 3 rules would go" in ready[1]
        for line in ("aclog_acls 3.0", "aclog_polls 2.0", "aclog_failed_polls 1.0", "aclog_refused_removals 3.0"):
            assert line in metrics[1].splitlines()
        assert re.search(r"^aclog_age_seconds \d", metrics[1], re.MULTILINE)

    def test_it_gives_up(self, broker, directory):
        polled(broker, directory)
        broker.more = b"\0"
        flags = ("--interval", "0.01", "--give-up-after", "0.2")
        result = aclog("sync", "--bootstrap-server", broker.address, "--to", directory, *flags)
        assert result.code == 2
        assert f"given up after 0.2 s without a successful poll: {broker.address}" in result.complaint

    @pytest.mark.parametrize("flags", [("--give-up-after", "0"), ("--give-up-after", "nan"), ("--http", "x"),
                                       ("--http", "a:1,b:2")])  # fmt: skip
    def test_invalid_flags(self, broker, directory, flags):
        result = polled(broker, directory, *flags)
        assert (result.code, flags[0] in result.complaint) == (2, True)

    @pytest.mark.parametrize("host", ["a..b", "x" * 64])
    def test_a_host_that_cannot_be_a_name(self, broker, directory, host):
        """Resolving it raises no OSError but a UnicodeError."""
        result = polled(broker, directory, "--http", f"{host}:1")
        assert (result.code, f"--http: cannot listen on {host}:1" in result.complaint) == (2, True)

    def test_an_address_in_use(self, broker, directory):
        result = polled(broker, directory, "--http", broker.address)
        assert (result.code, f"--http: cannot listen on {broker.address}" in result.complaint) == (2, True)


class TestTimeTravel:
    def test_each_poll_can_be_read_by_offset(self, broker, directory):
        states = [RULES, RULES[:1], [], [*RULES, acl("later")]]
        moments = []
        for rules in states:
            broker.rules = rules
            polled(broker, directory, "--accept-removal", 3).ok()
            moments.append(end_offset(directory))
        assert [recorded_acls(directory, moment).keys() for moment in moments] == [set(rules) for rules in states]

    def test_the_timestamp_is_that_of_the_response(self, broker, directory):
        before = datetime.now(UTC)
        polled(broker, directory)
        first_poll = read_sync_properties(directory).first_poll
        assert int(before.timestamp() * 1000) <= first_poll <= datetime.now(UTC).timestamp() * 1000
        assert {change.timestamp for change in history(directory)} == {first_poll}
        when = datetime.fromtimestamp(first_poll / 1000, UTC)
        assert recorded_acls(directory, when).keys() == set(RULES)

    def test_states_before_the_first_poll_are_unknown(self, broker, directory):
        polled(broker, directory)
        first = datetime.fromtimestamp(read_sync_properties(directory).first_poll / 1000, UTC)
        earlier = (first - timedelta(milliseconds=2)).isoformat()
        for words in (("acls", "list"), ("shell",), ("export", "--format", "jsonl")):
            result = aclog(*words, "--log", directory, "--as-of", earlier)
            assert (result.code, result.out) == (2, "")
            assert f"the state is unknown: the log's first record is of {first:%Y-%m-%dT%H:%M:%S}" in result.complaint
        with pytest.raises(library.MetadataError, match="the state is unknown"):
            recorded_acls(directory, first - timedelta(days=1))

    def test_explain_advises_changes_on_the_cluster(self, broker, directory):
        polled(broker, directory)
        request = ("--principal", "User:carol", "--operation", "READ", "--topic", "orders")
        result = aclog("explain", "--log", directory, *request)
        assert "kafka-acls.sh" in result.out
        assert "aclog acls" not in result.out


BAD_ANSWERS = {
    "refused": lambda broker: broker.refusals.update({DESCRIBE_ACLS: (31, "no")}),
    "no authorizer": lambda broker: broker.refusals.update({DESCRIBE_ACLS: (54, None)}),
    "an error without words": lambda broker: broker.refusals.update({DESCRIBE_ACLS: (-1, None)}),
    "an error and no rules": lambda broker: broker.refusals.update({DESCRIBE_ACLS: (7, "late")}),
    "more than it counts": lambda broker: setattr(broker, "more", b"\0\0"),
    "cut": lambda broker: setattr(broker, "tamper_body", lambda body: body[:-1]),
    "empty": lambda broker: setattr(broker, "tamper_body", lambda body: b""),
    "no answer": lambda broker: setattr(broker.faults, "cut", 3),
    "no frame": lambda broker: broker.faults.garbage.extend([b"\0\0\0\0GET /"] * 3),
    "a rule that is none": lambda broker: broker.rules.append(acl("x", operation=1)),
    "no cluster": lambda broker: broker.refusals.update({DESCRIBE_CLUSTER: (-1, None)}),
}


class TestFailures:
    @pytest.mark.parametrize("what", BAD_ANSWERS)
    def test_a_failed_poll_records_nothing(self, broker, directory, what):
        polled(broker, directory)
        before = recorded_acls(directory)
        broker.rules = []
        BAD_ANSWERS[what](broker)
        result = polled(broker, directory)
        assert (result.code, result.out) == (2, "")
        assert str(broker.address) in result.complaint
        assert recorded_acls(directory) == before
        assert end_offset(directory) == 4

    @pytest.mark.parametrize("what", BAD_ANSWERS)
    def test_a_failed_first_poll_leaves_nothing(self, broker, directory, what):
        BAD_ANSWERS[what](broker)
        assert polled(broker, directory).code == 2
        assert list(directory.parent.iterdir()) == []

    def test_a_failed_poll_is_reported_and_retried(self, broker, directory):
        def each(number):
            broker.rules = [] if number == 3 else [acl("lasting"), acl(f"poll-{number}")]
            broker.more = b"\0" if number in {2, 3} else b""

        result = running(broker, directory, 7, each=each).ok()  # the last one may be cancelled
        warnings = [line for line in result.err.splitlines() if "warning" in line]
        assert len(warnings) == 2
        assert all("poll failed, nothing recorded: 127.0.0.1:" in line for line in warnings)
        assert warnings[0].endswith("retrying in 0.01 s")
        assert warnings[1].endswith("retrying in 0.02 s")
        kinds = [(change.kind.name, change.rule.acl.resource_name) for change in history(directory)]
        assert kinds[1:4] == [("ADDED", "poll-1"), ("REMOVED", "poll-1"), ("ADDED", "poll-5")]
        assert ", 2 failed;" in result.err

    def test_a_connection_closed_while_idle_is_no_failure(self, broker, directory):
        result = running(broker, directory, 4, each=lambda _: broker.cut_all_soon() if broker.connections < 3 else None)
        assert result.code == 0
        assert broker.connections >= 3

    def test_an_authorization_error_is_permanent_only_before_the_first_success(self, broker, directory):
        broker.refusals[DESCRIBE_ACLS] = (31, "no")
        flags = ("--interval", "0.01")
        result = aclog("sync", "--bootstrap-server", broker.address, "--to", directory, *flags)
        assert (result.code, "needs DESCRIBE on the cluster" in result.complaint) == (2, True)
        broker.refusals.clear()

        def each(number):
            if number == 3:
                broker.tamper_body = lambda body: body[:4] + b"\0\x1f" + body[6:]
            if number == 4:
                broker.tamper_body = lambda body: body

        result = running(broker, directory, 5, each=each).ok()
        assert "needs DESCRIBE on the cluster" in result.err
        assert recorded_acls(directory).keys() == set(RULES)

    def test_an_unreachable_server(self, directory):
        result = aclog("sync", "--bootstrap-server", "127.0.0.1:1", "--to", directory, "--once")
        assert (result.code, "127.0.0.1:1" in result.complaint) == (2, True)

    def test_another_server_takes_over(self, broker, directory):
        with FakeBroker(RULES[:1]) as other:
            servers = f"{other.address},{broker.address}"
            aclog("sync", "--bootstrap-server", servers, "--to", directory, "--once").ok()
            assert recorded_acls(directory).keys() == set(RULES[:1])
        aclog("sync", "--bootstrap-server", servers, "--to", directory, "--once").ok()
        assert recorded_acls(directory).keys() == set(RULES)

    def test_retry_delays(self):
        assert [retry_seconds(failures, 30) for failures in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]
        assert [retry_seconds(failures, 600) for failures in (1, 9, 10, 11, 1_000_000)] == [1, 256, 512, 600, 600]
        assert [retry_seconds(failures, 0.5) for failures in (1, 2, 7, 8)] == [0.5, 1, 32, 60]


class TestCluster:
    def test_another_cluster_is_rejected_at_the_start(self, broker, directory):
        polled(broker, directory)
        broker.cluster_id, broker.rules = "another", []
        result = polled(broker, directory)
        assert result.code == 2
        assert result.complaint.endswith("belongs to cluster another: expected the-cluster, the recorded one")
        assert recorded_acls(directory).keys() == set(RULES)

    def test_another_cluster_is_rejected_later(self, broker, directory):
        def each(number):
            if number == 2:
                broker.cluster_id = "another"
                broker.cut_all_soon()
            if number == 3:
                broker.rules = []

        result = running(broker, directory, 1_000, each=each)
        assert result.code == 2
        assert "belongs to cluster another" in result.err
        assert recorded_acls(directory).keys() == set(RULES)

    def test_a_cluster_without_describe_cluster_is_identified_by_metadata(self, directory):
        apis = tuple(api for api in BROKER_APIS if api.api_key != DESCRIBE_CLUSTER)
        with FakeBroker(RULES, apis=apis, cluster_id="old") as old:
            polled(old, directory).ok()
            assert read_sync_properties(directory).cluster_id == "old"
            old.cluster_id = "another"
            assert polled(old, directory).code == 2

    @pytest.mark.parametrize("apis", [BROKER_APIS, BROKER_APIS[:-1]], ids=["new", "old"])
    def test_a_cluster_without_an_id_is_rejected(self, directory, apis):
        with FakeBroker(RULES, apis=apis, cluster_id="") as nameless:
            result = polled(nameless, directory)
        assert (result.code, "no cluster id" in result.complaint) == (2, True)


class TestDirectory:
    def test_other_directories_and_files_are_rejected(self, broker, tmp_path):
        (tmp_path / "file").write_text("x")
        for place in (tmp_path, tmp_path / "file"):
            result = polled(broker, place)
            assert result.code == 2
            assert str(place) in result.complaint
        assert (tmp_path / "file").read_text() == "x"

    def test_a_log_of_another_writer_is_rejected(self, broker, directory):
        open_log(directory, create=True).close()
        result = polled(broker, directory)
        assert (result.code, f"no {SYNC_FILE} in it" in result.complaint) == (2, True)

    def test_an_empty_directory_is_accepted(self, broker, directory):
        directory.mkdir()
        polled(broker, directory).ok()
        assert recorded_acls(directory).keys() == set(RULES)

    def test_a_missing_parent_directory_is_rejected(self, broker, directory):
        result = polled(broker, directory / "below")
        assert (result.code, "no such directory" in result.complaint) == (2, True)
        assert broker.requests == {}

    @pytest.mark.process
    def test_a_locked_log_is_rejected(self, broker, directory):
        polled(broker, directory)
        script = "import sys; from aclog.metalog.filelog import open_log; log = open_log(sys.argv[1]); print(); input()"
        with subprocess.Popen(
            [sys.executable, "-c", script, directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        ) as holder:
            holder.stdout.readline()
            result = polled(broker, directory)
            holder.stdin.close()
        assert (result.code, "locked by" in result.complaint) == (2, True)

    def test_other_commands_do_not_append(self, broker, directory):
        polled(broker, directory)
        rule = ("--allow-principal", "User:x", "--topic", "t")
        for words in (
            ("acls", "add", "--log", directory, *rule),
            ("acls", "remove", "--log", directory, "--topic", "orders", "--force"),
            ("import", "-", "--log", directory),
        ):
            result = aclog(*words)
            assert (result.code, "only `aclog sync` appends to it" in result.complaint) == (2, True)
        (directory / SYNC_FILE).unlink()
        aclog("acls", "add", "--log", directory, *rule).ok()

    @pytest.mark.parametrize(
        "text",
        ["", "version=2\ncluster.id=c\nfirst.poll.ms=1", "version=1\nfirst.poll.ms=1", "version=1\ncluster.id=c",
         "version=1\ncluster.id=c\nfirst.poll.ms=x", "version=1\ncluster.id=\\u12", "x" * 2_000_000],
        ids=["empty", "version", "cluster", "poll", "number", "escape", "large"],
    )  # fmt: skip
    def test_a_damaged_sync_file_is_an_error(self, broker, directory, text):
        polled(broker, directory)
        (directory / SYNC_FILE).write_text(text)
        for result in (polled(broker, directory), aclog("acls", "add", "--log", directory, "--topic", "x",
                                                     "--allow-principal", "User:x")):  # fmt: skip
            assert result.code == 2
            assert SYNC_FILE in result.complaint

    def test_created_files_are_private(self, broker, directory):
        polled(broker, directory)
        assert directory.stat().st_mode & 0o777 == 0o700
        assert (directory / SYNC_FILE).stat().st_mode & 0o777 == 0o600

    def test_a_cluster_id_with_special_characters(self, directory):
        with FakeBroker(RULES, cluster_id="klüster = #1") as odd:
            polled(odd, directory).ok()
            polled(odd, directory).ok()
            found = read_sync_properties(directory)
        assert found == SyncProperties(cluster_id="klüster = #1", first_poll=found.first_poll)


class TestLarge:
    @pytest.fixture(autouse=True)
    def few_in_a_batch(self, monkeypatch):
        monkeypatch.setattr("aclog.targets.log.MAX_BYTES", 440)

    def test_changes_larger_than_a_batch_become_visible_together(self, broker, directory):
        polled(broker, directory)
        broker.rules = [acl(f"topic-{number}") for number in range(4)]
        polled(broker, directory, "--accept-removal", 3).ok()
        changes = list(history(directory))
        assert [change.offset for change in changes] == [2, 3, 4, 7, 8, 9, 10, 11, 12, 13]
        assert {change.end_offset for change in changes} == {6, 15}
        states = [recorded_acls(directory, offset).keys() for offset in range(1, 16)]
        assert all(state in (set(), set(RULES), set(broker.rules)) for state in states)
        printed = [json.loads(line) for line in aclog("log", "dump", "--json", directory).lines]
        assert [each["data"].get("name") for each in printed if each["type"].startswith("BEGIN")] == ["aclog sync"] * 2
        assert list(verify(directory)) == []

    def test_an_open_transaction_is_aborted(self, broker, directory):
        polled(broker, directory)
        with open_log(directory) as log:
            log.append([encode_record(BeginTransactionRecord(name="aclog sync"))], timestamp=1).result()
            rule = AccessControlEntryRecord(
                id=history_id(directory), resource_type=2, resource_name="half", pattern_type=3, principal="User:x",
                host="*", operation=3, permission_type=3,
            )  # fmt: skip
            log.append([encode_record(rule)], timestamp=1).result()
        result = polled(broker, directory).ok()
        assert "aborted a transaction that its writer left open" in result.err
        assert result.out == ""
        assert recorded_acls(directory).keys() == set(RULES)


def history_id(directory):
    """Return an id that no ACL of the log has."""
    return type(next(iter(recorded_acls(directory).values())))(int=2)


class TestDisk:
    def test_a_failed_creation_leaves_nothing(self, broker, directory, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("aclog.ops.sync.write_sync_properties", full)
        result = polled(broker, directory)
        assert (result.code, "the disk is full" in result.complaint) == (2, True)
        assert list(directory.parent.iterdir()) == []

    @pytest.mark.parametrize("gone", [".", "aclog.lock", "high-watermark", "leader-epoch-checkpoint"])
    def test_a_log_that_is_gone_ends_the_command_without_a_change(self, broker, directory, tmp_path, gone):
        """Otherwise polls without changes would be successful, and another process could write to the log."""

        def move(number):
            if number == 3:
                (directory / gone).rename(tmp_path / "moved")

        result = running(broker, directory, 6, each=move)
        assert result.code == 2
        assert "removed" in result.err
        assert "Traceback" not in result.err

    def test_a_failing_log_ends_the_command(self, broker, directory, monkeypatch):
        polled(broker, directory)

        def each(number):
            if number == 3:
                monkeypatch.setattr("aclog.metalog.filelog.files.write_all", failing)
                broker.rules = RULES[:1]

        def failing(*_):
            raise OSError(28, "No space left on device")

        result = running(broker, directory, 1_000, each=each)
        assert (result.code, "the disk is full" in result.complaint) == (2, True)
        monkeypatch.undo()
        assert recorded_acls(directory).keys() == set(RULES)


class TestEnds:
    def test_an_interrupt_ends_cleanly(self, broker, directory):
        result = running(broker, directory, 3, "--interval", "0.01").ok()
        assert "aclog: note: " in result.err
        assert f"{directory}: ends at offset 4" in result.err

    def test_an_interrupt_before_anything_is_recorded(self, broker, directory):
        broker.more = b"\0"
        result = running(broker, directory, 2).ok()
        assert f"{directory}: nothing recorded" in result.err
        assert list(directory.parent.iterdir()) == []

    def test_an_interrupt_cancels_a_pending_poll(self, broker, directory):
        def each(_):
            broker.faults.silent = 1_000

        result = running(broker, directory, 1, each=each).ok()
        assert "nothing recorded" in result.err or "ends at offset 4" in result.err

    @pytest.mark.process
    def test_sigterm(self, broker, directory):
        flags = ["--bootstrap-server", str(broker.address), "--to", str(directory), "--interval", "3600"]
        with subprocess.Popen(
            [sys.executable, "-m", "aclog", "sync", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        ) as process:
            for _ in RULES:
                assert "ADDED" in process.stdout.readline()
            process.terminate()
            out, err = process.communicate(timeout=300)
        assert (process.returncode, out) == (0, "")
        assert err.startswith("aclog: note: 1 poll, 0 failed; 3 ACLs added")

    @pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "86401", "1e400"])
    def test_an_invalid_interval(self, broker, directory, seconds):
        result = polled(broker, directory, f"--interval={seconds}")
        assert (result.code, "--interval" in result.complaint) == (2, True)
        assert broker.requests == {}
