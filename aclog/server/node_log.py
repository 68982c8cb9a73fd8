"""Logging of a node to stderr: one line per event, as text or JSON; the audit log in Kafka's format."""

import logging
import logging.config
import os
import sys
from collections.abc import Mapping, MutableMapping
from io import StringIO
from typing import Any, TextIO

import structlog
from attrs import define, field
from structlog.stdlib import ProcessorFormatter
from structlog.typing import ExcInfo, Processor

from aclog.authorizer.audit import AUDIT_LOGGER, TRACE
from aclog.metalog.errors import printable
from aclog.metalog.machine import clock

_KAFKA_LINE = "[%(asctime)s,%(msecs)03d] %(levelname)s %(message)s (%(name)s)"
"""Kafka's own layout of log lines ([%d] %p %m (%c))."""

_LINES_PER_SECOND = 20


def configure_logging(
    *, node_id: int, json: bool = False, level: str = "INFO", audit_level: str = "INFO", stream: TextIO | None = None
) -> None:
    """Configure Python's logging for this process, replacing existing handlers.

    `level` and `audit_level` are TRACE, DEBUG, INFO, WARNING or ERROR. With `json` each line is an object with
    timestamp (UTC), level, logger, event, node_id and the event's extra fields; an audit line also has `audit`, an
    event of aclog/authorizer/audit_event.avsc. Beyond 20 lines per second from one template, lines are dropped and
    counted, except errors and audit lines.

    Raises:
        ValueError: An unknown level.

    """
    logging.addLevelName(TRACE, "TRACE")
    out = stream or sys.stderr
    handler, audit = logging.StreamHandler(out), logging.StreamHandler(out)
    colors = out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    handler.setFormatter(_formatter(node_id, json=json, colors=colors))
    handler.addFilter(_RateLimit())
    audit.setFormatter(_formatter(node_id, json=True, colors=False) if json else _AuditFormatter())
    root, audit_logger = logging.getLogger(), logging.getLogger(AUDIT_LOGGER)
    # The audit logger does not propagate, so each line is written once and its level is independent of the root's.
    for logger, own, least in ((root, handler, level), (audit_logger, audit, audit_level)):
        for old in tuple(logger.handlers):
            logger.removeHandler(old)
        logger.addHandler(own)
        logger.setLevel(least)
    audit_logger.propagate = False
    logging.captureWarnings(capture=True)


def _formatter(node_id: int, *, json: bool, colors: bool) -> ProcessorFormatter:
    def bind(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        return {"node_id": node_id, **event}

    before: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.ExtraAdder(),
        bind,
        _audit_as_data,
    ]
    last: Processor = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=_traceback)
    )
    render: list[Processor] = [ProcessorFormatter.remove_processors_meta]
    if json:
        render.append(structlog.processors.format_exc_info)
    else:
        render.append(_one_line)
    return ProcessorFormatter(foreign_pre_chain=before, processors=[*render, last])


def _audit_as_data(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    audit_event = event.pop("audit_event", None)
    return event if audit_event is None else {**event, "audit": audit_event.to_dict()}


def _one_line(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    # Clients choose names, and must not be able to forge log lines.
    return {key: printable(value) if isinstance(value, str) else value for key, value in event.items()}


def _traceback(out: TextIO, exc_info: ExcInfo) -> None:
    """Write a traceback, indented: the text of an error may also hold names and line ends."""
    text = StringIO()
    # not rich's: its tracebacks include local variables, hence secrets
    structlog.dev.plain_traceback(text, exc_info)
    out.write("\n".join(f"  {printable(line)}" for line in text.getvalue().split("\n")))


class _AuditFormatter(logging.Formatter):
    """The line format of Kafka's log4j layout, with unprintable characters escaped."""

    def __init__(self) -> None:
        super().__init__(_KAFKA_LINE, "%Y-%m-%d %H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        return printable(super().format(record))


@define(eq=False)
class _RateLimit(logging.Filter):
    """Limits records per template and second; the first record of the next second carries the number dropped."""

    _counts: dict[object, int] = field(factory=dict, init=False)
    _second: int = field(default=0, init=False)
    _left_out: int = field(default=0, init=False)

    def filter(self, record: logging.LogRecord) -> bool:
        """See logging.Filter."""
        second = int(clock.monotonic())
        if second != self._second:
            if self._left_out:
                record.left_out = self._left_out
            self._second, self._counts, self._left_out = second, {}, 0
        count = self._counts[record.msg] = self._counts.get(record.msg, 0) + 1
        # Clients can trigger log lines at will (failed logins, malformed requests); they must not fill the disk.
        if count > _LINES_PER_SECOND and record.levelno < logging.ERROR:
            self._left_out += 1
            return False
        return True
