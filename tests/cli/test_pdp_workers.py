"""`aclog pdp --workers`: several processes answer as one, and none is left over."""

import json
import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aclog.console.shared import LineFile
from tests.cli.test_pdp import QUESTION, RULE, Served, add, at
from tests.support.cli.command import aclog
from tests.support.kafka.server import free_port
from tests.support.processes.waiting import SECONDS, wait_until
from tests.support.web.served import post_bytes

ONE, MANY, OPA = "/access/v1/evaluation", "/access/v1/evaluations", "/v1/data/kafka/authz"


@pytest.fixture
def log(tmp_path):
    (tmp_path / "none").write_text("")
    aclog("import", tmp_path / "none", "--log", tmp_path / "log").ok()
    return tmp_path / "log"


class ServedByWorkers(Served):
    """A decision point of two workers, with an address for health checks."""

    def __init__(self, *flags: object):
        self.health = free_port()
        super().__init__(*flags, "--workers", 2, "--health-listen", f"127.0.0.1:{self.health}")

    def __enter__(self):
        wait_until(self.is_ready)
        return self

    def __exit__(self, *error):
        children = self.children() if self.process.returncode is None else []
        super().__exit__(*error)
        assert all(map(is_gone, children)), "no process is left over"

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()
        try:
            return at(self.health, "/readyz") == (200, "ok\n")
        except OSError:
            return False

    def children(self) -> list[int]:
        return sorted(map(int, Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()))

    def workers(self) -> list[int]:
        """Those of the children that listen: the first two that were started."""
        return [pid for pid in self.children() if self.port in listening(pid)]

    def total(self, name: str, **labels: str) -> float:
        families = text_string_to_metric_families(at(self.health, "/metrics")[1])
        samples = (each for family in families for each in family.samples)
        return sum(each.value for each in samples if each.name == name and labels.items() <= each.labels.items())


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def listening(pid: int) -> set[int]:
    """The ports that a process listens at."""
    inodes = set()
    with suppress(FileNotFoundError):  # it has ended, or has closed one
        for each in Path(f"/proc/{pid}/fd").iterdir():
            inodes.add(str(each.readlink()).removeprefix("socket:[").removesuffix("]"))
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(line[1].partition(":")[2], 16) for line in lines if line[3] == "0A" and line[9] in inodes}


def offset_of(served: Served) -> int | None:
    """The offset of an answer on a connection of its own; None without an answer."""
    status, body = served.ask(ONE, QUESTION)
    return json.loads(body)["context"]["offset"] if status == 200 else None


@pytest.mark.slow(4)
@pytest.mark.tier("test")
def test_workers_answer_as_one_process_does(log):
    add(log)
    batch = {**QUESTION, "evaluations": [{}, {"action": {"name": "WRITE"}}, {"resource": 5}]}
    asked = [
        (ONE, QUESTION), (MANY, batch), (f"{OPA}/allow", {"input": QUESTION}), (ONE, {}), ("/none", None),
        (ONE, {**QUESTION, "context": {"as_of": 0}}),
        ("/access/v1/search/subject", {**QUESTION, "subject": {"type": "User"}}),
    ]  # fmt: skip
    with Served("--log", log) as served:
        wait_until(lambda: served.ask("/readyz")[0] == 200)
        expected = [without_id(served.ask(*each)) for each in asked]
    with ServedByWorkers("--log", log) as served:
        for each, answer in zip(asked, expected, strict=True):
            assert {without_id(served.ask(*each)) for _ in range(4)} == {answer}
        wait_until(lambda: served.total("aclog_pdp_requests_total") >= 4 * (len(asked) - 1))


def is_back(served: ServedByWorkers, before: list[int]) -> bool:
    """Whether there is another worker instead of one of those before, and all are ready."""
    now = served.workers()
    return len(now) == len(before) and set(now) != set(before) and served.is_ready()


def without_id(answer: tuple[int, bytes]) -> tuple[int, str]:
    status, body = answer
    with suppress(ValueError, TypeError):
        value = json.loads(body)
        value.pop("decision_id", None)
        body = json.dumps(value)
    return status, str(body)


@pytest.mark.slow(8)
@pytest.mark.tier("test")
def test_a_worker_that_is_killed_loses_its_requests_only_and_no_answer_is_older_than_one_before(log, tmp_path):
    add(log)
    with ServedByWorkers("--log", log, "--audit", tmp_path / "audit") as served:
        newest, lost, kills = 0, 0, 0
        guard, ended = threading.Lock(), threading.Event()

        def ask() -> None:
            nonlocal newest, lost
            while not ended.is_set():
                before = newest
                offset = offset_of(served)
                with guard:
                    lost += offset is None
                    if offset is not None:
                        assert offset >= before
                        newest = max(newest, offset)

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask) for _ in range(4)]
            try:
                for number in range(3):
                    topic = f"t{number}"
                    aclog(
                        "acls", "add", "--log", log, "--allow-principal", "User:a", "--topic", topic,
                        "--operation", "READ",
                    ).ok()  # fmt: skip
                    earlier = newest
                    offset = offset_of(served)
                    assert offset is None or offset >= earlier
                    before = served.workers()
                    os.kill(before[number % 2], signal.SIGKILL)
                    kills += 1
                    wait_until(lambda before=before: is_back(served, before))
            finally:
                ended.set()
            for each in asking:
                each.result()
        assert newest >= 5
        assert lost <= 4 * kills, "at most the request of each client on the killed worker"
        wait_until(lambda: len(served.workers()) == 2)
    assert all(json.loads(line)["answer"]["decision"] for line in (tmp_path / "audit").read_text().splitlines())
    assert served.said[1].count("has ended (signal 9): it is started again") == kills


@pytest.mark.slow(4)
@pytest.mark.tier("test")
def test_sums_outlive_a_worker_and_readiness_is_that_of_all(log):
    add(log)
    with ServedByWorkers("--log", log) as served:
        for _ in range(40):
            assert served.decision() is True
        wait_until(lambda: served.total("aclog_pdp_decisions_total", decision="true") == 40)
        os.kill(served.workers()[0], signal.SIGKILL)
        log.rename(log.with_name("away"))
        wait_until(lambda: at(served.health, "/readyz")[0] == 503)
        assert at(served.health, "/healthz")[0] == 200
        wait_until(lambda: at(served.health, "/readyz") == (503, "worker 1 is not running\n"))
        assert served.process.poll() is None, "a log that is away ends nothing"
        log.with_name("away").rename(log)
        wait_until(served.is_ready)
        assert served.total("aclog_pdp_decisions_total", decision="true") == 40
        assert served.decision() is True
        counted = b'aclog_pdp_decisions_total{decision="true"} 41.0'
        wait_until(lambda: counted in served.ask("/metrics")[1])


@pytest.mark.slow(3)
@pytest.mark.tier("test")
def test_no_worker_is_left_over_when_the_process_that_started_it_is_killed(log):
    with ServedByWorkers("--log", log) as served:
        children = served.children()
        assert len(children) == 3
        half = post_bytes(ONE, QUESTION)[:-1]
        with socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS) as connection:
            connection.sendall(half)
            served.process.kill()
            served.process.wait(SECONDS)
            wait_until(lambda: all(map(is_gone, children)))
        served.process.communicate()


@pytest.mark.slow(3)
@pytest.mark.tier("test")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_all_processes_ends_them_in_order(log, number):
    add(log)
    with ServedByWorkers("--log", log) as served:
        children = served.children()
        for each in (*children, served.process.pid):
            os.kill(each, number)
        assert served.process.wait(SECONDS) == 0
        wait_until(lambda: all(map(is_gone, children)))
        assert "Traceback" not in served.process.communicate()[1]
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS)


@pytest.mark.slow(4)
@pytest.mark.tier("test")
def test_files_are_read_again_by_every_worker_and_by_one_that_is_started_later(tmp_path):
    rules, mapping, audit = tmp_path / "rules.jsonl", tmp_path / "mapping.yaml", tmp_path / "audit"
    rules.write_text("")
    mapping.write_text("{}")
    with ServedByWorkers("--acls", rules, "--mapping", mapping, "--audit", audit) as served:
        decisions = lambda: {served.decision() for _ in range(8)}  # noqa: E731
        assert decisions() == {False}
        rules.write_text(RULE)
        os.kill(served.workers()[0], signal.SIGTERM)
        wait_until(lambda: "is started again" in served.process.stderr.readline())
        wait_until(served.is_ready)
        assert decisions() == {False}, "a worker has the rules of all until SIGHUP"
        audit.rename(tmp_path / "audit.1")
        served.process.send_signal(signal.SIGHUP)
        assert "were read again" in served.process.stderr.readline()
        wait_until(lambda: decisions() == {True})
        wait_until(lambda: served.decision() is True and audit.exists())
        for path in (mapping, rules):
            kept = path.read_text()
            path.write_text("{")
            served.process.send_signal(signal.SIGHUP)
            assert "not read again" in served.process.stderr.readline()
            os.kill(served.workers()[0], signal.SIGKILL)
            wait_until(lambda: "is started again" in served.process.stderr.readline())
            wait_until(served.is_ready)
            assert decisions() == {True}, "what cannot be read again stays, also in a worker that is started later"
            path.write_text(kept)


@pytest.mark.slow(4)
@pytest.mark.tier("test")
def test_lines_of_several_workers_stay_whole(log, tmp_path):
    audit = tmp_path / "audit"
    long = {**QUESTION, "resource": {"type": "topic", "id": "t" * 9_000}}
    with ServedByWorkers("--log", log, "--audit", audit) as served:
        with ThreadPoolExecutor(8) as pool:
            assert {each[0] for each in pool.map(lambda _: served.ask(ONE, long), range(200))} == {200}
        lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert len(lines) == 200
    assert {line["asked"]["resource"]["id"] for line in lines} == {"t" * 9_000}


def test_a_line_that_another_process_has_torn_ends_before_the_next(tmp_path, monkeypatch):
    one, other = (LineFile(tmp_path / "f", is_shared=True) for _ in range(2))
    one.append("one")
    write = os.write
    monkeypatch.setattr(os, "write", lambda number, data: write(number, data[:2]))
    with pytest.raises(OSError, match="not written whole"):
        one.append("two")
    monkeypatch.setattr(os, "write", write)
    other.append("three")
    one.append("four")
    (tmp_path / "f").rename(tmp_path / "g")
    one.reopen()
    one.append("five")
    assert (tmp_path / "g").read_text().split() == ["one", "tw", "three", "four"]
    assert (tmp_path / "f").read_text() == "five\n"
    one.close()
    other.close()


def test_lines_go_to_a_pipe_as_well(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    file = LineFile(path, is_shared=True)
    file.append("one")
    assert os.read(read, 100) == b"one\n"
    file.close()
    os.close(read)


@pytest.mark.parametrize("count", [0, -1, 65])
def test_too_few_or_too_many_workers_are_refused(log, count):
    result = aclog("pdp", "--log", log, "--workers", count)
    assert result.code == 2
    assert f"--workers {count}: expected 1 to 64" in result.complaint


def test_a_system_that_does_not_spread_connections_is_refused(log, monkeypatch):
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    result = aclog("pdp", "--log", log, "--workers", 2)
    assert result.code == 2
    assert "--workers 2: this system does not spread connections over processes" in result.complaint


def test_a_source_without_offsets_is_refused():
    result = aclog("pdp", "--bootstrap-server", f"127.0.0.1:{free_port()}", "--workers", 2)
    assert result.code == 2
    assert "is polled, and its states have no offsets" in result.complaint


@pytest.mark.slow(2)
def test_what_a_worker_refuses_is_said_once_and_ends_all(log, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for flags, said in (
            (("--audit", tmp_path / "nowhere" / "audit"), "no such file or directory"),
            (("--health-listen", address), f"--health-listen: cannot listen on {address}: "),
        ):
            served = Served("--log", log, "--workers", 2, *flags)
            out, complaints = served.process.communicate(timeout=SECONDS)
            assert served.process.returncode == 2
            assert complaints.count(said) == 1
            assert out == ""


def test_an_address_in_use_is_refused_also_by_another_decision_point(log):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = aclog("pdp", "--log", log, "--workers", 2, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.code == 2
    assert "Address already in use" in result.complaint
