"""`aclog mirror` of an aclog node: the contents of the mirror, its end, and what it refuses."""

import http.client
import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from aclog.metalog.batches import end_offset, iter_batches
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.files import MIRROR_FILE, checkpoint_name, image_path
from tests.support.builders.log_files import segment_paths, small_log, value
from tests.support.cli.command import aclog
from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.quorum import FakeQuorum
from tests.support.kafka.server import free_port
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import CLUSTER_ID, Ports
from tests.support.processes.waiting import wait_until

LOGIN = """\
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="{0}" password="{1}";
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    home = tmp_path_factory.mktemp("node")
    with AclogNode(home, Ports.free()).format() as running:
        yield running


def place(node, user="admin", password=None):
    """Return the flags that name the node's controller."""
    config = node.home / f"{user}-{password}.properties"
    config.write_text(LOGIN.format(user, password or f"{user}-secret"))
    return ["--bootstrap-controller", f"localhost:{node.ports.controller}", "--command-config", str(config)]


def add_rules(node, *topics):
    for topic in topics:
        aclog("acls", "add", *place(node), "--allow-principal", "User:a", "--operation", "READ", "--topic", topic).ok()


def committed(directory, start=0):
    """Return all committed bytes of a log directory."""
    found = b""
    with open_reader(directory) as reader:
        offset, end = start, reader.high_watermark()
        while offset < end:
            found += reader.read(offset)
            offset = end_offset(found)
    return found


def content(directory):
    return b"".join(path.read_bytes() for path in segment_paths(directory))


def dumped(directory):
    """Return the output of `log dump --json` for the segments, without their names."""
    lines = aclog("log", "dump", "--json", *segment_paths(directory)).ok().lines
    return [{**json.loads(line), "file": None} for line in lines]


@contextmanager
def mirroring(node, directory):
    """`aclog mirror` as a process, which the test stops."""
    with running([sys.executable, "-m", "aclog", "mirror", *place(node), "--to", str(directory)]) as process:
        yield process


@contextmanager
def running(command):
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.server
@pytest.mark.tier("test")
def test_once(node, tmp_path):
    """Check that bytes, dump and the states at every offset equal those of the node's directory."""
    directory = tmp_path / "mirror"
    add_rules(node, "once-1", "once-2", "once-3")
    done = aclog("mirror", *place(node), "--to", directory, "--once").ok()
    assert done.out == ""
    (line,) = done.err.splitlines()
    mirrored = committed(directory)
    count = len(list(iter_batches(mirrored)))
    expected = f"{count} batches, {len(mirrored)} bytes; ends at offset {end_offset(mirrored)}, epoch "
    assert line.startswith(f"aclog: note: {directory}: {expected}")
    theirs = committed(node.log_directory)
    assert theirs.startswith(mirrored)
    here, there = dumped(directory), dumped(node.log_directory)
    assert here == [line for line in there if line["offset"] < len(here)]
    assert aclog("log", "verify", directory).ok().lines[-1] == "all is well"
    for offset in range(0, len(here) + 1, 3):
        states = [
            aclog("acls", "list", "--log", log, "--as-of", offset, "--format", "jsonl").ok().out
            for log in (directory, node.log_directory)
        ]
        assert states[0] == states[1]
    add_rules(node, "once-4")
    again = aclog("mirror", *place(node), "--to", directory, "--once").ok()
    assert f"since offset {len(here)}; ends at offset" in again.err
    assert committed(node.log_directory).startswith(committed(directory))
    assert "once-4" in aclog("acls", "list", "--log", directory).ok().out


@pytest.mark.server
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_mirror(node, tmp_path, number):
    """Commits appear in the mirror while it runs, and no other process may write to it."""
    directory, topic = tmp_path / "mirror", f"live-{number.name}"
    with mirroring(node, directory) as process:
        wait_until(lambda: segment_paths(directory) and content(directory))
        add_rules(node, topic)
        wait_until(lambda: topic in aclog("acls", "list", "--log", directory).out)
        second = aclog("mirror", *place(node), "--to", directory)
        assert (second.code, second.complaint) == (2, f"{directory / 'aclog.lock'}: locked by another aclog writer")
        process.send_signal(number)
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0
    assert said.splitlines()[-1].startswith(f"aclog: note: {directory}: ")
    assert committed(node.log_directory).startswith(content(directory))
    assert aclog("log", "verify", directory).ok()


@pytest.mark.server
def test_a_restarted_node_is_followed_into_its_next_epoch(tmp_path):
    home, directory = tmp_path / "node", tmp_path / "mirror"
    with AclogNode(home, Ports.free()).format() as node, mirroring(node, directory) as process:
        add_rules(node, "before")
        wait_until(lambda: directory.exists() and "before" in aclog("acls", "list", "--log", directory).out)
        node.stop()
        node.start()
        add_rules(node, "after")
        wait_until(lambda: "after" in aclog("acls", "list", "--log", directory).out)
        process.terminate()
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0
        lines = [line for line in said.splitlines() if "trying again" in line or "following again" in line]
        assert len(lines) == len(set(lines))
        theirs = committed(node.log_directory)
        assert theirs.startswith(content(directory))
        assert len({header.leader_epoch for _, header in iter_batches(content(directory))}) == 2


@pytest.mark.server
def test_a_mirror_has_no_other_writer(node, tmp_path):
    directory = tmp_path / "mirror"
    aclog("mirror", *place(node), "--to", directory, "--once").ok()
    before = content(directory)
    rules = tmp_path / "rules.jsonl"
    rules.write_text(aclog("acls", "list", "--log", directory, "--format", "jsonl").ok().out)
    refused = f"{directory}: a mirror of cluster {CLUSTER_ID}: only `aclog mirror` appends to it; "
    rule = ["--allow-principal", "User:a", "--topic", "x"]
    for command in (
        ["acls", "add", "--log", directory, *rule],
        ["acls", "add", "--log", directory, *rule, "--force"],
        ["acls", "remove", "--log", directory, *rule, "--force"],
        ["import", rules, "--log", directory],
    ):
        found = aclog(*command)
        assert found.code == 2
        assert found.complaint.startswith(refused)
    assert content(directory) == before


@pytest.mark.server
def test_a_checkpoint_in_a_mirror_shortens_the_replay(node, tmp_path):
    directory = tmp_path / "mirror"
    add_rules(node, "quick-1")
    aclog("mirror", *place(node), "--to", directory, "--once").ok()
    (checkpoint,) = aclog("snapshot", "create", "--log", directory, "--out", directory).ok().out.split()[:1]
    add_rules(node, "quick-2")
    image = image_path(Path(checkpoint))
    image.rename(image_path(Path(checkpoint).with_name(checkpoint_name(1, 1))))  # of no checkpoint any more
    aclog("mirror", *place(node), "--to", directory, "--once").ok()
    assert list(directory.glob("*.image")) == [image]
    assert checkpoint in aclog("log", "dump", directory).ok().out
    assert aclog("log", "verify", directory).ok().lines[-1] == "all is well"
    assert "quick-2" in aclog("acls", "list", "--log", directory).ok().out


@pytest.mark.server
def test_invalid_sources_and_directories(node, tmp_path):
    other = small_log(tmp_path / "other")
    found = aclog("mirror", *place(node), "--to", other, "--once")
    assert found.code == 2
    assert ", but no mirror.properties): expected a mirror" in found.complaint
    empty = tmp_path / "empty"
    for flags in (["--bootstrap-controller", "nowhere"], ["--bootstrap-controller", ""]):
        assert aclog("mirror", *flags, "--to", empty).code == 2
    for flags in (["--to", empty], ["--bootstrap-controller", "localhost:1"]):
        assert "Missing option" in aclog("mirror", *flags).complaint
    assert not empty.exists()


@pytest.mark.server
def test_a_denied_fetch_is_reported_immediately(node, tmp_path):
    found = aclog("mirror", *place(node, "admin", "guessed"), "--to", tmp_path / "mirror")
    assert found.code == 2
    assert "Invalid username or password" in found.complaint or "authentication" in found.complaint.lower()
    found = aclog("mirror", *place(node, "alice"), "--to", tmp_path / "mirror")
    assert found.code == 2
    assert "CLUSTER_ACTION" in found.complaint
    aclog("mirror", *place(node), "--to", tmp_path / "mirror", "--once").ok()  # the directory is not a mirror yet


def test_once_without_a_controller(tmp_path, monkeypatch):
    monkeypatch.setattr("aclog.cli.mirror_run._ONCE_PATIENCE_SECONDS", 0.1)
    found = aclog("mirror", "--bootstrap-controller", f"localhost:{free_port()}", "--to", tmp_path / "mirror", "--once")
    assert found.code == 2
    assert "localhost" in found.complaint


@pytest.mark.server
def test_a_different_cluster_is_refused(node, tmp_path):
    directory = tmp_path / "mirror"
    aclog("mirror", *place(node), "--to", directory, "--once").ok()
    properties = (directory / MIRROR_FILE).read_text()
    (directory / MIRROR_FILE).write_text(properties.replace(CLUSTER_ID, "another"))
    before = content(directory)
    found = aclog("mirror", *place(node), "--to", directory, "--once")
    assert found.code == 2
    assert "INCONSISTENT_CLUSTER_ID" in found.complaint
    assert f"{directory} is a mirror of; use another directory for another cluster" in found.complaint
    assert content(directory) == before


def test_a_cluster_that_lost_committed_records(tmp_path):
    quorum, directory = FakeQuorum(epoch=3), tmp_path / "mirror"
    with FakeLeader(quorum) as leader:
        for number in range(20):
            quorum.append([value(str(number))])
        command = ["mirror", "--bootstrap-controller", str(leader.address), "--to", directory, "--once"]
        aclog(*command).ok()
        before = content(directory)
        quorum.lose(10)
        for number in range(20):
            quorum.append([value(str(number))])
        found = aclog(*command)
    assert found.code == 2
    assert "does not have the log that was committed up to offset 20" in found.complaint
    assert f"{directory} is left unchanged: find out what was lost, or mirror into another" in found.complaint
    assert content(directory) == before


def asked(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    except OSError:
        return 0, ""
    finally:
        connection.close()


@pytest.mark.slow(6)
def test_it_tells_how_it_is_and_gives_up(tmp_path):
    quorum, port = FakeQuorum(epoch=3), free_port()
    quorum.append([value("one")])
    with FakeLeader(quorum) as leader:
        place = ["--bootstrap-controller", str(leader.address), "--http", f"127.0.0.1:{port}", "--give-up-after", "5"]
        command = [sys.executable, "-m", "aclog", "mirror", *place, "--to", str(tmp_path / "mirror")]
        with running(command) as process:
            wait_until(lambda: asked(port, "/readyz") == (200, "ok\n"))
            assert asked(port, "/healthz") == (200, "ok\n")
            wait_until(lambda: "\naclog_lag_records 0.0\n" in asked(port, "/metrics")[1])
            assert "\naclog_age_seconds " in asked(port, "/metrics")[1]
            leader.close()
            wait_until(lambda: asked(port, "/readyz")[0] == 503)
            assert str(leader.address) in asked(port, "/readyz")[1]
            _, said = process.communicate(timeout=300)
    assert process.returncode == 2
    assert f"given up after 5 s without a usable leader: {leader.address}: " in said.splitlines()[-1]
