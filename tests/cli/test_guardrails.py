"""`aclog test --follow`: which tests of rules each committed change turns red or green."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import pytest
from attrs import define

from aclog.analysis.rule_tests.case import CaseSubject, parse_resource
from aclog.analysis.rule_tests.expectations import Cannot
from aclog.authorizer.acl import FileOrigin
from aclog.authorizer.settings import Settings
from aclog.cli.follow import FollowerStatus
from aclog.cli.test_follow import Guard, GuardOptions, Verdicts
from aclog.metalog.errors import LogError
from aclog.snapshots.image import Freshness, Image
from aclog.sources.choice import ChosenSource
from aclog.sources.logs import LogSource
from tests.cli.test_diff_follow import aclog_rule, becomes_ready
from tests.support.analysis.model import EVERY_OPERATION
from tests.support.cli.command import aclog
from tests.support.kafka.server import free_port
from tests.support.processes.waiting import SECONDS

TESTS = """\
tests:
- name: pii
  principal: User:*
  cannot: {READ: [topic:pii.*]}
- name: bob
  principal: User:bob
  cannot: {WRITE: [topic:t]}
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rules = tmp_path / "rules.jsonl"
    rules.write_text(aclog_rule("t", "User:bob"))
    aclog("import", rules, "--log", tmp_path / "log").ok()
    return tmp_path / "log"


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    path = tmp_path / "guard.yaml"
    path.write_text(TESTS)
    return path


def change(log: Path, verb: str, topic: str) -> None:
    force = ["--force"] if verb == "remove" else []
    what = ("--allow-principal", "User:bob", "--operation", "READ", "--topic", topic)
    aclog("acls", verb, "--log", log, *what, *force).ok()


@contextmanager
def following(log: Path, tests: Path, *flags: str, ends: int | None = None) -> Iterator["subprocess.Popen[str]"]:
    """The command as a process until SIGTERM, a clean end of it; or until it ends by itself with a code."""
    command = [sys.executable, "-m", "aclog", "test", str(tests), "--follow", "--log", str(log), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
        try:
            yield process
            if ends is None:
                process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=SECONDS)
            assert (process.returncode, err) == (ends or 0, "")
        finally:
            process.kill()


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


@pytest.mark.server
def test_what_turns_is_told_with_the_change_that_did_it_and_posted(log: Path, tests: Path) -> None:
    posted: list[str] = []
    arrived = threading.Event()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            if len(posted) == 2:
                arrived.set()
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    port = free_port()
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hook = f"http://u:secret@127.0.0.1:{server.server_port}/hook"
        with following(log, tests, "--webhook", hook, "--http", f"localhost:{port}") as process:
            assert line(process) == f"following {log} from offset 2: 2 green, 0 red; stop with Ctrl-C"
            assert becomes_ready(port)
            change(log, "add", "other")
            change(log, "add", "pii.card")
            red = line(process)
            assert red.startswith("RED     ")
            assert red.endswith(f" offset 3: pii: everyone cannot READ topic:pii.* ({tests}:4)")
            assert line(process) == "  User:bob: READ on TOPIC pii.card is allowed, from any host"
            assert line(process) == "  by: added ALLOW User:bob READ on TOPIC LITERAL 'pii.card' from *"
            with urlopen(f"http://localhost:{port}/metrics") as answer:
                metrics = answer.read().decode().splitlines()
            assert {"aclog_rule_tests_red 1.0", "aclog_rule_tests_green 1.0", "aclog_rule_tests_unknown 0.0"} <= {
                *metrics
            }
            assert 'aclog_rule_test_turns_total{to="red"} 1.0' in metrics
            change(log, "remove", "pii.card")
            assert line(process).startswith("GREEN   ")
            assert line(process) == "  by: removed ALLOW User:bob READ on TOPIC LITERAL 'pii.card' from *"
            assert arrived.wait(SECONDS)
        server.shutdown()
    turns = [json.loads(each) for each in posted]
    assert [turn["event"] for turn in turns] == ["RED", "GREEN"]
    assert (turns[0]["test"], turns[0]["line"], turns[0]["offset"], turns[0]["endOffset"]) == ("pii", 4, 3, 4)
    assert turns[0]["failures"][0]["request"]["resourceName"] == "pii.card"
    assert turns[0]["changes"][0]["rule"]["principal"] == "User:bob"


@pytest.mark.server
def test_it_ends_when_a_test_turns_red(log: Path, tests: Path) -> None:
    with following(log, tests, "--exit-on-red", "--format", "jsonl", "--run", "pii", ends=1) as process:
        change(log, "add", "pii.card")
        turn = json.loads(line(process))
        assert (turn["event"], turn["test"]) == ("RED", "pii")


def test_it_ends_at_once_if_a_test_is_red(log: Path, tests: Path) -> None:
    change(log, "add", "pii.card")
    result = aclog("test", tests, "--follow", "--log", log, "--exit-on-red")
    assert result.code == 1
    assert ": 1 green, 1 red;" in result.out
    assert "RED " in result.out


def test_while_a_cluster_does_not_answer_nothing_is_green(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    silent = SilentSource(LogSource(log, print))
    chosen = ChosenSource(silent, None)  # type: ignore[arg-type]
    options = GuardOptions(
        settings=Settings(), jsonl=False, http=None, give_up_after=60.0, webhook=None, exit_on_red=False
    )
    subject, resource = CaseSubject(principal="User:bob"), parse_resource("topic:pii.*")
    place = FileOrigin(file="guard.yaml", line=1)
    case = Cannot(test="pii", origin=place, subject=subject, operations=EVERY_OPERATION, resource=resource)
    status = FollowerStatus()
    verdicts = Verdicts(cases=[case], settings=Settings())
    guard = Guard(choice=chosen, options=options, verdicts=verdicts, status=status, hook=None)

    def counts() -> list[float | None]:
        return [status.registry.get_sample_value(f"aclog_rule_tests_{each}") for each in ("green", "red", "unknown")]

    guard.begin(chosen.image())
    assert counts() == [1, 0, 0]
    silent.seconds = 30.0
    guard.idle()
    assert counts() == [0, 0, 1]
    assert status.trouble == "connection refused"
    assert "connection refused" in capsys.readouterr().err
    silent.seconds = 0.0
    guard.idle()
    assert counts() == [1, 0, 0]
    silent.seconds = 61.0
    with pytest.raises(LogError, match="gave up"):
        guard.idle()


@define
class SilentSource:
    """A log whose cluster has not answered for some seconds."""

    source: LogSource
    seconds: float = 0.0
    name: str = "c1:9093"

    def image(self) -> Image:
        return self.source.image()

    def freshness(self) -> Freshness:
        problem = "connection refused" if self.seconds else None
        return Freshness(seconds=self.seconds, time=0, server="c1:9093", followed=True, problem=problem)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--coverage",), "--coverage: not together with --follow"),
        (("--mutate",), "--mutate: not together with --follow"),
        (("--webhook", "ftp://u:secret@h/"), "--webhook: expected a URL"),
        (("--give-up-after", "-1"), "--give-up-after -1: expected seconds"),
    ],
)
def test_flags_that_do_not_go_together(log: Path, tests: Path, flags: tuple[str, ...], complaint: str) -> None:
    result = aclog("test", tests, "--follow", "--log", log, *flags)
    assert result.code == 2
    assert complaint in result.complaint
    assert "secret" not in result.err


def test_a_single_state_and_an_unreadable_comparison_are_trouble(log: Path, tests: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.jsonl"
    result = aclog("test", tests, "--follow", "--acls", rules)
    assert result.code == 2
    assert "a single state has no changes" in result.complaint
    tests.write_text("tests:\n- no_new_access: {than: {log: none}}\n")
    result = aclog("test", tests, "--follow", "--log", log)
    assert result.code == 2
    assert "none" in result.complaint
