"""A moment that a person gave as text: read with the clock and the zone of the terminal, and said what it is."""

import sys
from datetime import UTC, datetime

from aclog.metalog.clock import current_time_ms
from aclog.snapshots.moments import Moment
from aclog.terminal.output import chosen_zone, note


def take_moment(text: str) -> Moment | None:
    """Return the moment that a text names; None for the newest state. Say on stderr what it was taken for.

    Nothing is said of an offset or an instant, since they are what they say. Of a date without a zone, which scripts
    have always given in UTC, it is said on a terminal only, or if a zone is chosen.

    Raises:
        ConfigError: the text names no moment, or could name two.

    """
    from aclog.snapshots.moments import Form, LocalZone, in_words, read_moment

    now, zone = datetime.fromtimestamp(current_time_ms() / 1000, UTC), chosen_zone()
    read = read_moment(text, now=now, zone=zone or UTC)
    is_future = isinstance(read.moment, datetime) and read.moment > now
    is_open = read.form is Form.CLOCK and zone is not None
    if read.form is Form.SPOKEN or is_open or (sys.stderr.isatty() and (read.form is Form.CLOCK or is_future)):
        note(f"{text} is {in_words(read, zone or LocalZone(), now=now)}")
    return read.moment
