"""`aclog sync` and `aclog migrate` against servers that lie: what is claimed, what is removed, and what is printed."""

import socket
from contextlib import suppress
from threading import Thread

import pytest
from attrs import evolve

import aclog as library
from aclog.config.node_config import HostPort
from aclog.metalog.primitives import unsigned_varint
from aclog.protocol.api_keys import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS, DESCRIBE_CLUSTER
from aclog.protocol.messages import build
from aclog.protocol.responses import CONTROLLER_APIS
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.fakes import broker as fakes
from tests.support.fakes.broker import FakeBroker, older_apis
from tests.support.zookeeper.fake_store import fake_store

THEIRS = [acl(f"theirs-{number}", "User:old") for number in range(30)]
OURS = [acl(f"ours-{number}", "User:shop") for number in range(12)]
HOSTILE_TEXT = "\x1b[2Jevil\nforged: ok \u202e\x9b31m"


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch):
    monkeypatch.setattr("aclog.ops.sync._SETTLE_SECONDS", 0.0)


@pytest.fixture
def broker():
    with FakeBroker(THEIRS) as running:
        yield running


@pytest.fixture
def controller():
    with FakeBroker(apis=CONTROLLER_APIS) as running:
        yield running


def synced(broker, directory):
    return aclog("sync", "--bootstrap-server", broker.address, "--to", directory / "log", "--once")


def migrated(controller, *flags):
    with fake_store(OURS) as store:
        return aclog("migrate", "--zookeeper", store, "--bootstrap-controller", controller.address, *flags)


def recorded(directory):
    with library.open_log(directory / "log") as log:
        return len(list(log.image().acls()))


class TestMigrate:
    def test_a_result_too_few(self, controller):
        create = controller.handlers[CREATE_ACLS]

        def fewer(version, body):
            return build(CREATE_ACLS, version, "response", results=create(version, body).results[1:])

        controller.handlers[CREATE_ACLS] = fewer
        result = migrated(controller)
        assert result.code == 2
        assert result.complaint == f"{controller.address}: CreateAcls: 11 results for 12 ACLs: expected one each"
        assert "0 of 12 changes are made, perhaps a request more" in result.err

    def test_a_filter_result_too_few(self, controller):
        delete = controller.handlers[DELETE_ACLS]

        def fewer(version, body):
            results = delete(version, body).filter_results[1:]
            return build(DELETE_ACLS, version, "response", filter_results=results)

        controller.handlers[DELETE_ACLS] = fewer
        controller.rules = list(THEIRS)
        result = migrated(controller, "--replace", "--accept-removal", 30)
        assert result.code == 2
        assert result.complaint == f"{controller.address}: DeleteAcls: 29 results for 30 ACLs: expected one each"
        assert "12 of 42 changes are made, perhaps a request more" in result.err

    def test_success_of_what_was_not_done(self, controller):
        def nothing(version, body):
            results = tuple(build(CREATE_ACLS, version, "response", "AclCreationResult") for _ in body.creations)
            return build(CREATE_ACLS, version, "response", results=results)

        controller.handlers[CREATE_ACLS] = nothing
        result = migrated(controller)
        assert result.code == 1
        assert "compared: contents 12 differences" in result.out

    def test_a_connection_that_ends_is_reported_with_what_is_done(self, controller, monkeypatch):
        monkeypatch.setattr("aclog.ops.migration_targets._CREATIONS_PER_REQUEST", 5)
        create = controller.handlers[CREATE_ACLS]

        def once(version, body):
            controller.handlers[CREATE_ACLS] = lambda *_: controller.cut_all_soon()
            return create(version, body)

        controller.handlers[CREATE_ACLS] = once
        result = migrated(controller)
        assert result.code == 2
        assert "5 of 12 changes are made, perhaps a request more: run the command again for the rest" in result.err

    def test_another_cluster_at_a_later_connection(self, controller):
        controller.rules = list(THEIRS)
        described = iter(["first", "second"])
        describe = controller.handlers[DESCRIBE_CLUSTER]

        def other(version, body):
            controller.cluster_id = next(described)
            return describe(version, body)

        controller.handlers[DESCRIBE_CLUSTER] = other
        result = migrated(controller, "--replace", "--accept-removal", 30)
        assert result.code == 2
        assert "a controller of cluster second: expected one of cluster first" in result.complaint

    def test_what_is_removed_was_read_over_the_same_connection(self, controller):
        """The list of another cluster, at the same address, does not decide what is removed here."""
        controller.rules = [*THEIRS, *OURS]
        migrated(controller, "--replace", "--accept-removal", 30)
        assert set(controller.rules) == set(OURS)
        assert controller.connections == 2  # one reads and writes, one compares

    @pytest.mark.parametrize(
        "change",
        [{"operation": 0}, {"operation": 1}, {"pattern_type": 1}, {"pattern_type": 2}, {"permission_type": 1}],
        ids=str,
    )
    def test_a_rule_that_only_a_filter_can_be(self, controller, monkeypatch, change):
        """Its removal would be a filter that matches others."""
        monkeypatch.setattr(fakes, "filter_matches", lambda *_: True)
        controller.rules = [*THEIRS, evolve(acl("x"), **change)]
        result = migrated(controller, "--replace", "--accept-removal", 31)
        assert result.code == 2
        assert "expected none of UNKNOWN, ANY and MATCH" in result.complaint
        assert controller.deleted_at_once == []

    def test_hostile_texts(self, controller):
        def refuse(version, body):
            refusal = {"error_code": 9999, "error_message": HOSTILE_TEXT * 1000}
            results = tuple(
                build(CREATE_ACLS, version, "response", "AclCreationResult", **refusal) for _ in body.creations
            )
            return build(CREATE_ACLS, version, "response", results=results)

        controller.handlers[CREATE_ACLS] = refuse
        result = migrated(controller)
        assert result.code == 1
        assert all(line.isprintable() for line in result.err.splitlines())
        assert max(map(len, result.err.splitlines())) < 6000
        assert sum("not created" in line for line in result.err.splitlines()) == len(OURS)


class TestSync:
    @pytest.mark.parametrize("port", [2**31 - 1, -1, 65536])
    def test_brokers_at_impossible_ports(self, broker, tmp_path, port):
        synced(broker, tmp_path).ok()
        broker.rules, broker.others = [], [HostPort(host="127.0.0.1", port=port)]
        result = synced(broker, tmp_path)
        assert result.code == 2
        assert "30 of 30 rules would go" in result.complaint
        assert recorded(tmp_path) == len(THEIRS)

    def test_a_long_cluster_id(self, broker, tmp_path):
        broker.cluster_id = "x" * 20_000
        result = synced(broker, tmp_path)
        assert result.code == 2
        assert result.complaint.endswith("a cluster id of 20,000 characters: expected at most 255")

    def test_a_long_text_of_an_error(self, broker, tmp_path):
        broker.refusals[DESCRIBE_ACLS] = -7, HOSTILE_TEXT * 1000
        result = synced(broker, tmp_path)
        assert result.code == 2
        assert len(result.complaint) < 6000
        assert result.complaint.isprintable()
        assert "(25,000 characters)" in result.complaint

    @pytest.mark.parametrize("version", [1, 3])
    def test_more_rules_than_a_response_may_have(self, broker, tmp_path, monkeypatch, version):
        synced(broker, tmp_path).ok()
        monkeypatch.setattr("aclog.protocol.acls.MOST_LISTED", 150_000)
        monkeypatch.setattr("aclog.protocol.acls._MANY_BYTES", 1000)
        if version == 1:
            broker.apis = older_apis(1)
        body = _listing(version, 150_001)
        broker.tamper_body = lambda _: body
        result = synced(broker, tmp_path)
        assert result.code == 2
        assert "more than 150,000 ACLs in one response" in result.complaint
        broker.tamper_body = lambda _: body[:-9]
        assert synced(broker, tmp_path).code == 2
        assert recorded(tmp_path) == len(THEIRS)

    def test_a_size_that_a_first_response_cannot_have(self, tmp_path):
        """The server is a stranger before its first response: it may be of a megabyte."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            Thread(target=_announce, args=(listening, 2 << 20), daemon=True).start()
            address = HostPort(host="127.0.0.1", port=listening.getsockname()[1])
            result = aclog("sync", "--bootstrap-server", address, "--to", tmp_path / "log", "--once")
        assert result.code == 2
        assert f"frame length {2 << 20}: expected 4 to {1 << 20}" in result.complaint


def _announce(listening, size):
    """Announce a response of this size to each client."""
    with suppress(OSError):
        while True:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(size.to_bytes(4) + bytes(100))
                connection.recv(1000)


def _listing(version, count):
    """The body of a DescribeAcls response with one ACL, many times."""
    if version == 1:
        return (
            bytes(6) + b"\xff\xff" + (1).to_bytes(4) + b"\x02\0\x01x\x03" + count.to_bytes(4) + b"\0\0\0\0\3\3" * count
        )
    entries = b"\x07User:a\x02*\x03\x03\0" * count
    return bytes(7) + b"\x02\x02\x02x\x03" + unsigned_varint(count + 1) + entries + b"\0\0"
