"""The proof of what `aclog unused` says can go: the accesses of the window, decided again without it."""

from collections.abc import Mapping

import numpy as np

from aclog.authorizer.settings import Settings
from aclog.cli.access_log import AccessLog, Judging
from aclog.cli.flags.common import AccessesFlags
from aclog.cli.unused_wording import unread_text
from aclog.metalog.errors import ConfigError
from aclog.sources.choice import ChosenSource
from aclog.terminal.output import note
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.index.usage_index import KAFKA, REGISTERED
from aclog.usage.judging import CountedLog
from aclog.usage.simulation import replay
from aclog.usage.undecided import undecided
from aclog.usage.unused_report import UnusedReport
from aclog.usage.window import DAY, UnreadAccesses, Window, of_micros


def prove(report: UnusedReport, choice: ChosenSource, flags: AccessesFlags) -> None:
    """Replay what can go over a log, and say how many accesses were decided the same. Raises as `proved`."""
    note(proved(report, Judging.of(choice, decided_by(report)), flags))


def proved(report: UnusedReport, judging: Judging, flags: AccessesFlags) -> str:
    """Replay what can go over a log; return how many accesses were decided the same, as a sentence.

    Raises:
        ConfigError: an access would be decided otherwise, or may be that cannot be read or decided; or the log cannot
            be read.
        MetadataError, OSError: the source is damaged.

    """
    result = report.unused
    end = (result.window.last_day + 1) * DAY - 1
    window = Window(start=of_micros(result.window.start), until=of_micros(end))
    counted = AccessLog.of(flags).count(judging.how(window))
    removed = [tuple(rule.to_dict().values()) for _, rule in result.rules.in_text_order(result.removable)]
    outcome = replay(counted.accesses, judging.rules, removed, judging.settings, own_time=judging.own_time)
    if len(outcome.flipped):
        first = outcome.flipped.select(REQUEST_COLUMNS).slice(0, 1).to_pylist()[0]
        raise ConfigError(
            f"--accesses: {len(outcome.flipped):,} accesses would be decided otherwise without what can go, such as "
            f"{' '.join(map(str, first.values()))}: is the index made of this log, and up to date?"
        )
    others = _unread(report, judging, counted, window)
    return (
        f"--accesses: {outcome.decided:,} accesses of the window decided again without what can go: "
        f"all the same{others}"
    )


def _unread(report: UnusedReport, judging: Judging, counted: CountedLog, window: Window) -> str:
    """Return what is not in the proof, as the rest of a sentence."""
    codes = BulkAuthorizer.of(judging.rules.intervals, judging.settings).decide(
        [counted.accesses.column(name) for name in REQUEST_COLUMNS]
    )
    parts = (counted.unread, undecided(counted.accesses, codes))
    unread = judging.in_window(window).unread(UnreadAccesses.sum_of(parts))
    if not unread:
        return ""
    result = report.unused
    numbers = np.flatnonzero(result.removable)
    who, denies = result.rules.principals(numbers), result.rules.denies[numbers]
    if unread.concerned(who, denies, by_presence=judging.settings.allow_everyone).any():
        raise ConfigError(
            f"--accesses: {unread_text(unread)}: they may need what can go by the index, which does not know them: is "
            "it made of this log, and up to date?"
        )
    return f"; {unread_text(unread)}, and may need none of it"


def decided_by(report: UnusedReport) -> Settings:
    """Return what decided besides the rules when the index was made, the last time."""
    runs = report.index.runs()
    settings: Mapping[str, object] = runs[-1].settings if runs else {}
    supers = settings.get("super_users", ())
    return Settings(
        super_users=frozenset(map(str, supers)) if isinstance(supers, list) else frozenset(),
        allow_everyone=bool(settings.get("allow_everyone")),
        documented=bool(settings.get("documented")),
        cidr=bool(settings.get("cidr")),
        is_kafka_stated=settings.get(KAFKA) != REGISTERED,
    )
