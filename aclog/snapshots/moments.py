"""Moments as they are typed: an end offset, a time, or `latest`."""

from datetime import UTC, datetime

from aclog.metalog.errors import ConfigError
from aclog.snapshots.state_source import Moment

LATEST = "latest"


def parse_moment(text: str) -> Moment | None:
    """The moment that a text names; None for `latest`. A time without a zone is in UTC.

    Raises:
        ConfigError: it is neither an offset, nor an ISO 8601 time, nor `latest`.

    """
    if text == LATEST:
        return None
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    try:
        time = datetime.fromisoformat("" if text.isdigit() else text)
    except ValueError as e:
        raise ConfigError(
            f"{text!r} is no moment: expected an end offset, a time such as 2026-11-20T10:00:00Z, or {LATEST}"
        ) from e
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def moment_text(moment: Moment | None) -> str:
    """A moment as it would be typed."""
    if moment is None:
        return LATEST
    if isinstance(moment, int):
        return str(moment)
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
