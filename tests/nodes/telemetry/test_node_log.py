"""Logging: text and JSON, audit lines in Kafka's format, no forged lines, no floods."""

import io
import json
import logging
import re

import pytest

from aclog.server import node_log as logs
from aclog.server.node_log import configure_logging


@pytest.fixture(autouse=True)
def restored():
    loggers = [logging.getLogger()]
    before = [(logger, logger.level, logger.handlers[:], logger.propagate) for logger in loggers]
    yield
    logging.captureWarnings(capture=False)
    for logger, level, handlers, propagate in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers
        logger.propagate = propagate


def configured(**settings):
    out = io.StringIO()
    configure_logging(node_id=7, stream=out, **settings)
    return out


def test_a_line_for_people():
    out = configured()
    logging.getLogger("aclog.server.network").info("listening on %s", "localhost:9092", extra={"listener": "CLIENT"})
    (line,) = out.getvalue().splitlines()
    assert re.match(r"\d{4}-\d\d-\d\dT\S+Z ", line), line
    for part in ("info", "listening on localhost:9092", "[aclog.server.network]", "listener=CLIENT", "node_id=7"):
        assert part in line


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environment", "colored"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_gets_colors_unless_it_has_none_or_is_told_not_to(environment, colored, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = Terminal()
    configure_logging(node_id=7, stream=out)
    logging.getLogger("aclog.server.network").info("listening")
    assert ("\x1b[" in out.getvalue()) is colored


def test_a_line_for_machines():
    out = configured(json=True)
    logging.getLogger("aclog.server.network").warning("slow: %d ms", 70, extra={"listener": "CLIENT"})
    row = json.loads(out.getvalue())
    assert row.pop("timestamp").endswith("Z")
    assert row == {
        "event": "slow: 70 ms",
        "level": "warning",
        "logger": "aclog.server.network",
        "listener": "CLIENT",
        "node_id": 7,
    }


@pytest.mark.parametrize("as_json", [False, True])
def test_an_error_brings_its_traceback(as_json):
    out = configured(json=as_json)
    try:
        int("what failed")
    except ValueError:
        logging.getLogger("aclog.server").exception("a handler failed")
    assert "what failed" in out.getvalue()
    assert "Traceback" in out.getvalue()


def test_levels():
    out = configured(level="WARNING")
    logging.getLogger("aclog.server").info("quiet")
    logging.getLogger("aclog.server").warning("loud")
    assert "quiet" not in out.getvalue()
    assert "loud" in out.getvalue()
    with pytest.raises(ValueError, match="Unknown level"):
        configure_logging(node_id=1, level="LOUD")


def test_configuring_twice_logs_once():
    configured()
    out = configured()
    logging.getLogger("aclog.server").info("once")
    assert len(out.getvalue().splitlines()) == 1


def test_log_lines_cannot_be_forged():
    out = configured()
    logging.getLogger("aclog.server").info("hello %s", "a\nb\x1b[31m", extra={"client": "c\nd"})
    assert len(out.getvalue().splitlines()) == 1
    assert "\x1b[31m" not in out.getvalue()


def test_the_text_of_an_error_forges_no_line_either():
    out = configured()
    try:
        exec("raise ValueError(text)", {"text": "a\n2026-11-22 [info] forged \x1b[31m \x9b \u202e"})
    except ValueError:
        logging.getLogger("aclog.server").exception("it broke")
    first, *rest = out.getvalue().splitlines()
    assert "it broke" in first
    assert rest
    assert all(line.startswith("  ") and line.isprintable() for line in rest)


def test_a_flood_is_thinned_and_counted(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(logs.clock, "monotonic", lambda: now[0])
    out = configured()
    logger = logging.getLogger("aclog.server.network")
    for host in range(500):
        logger.info("connection closed: %s", host)
    logger.info("something else")
    logger.error("connection closed: %s", "an error")
    assert len(out.getvalue().splitlines()) == 22
    now[0] += 1
    logger.info("connection closed: %s", "again")
    assert "left_out=480" in out.getvalue().splitlines()[-1]
