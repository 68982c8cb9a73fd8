"""Logging of a node to stderr: one line per event, as text or JSON. The audit log is in `audit_log`."""

import logging
import logging.config
import os
import sys
from collections.abc import Mapping, MutableMapping
from io import StringIO
from typing import Any, TextIO

import structlog
from attrs import field
from structlog.stdlib import ProcessorFormatter
from structlog.typing import ExcInfo, Processor

from aclog.authorizer.audit import TRACE
from aclog.metalog.errors import printable
from aclog.metalog.machine import clock
from aclog.metalog.values import define

_LINES_PER_SECOND = 20


def configure_logging(*, node_id: int, json: bool = False, level: str = "INFO", stream: TextIO | None = None) -> None:
    """Configure Python's logging for this process, replacing existing handlers.

    `level` is TRACE, DEBUG, INFO, WARNING or ERROR. With `json` each line is an object with timestamp (UTC), level,
    logger, event, node_id and the event's extra fields. Beyond 20 lines per second from one template, lines are
    dropped and counted, except errors.

    Raises:
        ValueError: An unknown level.

    """
    logging.addLevelName(TRACE, "TRACE")
    out = stream or sys.stderr
    handler = logging.StreamHandler(out)
    colors = out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    handler.setFormatter(_formatter(node_id, json=json, colors=colors))
    handler.addFilter(_RateLimit())
    root = logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
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


def _one_line(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    # Clients choose names, and must not be able to forge log lines.
    return {key: printable(value) if isinstance(value, str) else value for key, value in event.items()}


def _traceback(out: TextIO, exc_info: ExcInfo) -> None:
    """Write a traceback, indented: the text of an error may also hold names and line ends."""
    text = StringIO()
    # not rich's: its tracebacks include local variables, hence secrets
    structlog.dev.plain_traceback(text, exc_info)
    out.write("\n".join(f"  {printable(line)}" for line in text.getvalue().split("\n")))


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
