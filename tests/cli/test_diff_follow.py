"""`aclog diff --follow`: what each committed change really gives and takes, from a log that is being written."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.support.cli.command import aclog
from tests.support.kafka.server import free_port
from tests.support.processes.waiting import SECONDS


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    rules = tmp_path / "rules.jsonl"
    rules.write_text(aclog_rule("orders.pii", "User:*", permission="DENY"))
    aclog("import", rules, "--log", path).ok()
    return path


def aclog_rule(name: str, principal: str, *, permission: str = "ALLOW") -> str:
    row = {"resourceType": "TOPIC", "resourceName": name, "patternType": "LITERAL", "principal": principal}
    return json.dumps({**row, "host": "*", "operation": "READ", "permissionType": permission})


def change(log: Path, verb: str, *arguments: str) -> None:
    force = ["--force"] if verb == "remove" else []
    aclog("acls", verb, "--log", log, "--allow-principal", "User:bob", "--operation", "READ", *arguments, *force).ok()


@contextmanager
def following(log: Path, *flags: str) -> Iterator["subprocess.Popen[str]"]:
    """The command as a process, until SIGTERM, which is a clean end of it."""
    command = [sys.executable, "-m", "aclog", "diff", "--follow", "--log", str(log), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=SECONDS)
            assert (process.returncode, out, err) == (0, "", "")
        finally:
            process.kill()


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


@pytest.mark.server
def test_each_change_as_it_is_committed(log: Path) -> None:
    with following(log) as process:
        assert line(process) == f"following {log} from offset 2; stop with Ctrl-C"
        change(log, "add", "--topic", "orders.", "--resource-pattern-type", "prefixed")
        assert line(process).endswith(": added ALLOW User:bob READ on TOPIC PREFIXED 'orders.' from *")
        what = "READ on TOPIC (orders.* except orders.pii); DESCRIBE on TOPIC orders.*"
        assert line(process) == f"  GAINED  User:bob: {what}, from any host"
        assert line(process).strip().startswith("for example ")
        change(log, "add", "--topic", "orders.eu")
        assert line(process).endswith(": added ALLOW User:bob READ on TOPIC LITERAL 'orders.eu' from *")
        assert line(process) == "  no difference: every request is decided as before"


@pytest.mark.server
def test_as_json_lines_and_as_metrics(log: Path) -> None:
    port = free_port()
    with following(log, "--format", "jsonl", "--http", f"localhost:{port}") as process:
        assert becomes_ready(port)
        change(log, "add", "--topic", "t")
        gained = json.loads(line(process))
        assert (gained["change"], gained["names"]) == ("GAINED", [{"literal": "t"}])
        assert gained["principals"] == {"in": ["User:bob"]}
        assert gained["endOffset"] == gained["offset"] + 1
        change(log, "remove", "--topic", "t")
        lost = json.loads(line(process))
        assert (lost["change"], lost["offset"]) == ("LOST", gained["endOffset"])
        with urlopen(f"http://localhost:{port}/metrics") as answer:
            metrics = answer.read().decode().splitlines()
        assert 'aclog_effective_differences_total{change="GAINED"} 1.0' in metrics
        assert 'aclog_effective_differences_total{change="LOST"} 1.0' in metrics
        assert "aclog_acl_changes_total 2.0" in metrics


def becomes_ready(port: int) -> bool:
    """Wait until the command answers, which it does once it follows."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            with urlopen(f"http://localhost:{port}/readyz") as answer:
                return bool(answer.status == 200)
        except OSError:
            time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--follow", "--to-as-of", "3"), "expected no second state"),
        (("--follow", "--to-super-users", ""), "expected no second state"),
        (("--follow", "--map-names", "a=b"), "neither --map-names nor --accesses"),
        (("--follow", "--format", "sarif"), "expected text or jsonl"),
        (("--to-as-of", "3", "--http", "localhost:1"), "--http: only together with --follow"),
        (("--to-as-of", "3", "--give-up-after", "3"), "--give-up-after: only together with --follow"),
    ],
)
def test_flags_that_do_not_go_together(log: Path, flags: tuple[str, ...], complaint: str) -> None:
    result = aclog("diff", "--log", log, *flags)
    assert result.code == 2
    assert complaint in result.complaint


def test_a_single_state_cannot_be_followed(tmp_path: Path) -> None:
    rules = tmp_path / "rules.jsonl"
    rules.write_text(aclog_rule("t", "User:a"))
    result = aclog("diff", "--follow", "--acls", rules)
    assert result.code == 2
    assert "a single state has no changes" in result.complaint
