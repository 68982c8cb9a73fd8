"""The report on a source: what an auditor reads, each claim with the command line that computes it again.

A report is a value: sections with facts, tables, a matrix or a chart, all bounded. aclog.cli.report
writes it as HTML or Markdown.
"""

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from itertools import compress, islice, zip_longest
from typing import Final, TypeAlias

from attrs import evolve

from aclog.analysis.lint_report import BY_ID
from aclog.analysis.policy import Policy
from aclog.analysis.regions import EVERYONE, Names, Principals, Query, Subtree, common, only, operations_of
from aclog.analysis.rows.rule_tables import RULE_KINDS, rule_rows
from aclog.analysis.who_can import SUPER_USER, Permission, access_cells, access_text, permissions, reason_lines
from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, acl_text
from aclog.authorizer.codes import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    ResourceType,
)
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG
from aclog.authorizer.standard import Premises
from aclog.metalog.errors import plural
from aclog.metalog.values import frozen
from aclog.ops.lint import lint_source
from aclog.ops.policies import StatedSettings, policy_of, read_premises, settings_of
from aclog.ops.tables import rule_text
from aclog.snapshots.history import Change, ChangeKind
from aclog.snapshots.image import Image
from aclog.snapshots.image_file import check_mapping
from aclog.snapshots.moments import timestamp_text
from aclog.sources.acl_lines import NameFile
from aclog.sources.choice import ChosenSource
from aclog.sources.logs import history_of
from aclog.sources.repository import RepositorySettings
from aclog.terminal.columns import json_text

MOST_ROWS: Final = 100
"""Rows of a table."""
MOST_PRINCIPALS: Final = 40
MOST_PREFIXES: Final = 12
"""Rows and columns of the matrix."""
MOST_TEXT: Final = 300
"""Characters of a cell, or of an element of its list."""
_MOST_LISTED: Final = 10
"""Elements of the list of a cell."""
_BARS: Final = 60
_LATEST: Final = 253_402_300_799_999
"""The end of the year 9999, in ms since 1970: a record may bear any number."""


class Section(StrEnum):
    """A section of the report, in its order."""

    WHO_CAN = "who-can"
    NUMBERS = "numbers"
    ACCESS = "access"
    CHANGES = "changes"
    EVERYONE = "everyone"
    ADMINS = "admins"
    LINT = "lint"
    UNUSED = "unused"
    DRIFT = "drift"
    TESTS = "tests"


@frozen(kw_only=True)
class Table:
    """The first rows of a table, and how many there are."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int

    @property
    def more(self) -> int:
        """The rows that are not shown."""
        return self.total - len(self.rows)


@frozen(kw_only=True)
class Cell:
    """What a principal may do on some names: the letters of operations, and how much that is, from 0 to 3."""

    text: str
    heat: int


@frozen(kw_only=True)
class Matrix:
    """Who reaches what: principals by groups of names."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    total: int
    """The principals that rules name."""
    more_groups: int = 0
    """Groups of names of topics without a column of their own, which the column of any topic covers."""

    @property
    def more(self) -> int:
        """The principals that are not shown, apart from the row of all others."""
        return self.total - (len(self.rows) - 1)


@frozen(kw_only=True)
class Bar:
    """The changes of a period."""

    label: str
    added: int
    removed: int


@frozen(kw_only=True)
class Chart:
    """Changes over time, a bar per period, without gaps."""

    bars: tuple[Bar, ...]
    period: str

    @property
    def highest(self) -> int:
        """The most changes of one kind in a period."""
        return max((max(bar.added, bar.removed) for bar in self.bars), default=0)


@frozen(kw_only=True)
class Part:
    """A claim: a sentence, what shows it, and the command line that computes it again."""

    text: str
    command: str
    table: Table | None = None
    matrix: Matrix | None = None
    chart: Chart | None = None


@frozen(kw_only=True)
class ReportSection:
    """A section: its parts, or why it has none."""

    section: Section
    title: str
    parts: tuple[Part, ...] = ()
    missing: str | None = None

    def with_commands(self) -> Iterator[tuple[Part, str | None]]:
        """Yield the parts, each with its command; None if the next part has the same one."""
        for part, after in zip_longest(self.parts, self.parts[1:]):
            yield part, None if after is not None and after.command == part.command else part.command


@frozen(kw_only=True)
class Report:
    """A report on one state."""

    source: str
    facts: tuple[tuple[str, str], ...]
    unless: str | None
    """What is unknown of that which decides: the answers hold unless that is so."""
    digest_command: str
    made: int
    """When, in ms since 1970."""
    sections: tuple[ReportSection, ...]


CommandLine: TypeAlias = Callable[[str], str]
"""Returns the command line of `aclog` with these words, about the reported state."""


@frozen(kw_only=True)
class UseOfAcls:
    """The use of ACLs in a window, and its premises."""

    window: str
    """The end of a sentence: in which days."""
    objects: Iterable[Mapping[str, object]]
    """An object for each ACL, with a `reason` if it is not judged."""
    meanings: Mapping[str, str]
    """Of each verdict."""
    command: str
    premises: Sequence[str]
    """Sentences: what the verdicts do not count."""
    totals: str = ""
    """How many ACLs are in the state, and how many were removed, if any was."""
    evidence: Sequence[tuple[str, str]] = ()
    """What the answers rest on: the window, accesses, and files with their digests."""


@frozen(kw_only=True)
class WhoCan:
    """Which principals have the access in question, and since when."""

    access: str
    """The access in question, such as `READ on some TOPIC payments.*`."""
    rows: Iterable[tuple[Permission, str, str]]
    """Permissions, each with the time since which it is allowed, and the change that made it so."""
    has_history: bool
    """Whether the source has these times."""
    notes: Sequence[str]
    """Sentences without a full stop."""
    command: str


@frozen(kw_only=True)
class Drifting:
    """The drift of a target from desired rules."""

    rows: Sequence[tuple[str, str]]
    """The kind, MISSING or LEFTOVER, and the rule."""
    foreign: int
    """Rules that are neither desired nor managed."""
    command: str
    unless: str | None
    """What is unknown: no drift is certain unless that is so."""


@frozen(kw_only=True)
class Tested:
    """The results of tests of rules."""

    cases: int
    failed: Sequence[tuple[str, str, str]]
    """The location, the test, and what was found instead of the expectation."""
    command: str


@frozen(kw_only=True)
class ReportQuestion:
    """What a report is about."""

    choice: ChosenSource
    image: Image
    stated: StatedSettings
    settings: RepositorySettings
    """By which lint finds."""
    lint_choice: ChosenSource
    """The source as lint reads it: what these settings exclude is not in it."""
    topics: NameFile | None = None
    """Those that exist, for lint."""
    accesses: Sequence[str] = ()
    """Access logs for lint, instead of that of its settings."""
    accepted: Sequence[str] = ()
    """Content that may stay unread."""
    command: CommandLine
    """For commands that take the flags of the authorizer."""
    bare_command: CommandLine
    """For commands that do not."""
    sections: Sequence[Section] = tuple(Section)
    who_can: Callable[[Policy], WhoCan] | None = None
    """None without an access in question."""
    unused: Callable[[], UseOfAcls] | None = None
    """None without an index or accesses."""
    drift: Callable[[], Drifting] | None = None
    """None without desired rules."""
    tests: Callable[[], Tested] | None = None
    """None without tests."""
    now: int
    """ms since 1970."""


def report(question: ReportQuestion) -> Report:
    """Return the report.

    Raises:
        ConfigError: which Kafka decides is unknown, and matters; MetadataError, OSError: something cannot be read.

    """
    image, choice = question.image, question.choice
    policy = policy_of(image, question.stated)
    premises = read_premises(choice, question.stated.configs())
    rows = _rows(image)

    @cache
    def unnamed() -> list[Permission]:
        """Return what principals have that no rule names, which reads all rules."""
        return list(permissions(policy, Query(principals=EVERYONE), unnamed=True))

    makers: dict[Section, Callable[[], ReportSection]] = {
        Section.WHO_CAN: lambda: _who_can(question, policy, premises),
        Section.NUMBERS: lambda: _numbers(question, rows),
        Section.ACCESS: lambda: _access(question, policy, rows, unnamed()),
        Section.CHANGES: lambda: _changes(question),
        Section.EVERYONE: lambda: _everyone(question, unnamed()),
        Section.ADMINS: lambda: _admins(question, policy),
        Section.LINT: lambda: _lint(question),
        Section.UNUSED: lambda: _unused(question),
        Section.DRIFT: lambda: _drift(question),
        Section.TESTS: lambda: _tests(question),
    }
    timestamp = timestamp_text(image.timestamp) if image.timestamp >= 0 else "unknown"
    has_offset = choice.source.log is not None or image.end_offset > 0
    settings = settings_of(question.stated)
    facts = (
        ("Source", choice.source.name),
        ("End offset", f"{image.end_offset:,}" if has_offset else "none: the source is no log"),
        ("Last record", timestamp),
        ("SHA-256 of the ACLs", digest(rows)),
        ("Super users", ", ".join(sorted(settings.super_users)) or _no_super_users(question.stated)),
        ("Resources without ACLs", _without_acls(question, premises)),
        *([("Accepted unread", ", ".join(question.accepted))] if question.accepted else []),
        *([("Settings of lint", str(question.settings.file))] if question.settings.file is not None else []),
        ("Report made", timestamp_text(question.now)),
    )
    listing = question.bare_command(f"acls list --format jsonl --columns {_KEYS}")
    return Report(
        source=choice.source.name,
        facts=facts,
        unless=premises.unless() if premises else None,
        made=question.now,
        digest_command=f"{listing} | LC_ALL=C sort | sha256sum",
        sections=tuple(makers[each]() for each in Section if each in question.sections),
    )


def _no_super_users(stated: StatedSettings) -> str:
    return "unknown: no --super-users given" if stated.super_users is None else "none"


def _without_acls(question: ReportQuestion, premises: Premises) -> str:
    """Return whether resources without ACLs are open, and whether that is known."""
    if question.stated.allow_everyone:
        return "open to everyone (allow.everyone.if.no.acl.found is true)"
    known = "is false"
    if ALLOW_EVERYONE_CONFIG in premises.names:
        known = "is unknown, and assumed false"
    elif ALLOW_EVERYONE_CONFIG not in question.stated.configs() and not question.choice.is_live:
        known = "is assumed false, Kafka's default: no flag and no source states it"
    return f"closed to all except super users (allow.everyone.if.no.acl.found {known})"


_KEYS = ",".join(RULE_KINDS)
_Row: TypeAlias = tuple[str | None, ...]
"""The cells of an ACL, as aclog.analysis.rows.rule_tables.RULE_KINDS."""


def _rows(image: Image) -> list[_Row]:
    columns = image.acls.columns(AclBindingFilter())
    assert columns is not None  # noqa: S101  # the filter names nothing
    rows = rule_rows(columns)
    check_mapping(image.acls)
    return rows


def digest(rows: Iterable[_Row]) -> str:
    """Return the SHA-256 of ACLs as sorted JSON lines, in hexadecimal; a row has the cells of RULE_KINDS."""
    sha = hashlib.sha256()
    for line in sorted(json_text(dict(zip(RULE_KINDS, row, strict=True))).encode() for row in rows):
        sha.update(line + b"\n")
    return sha.hexdigest()


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]], total: int | None = None) -> Table:
    """Return a table; a cell that is a list shows its first elements, and how many more there are."""
    first: list[tuple[str, ...]] = []
    count = 0
    for row in rows:
        if count < MOST_ROWS:
            first.append(tuple(_listed(cell) if isinstance(cell, _List) else _cut(str(cell)) for cell in row))
        count += 1
    return Table(heads=tuple(heads), rows=tuple(first), total=count if total is None else total)


@frozen(kw_only=True)
class _List:
    """A cell with several elements."""

    elements: Sequence[str]
    before: str = ""
    between: str = ", "
    most: int = _MOST_LISTED


def _listed(cell: _List) -> str:
    more = len(cell.elements) - cell.most
    elements = [_cut(each) for each in cell.elements[: cell.most]]
    return cell.before + cell.between.join([*elements, *([f"and {more:,} more"] if more > 0 else [])])


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}\u2026"


# The access in question.


def _who_can(question: ReportQuestion, policy: Policy, premises: Premises) -> ReportSection:
    title = "Who can, and since when"
    if question.who_can is None:
        missing = "no access in question is given (--operation, --topic, --group, --cluster and similar flags)"
        return ReportSection(section=Section.WHO_CAN, title=title, missing=missing)
    found = question.who_can(policy)
    heads = ("principals", "operations", "resource", "hosts", "by", *(("since", "change") if found.has_history else ()))
    rows = (
        (_who(permission.region.principals), *_parts_of(permission), *((since, change) if found.has_history else ()))
        for permission, since, change in found.rows
    )
    table = _table(heads, rows)
    sentences = [f"Principals that may {found.access}{'' if table.total else ': none by these rules'}"]
    sentences += found.notes
    if more := premises.turning(allowed=False):
        sentences.append(f"More have access if {more.unless()}")
    part = Part(
        text=" ".join(map(_sentence, sentences)),
        command=found.command,
        table=table if table.total else None,
    )
    return ReportSection(section=Section.WHO_CAN, title=title, parts=(part,))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('?') else '.'}"


def _who(principals: Principals) -> object:
    if not principals.complement:
        return _List(elements=principals.named)
    return _List(elements=principals.named, before="anyone except ") if principals.named else "anyone"


def _parts_of(permission: Permission) -> tuple[object, ...]:
    """Return the operations, the resource, the hosts and the rules of a permission."""
    excerpt, more = _excerpt(permission)
    operations, resource, hosts = access_cells(excerpt)
    return operations, "; ".join((resource, *more)), hosts, _reasons(permission)


def _reasons(permission: Permission) -> _List:
    reasons = list(reason_lines(permission))
    return _List(elements=reasons, between="; ", most=len(reasons))


# The ACLs in numbers.


_NUMBERS: Final = (
    "SELECT count(*) AS acls, count(*) FILTER (permissionType = 'DENY') AS denies, count(DISTINCT principal) AS "
    "principals, count(DISTINCT resourceName) AS names, count(DISTINCT host) AS hosts, count(*) FILTER (patternType = "
    "'PREFIXED') AS prefixes FROM acls"
)


def _numbers(question: ReportQuestion, rules: Sequence[_Row]) -> ReportSection:
    columns = list(zip(*rules, strict=True))[:-1] or [()] * 7
    kinds, names, patterns, principals, hosts, operations, permission_types = map(Counter, columns)
    facts = (
        ("ACLs", len(rules)),
        ("DENY ACLs", permission_types["DENY"]),
        ("principals", len(principals)),
        ("names of resources", len(names)),
        ("hosts (* counts as one)", len(hosts)),
        ("PREFIXED ACLs", patterns["PREFIXED"]),
    )
    count = "SELECT {0}, count(*) AS acls FROM acls GROUP BY ALL ORDER BY acls DESC, {0}"
    parts = [
        Part(
            text=f"{plural(len(rules), 'ACL')} for {plural(len(principals), 'principal')}.",
            command=question.bare_command(f'query "{_NUMBERS}"'),
            table=_table(("what", "number"), ((what, f"{number:,}") for what, number in facts)),
        )
    ]
    for what, column, counter in (
        ("type of resource", "resourceType", kinds),
        ("operation", "operation", operations),
        ("principal", "principal", principals),
    ):
        rows = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
        parts.append(
            Part(
                text=f"ACLs by {what}.",
                command=question.bare_command(f'query "{count.format(column)}"'),
                table=_table((what, "ACLs"), ((text, f"{number:,}") for text, number in rows)),
            )
        )
    return ReportSection(section=Section.NUMBERS, title="ACLs in numbers", parts=tuple(parts))


# Who reaches what.


_LETTERS: Final = {
    AclOperation.READ: "R",
    AclOperation.WRITE: "W",
    AclOperation.CREATE: "C",
    AclOperation.DELETE: "D",
    AclOperation.ALTER: "A",
    AclOperation.ALTER_CONFIGS: "A",
    AclOperation.CLUSTER_ACTION: "K",
    AclOperation.IDEMPOTENT_WRITE: "W",
}
_OTHER_LETTER: Final = "d"
_LEGEND: Final = (
    "What each principal may do, after all DENY rules. A letter means that the principal may do the operation on at "
    "least one resource of the column, not necessarily on every one, from at least one host. R: READ; W: WRITE or "
    "IDEMPOTENT_WRITE; C: CREATE; D: DELETE; A: ALTER or ALTER_CONFIGS; K: CLUSTER_ACTION; d: none of these, only "
    "other operations such as DESCRIBE."
)
_SUPPORTED: Final = {kind: sum(1 << each for each in some) for kind, some in SUPPORTED_OPERATIONS.items()}
"""The operations of requests on a type of resource; ALL on one grants others as well, which no request has."""
_SEPARATOR = re.compile(r"(?<=[._-])")
_WHOLE_TYPES: Final = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.CLUSTER,
    ResourceType.DELEGATION_TOKEN,
    ResourceType.USER,
)


def _access(
    question: ReportQuestion, policy: Policy, rules: Sequence[_Row], unnamed: Iterable[Permission]
) -> ReportSection:
    named: Counter[str] = Counter()
    prefixes: Counter[str] = Counter()
    for kind, name, _, principal, *_ in rules:
        named[str(principal)] += 1
        if name is not None and kind == ResourceType.TOPIC.name and name != WILDCARD:
            prefixes[_SEPARATOR.split(name, maxsplit=1)[0]] += 1
    groups = sorted(prefix for prefix, _ in prefixes.most_common(MOST_PREFIXES))
    principals = [
        each for each, _ in sorted(named.items(), key=lambda item: (-item[1], item[0])) if each != WILDCARD_PRINCIPAL
    ]
    first = [each for each in principals if ":" in each][:MOST_PRINCIPALS]
    rows = [("any other principal", _cells(unnamed, groups))]
    rows += [(each, _cells(permissions(policy, Query(principals=only(each))), groups)) for each in first]
    whole = (each.name if each is ResourceType.CLUSTER else f"at least one {each.name}" for each in _WHOLE_TYPES)
    columns = (*(f"TOPIC {each}*" for each in groups), *whole)
    # Without a principal that is not shown, a type of resource without a letter is one without access.
    is_shown = [len(first) < len(principals) or any(cells[at].text for _, cells in rows) for at in range(len(columns))]
    rows = [(name, tuple(compress(cells, is_shown))) for name, cells in rows]
    matrix = Matrix(
        columns=tuple(compress(columns, is_shown)),
        rows=tuple(rows),
        total=len(principals),
        more_groups=len(prefixes) - len(groups) if is_shown[len(groups)] else 0,
    )
    absent = [each for each, is_here in zip(columns, is_shown, strict=True) if not is_here]
    without = f" Columns without a letter are left out: {', '.join(absent)}." if absent else ""
    return ReportSection(
        section=Section.ACCESS,
        title="Who reaches what",
        parts=(
            Part(
                text=f"{_LEGEND}{without}",
                command=question.command("what-can --principal PRINCIPAL"),
                matrix=matrix,
            ),
        ),
    )


def _cells(granted: Iterable[Permission], groups: Sequence[str]) -> tuple[Cell, ...]:
    masks = [0] * (len(groups) + len(_WHOLE_TYPES))
    inside: list[Names] = [(Subtree(prefix=each),) for each in groups]
    for permission in granted:
        region = permission.region
        if region.resource_type is ResourceType.TOPIC:
            for at, names in enumerate(inside):
                if region.operations & ~masks[at] and common(region.names, names):
                    masks[at] |= region.operations
        if region.resource_type in _WHOLE_TYPES:
            masks[len(groups) + _WHOLE_TYPES.index(region.resource_type)] |= region.operations
    types = (*(ResourceType.TOPIC for _ in groups), *_WHOLE_TYPES)
    return tuple(_cell(mask & _SUPPORTED[each]) for mask, each in zip(masks, types, strict=True))


def _cell(mask: int) -> Cell:
    operations = set(operations_of(mask))
    letters = "".join(dict.fromkeys(letter for each, letter in _LETTERS.items() if each in operations))
    if not operations:
        return Cell(text="", heat=0)
    if not letters:
        return Cell(text=_OTHER_LETTER, heat=1)
    return Cell(text=letters, heat=2 if letters == "R" else 3)


# What changed over time.


def _changes(question: ReportQuestion) -> ReportSection:
    title = "What changed over time"
    if question.choice.source.log is None:
        return ReportSection(section=Section.CHANGES, title=title, missing="the source is a single state, no log")
    history, end = history_of(question.choice.source), question.image.end_offset
    of_state = [each for each in history.changes if each.end_offset <= end]
    changes = [each for each in of_state if not each.first_seen]
    before = len(of_state) - len(changes)
    timed = [each for each in changes if 0 <= each.timestamp <= _LATEST]
    begin = history.begin.end_offset
    since = f" since offset {begin:,}, where the log begins" if begin else ""
    added = sum(each.kind is ChangeKind.ADDED for each in changes)
    newest = sorted(changes, key=lambda each: each.offset, reverse=True)
    existed = f" {plural(before, 'ACL')} existed before." if before else ""
    late = sum(each.timestamp > _LATEST for each in changes)
    beyond = f" {plural(late, 'change')} with a time after the year 9999: not in the chart." if late else ""
    by_day = (
        "SELECT CAST(timestamp AT TIME ZONE 'UTC' AS DATE) AS day, change, count(*) AS n FROM changes "
        "WHERE NOT firstSeen GROUP BY ALL ORDER BY ALL"
    )
    command = question.bare_command(f'query "{by_day}"')
    listing = 'query "SELECT * FROM changes WHERE NOT firstSeen ORDER BY changes.offset DESC"'
    return ReportSection(
        section=Section.CHANGES,
        title=title,
        parts=(
            Part(
                text=f"{plural(added, 'ACL')} added and {len(changes) - added:,} removed{since}.{existed}{beyond}",
                command=command,
                chart=_chart(timed),
            ),
            Part(
                text=_newest(len(changes)),
                command=question.bare_command(listing),
                table=_table(
                    ("offset", "time", "change", "ACL"),
                    (
                        (f"{each.offset:,}", _time(each), each.kind.value, acl_text(each.rule.acl))
                        for each in islice(newest, MOST_ROWS)
                    ),
                    total=len(changes),
                ),
            ),
        ),
    )


def _newest(count: int) -> str:
    """Return the heading of the table of changes."""
    if count <= MOST_ROWS:
        return f"All {count:,} changes, newest first." if count > 1 else f"{plural(count, 'change')}."
    return f"The newest {MOST_ROWS:,} of {count:,} changes."


def _time(change: Change) -> str:
    return timestamp_text(change.timestamp) if change.timestamp >= 0 else "unknown"


def _chart(changes: Sequence[Change]) -> Chart | None:
    """Return bars by the shortest of some periods of which there are not too many."""
    if not changes:
        return None
    times = [datetime.fromtimestamp(each.timestamp / 1000, UTC) for each in changes]
    first, last = min(times), max(times)
    hours = next(
        each
        for each in (1, 24, 168, 720, 8760, 87600, 876000, 8760000)
        if (last - first) / timedelta(hours=each) < _BARS - 1
    )
    step = timedelta(hours=hours)
    begin = first.replace(minute=0, second=0, microsecond=0, hour=first.hour if hours == 1 else 0)
    counts = [[0, 0] for _ in range(int((last - begin) / step) + 1)]
    for change, at in zip(changes, times, strict=True):
        counts[int((at - begin) / step)][change.kind is not ChangeKind.ADDED] += 1
    form = "%Y-%m-%d %H:00" if hours == 1 else "%Y-%m-%d"
    bars = (
        Bar(label=(begin + step * number).strftime(form), added=plus, removed=minus)
        for number, (plus, minus) in enumerate(counts)
    )
    names = {1: "hour", 24: "day", 168: "7 days", 720: "30 days"}
    return Chart(bars=tuple(bars), period=names.get(hours, f"{hours // 24:,} days"))


# Open to everyone, and who administers.


def _granted_rows(granted: Iterable[Permission]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each principal with a name, and one for all others."""
    for permission in granted:
        principals = permission.region.principals
        who = (_who(principals),) if principals.complement else principals.named
        cells: tuple[object, ...] = ("everything", "super.users")
        if permission.rules != (SUPER_USER,):
            cells = (_claim(permission), _reasons(permission))
        yield from ((each, *cells) for each in who)


def _claim(permission: Permission) -> object:
    excerpt, more = _excerpt(permission)
    return "; ".join((access_text(excerpt), *more))


def _excerpt(permission: Permission) -> tuple[Permission, list[str]]:
    """Return what is allowed, of many names that are excluded from it the first; and how many more there are."""
    names, more = [], 0
    for part in permission.region.names:
        if isinstance(part, Subtree):
            prefixes = part.except_prefixes[:_MOST_LISTED]
            literals = part.except_literals[: _MOST_LISTED - len(prefixes)]
            more += len(part.except_prefixes) + len(part.except_literals) - len(prefixes) - len(literals)
            part = evolve(part, except_prefixes=prefixes, except_literals=literals)  # noqa: PLW2901
        names.append(part)
    others = len(names) - _MOST_LISTED
    excerpt = evolve(permission, region=evolve(permission.region, names=tuple(names[:_MOST_LISTED])))
    return excerpt, [
        *([f"and {others:,} more names or prefixes"] if others > 0 else []),
        *([f"except {more:,} more names or prefixes"] if more else []),
    ]


def _everyone(question: ReportQuestion, unnamed: Iterable[Permission]) -> ReportSection:
    table = _table(("principals", "access", "by"), _granted_rows(unnamed))
    text = (
        "Principals not named in any rule have access."
        if table.total
        else "By these rules, principals not named in any rule have no access."
    )
    part = Part(text=text, command=question.command("check no-public"), table=table if table.total else None)
    return ReportSection(section=Section.EVERYONE, title="Open to everyone", parts=(part,))


def _admins(question: ReportQuestion, policy: Policy) -> ReportSection:
    cluster = ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME, pattern_type=PatternType.LITERAL)
    parts = []
    for operation, what in (
        (AclOperation.ALTER, "may change ACLs and SCRAM credentials (ALTER on the cluster)"),
        (AclOperation.CLUSTER_ACTION, "may act as brokers (CLUSTER_ACTION)"),
        (
            AclOperation.ALTER_CONFIGS,
            "may change settings of brokers, and client quotas (ALTER_CONFIGS on the cluster)",
        ),
    ):
        query = Query(resources=(cluster,), operations=1 << operation)
        table = _table(("principals", "access", "by"), _granted_rows(permissions(policy, query)))
        parts.append(
            Part(
                text=f"Principals that {what}{'' if table.total else ': none by these rules'}.",
                command=question.command(f"who-can --operation {operation.name} --cluster"),
                table=table if table.total else None,
            )
        )
    return ReportSection(section=Section.ADMINS, title="Administrators", parts=tuple(parts))


# Lint, and unused ACLs.


def _lint(question: ReportQuestion) -> ReportSection:
    linted = lint_source(question.lint_choice, question.settings, topics=question.topics, accesses=question.accesses)
    objects = list(linted.report.findings)
    counts = Counter((each.finding.severity.value, each.finding.lint) for each in objects)
    by_lint = (
        (severity, lint, BY_ID[lint].title, f"{number:,}") for (severity, lint), number in sorted(counts.items())
    )
    findings = (
        (
            each.finding.severity.value,
            each.finding.lint,
            _List(elements=[acl_text(rule.acl) for rule in each.rules], between="; ", most=3),
            each.finding.lost,
        )
        for each in objects
    )
    notes = "; ".join(filter(None, [linted.not_judged, *linted.report.notes()]))
    flags = (word for path in question.accesses for word in ("--accesses", path))
    command = question.command(shlex.join(["lint", *flags]))
    parts = [
        Part(
            text=f"{plural(len(objects), 'finding')}.{f' {notes}.' if notes else ''}",
            command=command,
            table=_table(("severity", "lint", "what it finds", "findings"), by_lint),
        )
    ]
    if objects:
        table = _table(("severity", "lint", "rules", "impact"), findings)
        parts.append(Part(text="The findings.", command=command, table=table))
    if linted.unread:
        rows = ((each.text(),) for each in linted.unread)
        parts.append(
            Part(text="Content that may hold rules was not read.", command=command, table=_table(("content",), rows))
        )
    return ReportSection(section=Section.LINT, title="Lint", parts=tuple(parts))


def _unused(question: ReportQuestion) -> ReportSection:
    title = "Unused ACLs, and ACLs whose use is unknown"
    if question.unused is None:
        return ReportSection(
            section=Section.UNUSED,
            title=title,
            missing="no index of last use and no access log is given (--index, --accesses)",
        )
    use = question.unused()
    counts: Counter[str] = Counter()
    removable, unjudged = [], []
    removable_count = unjudged_count = removed_unjudged = 0
    for each in use.objects:
        answer = str(each["answer"])
        counts[answer] += 1
        rule = rule_text(each)
        if removed := each.get("removedAt"):
            removed_unjudged += answer == "NOT_JUDGED"
            rule = f"{rule} (removed {removed})"
        if each.get("removable"):
            premises = each.get("premises")
            if isinstance(premises, list) and "requests" in premises:
                rule = f"{rule} (if requests on a {each['resourceType']} are logged)"
            removable_count += 1
            if removable_count <= MOST_ROWS:
                removable.append((answer, rule))
        if answer == "NOT_JUDGED":
            unjudged_count += 1
            if unjudged_count <= MOST_ROWS:
                unjudged.append((rule, str(each["reason"])))
    gone = f", {removed_unjudged:,} of them removed" if removed_unjudged else ""
    parts = [
        Part(
            text=f"Use of each ACL {use.window}.{f' {use.totals}.' if use.totals else ''}",
            command=use.command,
            table=_table(("what it rests on", "value"), use.evidence),
        ),
    ]
    if use.premises:
        limits = _table(("limit",), ((each,) for each in use.premises))
        parts.append(Part(text="Limits of these verdicts.", command=use.command, table=limits))
    limited = ", within the limits above" if use.premises else ""
    can_go = f"{plural(removable_count, 'ACL')} can be removed without changing any decision of the window{limited}."
    none = "No ACL is known to be removable" + (": none was judged." if unjudged_count == counts.total() else ".")
    parts += [
        Part(
            text=f"The verdicts{limited}.",
            command=use.command,
            table=_table(
                ("verdict", "ACLs", "meaning"),
                ((answer, f"{number:,}", use.meanings[answer]) for answer, number in sorted(counts.items())),
            ),
        ),
        Part(
            text=can_go if removable_count else none,
            command=use.command,
            table=_table(("verdict", "ACL"), removable, removable_count) if removable else None,
        ),
        Part(
            text=f"{plural(unjudged_count, 'ACL')} could not be judged{gone}.",
            command=use.command,
            table=_table(("ACL", "reason"), unjudged, unjudged_count) if unjudged else None,
        ),
    ]
    return ReportSection(section=Section.UNUSED, title=title, parts=tuple(parts))


# Drift from desired rules, and tests of rules.


def _drift(question: ReportQuestion) -> ReportSection:
    title = "Drift"
    if question.drift is None:
        missing = "no desired rules are given (--want, --journal)"
        return ReportSection(section=Section.DRIFT, title=title, missing=missing)
    drift = question.drift()
    counts = Counter(kind for kind, _ in drift.rows)
    none = "No drift" if drift.unless is None else f"No drift unless {drift.unless}"
    text = ", ".join(f"{number:,} {kind.lower()}" for kind, number in sorted(counts.items())) or none
    part = Part(
        text=f"{text}; {plural(drift.foreign, 'ACL')} neither desired nor managed.",
        command=drift.command,
        table=_table(("drift", "ACL"), drift.rows) if drift.rows else None,
    )
    return ReportSection(section=Section.DRIFT, title=title, parts=(part,))


def _tests(question: ReportQuestion) -> ReportSection:
    title = "Tests of rules"
    if question.tests is None:
        return ReportSection(section=Section.TESTS, title=title, missing="no tests are given (--tests)")
    results = question.tests()
    part = Part(
        text=f"{plural(results.cases, 'case')}: {len(results.failed):,} failed.",
        command=results.command,
        table=_table(("location", "test", "found"), results.failed) if results.failed else None,
    )
    return ReportSection(section=Section.TESTS, title=title, parts=(part,))
