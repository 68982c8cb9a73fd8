"""The time zone of the person at the terminal: how times without a zone are read, and how times are shown."""

import os
from contextvars import ContextVar
from datetime import UTC, tzinfo

from aclog.metalog.errors import ConfigError

VARIABLE = "ACLOG_TIMEZONE"

_CHOSEN: ContextVar[tzinfo | None] = ContextVar("aclog_timezone", default=None)
"""Of this invocation of a command, which runs in a context of its own (aclog.cli.invocation.run)."""


def use_zone(text: str) -> None:
    """Use a zone for the rest of this invocation: a name such as Europe/Berlin, an offset, UTC or `local`.

    Raises:
        ConfigError: no such zone.

    """
    _CHOSEN.set(_parsed("--timezone", text))


def chosen_zone() -> tzinfo | None:
    """Return the zone of --timezone, or of ACLOG_TIMEZONE; None if nobody chose one.

    Raises:
        ConfigError: ACLOG_TIMEZONE is no zone.

    """
    chosen = _CHOSEN.get()
    if chosen is None and (text := os.environ.get(VARIABLE)):
        chosen = _parsed(VARIABLE, text)
        _CHOSEN.set(chosen)
    return chosen


def shown_zone() -> tzinfo:
    """Return the chosen zone, or UTC. Raises as `chosen_zone`."""
    return chosen_zone() or UTC


def _parsed(where: str, text: str) -> tzinfo:
    from aclog.snapshots.zones import parse_zone

    try:
        return parse_zone(text)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
