"""A moment from a text: parsed with the clock and the time zone of the terminal, with a note on its meaning."""

import sys
from datetime import UTC, datetime

from aclog.metalog.errors import ConfigError
from aclog.metalog.primitives import current_time_ms
from aclog.snapshots.moments import Moment
from aclog.terminal.output import chosen_zone, note


def take_moment(text: str, *, of_state: bool = False) -> Moment | None:
    """Return the moment of a text; None for the newest state. Print a note with its meaning on stderr.

    No note for an offset or an instant, since they are unambiguous. For a date without a zone, which is in UTC in
    scripts, the note is printed on a terminal only, or if a zone is chosen. `of_state`: a state is read as of then.

    Raises:
        ConfigError: the text names no moment, or could name two; or that of a state is in the future.

    """
    from aclog.snapshots.moments import LATEST, Form, LocalZone, in_words, moment_text, read_moment

    now, zone = datetime.fromtimestamp(current_time_ms() / 1000, UTC), chosen_zone()
    read = read_moment(text, now=now, zone=zone or UTC)
    is_future = isinstance(read.moment, datetime) and read.moment > now
    if is_future and of_state:
        here = moment_text(now.replace(microsecond=0))
        raise ConfigError(f"{text!r} is in the future: it is {here}: expected a past time, or {LATEST!r}")
    is_open = read.form is Form.CLOCK and zone is not None
    if read.form is Form.SPOKEN or is_open or (sys.stderr.isatty() and (read.form is Form.CLOCK or is_future)):
        note(f"{text} is {in_words(read, zone or LocalZone(), now=now)}")
    return read.moment
