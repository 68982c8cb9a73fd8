"""The audit log of a node: every line, in order, in Kafka's layout or as JSON; at its own pace, and bounded."""

import io
import json
import logging
import threading
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.acls_image import DEFAULT_DENY, SUPER_USER
from aclog.authorizer.audit import ALLOWED_LOGGED, AUDIT_LOGGER, DENIED_LOGGED, EVERY_OUTCOME, audit_event, audit_line
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.interface import Action, InvalidRequestError, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from aclog.server.audit_log import MAX_QUEUED, AuditLog, JsonLines, KafkaLines

ALICE = RequestContext(principal="User:alice", host="10.0.0.1")
AT = 1_700_000_000.25


def action(name="orders", **other):
    pattern = ResourcePattern(resource_type=ResourceType.TOPIC, name=name)
    return Action(operation=AclOperation.READ, resource_pattern=pattern, **other)


def written(*actions, level="INFO", lines=None):
    """Return the lines of requests that are denied."""
    out, authorizer = io.StringIO(), StandardAuthorizer()
    with AuditLog(out, level, format=(lines or KafkaLines()).line, clock=lambda: AT) as log:
        authorizer.set_audit(log)
        authorizer.complete_initial_load()
        authorizer.authorize(ALICE, list(actions))
    return out.getvalue().splitlines()


def test_kafkas_layout():
    (line,) = written(action())
    local = datetime.fromtimestamp(AT).strftime("%Y-%m-%d %H:%M:%S")  # noqa: DTZ006 - as log4j's %d
    assert line == (
        f"[{local},250] INFO Principal = User:alice is Denied operation = READ from host = 10.0.0.1 on resource = "
        "Topic:LITERAL:orders for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny "
        "(kafka.authorizer.logger)"
    )


def test_the_time_of_each_line():
    lines = KafkaLines()
    times = [AT, AT + 0.5, AT + 0.999, AT + 1, AT]
    texts = [lines.line((at, ALICE, action(), DEFAULT_DENY))[1:24] for at in times]
    assert texts == [datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S,") + f"{at % 1:.3f}"[2:] for at in times]  # noqa: DTZ006


def test_json():
    (line,) = written(action(), lines=JsonLines(7))
    event = audit_event(ALICE, action(), DEFAULT_DENY, timestamp=1_700_000_000_250)
    assert json.loads(line) == {
        "node_id": 7,
        "event": audit_line(ALICE, action(), DEFAULT_DENY),
        "level": "info",
        "logger": AUDIT_LOGGER,
        "timestamp": "2023-11-14T22:13:20.250000Z",
        "audit": event.to_dict(),
    }
    assert datetime.fromisoformat(json.loads(line)["timestamp"]) == datetime.fromtimestamp(AT, UTC)


@pytest.mark.parametrize("lines", [KafkaLines(), JsonLines(7)])
def test_no_name_forges_a_line(lines):
    name = "orders\n[2026-01-01 00:00:00,000] INFO Principal = User:root is Allowed\x1b[31m\ud800"
    (line,) = written(action(name), lines=lines)
    assert line.isprintable()


@pytest.mark.parametrize(
    ("level", "wanted", "levels"),
    [
        ("TRACE", EVERY_OUTCOME, ["INFO", "DEBUG", "TRACE"]),
        ("DEBUG", DENIED_LOGGED | ALLOWED_LOGGED, ["INFO", "DEBUG"]),
        ("INFO", DENIED_LOGGED, ["INFO"]),
        ("WARNING", 0, []),
        ("ERROR", 0, []),
    ],
)
def test_levels(level, wanted, levels):
    out, authorizer = io.StringIO(), StandardAuthorizer(super_users=frozenset({"User:root"}))
    with AuditLog(out, level) as log:
        authorizer.set_audit(log)
        authorizer.complete_initial_load()
        authorizer.authorize(ALICE, [action()])
        authorizer.authorize(RequestContext(principal="User:root", host="10.0.0.1"), [action()])
        authorizer.authorize(ALICE, [action(log_if_denied=False)])
    assert log.wanted == wanted
    assert [line.split()[2] for line in out.getvalue().splitlines()] == levels


def test_a_request_unknown_to_kafka_fails_at_the_decision():
    out = io.StringIO()
    with AuditLog(out) as log, pytest.raises(InvalidRequestError, match="999"):
        log(RequestContext(principal="User:a", host="10.0.0.1", request_type=999), action(), DEFAULT_DENY)
    assert not out.getvalue()


class Gate(io.StringIO):
    """A stream whose writes wait until the gate opens."""

    def __init__(self):
        super().__init__()
        self.opened, self.waiting = threading.Event(), threading.Event()

    def write(self, text):
        self.waiting.set()
        self.opened.wait()
        return super().write(text)


def test_decisions_wait_for_a_slow_stream_and_none_is_dropped():
    out, count = Gate(), 3 * MAX_QUEUED
    made = []

    def decide():
        for number in range(count):
            log(ALICE, action(f"t{number}"), DEFAULT_DENY)
            made.append(number)

    with AuditLog(out) as log:
        deciding = threading.Thread(target=decide)
        deciding.start()
        out.waiting.wait()
        while len(log._queue) < MAX_QUEUED:  # as the writer waits: it fills up
            assert deciding.is_alive()
        assert len(made) <= MAX_QUEUED + 256  # those queued and those in the writer's hands
        assert len(log._queue) == MAX_QUEUED
        out.opened.set()
        deciding.join()
    assert [line.split("LITERAL:")[1].split()[0] for line in out.getvalue().splitlines()] == [
        f"t{number}" for number in range(count)
    ]


def test_lines_of_many_threads():
    out = io.StringIO()

    def decide(thread):
        for number in range(500):
            log(ALICE, action(f"{thread}-{number}"), DEFAULT_DENY)

    with AuditLog(out) as log:
        threads = [threading.Thread(target=decide, args=(each,)) for each in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    names = [line.split("LITERAL:")[1].split()[0] for line in out.getvalue().splitlines()]
    for thread in range(4):  # each thread's in its order
        assert [each for each in names if each.startswith(f"{thread}-")] == [f"{thread}-{n}" for n in range(500)]
    assert len(names) == 2000


class Full(io.StringIO):
    """A disk that is full until there is room."""

    is_full = True

    def write(self, text):
        if self.is_full:
            raise OSError(28, "No space left on device")
        return super().write(text)


def test_a_failed_write_is_counted_and_logged_and_decisions_go_on(caplog):
    out, registry, failed = Full(), CollectorRegistry(), threading.Event()

    class Seen(logging.Handler):
        def emit(self, _record):
            failed.set()

    seen = Seen()
    logging.getLogger("aclog.server.audit_log").addHandler(seen)
    try:
        with caplog.at_level(logging.ERROR), AuditLog(out, registry=registry) as log:
            log(ALICE, action("lost"), DEFAULT_DENY)
            failed.wait()
            while registry.get_sample_value("aclog_audit_write_failures_total") != 1:
                pass
            out.is_full = False
            log(ALICE, action("next"), SUPER_USER)
    finally:
        logging.getLogger("aclog.server.audit_log").removeHandler(seen)
    assert [each.getMessage() for each in caplog.records] == [
        "cannot write the audit log: [Errno 28] No space left on device",
        "the audit log is written again; lines that may be missing: 1",
    ]
    assert ["LITERAL:next" in line for line in out.getvalue().splitlines() if line] == [True]


class Torn(io.StringIO):
    """A disk that is full within a line of the first write, and a formatter's fault at the second one."""

    writes = 0

    def write(self, text):
        self.writes += 1
        if self.writes == 1:
            super().write(text[:50])
            raise OSError(28, "No space left on device")
        if self.writes == 2:
            raise RuntimeError("unforeseen")
        return super().write(text)


def test_a_torn_line_ends_before_the_next_one_and_no_error_ends_the_writer():
    out = Torn()
    with AuditLog(out) as log:
        for number in range(3):
            log(ALICE, action(f"t{number}"), DEFAULT_DENY)
            while out.writes == number:
                pass
    torn, whole = out.getvalue().splitlines()
    assert len(torn) == 50
    assert "LITERAL:t2" in whole
    assert whole.endswith("(kafka.authorizer.logger)")


def test_decisions_that_wait_end_with_the_log():
    out, passed = Gate(), threading.Event()

    def decide():
        for number in range(2 * MAX_QUEUED):
            log(ALICE, action(f"t{number}"), DEFAULT_DENY)
        passed.set()

    with AuditLog(out) as log:
        deciding = threading.Thread(target=decide)
        deciding.start()
        out.waiting.wait()
        while len(log._queue) < MAX_QUEUED:
            assert deciding.is_alive()
        closing = threading.Thread(target=out.opened.set)
        closing.start()
    deciding.join()
    closing.join()
    assert passed.is_set()


def test_an_error_in_the_with_writes_what_is_queued():
    out = io.StringIO()
    with pytest.raises(RuntimeError), AuditLog(out) as log:  # noqa: PT012 - what the `with` does is tested
        log(ALICE, action(), DEFAULT_DENY)
        raise RuntimeError
    assert len(out.getvalue().splitlines()) == 1
