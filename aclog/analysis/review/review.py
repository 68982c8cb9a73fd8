"""The review of a change: kinds of findings, the verdict, and the document."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

from attrs import evolve, field

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy, is_allowed, only_on
from aclog.analysis.regions import Difference, Direction, Literal, Principals, Request, has_legal_name
from aclog.analysis.rows.report import ReportRow, markdown_text, row_lines
from aclog.analysis.rows.row import Row, summary_text
from aclog.authorizer.acl import NO_ORIGINS, FileOrigin, Origins, StandardAcl, acl_text, code_name, origin_text
from aclog.authorizer.acls_image import AclsImage, RuleChange
from aclog.authorizer.codes import (
    ANONYMOUS_PRINCIPAL,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    ResourceType,
)
from aclog.authorizer.settings import Generation
from aclog.metalog.errors import plural, printable
from aclog.metalog.values import define, frozen

# A document: the content of a review or a plan before formatting; points first, then complete sections.


ITEM_LIMIT = 40
"""How many items of a section are shown by default."""


@frozen(kw_only=True)
class Item:
    """One item: a line, and lines with details."""

    text: str
    details: tuple[str, ...] = ()
    origin: FileOrigin | None = None
    """The line of a file that the item refers to."""
    markdown: str | None = None
    """The text as Markdown with names in code font, for the comment of a review."""
    places: tuple[FileOrigin, ...] = ()
    """The lines that the comment of a review links."""


@frozen(kw_only=True)
class Section:
    """Items of one kind."""

    title: str
    items: tuple[Item, ...]
    folded: bool = False
    """Whether the section is collapsed, where the format supports it."""
    command: str | None = None
    """The command, or the flag, that shows all items."""
    limit: int | None = ITEM_LIMIT
    """How many items are shown; None: all."""


@frozen(kw_only=True)
class Document:
    """A review or a plan for people."""

    head: str
    """The verdict."""
    points: tuple[str, ...]
    """The most important findings, in descending order: at most four."""
    sections: tuple[Section, ...]
    foot: tuple[str, ...]
    """The compared states."""
    command: str = "aclog review"
    """The command that wrote the document."""


# Documents as lines of text, or as Markdown for a comment on a pull request.


LARGEST_COMMENT = 60_000
"""In characters; a comment on GitHub may have 65,536, on GitLab a million."""

LONGEST = 2_000
"""The longest line, in characters; a name may have 32,767."""

_LIST = re.compile(r"^[+-](?= )")
"""The beginning of a list item in Markdown."""
_ESCAPED = r"\\\g<0>"
FOLD, UNFOLD = "<details>", "</details>"


def text_lines(document: Document) -> Iterator[str]:
    """Yield a document as lines for a terminal; collapsed sections with a command are only counted."""
    yield from map(_cut, _text(document))


def markdown_lines(document: Document) -> Iterator[str]:
    """Yield a document as Markdown, cut with a notice if it is too long for a comment; `marker` is the last line."""
    yield from fitting(_markdown(document), document.command)


def fitting(lines: Iterable[str], command: str) -> Iterator[str]:
    """Yield the lines of a comment, cut with a notice if they are too long for one; `marker` is the last line."""
    room, is_folded = LARGEST_COMMENT, False
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            yield from ("", UNFOLD) if is_folded else ()
            yield from ("", f"The rest does not fit into a comment: `{command}` shows it.", marker(command))
            return
        is_folded = line == FOLD or (is_folded and line != UNFOLD)
        yield line
    yield marker(command)


def marker(command: str) -> str:
    """Return the line by which a job finds its previous comment."""
    return f"<!-- {command} -->"


def _text(document: Document) -> Iterator[str]:
    yield document.head
    yield from (f"- {point}" for point in document.points)
    for section in document.sections:
        yield ""
        if section.folded and section.command is not None:
            yield f"{section.title}: {len(section.items):,} (see {section.command})"
            continue
        yield f"{section.title}:"
        for item in section.items[: section.limit]:
            yield f"  {item.text}"
            yield from (f"    {line}" for line in item.details)
        yield from (f"  {line}" for line in _rest(section))
    yield ""
    yield from document.foot


def _markdown(document: Document) -> Iterator[str]:
    yield f"### {_escaped(document.head)}"
    yield from (f"- {_escaped(point)}" for point in document.points)
    for section in document.sections:
        yield ""
        title = f"<b>{_escaped(section.title)}</b>"
        yield from ((FOLD, f"<summary>{title}</summary>", "") if section.folded else (title, ""))
        for item in section.items[: section.limit]:
            yield from _markdown_item(item)
        yield from (f"- {_escaped(line)}" for line in _rest(section))
        if section.folded:
            yield from ("", UNFOLD)
    yield ""
    yield from (f"<sub>{_escaped(line)}</sub><br>" for line in document.foot)


def _markdown_item(item: Item) -> Iterator[str]:
    yield f"- {_LIST.sub(_ESCAPED, _escaped(item.text))}"
    yield from (f"  <br>{_escaped(line)}" for line in item.details)


def _escaped(line: str) -> str:
    return markdown_text(_cut(line))


def _cut(line: str) -> str:
    """Return a line without control characters, and cut to the longest length."""
    text = printable(line[: LONGEST + 1])
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(line):,} characters)"


def _rest(section: Section) -> Iterator[str]:
    remaining = 0 if section.limit is None else len(section.items) - section.limit
    if remaining > 0:
        yield f"and {remaining:,} more" + (f": {section.command} shows all" if section.command is not None else "")


# The kinds of findings of a review, and those that make it fail.


class Kind(StrEnum):
    """A kind of finding."""

    GAINED = "gained"
    """A denied request becomes allowed."""
    LOST = "lost"
    """An allowed request becomes denied."""
    BREAKS = "breaks"
    """A recent access would be denied."""
    EVERYONE = "everyone"
    """Everyone gains access: clients that no ACL names, or unauthenticated clients."""
    PROOFS = "proofs"
    """A proof is refuted."""
    TESTS = "tests"
    """A test of ACLs fails."""
    LINT_ERROR = "lint-error"
    """The change adds a lint finding of severity error."""
    LINT_WARNING = "lint-warning"
    """The change adds a lint finding of severity warning."""
    CHECKS = "checks"
    """The change modifies the checks themselves: settings, tests, or data about the cluster."""
    UNREAD = "unread"
    """Content of either side that may hold rules was not read."""


DEFAULT_FAIL_ON = frozenset({Kind.BREAKS, Kind.EVERYONE, Kind.PROOFS, Kind.TESTS, Kind.LINT_ERROR})
"""Without GAINED and LOST: most changes are made to grant or revoke access, but few to grant it to everyone."""


# The points at the top of a review: one of each kind, the most important kind first, then more of the first kinds.


ROOM = 4
"""The number of points after the verdict: five lines with it."""


@frozen(kw_only=True)
class Points:
    """Texts of one kind, the most important first."""

    texts: Sequence[str]
    """The texts worth a line, at most ROOM; or all."""
    total: int | None = None
    """The total number, if larger than the number of texts."""
    after: str = ""
    """Text after the last point that is shown."""

    def top(self, count: int) -> list[str]:
        """Return the first texts; the last one includes the number of the others."""
        remaining = (self.total or len(self.texts)) - count
        texts = [*self.texts[:count]]
        if texts:
            texts[-1] += (f" (and {remaining:,} more)" if remaining > 0 else "") + self.after
        return texts


def selection(kinds: Sequence[Points]) -> list[str]:
    """Return the points that fit: one of each kind, then more of the first kinds."""
    nonempty = [each for each in kinds if each.texts][:ROOM]
    counts = [1] * len(nonempty)
    for at, each in enumerate(nonempty):
        counts[at] += min(ROOM - sum(counts), len(each.texts) - 1)
    return [text for each, count in zip(nonempty, counts, strict=True) for text in each.top(count)]


# Proofs, tests and lint findings of a change.


class Protection(StrEnum):
    """What a change must not do to a resource, by the key of `review` in aclog.toml."""

    UNTOUCHED = "untouched"
    """Change any decision."""
    NO_GAIN = "no-gain"
    """Allow a request that was denied."""


@frozen(kw_only=True)
class Proof:
    """A property that a change must preserve."""

    text: str
    negation: str
    """What is so instead, or may be, if it does not hold."""
    holds: bool
    details: tuple[str, ...] = ()
    """The counterexample."""
    messages: tuple[str, ...] = ()
    """The same in the words of SARIF."""
    only: Generation | None = None
    """The only generation of Kafka that refutes it, if several may decide."""
    setting: Protection = Protection.UNTOUCHED
    resource: str = ""
    """The protected resource, as aclog.toml has it."""


@frozen(kw_only=True)
class TestsOutcome:
    """The cases that failed."""

    __test__ = False  # not a class of tests for pytest

    failures: tuple[Item, ...] = ()
    passed: int = 0
    left_out: tuple[str, ...] = ()
    """A note for each file that was not run, because it tests other ACLs."""


@frozen(kw_only=True)
class LintOutcome:
    """Lint findings that a change adds, keeps and fixes."""

    new_errors: tuple[Item, ...] = ()
    new_warnings: tuple[Item, ...] = ()
    old: tuple[Item, ...] = ()
    resolved: tuple[Item, ...] = ()
    suppressed: tuple[Item, ...] = ()
    """Findings that the change suppresses."""


# Content that was not read, and may hold rules.


@frozen(kw_only=True)
class UnreadItem:
    """An object or a file of either side that was not read."""

    label: str
    """Its kind, such as `terraform:redpanda_acl`."""
    item: Item
    """Its location with the label, and the reason."""
    is_changed: bool
    """Whether the change touches its file."""


_UNREAD_PLACES = 2
_UNREAD_LABELS = 4


def unread_lines(unread: Sequence[UnreadItem]) -> Iterator[str]:
    """Yield a line about the content that the change touches, and one about the rest; none without any."""
    for is_changed, head in ((True, "changed, but not read, so it may change rules"), (False, "not read")):
        by_label: dict[str, list[str]] = defaultdict(list)
        for each in unread:
            if each.is_changed is is_changed:
                place = "" if each.item.origin is None else origin_text(each.item.origin)
                by_label[each.label].append(place)
        parts = [f"{label} {len(places):,} ({_first(places)})" for label, places in sorted(by_label.items())]
        more = f" and {len(parts) - _UNREAD_LABELS:,} more kinds" if parts[_UNREAD_LABELS:] else ""
        if parts:
            yield f"{head}: {'; '.join(parts[:_UNREAD_LABELS])}{more}"


def _first(places: Sequence[str]) -> str:
    more = f" and {len(places) - _UNREAD_PLACES:,} more" if places[_UNREAD_PLACES:] else ""
    return ", ".join(places[:_UNREAD_PLACES]) + more


# Whether a change grants something to everyone.


def gives_everyone(difference: Difference) -> bool:
    """Return whether a difference allows everyone, or all unauthenticated clients, what clients request."""
    region = difference.region
    return difference.direction is Direction.GAINED and _holds_everyone(region.principals) and has_legal_name(region)


def tells_of_everyone(row: Row) -> bool:
    """Return whether a row contains such a difference."""
    gained, summary = Direction.GAINED in row.directions, row.summary
    if summary is not None and row.principals.complement:
        return gained and row.legal and summary.everyone_else
    return gained and row.legal and _holds_everyone(row.principals)


def _holds_everyone(principals: Principals) -> bool:
    return principals.complement or ANONYMOUS_PRINCIPAL in principals.named


# Recent accesses that a change breaks or newly allows, folded for people.


_NAME_LIMIT = 3


@frozen(kw_only=True)
class Flipped:
    """Accesses of one principal with one operation on resources of one type that change in the same direction."""

    direction: Direction
    principal: str
    operation: int
    resource_type: int
    names: tuple[str, ...]
    """The names, most frequently accessed first."""
    accesses: int
    only: Generation | None = None
    """The only generation of Kafka in which they change, if several may decide."""

    def text(self) -> str:
        """Return such as `User:a READ TOPIC orders, bills and 4 more: 340 accesses`."""
        operation, kind = code_name(AclOperation, self.operation), code_name(ResourceType, self.resource_type)
        more = len(self.names) - _NAME_LIMIT
        names = ", ".join(self.names[:_NAME_LIMIT]) + (f" and {more:,} more" if more > 0 else "")
        count = f"{self.accesses:,} access{'es' * (self.accesses != 1)}{only_on(self.only)}"
        return f"{self.principal} {operation} {kind} {names}: {count}"


def flipped(counts: Mapping[Request, int], old: Policy, new: Policy) -> list[Flipped]:
    """Return the accesses that two policies decide differently, lost ones first, by their number."""
    groups: dict[tuple[Direction, str, int, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for request, count in counts.items():
        was, now = is_allowed(old, request), is_allowed(new, request)
        if was is not now:
            direction = Direction.GAINED if now else Direction.LOST
            key = (direction, request.principal, request.operation, request.resource_type)
            groups[key][request.resource_name] += count
    flips = [
        Flipped(
            direction=direction,
            principal=principal,
            operation=operation,
            resource_type=kind,
            names=tuple(sorted(names, key=lambda name: (-names[name], name))),
            accesses=sum(names.values()),
        )
        for (direction, principal, operation, kind), names in groups.items()
    ]
    return sorted(flips, key=lambda each: (each.direction is Direction.GAINED, -each.accesses, each.text()))


# ACLs that are in another file after a change.


@frozen(kw_only=True)
class Move:
    """The number of unchanged ACLs that moved from one file to another."""

    old: str
    new: str
    rules: int

    def text(self) -> str:
        """Return such as `3 rules moved from kafka/a.yaml to kafka/b.yaml`."""
        return f"{self.rules:,} rule{'s' * (self.rules != 1)} moved from {self.old} to {self.new}"


@frozen(eq=False, kw_only=True)
class Placement:
    """The locations of the ACLs of one side."""

    origins: Origins = NO_ORIGINS
    path_of: Callable[[str], str] = str
    """Returns a file's path from the top of the repository, given the file as in origins."""

    def files(self, rule: StandardAcl) -> tuple[str, ...]:
        """Return the files with an ACL, as paths from the top of the repository."""
        paths = {self.path_of(each.file) for each in self.origins.of(rule) if isinstance(each, FileOrigin)}
        return tuple(sorted(paths))


def moves(rules: Iterable[StandardAcl], before: Placement, after: Placement) -> list[Move]:
    """Return the moves of some ACLs, the largest first."""
    counted: Counter[tuple[str, str]] = Counter()
    for rule in rules:
        old, new = before.files(rule), after.files(rule)
        sources, reached = [each for each in old if each not in new], [each for each in new if each not in old]
        if sources and reached:  # otherwise it is in fewer or more files than before, and did not move
            counted[", ".join(sources), ", ".join(reached)] += 1
    ordered = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    return [Move(old=old, new=new, rules=count) for (old, new), count in ordered]


# ACLs that move from one principal to another: a renamed or a mistyped principal.


@frozen(kw_only=True)
class Rename:
    """All ACLs that one principal loses are granted to another one."""

    old: str
    new: str
    rules: int
    old_remains: bool
    """Whether the old principal has other ACLs after the change."""
    new_existed: bool
    """Whether the new principal had ACLs before the change."""

    @property
    def is_whole(self) -> bool:
        """Whether one principal replaces another: the new one had no ACLs before, or the old one has none left."""
        return not self.old_remains or not self.new_existed

    def text(self) -> str:
        """Return such as `principal renamed: User:a -> User:b: 3 rules; User:a has none left`."""
        what = "principal renamed" if self.is_whole else "rules reassigned"
        parts = [f"{what}: {self.old} -> {self.new}: {self.rules:,} rule{'s' * (self.rules != 1)}"]
        if not self.old_remains:
            parts.append(f"{self.old} has none left")
        if not self.new_existed:
            parts.append(f"{self.new} had none before")
        return "; ".join(parts)


def renames(changes: Iterable[RuleChange], old: AclsImage, new: AclsImage) -> list[Rename]:
    """Return the renames among the changes between two images, by principal.

    `User:*` is everyone: ACLs that move from it or to it are no rename.
    """
    removed: dict[str, set[StandardAcl]] = defaultdict(set)
    added: dict[str, set[StandardAcl]] = defaultdict(set)
    for change in changes:
        if change.acl.principal == WILDCARD_PRINCIPAL:
            continue
        (added if change.added else removed)[change.acl.principal].add(evolve(change.acl, principal=""))
    by_rules: dict[frozenset[StandardAcl], list[str]] = defaultdict(list)
    for principal in sorted(added):
        by_rules[frozenset(added[principal])].append(principal)
    entries = []
    before, after = (old.principals(), new.principals()) if removed and added else (set[str](), set[str]())
    for principal in sorted(removed):
        takers = by_rules.get(frozenset(removed[principal]), [])
        if len(takers) == 1:  # if several get the same ACLs, none of them is a rename
            taker = takers[0]
            entries.append(
                Rename(
                    old=principal,
                    new=taker,
                    rules=len(removed[principal]),
                    old_remains=principal in after,
                    new_existed=taker in before,
                )
            )
    return entries


# Unchanged ACLs that Terraform would delete and recreate, because their addresses change.


Addresses = Mapping[tuple[str, StandardAcl], frozenset[str]]
"""The Terraform addresses of each ACL, by the directory of its files: `module.team.kafka_acl.read[2]`."""


@frozen(kw_only=True)
class Replacement:
    """The ACLs of one resource whose addresses change."""

    resource: str
    """The address without the index, and the directory: `module.team.kafka_acl.read in kafka/teams`."""
    old: str
    """The address of one of the ACLs."""
    new: str
    """The address of the same ACL after the change."""
    rules: int

    def text(self) -> str:
        """Return the consequence for the ACLs."""
        rules = f"{self.rules:,} rule{'s' * (self.rules != 1)}"
        return (
            f"Terraform replaces {rules} of {self.resource}: the address changes, such as {self.old} -> {self.new}, so "
            "each is deleted and recreated, in any order, and may be missing in between or permanently (`moved` blocks "
            "prevent it)"
        )


def replacements(before: Addresses, after: Addresses) -> list[Replacement]:
    """Return the replacements, the largest first, given the addresses of the ACLs of both sides."""
    moved: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key, addresses in after.items():
        sources, reached = before.get(key, frozenset()) - addresses, addresses - before.get(key, frozenset())
        if sources and reached:
            directory, _ = key
            old = min(sources)
            moved[_resource(old) + (f" in {directory}" if directory else "")].append((old, min(reached)))
    entries = [
        Replacement(resource=resource, old=min(pairs)[0], new=min(pairs)[1], rules=len(pairs))
        for resource, pairs in moved.items()
    ]
    return sorted(entries, key=lambda each: (-each.rules, each.resource))


def _resource(address: str) -> str:
    return address.rsplit("[", 1)[0] if address.endswith("]") else address


# The review: all findings of a change, and its verdict.


@frozen(kw_only=True)
class LinkedPlace:
    """A line of a file, for the comment."""

    file: str
    """From the top of the repository."""
    line: int
    url: str | None = None
    """The address of the line at its commit; None if it is unknown."""
    others: "tuple[LinkedPlace, ...]" = ()
    """The other lines of a chain of calls of modules."""


def _unlinked(place: FileOrigin) -> LinkedPlace:
    first, *others = (LinkedPlace(file=each.file, line=each.line) for each in place.steps)
    return evolve(first, others=tuple(others))


@define(eq=False, kw_only=True)
class Review:
    """The findings of a change, and the criteria of the verdict."""

    comparisons: Mapping[Generation | None, Comparison]
    """By the generation of Kafka that may decide; under None, if there is only one."""
    rows: Sequence[ReportRow]
    """The rows of all comparisons; rows of one generation only are marked."""
    renames: Sequence[Rename] = ()
    moves: Sequence[Move] = ()
    replacements: Sequence[Replacement] = ()
    proofs: Sequence[Proof] = ()
    tests: TestsOutcome = field(factory=TestsOutcome)
    lint: LintOutcome = field(factory=LintOutcome)
    flipped: Sequence[Flipped] = ()
    own_checks: Sequence[str] = ()
    """The files of the checks themselves that the change modifies."""
    unread: Sequence[UnreadItem] = ()
    """Content of either side that was not read and may hold rules."""
    doubts: Sequence[str] = ()
    """Reasons why the review may compare other states than intended."""
    foot: Sequence[str] = ()
    fail_on: Collection[Kind] = DEFAULT_FAIL_ON
    place_of: Callable[[FileOrigin], LinkedPlace] = _unlinked
    """Returns a location as the comment shows it."""

    @property
    def comparison(self) -> Comparison:
        """The only comparison, or that of the oldest Kafka."""
        return next(iter(self.comparisons.values()))

    @cached_property
    def _gives_everyone(self) -> bool:
        return any(any(map(gives_everyone, each.differences)) for each in self.comparisons.values())

    @property
    def kinds(self) -> set[Kind]:
        """The kinds of the findings."""
        directions = {direction for report in self.rows for direction in report.row.directions}
        present = {
            Kind.GAINED: Direction.GAINED in directions,
            Kind.LOST: Direction.LOST in directions,
            Kind.EVERYONE: self._gives_everyone,
            Kind.BREAKS: any(each.direction is Direction.LOST for each in self.flipped),
            Kind.PROOFS: not all(proof.holds for proof in self.proofs),
            Kind.TESTS: bool(self.tests.failures),
            Kind.LINT_ERROR: bool(self.lint.new_errors),
            Kind.LINT_WARNING: bool(self.lint.new_warnings),
            Kind.CHECKS: bool(self.own_checks),
            Kind.UNREAD: bool(self.unread),
        }
        return {kind for kind, is_there in present.items() if is_there}

    @property
    def fails(self) -> bool:
        """Whether there is a finding that is not accepted."""
        return bool(self.kinds & set(self.fail_on))


# The order of the rows of a change, the riskiest first.


_NARROW = 1 << 15
"""Longer than any name: a single name is narrower than every prefix."""

Risk: TypeAlias = tuple[bool, bool, bool, bool, int, int, int]


def risk(report: ReportRow) -> Risk:
    """Return the sort key of rows, the riskiest first.

    In this order: legal names, a DENY that decided or decides, everyone, the cluster, accesses that flip, existing
    topics, short prefixes. A heuristic: it affects the order, not the content.
    """
    row = report.row
    deciding = row.before if row.directions[0] is Direction.GAINED else row.after
    return (
        not row.legal,
        not is_deny(deciding),
        not row.principals.complement,
        all(clause.resource_type != ResourceType.CLUSTER for clause in row.clauses),
        -(report.accesses or 0),
        -(report.topics or 0),
        min(
            _NARROW if isinstance(part, Literal) else len(part.prefix)
            for clause in row.clauses
            for part in clause.names
        ),
    )


def is_deny(decided: StandardAcl | str | None) -> bool:
    """Return whether a DENY decided."""
    return isinstance(decided, StandardAcl) and decided.permission_type == AclPermissionType.DENY


# The document of a review, by importance: the verdict, the top points, and the complete sections.


NOTHING = "no effective change"
NOTHING_READ = "no effective change in what was read"
_PLACES = 5
"""How many changed lines behind a row are shown."""
_TOPICS = 3
"""How many existing topics are named."""


def document_of(review: Review) -> Document:
    """Return the document of a review."""
    return _Writer(review).document()


def verdict_text(review: Review) -> str:
    """Return the verdict before the counts; it is not "passes": there may be problems that no check covers."""
    return "FAILS: " if review.fails else "no condition of --fail-on is met; "


def counts_of(review: Review) -> Iterator[str]:
    """Yield the number of findings of each kind, as the verdict has them."""
    counts = Counter(direction for report in review.rows for direction in report.row.directions)
    gained, lost = counts[Direction.GAINED], counts[Direction.LOST]
    unread = review.unread
    moved = f"access gained: {plural(gained, 'row')}, lost: {plural(lost, 'row')}"
    yield moved if review.rows else NOTHING_READ if unread else NOTHING
    changed = sum(each.is_changed for each in unread)
    not_read = [
        *_counted(changed, "changed object not read", "changed objects not read"),
        *_counted(len(unread) - changed, "object not read", "objects not read"),
    ]
    if not_read and Kind.UNREAD not in review.fail_on:
        not_read[-1] += f" (fails with --fail-on {Kind.UNREAD})"
    yield from not_read
    if Kind.EVERYONE in review.kinds:
        yield "everyone gains access"
    refuted = sum(not proof.holds for proof in review.proofs)
    yield from _counted(refuted, "proof refuted", "proofs refuted")
    yield from _counted(len(review.tests.failures), "test fails", "tests fail")
    broken = sum(each.accesses for each in review.flipped if each.direction is Direction.LOST)
    yield from _counted(broken, "recent access breaks", "recent accesses break")
    yield from _counted(len(review.lint.new_errors), "new lint error", "new lint errors")
    yield from _counted(len(review.lint.new_warnings), "new lint warning", "new lint warnings")
    yield from _counted(len(review.lint.suppressed), "finding suppressed", "findings suppressed")
    replaced = sum(each.rules for each in review.replacements)
    yield from _counted(replaced, "rule replaced by Terraform", "rules replaced by Terraform")
    yield from _counted(len(review.own_checks), "check file changed", "check files changed")


@frozen(eq=False)
class _Writer:
    review: Review

    def document(self) -> Document:
        """Return the whole document."""
        return Document(
            head=f"aclog review: {verdict_text(self.review)}{', '.join(counts_of(self.review))}",
            points=tuple(selection(list(self._points()))),
            sections=tuple(section for section in self._sections() if section.items),
            foot=tuple(self.review.foot),
        )

    def _points(self) -> Iterator[Points]:
        """Yield the points in descending importance; the head counts those that do not fit."""
        refuted = [f"refuted: {proof.negation}{only_on(proof.only)}" for proof in self.review.proofs if not proof.holds]
        yield Points(texts=[*refuted, *(f"test fails: {failure.text}" for failure in self.review.tests.failures)])
        yield Points(texts=[*unread_lines(self.review.unread)])
        yield Points(texts=self.review.doubts)
        broken = self._broken_text()
        yield Points(texts=[each.text() for each in self.review.renames], after=broken)
        broken = "" if self.review.renames else broken
        ranked = [report for report in self._ranked() if not self._is_of_rename(report)]
        for direction in Direction:
            rows = [report for report in ranked if report.row.directions[0] is direction]
            loses = any(Direction.LOST in report.row.directions for report in rows)
            yield Points(texts=[*map(self._row_text, rows[:ROOM])], total=len(rows), after=broken if loses else "")
            broken = "" if loses else broken
        if self.review.own_checks:
            yield Points(texts=[f"the change modifies the checks themselves: {', '.join(self.review.own_checks)}"])
        yield _one_of_each_lint("new lint finding", (*self.review.lint.new_errors, *self.review.lint.new_warnings))
        yield _one_of_each_lint("suppressed lint finding", self.review.lint.suppressed)
        for changes in (self.review.replacements, self.review.moves):
            yield Points(texts=[each.text() for each in changes[:1]], total=len(changes))

    def _ranked(self) -> list[ReportRow]:
        return sorted(self.review.rows, key=lambda report: (not tells_of_everyone(report.row), risk(report)))

    def _is_of_rename(self, report: ReportRow) -> bool:
        """Return whether a rename explains a row: both concern the same principals, and no others."""
        renamed = {name for each in self.review.renames if each.is_whole for name in (each.old, each.new)}
        principals, summary = report.row.principals, report.row.summary
        by = () if summary is None else (rule.principal for rule in summary.cause.rules)
        return not principals.complement and renamed.issuperset((*principals.named, *by))

    def _row_text(self, report: ReportRow) -> str:
        """Return a row on one line, with the counts of a summary and a removed DENY."""
        row = report.row
        head, *_ = row_lines(report)
        text = head if row.summary is None else f"{head}: {summary_text(row, row.summary)}"
        removed = row.before if is_deny(row.before) and self._is_removed(row.before) else None
        removal = f"; removed: {acl_text(removed)}" if isinstance(removed, StandardAcl) else ""
        return f"{text}{self._topics_text(report)}{removal}"

    def _is_removed(self, rule: StandardAcl | str | None) -> bool:
        return any(not change.added and change.acl == rule for change in self.review.comparison.changes)

    def _broken_text(self) -> str:
        broken = [each for each in self.review.flipped if each.direction is Direction.LOST]
        if not broken:
            return ""
        more = f", and {len(broken) - 1:,} more kinds of access" if broken[1:] else ""
        return f"; breaks {broken[0].text()}{more}"

    def _topics_text(self, report: ReportRow) -> str:
        """Return the existing topics of a row, such as `; covers 12 existing topics: a, b, c, ...`."""
        topics = self.review.comparison.topics
        names = [] if topics is None else sorted(topics.of_clauses(report.row.clauses))
        text = ", ".join(names[:_TOPICS]) + (", ..." if len(names) > _TOPICS else "")
        return f"; {report.counts()}: {text}" if names else ""

    def _row_item(self, report: ReportRow) -> Item:
        head, *details = row_lines(report)
        counts, topics = report.counts(), self._topics_text(report)
        lines = [topics.removeprefix("; ") if topics and line.strip() == counts else line.strip() for line in details]
        places = ", ".join(map(origin_text, report.places[:_PLACES]))
        more = f" and {len(report.places) - _PLACES:,} more" if len(report.places) > _PLACES else ""
        return Item(text=head, details=(*lines, f"changed: {places}{more}") if places else tuple(lines))

    def _sections(self) -> Iterator[Section]:
        review, lint = self.review, self.review.lint
        refuted = [_refuted(each) for each in review.proofs if not each.holds]
        proved = [Item(text=f"PROVED: {each.text}") for each in review.proofs if each.holds]
        yield Section(title="Proofs", items=(*refuted, *proved))
        yield Section(title="Failed tests", items=review.tests.failures)
        changed = [each.item for each in review.unread if each.is_changed]
        yield Section(title="Changed, and not read", items=tuple(changed), limit=None)
        yield Section(title="Effective change", items=tuple(map(self._row_item, self._ranked())), command="aclog diff")
        yield Section(title="Renamed principals", items=tuple(Item(text=each.text()) for each in review.renames))
        for direction, title in ((Direction.LOST, "broken"), (Direction.GAINED, "newly allowed")):
            items = tuple(Item(text=each.text()) for each in review.flipped if each.direction is direction)
            yield Section(title=f"Recent accesses {title}", items=items)
        yield Section(title="New lint findings", items=(*lint.new_errors, *lint.new_warnings))
        yield Section(title="Newly suppressed lint findings", items=lint.suppressed)
        yield Section(
            title="Replaced by Terraform", items=tuple(Item(text=each.text()) for each in review.replacements)
        )
        unread = tuple(each.item for each in review.unread if not each.is_changed)
        yield Section(title="Not read", items=unread, folded=True)
        yield Section(title="Moved", items=tuple(Item(text=each.text()) for each in review.moves), folded=True)
        yield Section(title="Fixed lint findings", items=lint.resolved, folded=True)
        yield Section(title="Lint findings older than this change", items=lint.old, folded=True, command="aclog lint")


def _refuted(proof: Proof) -> Item:
    return Item(text=f"REFUTED: {proof.negation}{only_on(proof.only)}", details=proof.details)


def _one_of_each_lint(what: str, items: Sequence[Item]) -> Points:
    """Return the points with the first finding of each lint, such as `new lint finding [13 consumer-...]: ...`."""
    first: dict[str, str] = {}
    for item in items:
        lint, _, text = item.text.partition(": ")
        first.setdefault(lint, text)
    return Points(texts=[f"{what} [{lint}]: {text}" for lint, text in first.items()], total=len(items))


def _counted(count: int, one: str, many: str) -> Iterator[str]:
    if count:
        yield f"{count:,} {one if count == 1 else many}"
