"""Audit lines in Python's logging: the logger `kafka.authorizer.logger`, with Kafka's levels."""

import logging
import time
from collections.abc import Callable

from attrs import field, frozen

from aclog.authorizer.audit import AUDIT_LOGGER, DEBUG, INFO, TRACE, audit_event, audit_level, audit_line
from aclog.authorizer.audit_hook import ALLOWED_LOGGED, DENIED_LOGGED, EVERY_OUTCOME
from aclog.authorizer.decision import Decision
from aclog.authorizer.interface import Action, RequestContext

_NOWHERE = "(audit log)"
"""The file of the log record."""


@frozen(kw_only=True)
class AuditLog:
    """An audit hook (StandardAuthorizer.set_audit) that logs Kafka's audit line.

    Structured handlers find the event in the log record's attribute `audit_event`. Decisions whose level is disabled
    are not wanted, and their ACLs not looked for.
    """

    clock: Callable[[], float] = time.time
    """Seconds since 1970."""
    _logger: logging.Logger = field(factory=lambda: logging.getLogger(AUDIT_LOGGER), init=False)

    def __attrs_post_init__(self) -> None:
        logging.addLevelName(TRACE, "TRACE")

    @property
    def wanted(self) -> int:
        """The outcomes whose level is enabled at this moment, or some more (SelectiveHook)."""
        # Asked at each decision, since any code may change the level, or that of a parent if it has none of its own.
        # logging.disable() is left to the hook's call: to ask for it here would take as long again.
        logger = self._logger
        level = logger.level or logger.getEffectiveLevel()
        if level > INFO:
            return 0
        if level > DEBUG:
            return DENIED_LOGGED
        return EVERY_OUTCOME if level <= TRACE else DENIED_LOGGED | ALLOWED_LOGGED

    def __call__(self, context: RequestContext, action: Action, decision: Decision) -> None:
        """Log one decision. Raises InvalidRequestError: a request type unknown to Kafka."""
        level, logger = audit_level(action, decision.result), self._logger
        if logger.isEnabledFor(level):
            event = {"audit_event": audit_event(context, action, decision, timestamp=int(self.clock() * 1000))}
            # Not Logger.log, which looks for the line of code that logs: that takes as long as to write it, and says
            # nothing. The audit line is an argument: a % in a name must not be taken for a placeholder.
            line = (audit_line(context, action, decision),)
            logger.handle(logger.makeRecord(logger.name, level, _NOWHERE, 0, "%s", line, None, extra=event))
