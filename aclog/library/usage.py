"""Access logs: what `aclog accesses usage`, `unused`, `denied`, `suggest` and `simulate` print as JSON.

The functions take the extra `usage`.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from aclog.library.authorizer import AsOf, flag_of, moment_of, optional_text, path_of, value_text
from aclog.library.log import Rules, chosen_source
from aclog.library.reports import (
    AnyPath,
    Deciding,
    Report,
    check_arguments,
    noting,
    several_texts,
    stated_settings,
    two_states,
    whole_number,
)
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.ops.extras import need_usage_extra
from aclog.ops.policies import settings_of
from aclog.sources.acl_lines import NameFile, read_changes
from aclog.usage.window import MOST_DAYS

if TYPE_CHECKING:
    from aclog.ops.usage import AccessLog

# The functions import what they do when they are called: pyarrow is an extra, and slow to import.
# ruff: noqa: PLC0415


class Reading(TypedDict, total=False):
    """How an access log is read."""

    accesses_format: str | None
    """kafka-log, parquet, jsonl, events, events-jsonl, ocsf or cloudevents; by default recognised by content."""
    accesses_timezone: str | None
    """The time zone of timestamps that state none, by default UTC; brokers log their local time."""
    workers: int | None
    """Processes that read it; by default 1. With more, a program needs `if __name__ == "__main__":`."""


class ReadingDeciding(Deciding, Reading, total=False):
    """How an access log is read, and what decides."""


@frozen(kw_only=True)
class _ReadAccesses:
    """The paths of an access log, and how they are read, as aclog.ops.usage.ReadAccesses."""

    accesses: list[str]
    accesses_format: str | None
    accesses_timezone: str
    workers: int


Accesses = str | PathLike[str] | Iterable[str | PathLike[str]]
"""A file, a directory or a glob of an access log, in any form that `aclog accesses usage` reads; or several."""


def acl_usage(
    rules: Rules,
    accesses: Accesses,
    *,
    days: int | None = None,
    until: AsOf | None = None,
    **options: Unpack[ReadingDeciding],
) -> Report:
    """Return which ACLs were needed by the accesses of a log, and which can be removed (`aclog accesses usage`).

    An object for each ACL, whose `answer` is NEVER_MATCHED, NEVER_NEEDED, NEEDED or NOT_JUDGED; all that are
    `removable` can be removed together. It has always passed.

        >>> report = aclog.acl_usage("log", "/var/log/kafka", days=30, super_users="User:admin")
        >>> [each["principal"] for each in report if each["removable"]]

    Args:
        rules: what open_log or open_acls returned, or a path, as in `lint`. With a log, each access is decided by the
            ACLs of its own time.
        accesses: the access log.
        days: the length of the window; older accesses are ignored. Without it, 90, or fewer if all ACLs are younger:
            the longest window in which one can be judged.
        until: the end of the window, as an `as_of` that is a time; by default the latest access.
        options: `accesses_format`, `accesses_timezone` and `workers`; and the arguments of Image.authorizer.

    Raises:
        ConfigError: an argument that is not valid, or no access with a time; MetadataError: something cannot be read.

    """
    need_usage_extra()
    from aclog.ops.usage import evidence_notes, unjudged_text, use_of_acls, warn_of_unread
    from aclog.terminal.output import note

    # Not named `usage`: the attribute of that name is the package aclog.usage, once anything has imported it.
    with noting("accesses") as notes:
        settings = stated_settings("acl_usage", options, ReadingDeciding)
        log, choice, end = _access_log(accesses, options), chosen_source("rules", rules), _end(until)
        window = None if days is None else whole_number("days", days, 1, MOST_DAYS)
        use = use_of_acls(log, choice, settings_of(settings), window, end, settings.configs())
        objects = tuple(use.objects())
        warn_of_unread(use.report.unread, unjudged_text(use.report))
        for text in evidence_notes(use.report):
            note(text)
        use.warn()
    return Report(True, objects=objects, notes=tuple(notes))


def unused(
    rules: Rules,
    index: AnyPath,
    *,
    days: int = 90,
    until: AsOf | None = None,
    gap: timedelta = timedelta(days=1),
    ignore_brokers: str | Iterable[str] = (),
    accesses: Accesses | None = None,
    **reading: Unpack[Reading],
) -> Report:
    """Return the ACLs that no access needed, by an index of last use (`aclog accesses unused`).

    An object for each ACL, with its `answer`, its uses, and the `reason` if it is not judged. It has passed if none is
    unused.

        >>> report = aclog.unused("log", "usage", days=30, accesses="/var/log/kafka")
        >>> report.passed, [each["principal"] for each in report if each["removable"]]

    Args:
        rules: as in `acl_usage`.
        index: the directory that `aclog accesses index` keeps, or an address in S3 or Azure.
        days: the length of the window, in whole days (UTC).
        until: as in `acl_usage`.
        gap: how long a broker may log nothing; at least an hour.
        ignore_brokers: brokers, by id, that were removed or do not log; "none" means lines without a broker.
        accesses: an access log, to prove the answer: its accesses are decided again without the removable ACLs.
        reading: `accesses_format`, `accesses_timezone` and `workers`.

    Raises:
        ConfigError: an argument that is not valid; an index that is damaged, empty or of another cluster; or an access
            that would be decided otherwise.
        MetadataError: something cannot be read.

    """
    need_usage_extra()
    from aclog.ops.unused import prove, unused_acls, unused_objects
    from aclog.usage.index.stored import reading_index
    from aclog.usage.unused_report import UnusedQuestion
    from aclog.usage.window import micros_of

    with noting("the index") as notes:
        check_arguments("unused", reading, Reading)
        end = _end(until)
        question = UnusedQuestion(
            days=whole_number("days", days, 1, MOST_DAYS),
            gap=_gap(gap),
            until=None if end is None else micros_of(end),
            ignored=several_texts("ignore_brokers", ignore_brokers, "3") or (),
        )
        log = None if accesses is None else _read_accesses(accesses, reading)
        with reading_index(index if isinstance(index, Path) else path_of("index", index)) as opened:
            choice = chosen_source("rules", rules)
            report = unused_acls(opened, choice, question)
            if log is not None:
                prove(report, choice, log)
            objects, is_any = tuple(unused_objects(report)), bool(report.unused.judgement.unused.any())
    return Report(not is_any, objects=objects, notes=tuple(notes))


def denied(
    rules: Rules,
    accesses: Accesses,
    *,
    principals: str | Iterable[str] = (),
    any_host: bool = False,
    **options: Unpack[ReadingDeciding],
) -> Report:
    """Return the denied requests of an access log, and the least ACLs that would allow them (`aclog accesses denied`).

    An object for each attempt, with the `missing` ACLs and the `denies` that block it. It has passed if it is sure that
    no request is denied, by the ACLs as they are now.

        >>> report = aclog.denied("log", "/var/log/kafka", principals="User:bob")
        >>> [(each["operations"], each["resourceName"], each["missing"]) for each in report]

    Args:
        rules: as in `acl_usage`.
        accesses: as in `acl_usage`.
        principals: only their requests; by default all.
        any_host: whether the missing ACLs are for every host, not only for those of the requests.
        options: as in `acl_usage`.

    Raises:
        ConfigError: an argument that is not valid, or a log without any access; MetadataError: something cannot be
            read.

    """
    need_usage_extra()
    from aclog.ops.usage import denied_requests

    with noting("accesses") as notes:
        settings = stated_settings("denied", options, ReadingDeciding)
        requests = denied_requests(
            _access_log(accesses, options),
            chosen_source("rules", rules),
            settings_of(settings),
            principals=several_texts("principals", principals, "User:alice") or (),
            any_host=flag_of("any_host", any_host, False),
            configs=settings.configs(),
        )
        objects = tuple(requests.objects())
        requests.warn()
    return Report(requests.is_empty, objects=objects, notes=tuple(notes))


def suggest(
    rules: Rules,
    accesses: Accesses,
    *,
    days: int = 90,
    until: AsOf | None = None,
    principals: str | Iterable[str] = (),
    fold: int | None = 5,
    topics: AnyPath | None = None,
    **options: Unpack[ReadingDeciding],
) -> Report:
    """Return the least ACLs that keep every access of a log, and grant nothing new (`aclog accesses suggest`).

    An object for each suggested ACL, with its evidence. It has always passed: what cannot be proved is an error.

        >>> report = aclog.suggest("log", "/var/log/kafka", days=30)
        >>> [(each["principal"], each["resourceName"], each["accesses"]) for each in report]

    Args:
        rules: as in `acl_usage`.
        accesses: as in `acl_usage`.
        days: as in `acl_usage`.
        until: as in `acl_usage`.
        principals: only their ACLs are replaced; by default all.
        fold: from so many used names on, names become their longest prefix where that is safe; None for never.
        topics: a file of the topics that exist, one per line.
        options: as in `acl_usage`.

    Raises:
        ConfigError: an argument that is not valid, or a setting that decides is unknown.
        MetadataError: the suggestion cannot be proved, or something cannot be read.

    """
    need_usage_extra()
    from aclog.ops.usage import SuggestOptions, suggest_least

    with noting("accesses") as notes:
        settings = stated_settings("suggest", options, ReadingDeciding)
        how = SuggestOptions(
            days=whole_number("days", days, 1, MOST_DAYS),
            until=_end(until),
            principals=frozenset(several_texts("principals", principals, "User:alice") or ()),
            fold=None if fold is None else whole_number("fold", fold, 2),
            topics=None if topics is None else NameFile(path_of("topics", topics)),
        )
        log, choice = _access_log(accesses, options), chosen_source("rules", rules)
        suggested = suggest_least(log, choice, settings_of(settings), how, settings.configs())
        objects = tuple(suggested.objects())
        suggested.warn()
    return Report(True, objects=objects, notes=tuple(notes))


def simulate(
    old: Rules,
    new: Rules | None = None,
    *,
    accesses: Accesses,
    change: AnyPath | None = None,
    **options: Unpack[ReadingDeciding],
) -> Report:
    """Return the accesses of a log that a second state would decide differently (`aclog accesses simulate`).

    An object for each distinct access, the most frequent first; its `change` is GAINED, LOST, BROKEN or MENDED. It has
    passed if it is sure that every access is decided the same.

        >>> report = aclog.simulate("log", change="removals.jsonl", accesses="/var/log/kafka")
        >>> report.passed, [(each["change"], each["principal"], each["count"]) for each in report]

    Args:
        old: the first state, as the rules of `acl_usage`.
        new: the second state; or give a change of the first one.
        accesses: as in `acl_usage`.
        change: a file of changes, as JSON lines.
        options: as in `acl_usage`; for both states.

    Raises:
        ConfigError: an argument that is not valid, or not exactly one of `new` and `change`.
        MetadataError: something cannot be read.

    """
    need_usage_extra()
    from aclog.ops.usage import simulate as simulate_accesses

    if (new is None) is (change is None):
        raise ConfigError("expected exactly one of new and change")
    with noting("accesses") as notes:
        settings = stated_settings("simulate", options, ReadingDeciding)
        changes = () if change is None else tuple(read_changes(path_of("change", change)))
        log = _access_log(accesses, options)
        simulation = simulate_accesses(log, two_states(old, new, settings, changes=changes))
        objects = tuple(simulation.objects())
        simulation.warn()
    return Report(simulation.is_same, objects=objects, notes=tuple(notes))


# Checked arguments.


def _read_accesses(accesses: Accesses, options: Reading | ReadingDeciding) -> _ReadAccesses:
    if isinstance(accesses, str | PathLike):
        accesses = [accesses]
    if not isinstance(accesses, Iterable):
        raise ConfigError(f"accesses {value_text(accesses)}: expected a path, or several")
    zone = optional_text("accesses_timezone", options.get("accesses_timezone"), "Europe/Berlin")
    return _ReadAccesses(
        accesses=[path_of("accesses", each) for each in accesses],
        accesses_format=optional_text("accesses_format", options.get("accesses_format"), "kafka-log"),
        accesses_timezone=zone or "UTC",
        # One by default: other processes are started anew, and would run a program again that does not guard itself.
        workers=1 if options.get("workers") is None else whole_number("workers", options["workers"], 1),
    )


def _access_log(accesses: Accesses, options: ReadingDeciding) -> "AccessLog":
    from aclog.ops.usage import AccessLog

    return AccessLog.of(_read_accesses(accesses, options))


def _gap(gap: object) -> int:
    """Return it in us."""
    if not isinstance(gap, timedelta) or gap < timedelta(hours=1):
        raise ConfigError(f"gap {value_text(gap)}: expected a timedelta of an hour or more")
    return gap // timedelta(microseconds=1)


def _end(until: AsOf | None) -> datetime | None:
    moment = moment_of(until, UTC)
    if isinstance(moment, int):
        raise ConfigError(f"until {value_text(until)}: expected a time, such as 2026-11-20T10:00:00Z")
    return moment
