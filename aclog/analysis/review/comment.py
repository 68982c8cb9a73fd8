"""The comment of a review on a pull request: Markdown with the risk first, one table, and details that are folded."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import chain, starmap

from attrs import evolve

from aclog.analysis import regions
from aclog.analysis.policy import only_on
from aclog.analysis.review.review import (
    FOLD,
    NOTHING,
    NOTHING_READ,
    UNFOLD,
    Flipped,
    Item,
    Kind,
    LinkedPlace,
    Move,
    Rename,
    Replacement,
    Review,
    counts_of,
    fitting,
    is_deny,
    risk,
    tells_of_everyone,
    verdict_text,
)
from aclog.analysis.rows.report import ReportRow, cluster_title, decided_by_text, markdown_text, request_text
from aclog.analysis.rows.row import Bound, Clause, Row, is_allow, summary_text
from aclog.authorizer.acl import FileOrigin, StandardAcl, acl_text
from aclog.authorizer.codes import WILDCARD, AclOperation, ResourceType
from aclog.metalog.errors import plural, printable
from aclog.metalog.values import frozen

# Names in code font: untrusted text that must not become markup, a mention, a link or a cell of its own.


LONGEST_NAME = 120
"""The longest text in code font, in characters; a name may have 32,767."""

_FENCED = re.compile(r"[^`|\\]+")
"""Texts that a code span shows as they are, also in a table."""
_OTHER_DIRECTION = {"R", "AL", "AN"}
"""Classes of characters that are written from right to left and reorder what follows, outside of an own element."""


def code(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a text in code font: one line, cut, and shown as it is by every renderer of Markdown."""
    visible = printable(text[: longest + 1])
    if len(visible) > longest:
        visible = f"{visible[:longest]}... ({len(text):,} characters)"
    if _FENCED.fullmatch(visible) and visible == visible.strip() and not _turns(visible):
        return f"`{visible}`"
    escaped = "".join(each if each.isalnum() or each in "-:" else f"&#{ord(each)};" for each in visible)
    return f'<code dir="ltr">{escaped.replace("&#64;", "&#64;&#8203;")}</code>'


def _turns(text: str) -> bool:
    return not text.isascii() and any(unicodedata.bidirectional(each) in _OTHER_DIRECTION for each in text)


def _codes(texts: Sequence[str], most: int = regions.LIST_LIMIT) -> str:
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(map(code, texts[:most])) + more


# The risk of a row: what an outsider must see first. A heuristic of names and operations; docs/pull-requests.md has it.


class Risk(IntEnum):
    """How much a changed access can do."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2

    @property
    def mark(self) -> str:
        """The coloured circle of a level."""
        return _MARKS[self]


_MARKS = {
    Risk.LOW: "\N{MEDIUM WHITE CIRCLE}",
    Risk.MEDIUM: "\N{LARGE ORANGE CIRCLE}",
    Risk.HIGH: "\N{LARGE RED CIRCLE}",
}
_SHORT = 3
"""Characters of a prefix that counts as short."""
_MANY = 20
"""Existing topics from which a row covers many."""
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")
_HARMLESS = 1 << AclOperation.DESCRIBE | 1 << AclOperation.DESCRIBE_CONFIGS
_READING = _HARMLESS | 1 << AclOperation.READ
_CHANGING = 1 << AclOperation.DELETE | 1 << AclOperation.ALTER | 1 << AclOperation.ALTER_CONFIGS
_POWERS = {
    AclOperation.ALTER: "it can change ACLs",
    AclOperation.ALTER_CONFIGS: "it can change configurations of brokers",
    AclOperation.CLUSTER_ACTION: "it can act as a broker",
}
"""On the cluster."""


@frozen(kw_only=True)
class Judgement:
    """The risk of a row, and its reasons, the weightiest first."""

    risk: Risk
    reasons: tuple[tuple[Risk, str], ...] = ()
    """As Markdown, each with the risk that it makes."""


def judge(report: ReportRow, broken: int = 0, lints: Collection[str] = ()) -> Judgement:
    """Return the risk of a row, and the reasons for it.

    `broken`: the recent accesses that it breaks. `lints`: the lints with new findings on its rules.
    """
    row = report.row
    if not row.legal:
        return Judgement(risk=Risk.LOW, reasons=((Risk.LOW, "no topic can have such a name"),))
    reasons = [(Risk.HIGH, f"breaks {broken:,} recent access{'es' * (broken != 1)}")] if broken else []
    reasons += _gain_reasons(report) if regions.Direction.GAINED in row.directions else ()
    if regions.Direction.LOST in row.directions:
        reasons += _loss_reasons(report)
    reasons += ((Risk.MEDIUM, f"lint {markdown_text(_short(each))}") for each in lints)
    reasons.sort(key=lambda each: -each[0])
    texts = tuple(dict.fromkeys((each, text) for each, text in reasons if text))
    return Judgement(risk=reasons[0][0] if reasons else Risk.LOW, reasons=texts)


def _gain_reasons(report: ReportRow) -> Iterator[tuple[Risk, str]]:
    row = report.row
    if tells_of_everyone(row):
        is_all = row.principals.complement or row.summary is not None
        yield Risk.HIGH, "" if is_all else "clients without a login"
    if is_deny(row.before):
        yield Risk.HIGH, f"no longer denied by {code(_rule_text(row.before))}"
    for clause in row.clauses:
        yield from _clause_reasons(clause)
    if report.topics is not None and report.topics > _MANY:
        yield Risk.MEDIUM, ""  # the count is in the cell anyway


def _clause_reasons(clause: Clause) -> Iterator[tuple[Risk, str]]:
    kind, mask = clause.resource_type, clause.operations
    if kind == ResourceType.CLUSTER:
        yield from ((Risk.HIGH, text) for operation, text in _POWERS.items() if mask >> operation & 1)
    elif kind == ResourceType.USER:
        yield Risk.HIGH, "tokens of other users"
    elif any(map(_is_everything, clause.names)):
        yield (Risk.MEDIUM if not mask & ~_HARMLESS else Risk.HIGH), ""  # the cell has "all topics"
    elif kind == ResourceType.TOPIC:
        internal = [each for each in INTERNAL_TOPICS if regions.contains(clause.names, each)]
        if internal and mask & ~_HARMLESS:
            yield (Risk.HIGH if mask & ~_READING else Risk.MEDIUM), f"{_internal_text(clause, internal)} of Kafka"
    prefixes = [part.prefix for part in clause.names if isinstance(part, regions.Subtree)]
    if any(0 < len(prefix) <= _SHORT for prefix in prefixes):
        yield Risk.MEDIUM, "a short prefix"
    if mask & 1 << AclOperation.DELETE and kind == ResourceType.TOPIC:
        yield Risk.MEDIUM, "it can delete the topic" if not prefixes else "it can delete topics"
    elif prefixes and mask & _CHANGING and kind != ResourceType.CLUSTER:
        yield Risk.MEDIUM, ""


def _internal_text(clause: Clause, internal: Sequence[str]) -> str:
    if all(isinstance(part, regions.Literal) for part in clause.names):
        return "an internal topic"
    return f"the internal topic{'s' * (len(internal) > 1)} {_codes(internal)}"


def _rule_text(rule: StandardAcl | str | None) -> str:
    return acl_text(rule) if isinstance(rule, StandardAcl) else str(rule)


def _is_everything(part: regions.NamePart) -> bool:
    return isinstance(part, regions.Subtree) and not part.prefix


def _loss_reasons(report: ReportRow) -> Iterator[tuple[Risk, str]]:
    row = report.row
    if row.principals.complement or any(_is_everything(part) for clause in row.clauses for part in clause.names):
        yield Risk.MEDIUM, ""


# The cells of a row.


TITLES = ("change", "who", "what", "where", "why")
_CLAUSES, _PLACES, _TOPICS = 4, 3, 3
"""Shown in a cell."""
_NOUNS = {
    ResourceType.TOPIC: ("topic", "topics"),
    ResourceType.GROUP: ("group", "groups"),
    ResourceType.CLUSTER: ("the cluster", "the cluster"),
    ResourceType.TRANSACTIONAL_ID: ("transactional id", "transactional ids"),
    ResourceType.DELEGATION_TOKEN: ("delegation token", "delegation tokens"),
    ResourceType.USER: ("user", "users"),
}


def who_code(principals: regions.Principals) -> str:
    """Return such as `everyone but` and the names of principals in code font."""
    if not principals.complement:
        return _codes(principals.named)
    return f"everyone{regions.EXCEPT}{_codes(principals.named)}" if principals.named else "everyone"


def what_code(clauses: Sequence[Clause], between: str = "<br>", most: int = _CLAUSES) -> str:
    """Return the operations and names of a row: operations and names in code font."""
    types: dict[tuple[int, regions.Names], list[ResourceType]] = {}
    for clause in clauses:
        names = regions.ANY_NAME if clause.resource_type == ResourceType.CLUSTER else clause.names
        types.setdefault((clause.operations, names), []).append(clause.resource_type)
    texts = [f"{_operations(mask)} on {_resources(kinds, names)}" for (mask, names), kinds in types.items()]
    more = [f"and {len(texts) - most:,} more"] if len(texts) > most else []
    return between.join((*texts[:most], *more))


def _operations(mask: int) -> str:
    head, but, rest = regions.operations_text(mask).partition(regions.EXCEPT)
    return ", ".join(map(code, head.split(", "))) + (
        f"{regions.EXCEPT}{', '.join(map(code, rest.split(', ')))}" if but else ""
    )


def _resources(kinds: Sequence[ResourceType], names: regions.Names) -> str:
    if kinds == [ResourceType.CLUSTER]:
        return _NOUNS[ResourceType.CLUSTER][0]
    all_names = _all_names(names)
    if all_names is not None:
        whole = (f"all {_NOUNS[each][1]}" if each != ResourceType.CLUSTER else "the cluster" for each in kinds)
        return ("everything" if set(kinds) >= set(_NOUNS) else ", ".join(whole)) + _but(all_names)
    one = len(names) == 1 and isinstance(names[0], regions.Literal)
    return f"{', '.join(_NOUNS[each][not one] for each in kinds)} {_names(names)}"


def _all_names(names: regions.Names) -> regions.Subtree | None:
    """Return all names with their exceptions if the names are these; names that begin with `*` count as none.

    LITERAL `*` covers the name `*` and no longer name that begins with it, which no topic has.
    """
    others = [each for each in names if each != regions.Literal(name=WILDCARD)]
    (whole,) = others if len(others) == 1 else (None,)
    if not isinstance(whole, regions.Subtree) or whole.prefix:
        return None
    return evolve(
        whole,
        except_prefixes=tuple(each for each in whole.except_prefixes if not each.startswith(WILDCARD)),
        except_literals=tuple(each for each in whole.except_literals if not each.startswith(WILDCARD)),
    )


def _but(part: regions.Subtree) -> str:
    exceptions: list[regions.NamePart] = [regions.Subtree(prefix=each) for each in part.except_prefixes]
    exceptions += [regions.Literal(name=each) for each in part.except_literals]
    return f"{regions.EXCEPT}{_codes([regions.names_text((each,)) for each in exceptions])}" if exceptions else ""


def _names(names: regions.Names) -> str:
    more = f" and {len(names) - regions.LIST_LIMIT:,} more" if len(names) > regions.LIST_LIMIT else ""
    return ", ".join(map(_part, names[: regions.LIST_LIMIT])) + more


def _part(part: regions.NamePart) -> str:
    """Return a name, or a prefix with `*` and its exceptions."""
    if isinstance(part, regions.Literal):
        return code(regions.names_text((part,)))
    whole = evolve(part, except_prefixes=(), except_literals=())
    return (code(regions.names_text((whole,))) if part.prefix else "every name") + _but(part)


@frozen(eq=False, slots=False)
class _Rows:
    """The rows of a review with their risks, the riskiest first."""

    review: Review

    @cached_property
    def ranked(self) -> list[tuple[ReportRow, Judgement]]:
        broken = self._broken()
        judged = [
            (report, judge(report, broken[at], self._lints(report))) for at, report in enumerate(self.review.rows)
        ]
        return sorted(judged, key=lambda each: (-each[1].risk, not tells_of_everyone(each[0].row), risk(each[0])))

    @cached_property
    def _findings(self) -> Mapping[FileOrigin, Sequence[Item]]:
        """The new lint findings by the lines of their rules."""
        lint = self.review.lint
        by_place: dict[FileOrigin, list[Item]] = defaultdict(list)
        for item in (*lint.new_errors, *lint.new_warnings):
            for place in dict.fromkeys(item.places):
                by_place[place].append(item)
        return by_place

    def _lints(self, report: ReportRow) -> Collection[str]:
        """Return the lints with new findings on the changed rules of a row."""
        return dict.fromkeys(_title(item) for place in report.places for item in self._findings.get(place, ()))

    def _broken(self) -> Counter[int]:
        """Return how many recent accesses each row breaks, by its number; each access counts once."""
        counts: Counter[int] = Counter()
        for flip in self.review.flipped:
            if flip.direction is regions.Direction.LOST:
                rows = (at for at, report in enumerate(self.review.rows) if _explains(report.row, flip))
                counts[next(rows, -1)] += flip.accesses
        return counts

    def cells(self, report: ReportRow, judgement: Judgement) -> tuple[str, ...]:
        """Return the cells of a row, under TITLES, as Markdown."""
        row = report.row
        change = " and ".join(direction.value.lower() for direction in row.directions)
        return (
            f"{judgement.risk.mark}&nbsp;{change}",
            who_code(row.principals),
            _what(report, "<br>"),
            self.where(report.places),
            "; ".join(self._why(report, judgement)) or "-",
        )

    def where(self, places: Sequence[FileOrigin]) -> str:
        """Return the locations, each with a link to its line where the address is known."""
        lines = list(dict.fromkeys(map(self.review.place_of, places)))
        shown, last = [], ""
        for at in lines[:_PLACES]:
            through = ", ".join(_link(each) for each in at.others)
            shown.append(_link(at, last) + (f" (with {through})" if through else ""))
            last = at.file
        more = f" and {len(lines) - _PLACES:,} more" if len(lines) > _PLACES else ""
        return ", ".join(shown) + more

    def _why(self, report: ReportRow, judgement: Judgement) -> Iterator[str]:
        yield from (text for _, text in judgement.reasons)
        yield from self._cause(report)
        topics = self._topics(report)
        if topics:
            yield topics

    def _cause(self, report: ReportRow) -> Iterator[str]:
        row = report.row
        if row.summary is not None:
            cause = row.summary.cause
            is_plain = cause.is_added and bool(cause.rules) and all(map(is_allow, cause.rules))
            if not is_plain or row.directions != (regions.Direction.GAINED,):
                yield markdown_text(summary_text(row, row.summary))
        elif is_deny(row.after):
            yield f"denied by {code(_rule_text(row.after))}"
        elif isinstance(row.after, str) and row.directions == (regions.Direction.GAINED,):
            yield _SETTINGS.get(row.after, markdown_text(row.after))

    def _topics(self, report: ReportRow) -> str:
        """Return the existing topics of a row; empty if none exists, or if topics are unknown."""
        topics = self.review.comparison.topics
        names = [] if topics is None else sorted(topics.of_clauses(report.row.clauses))
        if not names:
            return ""
        most = "up to " if report.row.bound in (Bound.NAMES, Bound.ALL) else ""
        return f"{most}{plural(len(names), 'existing topic')}: {_codes(names, _TOPICS)}"


def _link(at: LinkedPlace, before: str = "") -> str:
    """Return a line with a link, if its address is known; without its file if that is the one before."""
    text = code(f":{at.line}" if at.file == before else f"{at.file}:{at.line}")
    return text if at.url is None else f"[{text}]({at.url})"


def _explains(row: Row, flip: Flipped) -> bool:
    """Return whether accesses that are lost may be those of a row; their hosts are not compared."""
    return (
        regions.Direction.LOST in row.directions
        and flip.principal in row.principals
        and any(
            clause.resource_type == flip.resource_type
            and clause.operations >> flip.operation & 1
            and any(regions.contains(clause.names, name) for name in flip.names)
            for clause in row.clauses
        )
    )


_SETTINGS = {
    "SuperUser": "a super user",
    "DefaultAllow": "no rules are left here, and allow.everyone.if.no.acl.found is true",
}


def _what(report: ReportRow, between: str, shown: int = _CLAUSES) -> str:
    row = report.row
    most = "" if row.bound is Bound.NONE else "at most "
    hosts = regions.hosts_text(row.hosts)
    from_ = "" if hosts == "any host" else f"{between if between == '<br>' else ', '}from {code(hosts)}"
    return f"{most}{what_code(row.clauses, between, shown)}{from_}{only_on(report.only)}"


def by_risk(rows: Sequence[ReportRow]) -> list[tuple[ReportRow, Judgement]]:
    """Return the rows of a change with their risks, the riskiest first, as a comment on them alone has them."""
    return _Rows(Review(comparisons={}, rows=rows)).ranked


# The comment.


ROW_LIMIT = 10
"""Rows of the table; the others are folded, in groups."""
_LINES, _FOLDED, _GROUPED, _EXAMPLES = 5, 40, 60, 3
"""Shown: items of a list, lines of a folded section, rows of a group, and examples."""
_LONG = 2 * LONGEST_NAME
_COMMAND = "aclog review"
_LEGEND = {
    regions.EXCEPT: '"except X": nothing changes for X',
    "at most ": '"at most X": perhaps less than X',
}
"""What words of the table mean: `except billing` may be one that had the access already, or that is denied."""


def comment_of_clusters(reviews: Mapping[str, Review]) -> Iterator[str]:
    """Yield one comment on the reviews of clusters by name, the riskiest first; one without a name is the only one.

    It has the verdict with the greatest risk, what makes it fail, one table, and folded details. Clusters without a
    change share a line.
    """
    loud = {name: review for name, review in reviews.items() if not _is_quiet(review)}
    loud = loud or dict(list(reviews.items())[:1])
    rows = {name: _Rows(review) for name, review in loud.items()}
    first = sorted(rows.items(), key=lambda each: (not each[1].review.fails, -_greatest(each[1])))
    quiet = [name for name in reviews if name not in loud]
    rest = (*_list((f"{NOTHING} in {plural(len(quiet), 'more cluster')}: {_codes(quiet)}",)),) if quiet else ()
    yield from fitting(chain(chain.from_iterable(starmap(_titled, first)), rest), _COMMAND)


def _is_quiet(review: Review) -> bool:
    """Return whether there is nothing to be seen besides that nothing changes."""
    has_more = (review.renames, review.moves, review.replacements, review.unread, review.doubts, review.lint.suppressed)
    return not review.kinds - {Kind.CHECKS} and not review.flipped and not any(has_more)


def _greatest(rows: _Rows) -> Risk:
    """Return the greatest risk of a change: content that it changes, and that was not read, may do anything."""
    review = rows.review
    is_dark = any(each.is_changed for each in review.unread) or _removed_rules(review)
    risks = (judgement.risk for _, judgement in rows.ranked)
    return max(risks, default=Risk.LOW) if not is_dark else max((Risk.MEDIUM, *risks))


def _removed_rules(review: Review) -> int:
    """Return how many rules there were, if none is left."""
    comparison = review.comparison
    return 0 if len(comparison.new.acls) else len(comparison.old.acls)


def _titled(name: str, rows: _Rows) -> Iterator[str]:
    yield from cluster_title(name, is_markdown=True)
    yield from _Comment(rows).lines()


@frozen(eq=False)
class _Comment:
    rows: _Rows

    @property
    def review(self) -> Review:
        return self.rows.review

    def lines(self) -> Iterator[str]:
        review, rows = self.review, self.rows
        ranked = rows.ranked
        yield f"### {self._head(ranked)}"
        counts = ", ".join(each for each in counts_of(review) if each not in (NOTHING, NOTHING_READ))
        yield from ("", f"**{verdict_text(review)}{markdown_text(counts)}**") if counts else ()
        yield from _list(self._points(rows))
        table = [_table_row(rows.cells(*each)) for each in ranked[:ROW_LIMIT]]
        if table:
            yield ""
            yield _table_row(TITLES)
            yield _table_row("---" for _ in TITLES)
            yield from table
        yield from _list(self._findings(rows))
        yield from _folded(f"{len(ranked) - ROW_LIMIT:,} more changes of access", _grouped(ranked[ROW_LIMIT:]))
        yield from _folded("Examples of requests that are decided differently", _examples(ranked[:_EXAMPLES]))
        warnings = review.lint.new_warnings
        yield from _folded(plural(len(warnings), "new lint warning"), _by_lint(warnings, rows))
        yield from _folded("Recent accesses that the change affects", self._accesses())
        unread = (each.item for each in review.unread if not each.is_changed)
        yield from _folded("Not read", (self._located(each, rows) for each in unread))
        yield from _folded(
            "Proofs that hold", (f"PROVED: {code(each.text, _LONG)}" for each in review.proofs if each.holds)
        )
        yield ""
        yield f"<sub>{'; '.join(self._foot(table))}</sub>"

    def _head(self, ranked: Sequence[tuple[ReportRow, Judgement]]) -> str:
        review = self.review
        mark = (Risk.HIGH if review.fails else _greatest(self.rows)).mark
        start = f"{mark} aclog review: {'FAILS: ' if review.fails else ''}"
        if not ranked:
            changed = sum(each.is_changed for each in review.unread)
            head = NOTHING_READ if review.unread else NOTHING
            return f"{start}{plural(changed, 'changed object')} not read; {head}" if changed else f"{start}{head}"
        (report, judgement), *others = ranked
        principals = report.row.principals
        several = not principals.complement and len(principals.named) > 1
        verb = "gain" if regions.Direction.GAINED in report.row.directions else "lose"
        claim = f"{who_code(principals)} {verb}{'' if several else 's'} {_what(report, '; ', 2)}"
        reason = next((text for level, text in judgement.reasons if level is Risk.HIGH), None)
        more = f", and {plural(len(others), 'more change')}" if others else ""
        return f"{start}{claim}{f' ({reason})' if reason else ''}{more}"

    def _points(self, rows: _Rows) -> Iterator[str]:
        """Yield what a reviewer must know besides the changed access."""
        review = self.review
        if removed := _removed_rules(review):
            yield f"no rules are left, of {plural(removed, 'rule')}"
        refuted = [each for each in review.proofs if not each.holds]
        yield from _limited(f"REFUTED: {code(each.negation, _LONG)}{only_on(each.only)}" for each in refuted)
        yield from _limited(f"test fails: {self._located(each, rows)}" for each in review.tests.failures)
        changed = (each.item for each in review.unread if each.is_changed)
        yield from _limited(f"changed, and not read: {self._located(each, rows)}" for each in changed)
        yield from _limited(markdown_text(printable(each)) for each in review.doubts)
        yield from _limited(map(_rename, review.renames))
        if review.own_checks:
            yield f"the change modifies the checks themselves: {_codes(review.own_checks)}"
        yield from _limited(map(_replacement, review.replacements))
        yield from _limited(map(_move, review.moves))

    def _findings(self, rows: _Rows) -> Iterator[str]:
        """Yield the lint findings that fail a review, and those that the change hides."""
        yield from _limited(_by_lint(self.review.lint.new_errors, rows, "new lint error "))
        yield from _limited(_by_lint(self.review.lint.suppressed, rows, "suppressed: "))

    def _located(self, item: Item, rows: _Rows) -> str:
        where = "" if item.origin is None else f" ({rows.where((item.origin,))})"
        return f"{code(item.text, _LONG)}{where}"

    def _accesses(self) -> Iterator[str]:
        for each in self.review.flipped:
            yield f"{'breaks' if each.direction is regions.Direction.LOST else 'newly allowed'}: {code(each.text())}"

    def _foot(self, table: Sequence[str]) -> Iterator[str]:
        if table:
            yield f"risk: {', '.join(f'{each.mark} {each.name.lower()}' for each in reversed(Risk))}"
            yield from (text for word, text in _LEGEND.items() if any(word in row for row in table))
        yield from (markdown_text(printable(each)) for each in self.review.foot)
        old, fixed = len(self.review.lint.old), len(self.review.lint.resolved)
        if old:
            yield f"{plural(old, 'lint finding')} older than this change (see `aclog lint`)"
        if fixed:
            yield f"{plural(fixed, 'lint finding')} fixed"


def _table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list(lines: Iterable[str]) -> Iterator[str]:
    items = [f"- {line}" for line in lines]
    yield from ("", *items) if items else ()


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield a section that a click opens; nothing without lines. `title` has no names: it is raw HTML."""
    items = list(lines)
    if items:
        yield from ("", FOLD, f"<summary>{title}</summary>", "")
        yield from (f"- {item}" for item in _limited(items, _FOLDED))
        yield UNFOLD


def _limited(lines: Iterable[str], most: int = _LINES) -> Iterator[str]:
    items = list(lines)
    yield from items[:most]
    if len(items) > most:
        yield f"and {len(items) - most:,} more: `{_COMMAND}` shows them"


def _grouped(ranked: Sequence[tuple[ReportRow, Judgement]]) -> Iterator[str]:
    """Yield the rows, those with the same risk, change and operations on one line."""
    groups: dict[tuple[Risk, tuple[regions.Direction, ...], tuple[tuple[int, int], ...]], list[ReportRow]] = (
        defaultdict(list)
    )
    for report, judgement in ranked:
        shape = tuple((int(each.resource_type), each.operations) for each in report.row.clauses)
        groups[judgement.risk, report.row.directions, shape].append(report)
    for (level, directions, _), reports in groups.items():
        change = " and ".join(direction.value.lower() for direction in directions)
        texts = [f"{who_code(each.row.principals)}: {_what(each, '; ')}" for each in reports[:_GROUPED]]
        more = f"; and {len(reports) - _GROUPED:,} more" if len(reports) > _GROUPED else ""
        yield f"{level.mark} {change}: {'; '.join(texts)}{more}"


def _examples(ranked: Iterable[tuple[ReportRow, Judgement]]) -> Iterator[str]:
    """Yield requests of the first rows that are not plain: of a high risk, or bounds of what changes."""
    for report, judgement in ranked:
        row = report.row
        if judgement.risk is not Risk.HIGH and row.bound is Bound.NONE:
            continue
        before, after = (decided_by_text(each) for each in (row.before, row.after))
        yield f"{code(request_text(row.witness))}: before {code(before)}, after {code(after)}"


def _by_lint(items: Sequence[Item], rows: _Rows, start: str = "") -> Iterator[str]:
    """Yield a line for each lint, with its first findings."""
    groups: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        groups[_title(item)].append(item)
    for lint, own in groups.items():
        texts = [_finding(item, rows) for item in own[:_EXAMPLES]]
        more = f"<br>and {len(own) - _EXAMPLES:,} more" if len(own) > _EXAMPLES else ""
        yield f"{start}**{markdown_text(_short(lint))}**: {'<br>'.join(texts)}{more}"


def _title(item: Item) -> str:
    """Return the id and the name of the lint of a finding."""
    return item.text.partition(":")[0]


def _finding(item: Item, rows: _Rows) -> str:
    text = markdown_text(_short(item.text.partition(": ")[2])) if item.markdown is None else item.markdown
    return f"{rows.where(item.places)}: {text}" if item.places else text


def _rename(each: Rename) -> str:
    what = "principal renamed" if each.is_whole else "rules reassigned"
    parts = [f"{what}: {code(each.old)} to {code(each.new)} ({plural(each.rules, 'rule')})"]
    parts += [] if each.old_remains else [f"{code(each.old)} has no rules left"]
    parts += [] if each.new_existed else [f"{code(each.new)} had none before"]
    return "; ".join(parts)


def _replacement(each: Replacement) -> str:
    return (
        f"Terraform replaces {plural(each.rules, 'rule')} of {code(each.resource)}: the address changes, such as "
        f"{code(each.old)} to {code(each.new)}, so each is deleted and recreated, and may be missing in between or "
        "permanently (`moved` blocks prevent it)"
    )


def _move(each: Move) -> str:
    return f"{plural(each.rules, 'rule')} moved from {code(each.old)} to {code(each.new)}"


def _short(text: str) -> str:
    return printable(text if len(text) <= 4 * LONGEST_NAME else f"{text[: 4 * LONGEST_NAME]}...")
