"""The exact difference of two policies, as regions of requests."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve, field

from aclog.analysis import regions
from aclog.analysis.engine.exploration import Exploration, cell_of, changed_cells, scope_of, whole_scope
from aclog.analysis.policy import G, Policy, deciding, is_allowed, merged
from aclog.analysis.rows.folding import rows
from aclog.analysis.rows.report import (
    TITLES,
    ChangedRules,
    Kind,
    ReportRow,
    arrow_stream,
    arrow_table,
    html_table,
    pandas_frame,
    row_cells,
    row_lines,
)
from aclog.analysis.rows.row import Row
from aclog.authorizer import settings
from aclog.authorizer.acl import StandardAcl, TwoOrigins
from aclog.authorizer.acls_image import AclsImage, RuleChange, changes_between
from aclog.authorizer.codes import ResourceType
from aclog.authorizer.standard import ALL_KNOWN, Premise, Premises
from aclog.authorizer.symbols import SYMBOLS
from aclog.metalog.errors import printable
from aclog.metalog.values import define, frozen

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


# The exact difference of two policies: every request that one allows and the other denies.


def differences(
    old: Policy,
    new: Policy,
    *,
    query: regions.Query | None = None,
    changed: Iterable[StandardAcl] | None = None,
    unnamed: bool = False,
) -> Iterator[regions.Difference]:
    """Yield regions that contain exactly the requests on which two policies decide differently, in a stable order.

    `query` restricts the result to some requests. `changed`: every ACL that only one of the policies has, if known; it
    saves the comparison of all ACLs. Regions of one direction may overlap. `unnamed`: only the regions of all
    principals but some.

    A request on which Kafka's authorizer throws, because an ACL on the resource has a principal without a colon, counts
    as not allowed.
    """
    if changed is None:
        cells = changed_cells(old.acls.index, new.acls.index)
    else:
        cells = iter(dict.fromkeys(map(cell_of, changed)))
    restriction = query or regions.Query()
    return Exploration.of(old, new, restriction).explore(scope_of(old, new, cells).within(restriction), unnamed=unnamed)


def allowed(policy: Policy, query: regions.Query, *, unnamed: bool = False) -> Iterator[regions.Region]:
    """Yield regions that contain exactly the requests of the query that a policy allows, in a stable order.

    A request on which Kafka's authorizer throws counts as not allowed (see `differences`). Regions may overlap.
    `unnamed`: only the regions of all principals but some.
    """
    nothing = Policy(AclsImage.empty())
    gained = Exploration.of(nothing, policy, query).explore(whole_scope().within(query), unnamed=unnamed)
    return (difference.region for difference in gained)


def denied(policy: Policy, query: regions.Query) -> Iterator[regions.Region]:
    """Yield regions that contain exactly the requests of the query that a policy does not allow, in a stable order.

    They include requests on which Kafka's authorizer throws (see `differences`). Regions may overlap.
    """
    everything = Policy(AclsImage.empty(), evolve(policy.settings, allow_everyone=True))
    lost = Exploration.of(everything, policy, query).explore(whole_scope().within(query))
    return (difference.region for difference in lost)


# Accesses that two policies decide differently, counted by region and by row.


@define(eq=False, kw_only=True)
class Flips:
    """Distinct accesses with their counts; immutable by convention."""

    total: int
    unread: int = 0
    """The number of other accesses, which could not be read or decided and so may flip."""
    _by_principal: Mapping[str, list[tuple[regions.Request, int]]]

    @staticmethod
    def of(counts: Mapping[regions.Request, int], unread: int = 0) -> "Flips":
        """Return the flips with these counts."""
        by_principal: dict[str, list[tuple[regions.Request, int]]] = {}
        for request, count in counts.items():
            by_principal.setdefault(request.principal, []).append((request, count))
        return Flips(total=sum(counts.values()), unread=unread, by_principal=by_principal)

    def by_controllers(self) -> "Flips":
        """Return the accesses that controllers decide."""
        counts = chain.from_iterable(self._by_principal.values())
        decided = {
            request: count
            for request, count in counts
            if settings.controllers_decide(request.resource_type, request.operation)
        }
        return Flips.of(decided, self.unread)

    def among(self, requests: regions.Region | Row) -> int:
        """Return the number of accesses in a region or in a row."""
        of_principals = self._of(requests.principals)
        return sum(count for group in of_principals for request, count in group if request in requests)

    def _of(self, principals: regions.Principals) -> Iterable[list[tuple[regions.Request, int]]]:
        if principals.complement:
            return self._by_principal.values()
        return (self._by_principal[each] for each in principals.named if each in self._by_principal)


def decided_by_controllers(region: regions.Region) -> regions.Region:
    """Return the part of a region that controllers decide; it may have no operation."""
    operations = (
        each
        for each in regions.operations_of(region.operations)
        if settings.controllers_decide(region.resource_type, each)
    )
    return evolve(region, operations=sum(1 << each for each in operations))


# A comparison of two policies: regions in which they decide differently, rows for people, and counts.


_TRIED = 5
"""How many existing topics are tried as the example of a row, which may be an upper bound."""
_NO_DIFFERENCE = "no difference: every request is decided the same"
_KINDS = dict.fromkeys(TITLES, Kind.TEXT)


@define(eq=False, kw_only=True, repr=False)
class Comparison:
    """Two policies, and the requests on which they decide differently."""

    old: Policy
    new: Policy
    changes: Sequence[RuleChange]
    """The ACLs that only one of the policies has."""
    differences: list[regions.Difference]
    topics: regions.ExistingNames | None = None
    """The existing topics, if known."""
    flips: Flips | None = None
    """The accesses that flip, if accesses were given."""
    origins: TwoOrigins = field(factory=TwoOrigins)
    """The locations of the ACLs of both policies."""
    premises: Premises = ALL_KNOWN
    """The unknown premises that could refute "no difference"; empty if there are differences."""
    query: regions.Query | None = None
    """The requests that are compared; None for all."""

    @property
    def kafka(self) -> settings.GenerationPair | None:
        """The generations of Kafka that decide on the two policies; None if they are the same."""
        old, new = (
            settings.Generation.V4_4 if each.settings.cidr else settings.Generation.V4_3
            for each in (self.old, self.new)
        )
        return None if old is new else settings.GenerationPair(old=old, new=new)

    def __bool__(self) -> bool:
        """Return whether any request is decided differently, so that `if old.diff(new)` works."""
        return bool(self.differences)

    def __repr__(self) -> str:
        counts = Counter(difference.direction for difference in self.differences)
        return f"Comparison(gained={counts[regions.Direction.GAINED]}, lost={counts[regions.Direction.LOST]})"

    def __str__(self) -> str:
        return "\n".join(map(printable, self.text_lines()))

    def _repr_html_(self) -> str:
        report_rows = self.rows()
        caption = repr(self) if report_rows else self.premises.decided(_NO_DIFFERENCE)
        return html_table(TITLES, map(row_cells, report_rows), caption=caption, total=len(report_rows))

    def to_dict(self) -> dict[str, object]:
        """Return the exact regions, as the objects of `json_lines`, under `differences`."""
        return {"differences": list(self.json_lines()), **self.premises.key()}

    def to_arrow(self) -> "pa.Table":
        """Return the rows for people as a table of texts. Raises ConfigError: pyarrow is not installed."""
        return arrow_table(_KINDS, map(row_cells, self.rows()))

    def to_pandas(self) -> "pd.DataFrame":
        """Return the rows for people as a data frame. Raises ConfigError: pandas is not installed."""
        return pandas_frame(_KINDS, map(row_cells, self.rows()))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the same to Polars, DuckDB and others by Arrow's PyCapsule interface. Raises as `to_arrow`."""
        return arrow_stream(self.to_arrow(), requested_schema)

    @staticmethod
    def of(
        old: Policy,
        new: Policy,
        *,
        changes: Sequence[RuleChange] | None = None,
        direction: regions.Direction | None = None,
        topics: regions.ExistingNames | None = None,
        flips: Flips | None = None,
        origins: TwoOrigins | None = None,
        query: regions.Query | None = None,
    ) -> "Comparison":
        """Compare two policies, in both directions or in one; `changes`, if known, saves comparing all rules.

        `query`: the requests to compare, by default all.
        """
        rule_changes = changes_between(old.acls, new.acls) if changes is None else changes
        all_differences = differences(old, new, query=query, changed=[change.acl for change in rule_changes])
        selected = [each for each in all_differences if direction in (None, each.direction)]
        return Comparison(
            old=old,
            new=new,
            changes=rule_changes,
            differences=selected,
            topics=topics,
            flips=flips,
            origins=origins or TwoOrigins(),
            query=query,
        )

    def by_controllers(self) -> "Comparison":
        """Return the parts of the difference that controllers decide."""
        parts = (evolve(each, region=decided_by_controllers(each.region)) for each in self.differences)
        flips = None if self.flips is None else self.flips.by_controllers()
        return evolve(self, differences=[each for each in parts if each.region.operations], flips=flips)

    def json_lines(self) -> Iterator[regions.JsonObject]:
        """Yield a JSON object per region (docs/commands), with counts of existing topics and of accesses if known."""
        for difference in self.differences:
            region = difference.region
            example = regions.witness(region)
            before, after = deciding(self.old, example), deciding(self.new, example)
            line = regions.difference_object(difference, old=before, new=after, origins=self.origins)
            line |= regions.witness_object(example, legal=regions.has_legal_name(region))
            if self.topics is not None and region.resource_type == ResourceType.TOPIC:
                line["topics"] = len(self.topics.among(region.names))
            if self.flips is not None:
                line["accesses"] = self.flips.among(region)
            if difference.by_kafka and self.kafka is not None:
                line["kafka"] = self.kafka.to_dict()
            yield line

    def rows(self) -> list[ReportRow]:
        """Return the rows for people."""
        changed = ((change.added, change.acl) for change in self.changes)
        plain_rows, behind = (
            rows(self.differences, self.old, self.new, changed),
            ChangedRules(self.changes, self.origins),
        )
        return [self._report(row, behind) for row in plain_rows]

    def text_lines(self) -> Iterator[str]:
        """Yield the rows as lines of text, then their counts."""
        report_rows = self.rows()
        for report in report_rows:
            yield from row_lines(report)
        counts = Counter(direction for report in report_rows for direction in report.row.directions)
        if not report_rows:
            yield self.premises.decided(_NO_DIFFERENCE)
        elif len(report_rows) > 1:
            gained, lost = counts[regions.Direction.GAINED], counts[regions.Direction.LOST]
            yield f"{len(report_rows):,} rows: {gained:,} gained, {lost:,} lost"
        if self.flips is not None:
            more = (
                f", and {self.flips.unread:,} that could not be read or decided may flip" if self.flips.unread else ""
            )
            total = self.flips.total
            yield f"{total:,} of the accesses flip{'s' * (total == 1)}{more}"

    def _report(self, row: Row, behind: ChangedRules) -> ReportRow:
        row = self._on_existing_topic(row)
        return ReportRow(
            row=row,
            topics=self._topics_of(row),
            accesses=self._accesses_of(row),
            origins=self.origins,
            places=tuple(behind.places(row)),
            by_kafka=self.kafka if row.by_kafka else None,
        )

    def _on_existing_topic(self, row: Row) -> Row:
        """Return a row with an example on an existing topic, if one is known and found quickly."""
        request = row.witness
        if self.topics is None or request.resource_type != ResourceType.TOPIC:
            return row
        parts = (
            part
            for clause in row.clauses
            if clause.resource_type == ResourceType.TOPIC and clause.operations >> request.operation & 1
            for part in clause.names
        )
        own: regions.Names = (regions.Literal(name=request.resource_name),)
        for name in islice(self.topics.each((*own, *parts)), _TRIED):
            example = evolve(request, resource_name=name)
            direction = self._direction(example)
            if direction in row.directions:
                before, after = deciding(self.old, example), deciding(self.new, example)
                return evolve(row, witness=example, before=before, after=after, witness_exists=True)
        return row

    def _direction(self, request: regions.Request) -> regions.Direction | None:
        before, after = is_allowed(self.old, request), is_allowed(self.new, request)
        if before is after:
            return None
        return regions.Direction.GAINED if after else regions.Direction.LOST

    def _topics_of(self, row: Row) -> int | None:
        if self.topics is None or all(each.resource_type != ResourceType.TOPIC for each in row.clauses):
            return None
        return len(self.topics.of_clauses(row.clauses))

    def _accesses_of(self, row: Row) -> int | None:
        return None if self.flips is None else self.flips.among(row)


Compared: TypeAlias = Mapping[settings.Generation | settings.GenerationPair | None, Comparison]
"""By the generation of Kafka that decides on both policies, or by a pair if it is not the same; one under None, if
it is known which decide."""


def rows_of_each(compared: Mapping[G, Comparison]) -> Iterator[ReportRow]:
    """Yield the rows for people of the comparisons of all generations that may decide, each with `only`."""
    report_rows = merged({generation: comparison.rows() for generation, comparison in compared.items()}, row_cells)
    yield from (evolve(report, only=only) for report, only in report_rows)


# The unknown premises that could refute a proof that two policies decide the same.


@frozen(kw_only=True)
class SidePremises:
    """The unknown settings of two sides.

    Two sides with the same settings have the same super users, who are allowed everything on both sides.
    """

    old: Premises = ALL_KNOWN
    new: Premises = ALL_KNOWN
    same_settings: bool = True
    """Whether an unknown setting has the same value on both sides: they have the settings of one cluster."""

    @staticmethod
    def of_one(unknown: Premises, old_given: AbstractSet[str], new_given: AbstractSet[str]) -> "SidePremises":
        """Return the premises of two sides with the settings of one cluster, except those given for a side."""
        return SidePremises(old=unknown.without(old_given), new=unknown.without(new_given))

    @property
    def unknown(self) -> Premises:
        """All unknown premises of either side, each name once."""
        by_name = {each.name: each for each in (*self.new.unknown, *self.old.unknown)}
        return Premises(tuple(by_name.values()))

    def turning(self, direction: regions.Direction | None, differs_when_open: Callable[[], bool]) -> Premises:
        """Return the premises that could refute "no difference" in this direction, or in either one.

        `differs_when_open`: whether there is a difference if resources without ACLs are open to everyone on both sides.
        """
        return Premises(tuple(each for each in self.unknown.unknown if self._turns(each, direction, differs_when_open)))

    def _turns(
        self, premise: Premise, direction: regions.Direction | None, differs_when_open: Callable[[], bool]
    ) -> bool:
        if premise.denies:
            return True
        in_old, in_new = premise.name in self.old.names, premise.name in self.new.names
        if in_old and in_new and self.same_settings:
            if premise.name == settings.ALLOW_EVERYONE_CONFIG:
                return differs_when_open()
            return premise.name != settings.SUPER_USERS_CONFIG
        # It can only allow more, on its side.
        return not (direction is regions.Direction.GAINED and not in_new) and not (
            direction is regions.Direction.LOST and not in_old
        )


def turning(premises: SidePremises, comparison: Comparison, direction: regions.Direction | None = None) -> Premises:
    """Return the premises that could refute that `comparison` has no difference in this direction, or in either one."""

    def differs_when_open() -> bool:
        """Return whether the policies differ if resources without ACLs are open to everyone."""
        old, new = opened(comparison.old), opened(comparison.new)
        opened_both = Comparison.of(old, new, changes=comparison.changes, direction=direction, query=comparison.query)
        return bool(opened_both.differences)

    turning = premises.turning(direction, differs_when_open)
    if not comparison.changes and comparison.old.settings == comparison.new.settings:
        return turning.without({SYMBOLS})  # the same rules, regardless of what each symbol turns out to be
    return turning


def turning_same(premises: Premises, comparison: Comparison) -> Premises:
    """Return the premises that could give a difference to two states of one source that have none."""
    return ALL_KNOWN if comparison.differences else turning(SidePremises(old=premises, new=premises), comparison)


def opened(policy: Policy) -> Policy:
    """Return the policy with resources without ACLs open to everyone."""
    return Policy(policy.acls, evolve(policy.settings, allow_everyone=True))
