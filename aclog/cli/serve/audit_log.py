"""Audit lines into Python's logging: the logger `kafka.authorizer.logger`, with Kafka's levels."""

import logging
import time
from collections.abc import Callable

from attrs import field, frozen

from aclog.authorizer.audit import AUDIT_LOGGER, TRACE, audit_event, audit_level, audit_line
from aclog.authorizer.decision import Decision
from aclog.authorizer.interface import Action, RequestContext


@frozen(kw_only=True)
class AuditLog:
    """An audit hook (StandardAuthorizer.set_audit): writes Kafka's line, and hands the event to structured handlers.

    The event is the log record's attribute `audit_event`. Nothing is made of a decision whose level is off.
    """

    clock: Callable[[], float] = time.time
    """Seconds since 1970."""
    _logger: logging.Logger = field(factory=lambda: logging.getLogger(AUDIT_LOGGER), init=False)

    def __attrs_post_init__(self) -> None:
        logging.addLevelName(TRACE, "TRACE")

    def __call__(self, context: RequestContext, action: Action, decision: Decision) -> None:
        """Log one decision. Raises InvalidRequestError for a request type that Kafka does not know."""
        level = audit_level(action, decision.result)
        if self._logger.isEnabledFor(level):
            event = audit_event(context, action, decision, timestamp=int(self.clock() * 1000))
            # As an argument: a % in a name must not be taken for a placeholder.
            self._logger.log(level, "%s", audit_line(context, action, decision), extra={"audit_event": event})
