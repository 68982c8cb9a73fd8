"""Lists of permissions, regions and intervals."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any

from aclog.analysis.comparison import Compared
from aclog.analysis.policy import Policy, generation_object, merged, only_on
from aclog.analysis.regions import (
    EXCEPT,
    JsonObject,
    Principals,
    Query,
    Region,
    decided_by_object,
    principals_object,
    who_text,
)
from aclog.analysis.timeline import Event, Interval
from aclog.analysis.who_can import SUPER_USER, Permission, all_of, permission_key, permission_lines, permission_object
from aclog.authorizer.acl import Origins, StandardAcl, acl_text
from aclog.authorizer.acls_image import Action
from aclog.authorizer.codes import PatternType
from aclog.authorizer.explain import located_text
from aclog.authorizer.settings import Generation, name_text
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.cli.flags.common import Output
from aclog.metalog.errors import printable
from aclog.ops.policies import StatedSettings
from aclog.ops.tables import PERMISSIONS, permission_rows, principal_rows, rule_text
from aclog.ops.why import RowsSince, Since, rows_since
from aclog.planning.plan import ApplyNote
from aclog.snapshots.deciding_kafka import KafkaChange
from aclog.snapshots.history import Change, ChangeKind
from aclog.snapshots.image import StateSource
from aclog.terminal.columns import Column, OutputFormat
from aclog.terminal.notices import tracked
from aclog.terminal.output import note, optional_time_text, say, time_text
from aclog.terminal.tables import print_rows

# The columns of regions of requests, and of the rules that decide them: JSON in programs' formats, words in tables.


def set_text(value: Mapping[str, Any] | None) -> str:
    """Return principals or hosts: those that are named, or anyone except them."""
    if not value:
        return ""
    left_out = ", ".join(value.get("except", ()))
    if "cidr" in value or "in" in value:
        named = ", ".join(value.get("cidr", value.get("in", ())))
        return f"{named}{EXCEPT}{left_out}" if left_out else named
    return f"any{EXCEPT}{left_out}" if left_out else "any"


def names_text(parts: Sequence[Mapping[str, Any]] | None) -> str:
    """Return names and prefixes (aclog.authorizer.settings), and what is left out of these."""
    return ", ".join(map(_part_text, parts or ()))


def rules_text(rules: Sequence[Mapping[str, Any] | str] | None) -> str:
    """Return rules on one line."""
    return "; ".join(map(rule_text, rules or ()))


def request_text(request: Mapping[str, Any] | None) -> str:
    """Return a request on one line."""
    if request is None:
        return ""
    text = f"{request['principal']} {request['operation']} {request['resourceType']}"
    return f"{text} {request['resourceName']!r} from {request['host']}"


def _part_text(part: Mapping[str, Any]) -> str:
    if "literal" in part:
        return name_text(str(part["literal"]))
    left_out = [name_text(prefix, PatternType.PREFIXED) for prefix in part["exceptPrefixes"]]
    left_out += map(name_text, part["exceptLiterals"])
    prefix = name_text(str(part["prefix"]), PatternType.PREFIXED)
    return prefix + (f"{EXCEPT}{' and '.join(left_out)}" if left_out else "")


REGION_COLUMNS = (
    Column(key="principals", cut=True, text=set_text),
    Column(key="operations", text=lambda operations: ", ".join(operations or ())),
    Column(key="resourceType", title="TYPE"),
    Column(key="names", cut=True, text=names_text),
    Column(key="hosts", cut=True, text=set_text),
)
"""The five sets."""

GENERATION = Column(key="generation", title="ONLY ON KAFKA")


def with_generation(columns: Sequence[Column], answers: Sized) -> tuple[Column, ...]:
    """Return the columns, and the generation of Kafka that alone decides so, if there are answers for several."""
    return (*columns, GENERATION) if len(answers) > 1 else tuple(columns)


WITNESS_COLUMNS = (
    Column(key="witness", title="SUCH AS", cut=True, spare=True, text=request_text),
    Column(key="legal", spare=True),
)
"""An example of a region; whether a topic can have its name, if not."""

PERMISSION_COLUMNS = (
    *REGION_COLUMNS,
    Column(key="rules", title="BY", cut=True, text=rules_text),
    Column(key="denies", title="LIMITED BY", cut=True, spare=True, text=rules_text),
    *WITNESS_COLUMNS,
)
"""Who may do what, by which rules (aclog.analysis.who_can)."""


def _since_text(event: Mapping[str, Any] | None) -> str:
    """Return an event of `event_object` on one line."""
    if event is None:
        return ""
    time = "" if event["timestamp"] is None else f"{time_text(event['timestamp'])}, "
    change = _change_text(event["change"]) or "as the history begins"
    return f"{time}offset {event['offset']}: {change}"


SINCE = Column(key="since", cut=True, text=_since_text)
"""Since when all of a permission has been allowed, and the change that made it."""


def _since_cells(row: Mapping[str, Any]) -> JsonObject:
    """Return the cells of `_since_object` under CSV_SINCE, of one value each; empty without these keys."""
    if "since" not in row:
        return {}
    event, made_by = row["since"] or {}, row["madeBy"] or {}
    return {
        "since": optional_time_text(event.get("timestamp")),
        "since.offset": event.get("offset"),
        "since.change": _change_text(event.get("change")),
        **{f"madeBy.{key}": made_by.get(key) for key in ("apply", "who", "git")},
    }


CSV_SINCE = tuple(
    Column(key=key) for key in ("since", "since.offset", "since.change", "madeBy.apply", "madeBy.who", "madeBy.git")
)
"""The same for a spreadsheet: the time as ISO 8601."""

PERMISSIONS_OF_PREFIXES = (*REGION_COLUMNS, Column(key="covers"), *PERMISSION_COLUMNS[len(REGION_COLUMNS) :])
"""The same for a question about a prefix: whether it is ALL of its names, or SOME."""


def _texts_cell(value: Any) -> Any:
    return "; ".join(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _csv_rows(objects: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield the rows of permissions, with the time since which each is allowed if it is among their keys."""
    for each in objects:
        since = _since_cells(each)
        yield from (
            {**{key: _texts_cell(value) for key, value in row.items()}, **since} for row in permission_rows([each])
        )


def _csv_columns(*, has_extents: bool, has_generations: bool) -> tuple[Column, ...]:
    left_out = {key for key, on in (("covers", has_extents), ("generation", has_generations)) if not on}
    return tuple(Column(key=key) for key in PERMISSIONS.kinds if key not in left_out)


DIFFERENCE_COLUMNS = (
    Column(key="change"),
    *REGION_COLUMNS,
    Column(key="old", title="DECIDED BEFORE BY", cut=True, text=rule_text),
    Column(key="new", title="AFTER BY", cut=True, text=rule_text),
    *WITNESS_COLUMNS,
    Column(key="topics", spare=True),
    Column(key="accesses", spare=True),
)
"""What a change gives or takes (aclog.analysis.comparison)."""

KAFKA = Column(
    key="kafka", title="BY KAFKA", text=lambda value: f"{value['new']} after {value['old']}" if value else ""
)


def difference_columns(comparisons: Compared) -> tuple[Column, ...]:
    """Return the columns of differences, with those of the Kafka that decides where they have values."""
    columns = with_generation(DIFFERENCE_COLUMNS, comparisons)
    return (*columns, KAFKA) if any(each.kafka for each in comparisons.values()) else columns


# Prints permissions.


def rows_of(
    source: StateSource,
    end_offset: int,
    policies: Mapping[Generation, Policy],
    queries: Sequence[Query],
    settings: StatedSettings,
) -> RowsSince:
    """Return since when rows of the answers by some policies, of the state at `end_offset`, have been allowed.

    Raises:
        ConfigError: the source has no history; MetadataError: it is damaged.

    """
    policy = next(iter(policies.values()))
    return rows_since(source, end_offset, policy, queries, is_kafka_stated=settings.generation is not None)


def print_permissions(
    answers: Mapping[Generation, Iterable[Permission]],
    output: Output,
    origins: Origins,
    *,
    none: str,
    premises: Premises = ALL_KNOWN,
    has_extents: bool = False,
    since: RowsSince | None = None,
) -> bool:
    """Print permissions, super users last and apart; `none` without any. Return whether text has none by ACLs.

    Permissions that only one of several generations of Kafka allows are marked. `premises`: unknown settings; text ends
    with a line about what they could add. `has_extents`: whether permissions have the extent to which they cover the
    prefix of the question. `since`: since when they have been allowed, to be printed as well.
    """
    more = premises.turning(allowed=False)
    granted = merged(answers, permission_key)
    permissions = tracked(granted, "looking for what is allowed", "permissions", streams=True)
    if output.is_rows:
        rows = (
            permission_object(part, origins)
            | (_since_object(began) if since is not None else {})
            | generation_object(generation)
            for permission, generation in permissions
            for part, began in dated(permission, since)
        )
        columns = with_generation(PERMISSIONS_OF_PREFIXES if has_extents else PERMISSION_COLUMNS, answers)
        if output.form is OutputFormat.CSV:  # a spreadsheet filters by cells of one value each
            columns = _csv_columns(has_extents=has_extents, has_generations=len(answers) > 1)
            columns = columns if since is None else (*columns, *CSV_SINCE)
            print_rows(columns, _csv_rows(rows), output.form, keys=output.columns)
            return False
        if since is not None:
            columns = (*columns[: len(REGION_COLUMNS)], SINCE, *columns[len(REGION_COLUMNS) :])
        print_rows(columns, rows, output.form, keys=output.columns)
        return False
    supers, count = "", 0
    listed: list[Region] = []
    for permission, generation in permissions:
        if is_super(permission):
            supers = all_of(permission.region.principals)
            continue
        count += 1
        for part, began in dated(permission, since):
            first, *rest = permission_lines(part, origins, listed if generation is None else ())
            listed.append(part.region)
            for line in (first + only_on(generation), *rest, *([_since_line(began)] if since is not None else [])):
                say(printable(line))
    if supers:
        say(printable(f"super users, who may do everything: {supers}"))
    elif not count:
        say(printable(f"{none} unless {more.unless()}" if more else none))
        return True
    if more:
        say(printable(f"and more if {more.unless()}"))
    return not count


def dated(permission: Permission, since: RowsSince | None) -> Iterator[tuple[Permission, Since | None]]:
    """Yield the parts of a permission, each with its date; without dates as a whole, as that of super users."""
    if since is None or is_super(permission):
        yield permission, None
    else:
        yield from since.dated(permission)


def is_super(permission: Permission) -> bool:
    """Return whether a permission is that of super users."""
    return permission.rules == (SUPER_USER,)


def _since_object(since: Since | None) -> JsonObject:
    return {
        "since": None if since is None else event_object(since.event),
        "madeBy": None if since is None else made_by_object(since.made_by),
    }


def made_by_object(note: ApplyNote | None) -> JsonObject | None:
    """Return the apply that made a change, for JSON."""
    return None if note is None else {"apply": note.apply, "who": note.who, "git": note.git}


def made_by_text(note: ApplyNote | None) -> str:
    """Return the apply that made a change, as the end of a line; empty if it is unknown."""
    if note is None:
        return ""
    commit = "" if note.git is None else f", commit {note.git}"
    return f"; by {note.who}, apply {note.apply}{commit}"


def since_cells(since: Since | None) -> tuple[str, str]:
    """Return the time and the offset since which a permission is allowed, and the change that made it so."""
    if since is None:
        return "unknown", _UNDATED
    event = since.event
    offset = f"offset {event.offset:,}{' or before' if event.change is None and event.offset else ''}"
    time = "" if event.timestamp < 0 else f"{time_text(event.timestamp)}, "
    change = "as the history begins" if event.change is None else change_text(event.change)
    return f"{time}{offset}", f"{change}{made_by_text(since.made_by)}"


_UNDATED = "hosts are ranges and the Kafka that decided is not stated (--kafka-version)"


def _since_line(since: Since | None) -> str:
    if since is None:
        return f"  since: unknown, as {_UNDATED}"
    return f"  since {_event_text(since.event)}{made_by_text(since.made_by)}"


def print_denies(rules: Mapping[Generation, Iterable[StandardAcl]], origins: Origins) -> None:
    """Print rules that deny something, by the generation of Kafka; what only one denies is marked."""
    for rule, generation in merged(rules):
        say(printable(f"denied: {located_text(rule, origins)}{only_on(generation)}"))


# Prints the intervals of a log in which something was allowed.


def _change_text(change: Mapping[str, Any] | None) -> str:
    if not change:
        return ""
    return f"{change['action']} {rule_text(change['rule']) if 'rule' in change else change['text']}"


def _end_columns(end: str) -> tuple[Column, ...]:
    return (
        Column(key=f"{end}.offset"),
        Column(key=f"{end}.endOffset", spare=True),
        Column(key=f"{end}.timestamp", text=optional_time_text),
        Column(key=f"{end}.change", cut=True, text=_change_text),
    )


INTERVAL_COLUMNS = (*_end_columns("from"), *_end_columns("to"))
"""Of `interval_object`."""


def print_intervals(
    timeline: Iterable[Interval],
    output: Output,
    *,
    begin: int,
    last: str = "until now",
    premises: Premises = ALL_KNOWN,
    request: str = "",
) -> None:
    """Print intervals in the order of the log; as text `never` without any, and the request.

    `begin`: the offset where the history begins; above 0, the time before it is reported as unknown.
    `last`: how an interval ends as text that has not ended. `premises`: what is unknown of the settings.
    """
    _print_timelines(((None, each) for each in timeline), output, begin, last, premises, request)


def print_timelines(
    timelines: Iterable[tuple[Principals, Interval]],
    output: Output,
    *,
    begin: int,
    last: str,
    premises: Premises = ALL_KNOWN,
    request: str = "",
) -> None:
    """Print the intervals of several principals, each with its principals; the rest as print_intervals."""
    _print_timelines(timelines, output, begin, last, premises, request, has_principals=True)


def _print_timelines(
    timelines: Iterable[tuple[Principals | None, Interval]],
    output: Output,
    begin: int,
    last: str,
    premises: Premises,
    request: str,
    *,
    has_principals: bool = False,
) -> None:
    if output.is_rows:
        is_streamed = output.form is OutputFormat.JSONL
        rows = (
            {**({} if who is None else {"principals": principals_object(who)}), **interval_object(each)}
            for who, each in timelines
        )
        listed = rows if is_streamed else list(rows)
        by_one = is_streamed or any("generation" in row for row in listed)
        last_columns = (*INTERVAL_COLUMNS, *([GENERATION] if by_one else []))
        heads: tuple[Column, ...] = ()
        if output.form is OutputFormat.CSV and not output.columns:
            heads = _CSV_PRINCIPALS if has_principals else ()
            print_rows((*heads, *last_columns), _csv_intervals(listed), output.form)
        else:
            heads = REGION_COLUMNS[:1] if has_principals else ()
            print_rows((*heads, *last_columns), listed, output.form, keys=output.columns)
    else:
        _print_text(timelines, _never(begin, request), last, premises.turning(allowed=False))
    if begin:
        note(f"the history begins at offset {begin}: what was before it is unknown")


_CSV_PRINCIPALS = (Column(key="principal"), Column(key="exceptPrincipals"))


def _csv_intervals(rows: Iterable[Mapping[str, Any]]) -> Iterator[JsonObject]:
    """Yield the rows of intervals with one value per cell, and one row per principal."""
    for row in rows:
        cells = {**row, **{end: _one_line(row[end]) for end in ("from", "to")}}
        if "principals" not in row:
            yield cells
        else:
            for each in principal_rows(row["principals"]):
                yield {**cells, **{key: _texts_cell(value) for key, value in each.items()}}


def _one_line(event: Mapping[str, Any] | None) -> JsonObject | None:
    return None if event is None else {**event, "change": _change_text(event["change"])}


def _never(begin: int, request: str) -> str:
    never = f"never since offset {begin}, with which the history begins" if begin else "never"
    return f"{never}: {request}" if request else never


def _print_text(timelines: Iterable[tuple[Principals | None, Interval]], never: str, last: str, more: Premises) -> None:
    has_intervals, printed = False, None
    for who, interval in timelines:
        has_intervals = True
        if who is not None and who != printed:
            say(printable(who_text(who)))
            printed = who
        for line in interval_lines(interval, last):
            say(printable(line if who is None else f"  {line}"))
    if not has_intervals:
        say(printable(more.decided(never)))


def interval_object(interval: Interval) -> JsonObject:
    """Return an interval as a JSON object; `to` is null if it has not ended."""
    end = interval.end
    ends = {"from": event_object(interval.start), "to": None if end is None else event_object(end)}
    return {**ends, **generation_object(interval.only)}


def interval_lines(interval: Interval, last: str) -> Iterator[str]:
    """Yield the two ends of an interval; `last` is that of one that has not ended."""
    yield f"ALLOWED since {_event_text(interval.start)}{only_on(interval.only)}"
    yield f"  {last}" if interval.end is None else f"  until {_event_text(interval.end)}"


def event_object(event: Event) -> JsonObject:
    """Return an end of an interval as a JSON object."""
    return {
        "offset": event.offset,
        "endOffset": event.end_offset,
        "timestamp": None if event.timestamp < 0 else event.timestamp,
        "change": None if event.change is None else _change_object(event.change),
    }


def _change_object(change: Change | KafkaChange) -> JsonObject:
    if isinstance(change, KafkaChange):
        generations = [each.value for each in change.kafka.generations]
        return {"action": "KAFKA", "generations": generations, "text": str(change)}
    return {"action": _action(change).value, "rule": decided_by_object(change.rule.acl)}


def _action(change: Change) -> Action:
    return Action.ADD if change.kind is ChangeKind.ADDED else Action.REMOVE


def _event_text(event: Event) -> str:
    time = "" if event.timestamp < 0 else f", {time_text(event.timestamp)}"
    if event.change is None:
        before = " or before" if event.offset else ""
        return f"offset {event.offset}{before}{time}: as the history begins"
    return f"offset {event.offset}{time}: {change_text(event.change)}"


def change_text(change: Change | KafkaChange) -> str:
    """Return what a change of a log did, on one line."""
    if isinstance(change, KafkaChange):
        return str(change)
    return f"{'added' if change.kind is ChangeKind.ADDED else 'removed'} {acl_text(change.rule.acl)}"
