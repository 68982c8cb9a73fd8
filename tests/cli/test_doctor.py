"""`aclog doctor`: what it says of an installation, of logs and files, and with which exit code."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aclog.metalog.filelog.locks import holder_of
from aclog.sources.checks import certificate_finding, java_finding
from tests.support.builders.week import WEEK
from tests.support.cli.command import aclog
from tests.support.kafka.server import free_port
from tests.support.nodes.certificates import Authority

LOG = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"
VERSIONS = "1.8.0_2", "11.0.1", "17"
CHECKPOINT = "00000000000000000211-0000000002.checkpoint"


@pytest.fixture(autouse=True)
def no_context_and_no_java(monkeypatch, tmp_path):
    """A JVM is for tests of another tier."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("ACLOG_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.delenv("ACLOG_CONTEXT", raising=False)


def examined(*arguments, code=0):
    """Return the lines after the installation's, as (check, level, text)."""
    found = aclog("doctor", *arguments, "--format", "jsonl")
    assert found.code == code, found
    lines = [json.loads(line) for line in found.lines]
    last = next(number for number, line in enumerate(lines) if line["check"] == "contexts")
    return [(line["check"], line["level"], line["text"]) for line in lines[last + 1 :]]


def levels(lines):
    return {(check, level) for check, level, _ in lines}


def test_the_installation_is_examined_without_a_source():
    found = aclog("doctor").ok()
    checks = [line[6:].partition(":")[0] for line in found.lines]
    assert checks == [
        *("aclog", "python", "libraries", "extra kafka", "extra zookeeper", "extra parquet", "extra s3", "extra spark"),
        *("java", "clock", "contexts"),
    ]
    assert {line[:6] for line in found.lines} <= {"ok    ", "warn  "}


def test_java_is_looked_for():
    said = {text: java_finding("java", f'openjdk version "{text}" 2026') for text in VERSIONS}
    told = {text: str(each.level) for text, each in said.items()}
    assert told == {"1.8.0_2": "warn", "11.0.1": "warn", "17": "ok"}
    assert java_finding("java", "?").level == "warn"
    [line] = [line for line in aclog("doctor").lines if "java:" in line]
    assert line.startswith("warn  java: ")
    assert "install one, and set JAVA_HOME" in line


def test_a_file_of_contexts_that_others_may_write_fails(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("")
    file.chmod(0o666)
    found = aclog("doctor", "--log", LOG)
    assert found.code == 1
    assert any(line.startswith("fail  contexts: ") and "chmod go-w" in line for line in found.lines)


def test_a_sound_log():
    lines = examined("--log", LOG)
    assert levels(lines) == {("log", "ok"), ("kafka", "ok"), ("checkpoints", "ok"), ("writer", "ok"), ("disk", "ok")}
    assert ("kafka", "ok", "all nodes run Kafka 4.3") in lines
    assert lines[0][2].startswith(
        "68 ACLs, 7 SCRAM credentials, ends at offset 231, epoch 2, last written 2026-11-21T02:25:30.840Z; "
        f"{LOG} was read in "
    )


def test_a_log_without_checkpoints_and_registered_nodes_lacks_nothing():
    lines = examined("--log", WEEK / "log")
    assert ("checkpoints", "ok", "none, and none needed: the log begins at offset 0") in lines
    alike = "this does not matter, as no ACL with a CIDR range as host makes nodes decide differently"
    assert ("kafka", "ok", f"no node has registered its Kafka version; {alike}") in lines


def test_a_damaged_log_and_a_damaged_checkpoint(tmp_path):
    log = shutil.copytree(LOG, tmp_path / "log", copy_function=shutil.copyfile)
    checkpoint = log / CHECKPOINT
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    assert ("checkpoints", "warn") in levels(examined("--log", log))
    for segment in log.glob("*.log"):
        segment.write_bytes(segment.read_bytes()[:70] + b"\xff" * 8 + segment.read_bytes()[78:])
    for each in log.glob("*.checkpoint"):
        each.unlink()
    lines = examined("--log", log, code=1)
    assert ("log", "fail") in levels(lines)


def test_other_sources(tmp_path):
    assert levels(examined("--snapshot", LOG / CHECKPOINT)) == {("checkpoint", "ok"), ("kafka", "ok")}
    rules = tmp_path / "rules.jsonl"
    rules.write_text(aclog("acls", "list", "--log", LOG, "--format", "jsonl").ok().out)
    assert levels(examined("--acls", rules)) == {("rules", "ok")}
    rules.write_text("{}\n")
    assert levels(examined("--acls", rules, code=1)) == {("rules", "fail")}


@pytest.mark.parametrize(
    ("flags", "check"),
    [
        (("--log", "nowhere"), "log"),
        (("--bootstrap-server", "no port"), "source"),
        (("--bootstrap-server", "no-such-host.invalid:1"), "name"),
        (("--bootstrap-controller", f"127.0.0.1:{free_port()}"), "connection"),
        (("--log", "a", "--acls", "b"), "source"),
    ],
)
def test_a_source_that_cannot_be_used_fails(flags, check):
    assert (check, "fail") in levels(examined(*flags, code=1))


def test_a_certificate_is_told_in_time():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    authority = Authority.make("root")
    found = {
        days: certificate_finding(
            authority.issue("server", period=(now - timedelta(days=400), now + timedelta(days=days))).certificate, now
        )
        for days in (-1, 10, 40)
    }
    assert {days: str(each.level) for days, each in found.items()} == {-1: "fail", 10: "warn", 40: "ok"}
    assert "10 days left" in found[10].text


@pytest.mark.skipif(sys.platform != "linux", reason="other systems lay the lock out in another way")
@pytest.mark.process
def test_who_holds_a_lock_is_told_without_taking_it(tmp_path):
    path = tmp_path / "lock"
    path.touch()
    assert holder_of(path) is None
    assert holder_of(tmp_path / "none") is None
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, 2); print('held', flush=1); input()"
    with subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        assert holder_of(path) == holder.pid
        holder.communicate(b"\n")
    fd = os.open(path, os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody has it any more
    os.close(fd)


def test_an_error_of_the_system_is_told_without_its_number(tmp_path):
    result = aclog("doctor", "--acls", tmp_path / "none")
    assert result.code == 1
    assert f"fail  rules: {tmp_path / 'none'}: no such file or directory" in result.lines
