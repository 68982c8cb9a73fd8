"""The rows of a difference for people: the change that causes each, and their text, Markdown and SARIF."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum, StrEnum
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import quote

from attrs import evolve, field

from aclog.analysis import regions
from aclog.analysis.policy import Policy, only_on, range_rules
from aclog.analysis.regions import only
from aclog.analysis.rows.row import (
    Bound,
    Extent,
    NameIndex,
    Row,
    Setting,
    bound_text,
    claim_text,
    directions_text,
    extent_of,
    index_of_extents,
    is_allow,
    near_region,
    summary_text,
    what_text,
)
from aclog.authorizer.acl import NO_ORIGINS, FileOrigin, Origin, Origins, StandardAcl, TwoOrigins, code_name
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.codes import WILDCARD, AclOperation, PatternType, ResourceType
from aclog.authorizer.explain import located_text
from aclog.authorizer.settings import Generation, GenerationPair, Settings
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.installation import needs_extra
from aclog.metalog.errors import ConfigError, plural, printable
from aclog.metalog.values import define, frozen

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


# The causes of changed decisions: changed ACLs and settings, and the rows that they explain.


# Naive folding of changed ACLs: those that differ only in their principal form one group.


class _Kind(NamedTuple):
    is_added: bool
    host: str
    resource_type: int
    operation: int
    permission_type: int


@frozen(kw_only=True)
class NaiveRow:
    """ACLs, added or removed, with one host, resource type, operation, permission and set of patterns."""

    is_added: bool
    principals: tuple[str, ...]
    """Sorted. Each has an ACL on each pattern."""
    rules: tuple[StandardAcl, ...]


def naive_rows(changed: Iterable[tuple[bool, StandardAcl]]) -> list[NaiveRow]:
    """Return the groups of changed ACLs; `changed` has for each ACL whether it was added."""
    of_kind: dict[_Kind, dict[str, dict[tuple[str, int], StandardAcl]]] = defaultdict(lambda: defaultdict(dict))
    for is_added, rule in changed:
        kind = _Kind(is_added, rule.host, rule.resource_type, rule.operation, rule.permission_type)
        of_kind[kind][rule.principal][rule.resource_name, rule.pattern_type] = rule
    rows = []
    for kind, of_principal in of_kind.items():
        same: dict[frozenset[tuple[str, int]], list[str]] = defaultdict(list)
        for principal, patterns in of_principal.items():
            same[frozenset(patterns)].append(principal)
        for principals in same.values():
            rules = tuple(rule for principal in principals for rule in of_principal[principal].values())
            rows.append(NaiveRow(is_added=kind.is_added, principals=tuple(sorted(principals)), rules=rules))
    return rows


# Causes: naively folded ACLs and changed settings, and the regions that they affect.


class Part(Enum):
    """The part that an effect can have in a difference."""

    NONE = 0
    SOME = 1
    ENOUGH = 2
    """The effect covers all its principals, hosts and operations."""


@define(eq=False, kw_only=True, slots=False)
class Effect:
    """A possible effect of a cause: in one direction, on the requests of these extents, which belong together."""

    direction: regions.Direction
    extents: tuple[Extent, ...]

    @cached_property
    def _index(self) -> NameIndex[Extent]:
        return index_of_extents(self.extents)

    @cached_property
    def _parts(self) -> int:
        return sum(len(extent.names) for extent in self.extents)

    def part_in(self, difference: regions.Difference, names: NameIndex[regions.NamePart]) -> Part:
        """Return the part that the effect can have in a difference; `names` are those of its region."""
        widest = Part.NONE
        if difference.direction is self.direction:
            for extent, part in self._near(difference.region, names):
                if extent.meets(difference.region, (part,)):
                    if extent.spans(difference.region):
                        return Part.ENOUGH
                    widest = Part.SOME
        return widest

    def _near(
        self, region: regions.Region, names: NameIndex[regions.NamePart]
    ) -> Iterator[tuple[Extent, regions.NamePart]]:
        """Yield extents with a part of a region that shares names with them, or may."""
        kind = region.resource_type
        if self._parts < len(region.names):  # a cause is often one ACL, and there may be thousands of each
            for extent in self.extents:
                if extent.resource_type == kind:
                    yield from ((extent, part) for own in extent.names for part in names.near(kind, own))
            return
        yield from near_region(self._index, region)


@define(eq=False)
class Candidate:
    """A possible cause: the ACLs of one naive row, or a setting; and the differences that it affects."""

    is_added: bool
    rules: tuple[StandardAcl, ...]
    setting: Setting | None
    effects: tuple[Effect, ...]
    """From the narrowest to the widest."""
    is_exact: bool = False
    """Whether a summary must not replace its exact rows: its effects are bounded by its ACLs."""
    touched: dict[Effect, list[regions.Difference]] = field(factory=dict)
    """The differences in which each effect has a part."""

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The extents of the widest effect that affected anything; empty if nothing was affected."""
        return next((effect.extents for effect in reversed(self.effects) if effect in self.touched), ())

    def touch(self, difference: regions.Difference, names: NameIndex[regions.NamePart]) -> bool:
        """Add a difference to the effects that can have a part in it, the narrowest first, until one is enough.

        Returns whether there is one.
        """
        touches = False
        for effect in self.effects:
            part = effect.part_in(difference, names)
            if part is not Part.NONE:
                self.touched.setdefault(effect, []).append(difference)
                touches = True
            if part is Part.ENOUGH:
                break
        return touches


def candidates_of(old: Policy, new: Policy, changed: Sequence[tuple[bool, StandardAcl]]) -> list[Candidate]:
    """Return a candidate for each naive row of changed ACLs, and for each changed setting."""
    rules = [_of_rules(row, old.settings, new.settings) for row in naive_rows(changed)]
    return [*rules, *_of_ranges(old, new, changed), *_of_settings(old.settings, new.settings)]


def _of_ranges(old: Policy, new: Policy, changed: Sequence[tuple[bool, StandardAcl]]) -> Iterator[Candidate]:
    """Yield the candidates for a change of Kafka's generation: the ACLs with a range that both policies have.

    They count as added where ranges begin to match, and as removed where ranges cease to. Their resource had an ACL
    before, so none of them closes it to others.
    """
    if old.settings.cidr is new.settings.cidr:
        return
    on_one_side = {rule for _, rule in changed}
    both = [(new.settings.cidr, rule) for rule in range_rules(new.acls) if rule not in on_one_side]
    settings = evolve(old.settings, allow_everyone=False), evolve(new.settings, allow_everyone=False)
    for row in naive_rows(both):
        candidate = _of_rules(row, *settings)
        candidate.is_exact = True
        yield candidate


def _of_rules(row: NaiveRow, old: Settings, new: Settings) -> Candidate:
    settings = new if row.is_added else old
    extents = {rule: extent_of(rule, settings) for rule in row.rules if rule.resource_type in regions.RESOURCE_TYPES}
    effects = []
    for allows in True, False:
        direct = (extent for rule, extent in extents.items() if is_allow(rule) is allows and extent.operations)
        effects.append(Effect(direction=_direction(gains=allows is row.is_added), extents=tuple(direct)))
    if (old if row.is_added else new).allow_everyone:
        # The first ACL on a resource closes it to requests that no ACL allows; the removal of the last one opens it.
        opened = tuple(dict.fromkeys(map(_whole, extents.values())))
        effects.append(Effect(direction=_direction(gains=not row.is_added), extents=opened))
    return Candidate(row.is_added, row.rules, None, tuple(effect for effect in effects if effect.extents))


def _direction(*, gains: bool) -> regions.Direction:
    return regions.Direction.GAINED if gains else regions.Direction.LOST


def _whole(extent: Extent) -> Extent:
    return Extent(
        resource_type=extent.resource_type,
        operations=regions.REQUESTED,
        principals=regions.EVERYONE,
        hosts=regions.EVERYWHERE,
        names=extent.names,
    )


def _of_settings(old: Settings, new: Settings) -> Iterator[Candidate]:
    for users, come in ((new.super_users - old.super_users, True), (old.super_users - new.super_users, False)):
        if users:
            yield _of_setting(Setting.SUPER_USERS, come, _direction(gains=come), principals=only(*users))
    if old.allow_everyone is not new.allow_everyone:
        come = new.allow_everyone
        yield _of_setting(Setting.ALLOW_EVERYONE, come, _direction(gains=come))
    if old.documented is not new.documented:
        yield _of_setting(Setting.SEMANTICS, new.documented, *regions.Direction)


def _of_setting(
    setting: Setting, is_added: bool, *directions: regions.Direction, principals: regions.Principals = regions.EVERYONE
) -> Candidate:
    extents = tuple(
        Extent(
            resource_type=kind,
            operations=regions.REQUESTED,
            principals=principals,
            hosts=regions.EVERYWHERE,
            names=regions.ANY_NAME,
        )
        for kind in regions.RESOURCE_TYPES
    )
    effects = tuple(Effect(direction=direction, extents=extents) for direction in directions)
    return Candidate(is_added, (), setting, effects)


# The changed ACLs behind a row, and their locations.


_MOST = 10
"""How many ACLs behind one row are shown with their locations."""


@define(eq=False)
class ChangedRules:
    """The ACLs that only one of two states has, and their locations."""

    _changes: Sequence[RuleChange]
    _origins: TwoOrigins
    _by_rule: dict[tuple[bool, StandardAcl], RuleChange] = field(init=False)
    _on: dict[tuple[int, str, bool], list[int]] = field(init=False)
    """By resource type, name and whether it is LITERAL: positions in `_changes`."""

    def __attrs_post_init__(self) -> None:
        self._by_rule = {(change.added, change.acl): change for change in self._changes}
        self._on = {}
        for at, change in enumerate(self._changes):
            acl = change.acl
            key = (acl.resource_type, acl.resource_name, acl.pattern_type == PatternType.LITERAL)
            self._on.setdefault(key, []).append(at)

    def places(self, row: Row) -> Iterator[FileOrigin]:
        """Yield the files and lines of the changed ACLs behind a row, those of the second state first."""
        changes = sorted(self._behind(row), key=lambda change: not change.added)
        for change in changes[:_MOST]:
            yield from (place for place in self._places(change) if isinstance(place, FileOrigin))

    def _places(self, change: RuleChange) -> Sequence[Origin]:
        """Return the line of a file of changes, or the lines that state the ACL."""
        if change.origin is not None:
            return (change.origin,)
        return (self._origins.new if change.added else self._origins.old).of(change.acl)

    def _behind(self, row: Row) -> list[RuleChange]:
        """Return the ACLs of a summary's cause, or those that decide the example, or those on its resource.

        A request may change because of an ACL that does not match it: the first ACL on a resource closes it, and the
        removal of the last one opens it, with allow.everyone.if.no.acl.found.
        """
        if row.summary is not None:
            cause = row.summary.cause
            return self._changes_of((cause.is_added, rule) for rule in cause.rules)
        decided = ((False, row.before), (True, row.after))
        deciding = self._changes_of((added, rule) for added, rule in decided if isinstance(rule, StandardAcl))
        return deciding or self._covering(row)

    def _covering(self, row: Row) -> list[RuleChange]:
        kind, name = row.witness.resource_type, row.witness.resource_name
        literal = ((kind, each, True) for each in dict.fromkeys((name, WILDCARD)))
        prefixes = ((kind, name[:end], False) for end in range(len(name) + 1))
        positions = (at for key in (*literal, *prefixes) for at in self._on.get(key, ()))
        return [self._changes[at] for at in sorted(positions)]

    def _changes_of(self, rules: Iterator[tuple[bool, StandardAcl]]) -> list[RuleChange]:
        return [self._by_rule[rule] for rule in rules if rule in self._by_rule]


# The report of a change: text, JSON lines, SARIF, Arrow, pandas and HTML.


# The report of a change: rows with counts, as lines of text or as a table in Markdown.


_LINKED = re.compile(r"(?<![\w.])[@#](?=\w)|\b(?:https?|ftp):(?=//)|\bwww(?=\.)", re.IGNORECASE)
"""The beginning of a mention or a link."""
_NOTHING = "&#8203;"
"""A zero-width space, which breaks a mention or a link."""

TITLES = ("change", "who", "what", "from", "decided before by", "decided after by", "example")


@frozen(kw_only=True)
class ReportRow:
    """A row, with the number of existing topics and of flipped accesses that it covers, if known."""

    row: Row
    topics: int | None = None
    accesses: int | None = None
    origins: TwoOrigins = field(factory=TwoOrigins)
    """The locations of the ACLs of both sides."""
    places: tuple[FileOrigin, ...] = ()
    """The locations of the changed ACLs behind the row, those of the second side first."""
    only: Generation | GenerationPair | None = None
    """The only generation of Kafka in which the row holds, or the only pair, if several may decide."""
    by_kafka: GenerationPair | None = None
    """If another generation alone made the change (Difference.by_kafka): the two."""

    def __str__(self) -> str:
        return "\n".join(map(printable, row_lines(self)))

    def counts(self) -> str:
        """Return such as `covers 12 existing topics, 1 access is decided differently`; empty without counts."""
        parts = []
        if self.topics is not None:
            most = "up to " if self.row.bound in (Bound.NAMES, Bound.ALL) else ""
            parts.append(f"covers {most}{plural(self.topics, 'existing topic')}")
        if self.accesses is not None:
            parts.append(f"{self.accesses:,} access{' is' if self.accesses == 1 else 'es are'} decided differently")
        return ", ".join(parts)


def request_text(request: regions.Request, principals: regions.Principals | None = None) -> str:
    """Return such as `User:a READ TOPIC 'orders' from 10.0.0.1`.

    `principals`: the set that the request is an example of; a principal that no rule names is explained.
    """
    operation, kind = code_name(AclOperation, request.operation), code_name(ResourceType, request.resource_type)
    return f"{_asker(request, principals)} {operation} {kind} {request.resource_name!r} from {request.host}"


def example_text(
    request: regions.Request, principals: regions.Principals | None = None, *, is_made_up: bool = False
) -> str:
    """Return such as `User:a READ on a topic named 'orders.' (an example name) from 10.0.0.1`: the name is no prefix.

    `principals`: as in request_text. `is_made_up`: whether the name is made up from a prefix.
    """
    return _example_text(request, _asker(request, principals), _EXAMPLE_NAME if is_made_up else "")


def _example_text(request: regions.Request, asker: str, after_name: str) -> str:
    kind = code_name(ResourceType, request.resource_type).lower().replace("_", " ")
    is_cluster = request.resource_type == ResourceType.CLUSTER
    what = "the cluster" if is_cluster else f"a {kind} named {request.resource_name!r}{after_name}"
    return f"{asker} {code_name(AclOperation, request.operation)} on {what} from {request.host}"


_EXAMPLE_NAME = " (an example name)"
"""After a name that only an example has."""


def _asker(request: regions.Request, principals: regions.Principals | None, after_name: str = _EXAMPLE_NAME) -> str:
    is_any = principals is not None and principals.complement and regions.is_placeholder(request.principal)
    return f"{request.principal}{after_name}" if is_any else request.principal


def decided_by_text(rule: StandardAcl | str | None, origins: Origins = NO_ORIGINS) -> str:
    """Return the text of a deciding ACL with its location; None: Kafka's authorizer throws on the request."""
    if rule is None:
        return "no answer (Kafka's authorizer throws)"
    return rule if isinstance(rule, str) else located_text(rule, origins)


def by_kafka_text(report: ReportRow) -> str:
    """Return such as ` (by the upgrade from Kafka 4.3 to Kafka 4.4)`; empty unless that alone made the change."""
    return "" if report.by_kafka is None else f" ({report.by_kafka.cause()})"


def row_lines(report: ReportRow) -> Iterator[str]:
    """Yield the lines of text of a row."""
    row = report.row
    yield from _claim_lines(report, "" if row.summary is None else summary_text(row, row.summary))
    before, after = _decided_by(report)
    example = example_text(row.witness, row.principals, is_made_up=row.witness_is_made_up)
    yield f"  for example {example}{_legal(row)}; before: {before}; after: {after}"


def message_lines(report: ReportRow) -> Iterator[str]:
    """Yield the lines of a row as SARIF has them: the words of a message stay, since tools compare those of runs."""
    row = report.row
    yield from _claim_lines(report, "" if row.summary is None else summary_text(row, row.summary, is_message=True))
    before, after = _decided_by(report)
    asker = _asker(row.witness, row.principals, " (placeholder for any such principal)")
    example = _example_text(row.witness, asker, " (placeholder)" * row.witness_is_made_up)
    yield f"  for example {example}{_legal(row)} (before: {before}; after: {after})"


def _claim_lines(report: ReportRow, summary: str) -> Iterator[str]:
    """Yield the lines of a row above its example."""
    row = report.row
    claim = (
        f"{regions.who_text(row.principals)}: {claim_text(row)}, from {regions.hosts_text(row.hosts)}{bound_text(row)}"
    )
    yield f"{directions_text(row)}  {claim}{only_on(report.only) or by_kafka_text(report)}"
    if summary:
        yield f"  {summary}"
    if report.counts():
        yield f"  {report.counts()}"


def markdown_lines(rows: Sequence[ReportRow], premises: Premises = ALL_KNOWN) -> Iterator[str]:
    """Yield a table, or a line if there are no rows.

    `premises`: the unknown premises that could refute "no difference".
    """
    if not rows:
        yield f"{premises.decided('No difference')}."
        return
    counted = any(row.counts() for row in rows)
    titles = (*TITLES, "counts") if counted else TITLES
    yield _markdown_row(titles)
    yield _markdown_row("---" for _ in titles)
    for report in rows:
        cells = row_cells(report)
        yield _markdown_row((*cells, report.counts()) if counted else cells)


def _decided_by(report: ReportRow) -> tuple[str, str]:
    row, origins = report.row, report.origins
    return decided_by_text(row.before, origins.old), decided_by_text(row.after, origins.new)


def row_cells(report: ReportRow) -> tuple[str, ...]:
    """Return the cells of a row, under TITLES."""
    row = report.row
    what = claim_text(row) + bound_text(row)
    if row.summary is not None:
        what = f"{what}: {summary_text(row, row.summary)}"
    return (
        directions_text(row),
        regions.who_text(row.principals),
        what + by_kafka_text(report),
        regions.hosts_text(row.hosts),
        *_decided_by(report),
        _example(row),
    )


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(markdown_text(cell) for cell in cells)} |"


def markdown_text(text: str) -> str:
    r"""Escape characters with a meaning in Markdown, such as `*`, which is common in ACLs.

    GitHub and GitLab also notify users named `@name`, link addresses and `#12`, and render text between two `$` as a
    formula, in which `User:ad{}min` reads `User:admin`. Names are untrusted input.
    """
    escaped = "".join(f"\\{character}" if character in r"\|*_<>[]`~" else character for character in text)
    return _LINKED.sub(rf"\g<0>{_NOTHING}", escaped.replace("&", "&amp;")).replace("$", "&#36;")


def cluster_title(name: str, *, is_markdown: bool) -> Iterator[str]:
    """Yield the line above the part of a cluster; none for an empty name, which is that of the only one."""
    if name:
        yield f"## cluster {markdown_text(printable(name))}" if is_markdown else printable(f"cluster {name}")


def rows_of_clusters(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of clusters by their names, each with the key `cluster`; those of an empty name as they are."""
    for name, of_cluster in rows.items():
        yield from ({"cluster": name, **row} if name else row for row in of_cluster)


def _legal(row: Row) -> str:
    return "" if row.legal else " (not a legal topic name)"


def _example(row: Row) -> str:
    return request_text(row.witness, row.principals) + _legal(row)


# The report of a change as SARIF 2.1.0, for code scanning: a result for each row, at the lines of its ACLs.


SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_STDIN = "stdin"
_NAMES = {regions.Direction.GAINED: "access-gained", regions.Direction.LOST: "access-lost"}
_ABOUT = {
    regions.Direction.GAINED: "Denied requests become allowed",
    regions.Direction.LOST: "Allowed requests become denied",
}


def sarif_log(
    rows: Sequence[ReportRow], *, version: str, path: str | None, refs: Collection[str] = ()
) -> regions.JsonObject:
    """Return a SARIF 2.1.0 log with a result for each row, at the lines of the changed ACLs behind it.

    `path` is the file for results without a known location, if any. `refs`: the commits of files, whose names begin
    with a commit and a colon, as no path in a repository does.
    """
    driver: regions.JsonObject = {
        "name": "aclog",
        "version": version,
        "rules": [
            {"id": _NAMES[direction], "shortDescription": {"text": _ABOUT[direction]}}
            for direction in regions.Direction
        ],
    }
    run = {"tool": {"driver": driver}, "results": [_result(report, path, refs) for report in rows]}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(report: ReportRow, path: str | None, refs: Collection[str]) -> regions.JsonObject:
    row = report.row
    logical = [{"name": what_text([clause]), "kind": "resource"} for clause in row.clauses]
    chains = [_chain(place, refs) for place in report.places if place.file != _STDIN]
    places = [each[0] for each in chains]
    if not places and path is not None:
        places = [_physical(_without_ref(path, refs), 1)]
    related = [step for each in chains for step in each[1:]]
    first: regions.JsonObject = {"logicalLocations": logical, **(places[0] if places else {})}
    properties: regions.JsonObject = {
        "witness": regions.request_object(row.witness),
        "old": regions.decided_by_object(row.before, report.origins.old),
        "new": regions.decided_by_object(row.after, report.origins.new),
        "topics": report.topics,
        "accesses": report.accesses,
        "generation": None if report.only is None else report.only.value,
        "kafka": None if report.by_kafka is None else report.by_kafka.to_dict(),
    }
    return {
        "ruleId": _NAMES[row.directions[0]],
        "level": "warning",
        "message": {"text": "\n".join(message_lines(report))},
        "locations": [first, *places[1:]],
        **({"relatedLocations": related} if related else {}),
        "properties": {key: value for key, value in properties.items() if value is not None},
    }


def _chain(place: FileOrigin, refs: Collection[str]) -> list[regions.JsonObject]:
    """Return the lines of a location: the calls of modules that lead to it, the outermost first, and its own."""
    return [_physical(_without_ref(each.file, refs), each.line) for each in place.steps]


def _physical(path: str, line: int) -> regions.JsonObject:
    uri = quote(path, errors="surrogateescape")  # the name of a file may not be UTF-8
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}


def _without_ref(path: str, refs: Collection[str]) -> str:
    return next((path.removeprefix(f"{ref}:") for ref in refs if path.startswith(f"{ref}:")), path)


# Rows in the forms of notebooks and data frames: Arrow, pandas and HTML.


MOST_ROWS = 20
"""The most rows of an HTML table: a notebook stores its output."""
MOST_CHARACTERS = 80
"""The most characters of a cell."""

Cell: TypeAlias = str | int | float | bool | Sequence[str] | None


class Kind(StrEnum):
    """The type of a column."""

    TEXT = "text"
    NUMBER = "number"
    FRACTION = "fraction"
    TIME = "time"
    """In ms since 1970; negative if unknown."""
    FLAG = "flag"
    TEXTS = "texts"
    """Several texts in one cell."""


def pyarrow_module() -> Any:
    """Return the module pyarrow. Raises ConfigError: it is not installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
    except ImportError:
        raise ConfigError(needs_extra("to_arrow", "pyarrow", "parquet")) from None
    return pa


def pandas_module() -> Any:
    """Return the module pandas. Raises ConfigError: it is not installed."""
    try:
        import pandas as pd  # noqa: PLC0415  # an extra
    except ImportError:
        raise ConfigError("to_pandas needs pandas: pip install pandas") from None
    return pd


def arrow_types(kinds: Mapping[str, Kind]) -> "list[tuple[str, pa.DataType]]":
    """Return the names of columns with their types in Arrow. Raises ConfigError: pyarrow is not installed."""
    pa = pyarrow_module()
    types = {
        Kind.TEXT: pa.string(),
        Kind.NUMBER: pa.int64(),
        Kind.FRACTION: pa.float64(),
        Kind.TIME: pa.timestamp("ms", "UTC"),
        Kind.FLAG: pa.bool_(),
        Kind.TEXTS: pa.list_(pa.string()),
    }
    return [(name, types[kind]) for name, kind in kinds.items()]


def arrow_table(kinds: Mapping[str, Kind], rows: Iterable[Sequence[Cell]]) -> "pa.Table":
    """Return rows as an Arrow table; times are timestamps in UTC.

    Raises:
        ConfigError: pyarrow is not installed.

    """
    arrow, types = pyarrow_module(), arrow_types(kinds)
    columns = _columns(kinds, rows)
    table: pa.Table = arrow.table({name: arrow.array(columns[name], kind) for name, kind in types})
    return table


def arrow_stream(table: "pa.Table", requested_schema: object) -> object:
    """Return a table by Arrow's PyCapsule interface, as `__arrow_c_stream__` does."""
    return table.__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]  # of Arrow's stubs


def pandas_frame(kinds: Mapping[str, Kind], rows: Iterable[Sequence[Cell]]) -> "pd.DataFrame":
    """Return rows as a data frame; times are timestamps in UTC.

    Raises:
        ConfigError: pandas is not installed.

    """
    pd = pandas_module()
    columns: dict[str, Any] = _columns(kinds, rows)
    for name, kind in kinds.items():
        if kind is Kind.TIME:
            columns[name] = pd.to_datetime(pd.Series(columns[name], dtype="Int64"), unit="ms", utc=True)
        elif kind in (Kind.TEXT, Kind.TEXTS):
            columns[name] = pd.Series(columns[name], dtype="object")
        elif kind in (Kind.NUMBER, Kind.FRACTION) and None in columns[name]:
            columns[name] = pd.Series(columns[name], dtype="Int64" if kind is Kind.NUMBER else "Float64")
    return pd.DataFrame(columns, columns=list(kinds))


def html_table(titles: Sequence[str], rows: Iterable[Sequence[Cell]], *, caption: str, total: int | None = None) -> str:
    """Return the first rows as an HTML table, escaped; `total` is the number of all rows, if known."""
    first_rows = list(islice(rows, MOST_ROWS + 1))
    more = len(first_rows) > MOST_ROWS
    head = "".join(f"<th>{_html(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{_html(cell)}</td>' for cell in row)}</tr>" for row in first_rows[:MOST_ROWS])
    rest = "more" if total is None else f"{total - MOST_ROWS:,} more"
    foot = f'<tr><td colspan="{len(titles)}">... and {rest}</td></tr>' if more else ""
    return (
        f"<table><caption>{_html(caption, 4 * MOST_CHARACTERS)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}{foot}</tbody></table>"
    )


def html_text(text: str) -> str:
    """Return lines as preformatted HTML, with the limits of a table."""
    lines = text.splitlines()
    escaped = [_html(line, 2 * MOST_CHARACTERS) for line in lines[: 2 * MOST_ROWS]]
    if len(lines) > len(escaped):
        escaped.append(f"... and {len(lines) - len(escaped):,} more lines")
    return f"<pre>{'<br>'.join(escaped)}</pre>"


def _html(cell: Cell, most: int = MOST_CHARACTERS) -> str:
    if cell is not None and not isinstance(cell, str | float | int):
        cell = ", ".join(cell)
    text = printable("" if cell is None else str(cell))
    from html import escape  # noqa: PLC0415 - it has all entities

    return escape(text if len(text) <= most else f"{text[: most - 1]}\u2026")


def _columns(kinds: Mapping[str, Kind], rows: Iterable[Sequence[Cell]]) -> dict[str, list[Cell]]:
    values = list(zip(*rows, strict=True)) or [()] * len(kinds)
    columns = {name: list(column) for name, column in zip(kinds, values, strict=True)}
    for name, kind in kinds.items():
        if kind is Kind.TIME:
            columns[name] = [None if not isinstance(time, int) or time < 0 else time for time in columns[name]]
    return columns
