"""Decisions on batches of accesses, and the ACLs on which they depend."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from attrs import Factory, evolve, field

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import WILDCARD
from aclog.authorizer.index.layout import Int32s, expanded
from aclog.authorizer.index.scan_order import NAMED, ODD, STAR
from aclog.authorizer.interface import InvalidRequestError
from aclog.authorizer.settings import Settings
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.values import define, frozen
from aclog.usage.decisions.access_columns import AccessColumns, ParsedColumns, parse_columns
from aclog.usage.decisions.decisions import (
    LEVELS,
    UNRESOLVED,
    AccessNumbers,
    DecisionCode,
    DecisionSteps,
    DistinctAccesses,
    MatchingInterval,
    ParsedAccess,
    Ranges,
    StepColumns,
    Steps,
    is_order_ambiguous,
    principal_error,
    timeline,
)
from aclog.usage.decisions.intervals import (
    ALWAYS,
    FOREVER,
    AclIntervals,
    ContentIntervals,
    IntervalIndex,
    IntervalMatches,
    numbers_of_ids,
    of_controllers,
)

# Decisions on accesses by all ACLs that were ever in force: one for all versions, or one per version.


_UNSURE = np.uint8(1 << STAR | 1 << ODD)
"""The levels that Kafka may visit earlier or later than by their rank, as bits."""
_FEW = 32
"""Intervals of an access that are compared at each of its versions; more of them are swept in their order."""


@frozen(eq=False, kw_only=True)
class AccessDecisions:
    """Decision codes of some accesses, in their order; `changing` has the steps of those that change over time.

    UNRESOLVED requires a lookup in the image of the version (AclsImage.rule).
    """

    codes: Int32s
    changing: StepColumns


def decide_accesses(index: IntervalIndex, accesses: AccessColumns, *, allow_everyone: bool) -> AccessDecisions:
    """Decide accesses, none of whose principals is a super user, `User:*` or without a colon."""
    batch = _Batch(
        index=index,
        accesses=accesses,
        matches=index.matches(accesses),
        below_star=_below_star(accesses),
        allow_everyone=allow_everyone,
    )
    return batch.decide()


def _below_star(accesses: AccessColumns) -> Bools:
    names = accesses.requests.names
    # the first character decides, whose order in UTF-16 is that of code points, as `*` is ASCII
    below = np.fromiter(map(WILDCARD.__gt__, names), np.bool_, len(names))
    return below[accesses.requests.name_of]


@frozen(eq=False, kw_only=True)
class _Batch:
    """Accesses that are decided together, and what matches them."""

    index: IntervalIndex
    accesses: AccessColumns
    matches: IntervalMatches
    below_star: Bools
    """By access: whether the resource's name sorts below `*`, as Kafka's scan compares names."""
    allow_everyone: bool

    def decide(self) -> AccessDecisions:
        """Decide all accesses."""
        matches = self.matches
        always = (matches.start == 0) & (matches.end == self.index.versions.end) & ~matches.unsure
        changing, unsure = np.zeros((2, len(self.accesses)), np.bool_)
        changing[matches.access[~always]] = True
        unsure[matches.access[matches.unsure]] = True
        # decided for all as if every match were permanent: a few array operations, and right for nearly all
        codes = self._decide_permanent()
        if self.allow_everyone:
            self._allow_without_acls(codes, changing)
        throws = self._may_throw()
        codes[throws] = UNRESOLVED
        changing &= ~throws | unsure
        is_plain = changing & ~unsure & (np.bincount(matches.access, minlength=len(changing)) <= _FEW)
        if self.allow_everyone:
            is_plain[:] = False  # their resources may have many other ACLs, each of which counts
        timelines = dict(self._timelines(np.flatnonzero(changing & ~is_plain)))
        for at in np.flatnonzero(throws & unsure).tolist():
            timelines[at] = [(version, _unless_unsure(code)) for version, code in timelines[at]]
        steps = self._plain_steps(np.flatnonzero(is_plain)).joined(StepColumns.of(timelines))
        return AccessDecisions(codes=codes, changing=steps)

    def _decide_permanent(self) -> Int32s:
        """Return the codes if all ACLs that match are in force at all versions."""
        index, matches = self.index, self.matches
        count, total = len(self.accesses), len(index.ranks)
        ranks, denies = index.ranks[matches.row], index.denies(matches.row)
        first_deny, last_allow = np.full(count, total, np.int32), np.full(count, -1, np.int32)
        np.minimum.at(first_deny, matches.access[denies], ranks[denies])
        np.maximum.at(last_allow, matches.access[~denies], ranks[~denies])
        is_denied = first_deny < total
        determining = np.where(is_denied, first_deny, last_allow)
        ordinals = np.full(total + 1, DecisionCode.DEFAULT_DENY, np.int32)  # the last entry is for rank -1: no match
        ordinals[ranks] = matches.ordinal
        codes = ordinals[determining].astype(np.int32)
        decides = denies == is_denied[matches.access]
        rows = matches.row[decides]
        codes[self._ambiguous(matches.access[decides], rows, np.arange(count), is_denied)] = UNRESOLVED
        return codes

    def _ambiguous(self, step_of: Int64s, rows: Int64s, access: Int64s, is_denied: Bools) -> list[int]:
        """Return the steps of which the ranks of ACLs do not show which one Kafka names.

        `rows` are those of the ACLs that could be named, each of one step; `access` and `is_denied` are by step.
        """
        levels = np.zeros(len(access), np.uint8)  # a bit for each level of the ACLs that could be named
        np.bitwise_or.at(levels, step_of, np.left_shift(1, self.index.levels[rows]).astype(np.uint8))
        several = (levels & (levels - 1)) != 0
        ambiguous = []
        for at in np.flatnonzero(several & (levels & _UNSURE != 0)).tolist():
            present = {level for level in LEVELS if levels[at] >> level & 1}
            is_star = self.accesses[int(access[at])].resource_name == WILDCARD
            below_star, is_deny = bool(self.below_star[access[at]]), bool(is_denied[at])
            if is_order_ambiguous(present, denies=is_deny, below_star=below_star, is_star=is_star):
                ambiguous.append(at)
        return ambiguous

    def _allow_without_acls(self, codes: Int32s, changing: Bools) -> None:
        """Set DEFAULT_ALLOW if the resource never has an ACL; mark as changing if it has one at some versions only."""
        for at in np.flatnonzero((codes == DecisionCode.DEFAULT_DENY) & ~changing).tolist():
            resources = self.matches.resources(at)
            if not resources:
                codes[at] = DecisionCode.DEFAULT_ALLOW
            elif not self._all_permanent and not any(self._is_permanent(resource) for resource in resources):
                changing[at] = True

    @cached_property
    def _all_permanent(self) -> bool:
        return bool(self.index.versions.permanent.all())

    def _is_permanent(self, resource: int) -> bool:
        return bool(self.index.versions.permanent[self.index.intervals_of_resource(resource)].any())

    def _may_throw(self) -> Bools:
        """Return where an ACL on the resource has a principal without a colon.

        Kafka throws when its scan reaches that ACL, unless an ACL that denies comes first: only the image shows which.
        """
        throws = np.zeros(len(self.accesses), np.bool_)
        throwing = self.index.image.index.base.colonless_resources
        if throwing:
            access, resource = self.matches.places.of_requests(self.matches.place_of)
            throws[access[np.isin(resource, list(throwing))]] = True
        return throws

    def _plain_steps(self, changing: Int64s) -> StepColumns:
        """Return the steps of these accesses, whose matches are known and few."""
        index, matches, stride = self.index, self.matches, self.index.versions.end
        low, high = (np.searchsorted(matches.access, changing, side) for side in ("left", "right"))
        owner, match = expanded(low, high)
        start, end = matches.start[match], matches.end[match]
        # a step at each version at which an interval begins or ends, and at the first one
        numbers = np.concatenate((np.arange(len(changing)), owner, owner))
        versions = np.concatenate((np.zeros(len(changing), np.int64), start, end))
        keys = np.unique((numbers * stride + versions)[versions < stride])
        of_step, version = keys // stride, keys % stride
        # the intervals in force at each step: from its begin on, and none that ends where it begins
        first = np.searchsorted(keys, owner * stride + start)
        last = np.searchsorted(keys, owner * stride + np.minimum(end, stride))
        pair, step = expanded(first, np.maximum(first, last))
        row, ordinal = matches.row[match[pair]], matches.ordinal[match[pair]]
        denies = index.denies(row)
        total = len(index.ranks)
        # the first ACL that denies determines the decision, or else the last one that allows
        order = np.lexsort((np.where(denies, index.ranks[row], 2 * total - index.ranks[row]), step))
        determining = order[np.flatnonzero(np.diff(step[order], prepend=-1))]
        codes = np.full(len(keys), DecisionCode.DEFAULT_DENY, np.int32)
        codes[step[determining]] = ordinal[determining]
        is_denied = np.zeros(len(keys), np.bool_)
        is_denied[step[determining]] = denies[determining]
        decides = denies == is_denied[step]
        codes[self._ambiguous(step[decides], row[decides], changing[of_step], is_denied)] = UNRESOLVED
        return StepColumns(changing[of_step], version, codes)

    def _timelines(self, changing: Int64s) -> Iterator[tuple[int, Steps]]:
        """Yield the steps of each of these accesses."""
        matches, versions = self.matches, self.index.versions
        low = np.searchsorted(matches.access, changing, "left")
        high = np.searchsorted(matches.access, changing, "right")
        denies = self.index.denies(matches.row)
        for at, first, last in zip(changing.tolist(), low.tolist(), high.tolist(), strict=True):
            rows, ordinals = matches.row[first:last], matches.ordinal[first:last]
            # in the order of MatchingInterval's fields
            columns: list[Any] = [matches.start[first:last], matches.end[first:last], self.index.ranks[rows]]
            columns += [self.index.levels[rows], denies[first:last], ordinals]
            columns += [np.ones(last - first, np.bool_), matches.unsure[first:last]]
            intervals = list(map(MatchingInterval, *(column.tolist() for column in columns)))
            if self.allow_everyone:
                intervals += self._others(at)
            is_star, below_star = self.accesses[at].resource_name == WILDCARD, bool(self.below_star[at])
            steps = timeline(intervals, below_star=below_star, is_star=is_star, allow_everyone=self.allow_everyone)
            yield at, [step for step in steps if step[0] < versions.end]

    def _others(self, access: int) -> Iterator[MatchingInterval]:
        """Yield the intervals of all ACLs on an access's resource, whether or not they match."""
        versions = self.index.versions
        for resource in self.matches.resources(access):
            ordinals = self.index.intervals_of_resource(resource)
            # which ACL it is does not matter: equal intervals count once
            for start, end in set(
                zip(versions.starts[ordinals].tolist(), versions.ends[ordinals].tolist(), strict=True)
            ):
                yield MatchingInterval(start, end, 0, NAMED, denies=False, ordinal=-1, matches=False)


def _unless_unsure(code: int) -> int:
    return code if code == DecisionCode.UNKNOWN_KAFKA else UNRESOLVED


# Decisions on batches of accesses: each distinct access is decided once, every row is a look-up.


NO_TIME = -(1 << 62)
"""The time of an access without a timestamp."""

_MOST_REMEMBERED = 1 << 21
"""Distinct accesses to remember before all are forgotten; about 150 bytes each."""

_MOSTLY_DISTINCT = 0.5
"""The share of distinct accesses above which those of a batch are not remembered: deciding them costs less."""


@define(eq=False)
class _Decided:
    """The accesses that were decided, and their decisions."""

    steps: DecisionSteps
    numbers: AccessNumbers = field(factory=AccessNumbers, init=False)
    unresolved: dict[int, ParsedAccess] = field(factory=dict, init=False)
    """The accesses with an UNRESOLVED step, by number."""
    resolved: dict[tuple[int, int], int] = field(factory=dict, init=False)
    """Decision codes of UNRESOLVED steps by (access, version)."""


@define(eq=False, kw_only=True)
class BulkAuthorizer:
    """Decides like StandardAuthorizer on LITERAL resources, and remembers the accesses it has decided.

    Not thread-safe: one worker process owns it and passes it one batch after another.
    """

    index: IntervalIndex
    settings: Settings
    known_from: int
    """The time since which the ACLs are known, in ms since 1970."""
    _decided: _Decided = field(init=False, default=Factory(lambda self: self._nothing(), takes_self=True))

    @classmethod
    def of(cls, intervals: AclIntervals, settings: Settings) -> Self:
        """Return an authorizer by these ACLs."""
        index = IntervalIndex.of(intervals, documented=settings.documented, cidr=settings.cidr)
        return cls(index=index, settings=settings, known_from=intervals.known_from)

    def decide(self, columns: Sequence[Any], times: Int64s | None = None) -> Int32s:
        """Return the decision code of each row of a batch (aclog.usage.decisions.decisions).

        `columns` are the five Arrow arrays of REQUEST_COLUMNS. With `times` (us since 1970, NO_TIME for a row without a
        timestamp) each row is decided by the ACLs of its own time, otherwise all rows by those of the last version.
        """
        distinct = DistinctAccesses.of(columns)
        if len(distinct.once) > _MOSTLY_DISTINCT * len(distinct.access_of):
            decided = self._nothing()
            rows = pa.array(distinct.once, pa.int64())
            self._decide_new(decided, [column.take(rows) for column in columns], 0)
            return self._codes(decided, distinct.access_of, times)
        return self._codes(self._decided, self._numbers(distinct)[distinct.access_of], times)

    def decide_once(self, columns: Sequence[Any] | ParsedColumns, times: Int64s | None = None) -> Int32s:
        """Return what `decide` returns, without a memory of accesses: distinct ones are decided in half the time.

        `columns` may be parsed already, as parse_columns returns them.
        """
        decided = self._nothing()
        self._decide_new(decided, columns, 0)
        return self._codes(decided, np.arange(len(decided.steps)), times)

    def _codes(self, decided: _Decided, access_of: Int64s, times: Int64s | None) -> Int32s:
        version = self._versions(times)
        codes = decided.steps.codes(decided.steps.steps(access_of, version))
        unresolved = np.flatnonzero(codes == UNRESOLVED)
        if len(unresolved):
            at = version if isinstance(version, int) else version[unresolved]
            codes[unresolved] = self._resolve(decided, access_of[unresolved], np.broadcast_to(at, unresolved.shape))
        if times is not None:
            # super users and malformed accesses are decided without ACLs, so their time does not matter
            by_acls = codes >= DecisionCode.DEFAULT_ALLOW
            codes[by_acls & (times < self.known_from * 1000)] = DecisionCode.BEFORE_THE_LOG
            codes[by_acls & (times == NO_TIME)] = DecisionCode.NO_TIME
        return codes

    def _numbers(self, distinct: DistinctAccesses) -> Int64s:
        """Return the number of each access, and decide those not seen before."""
        if len(self._decided.numbers) > _MOST_REMEMBERED:
            self._decided = self._nothing()
        first = len(self._decided.numbers)
        numbers, new = self._decided.numbers.number_distinct(distinct)
        if new:
            self._decide_new(self._decided, self._decided.numbers.columns(slice(first, None)), first)
        return numbers

    def _versions(self, times: Int64s | None) -> Int64s | int:
        return self.index.versions.end - 1 if times is None else self.index.versions.at(times)

    def _nothing(self) -> _Decided:
        return _Decided(DecisionSteps(self.index.versions.end))

    def _decide_new(self, decided: _Decided, columns: Sequence[Any] | ParsedColumns, first: int) -> None:
        requests, codes = columns if isinstance(columns, ParsedColumns) else parse_columns(columns)
        codes = codes.copy()
        where = np.flatnonzero(codes == UNRESOLVED)
        # as in Kafka, super users come first: one without a colon, or User:*, is allowed rather than refused
        of_principal = np.array([self._code_of(text) for text in requests.requests.principals], np.int32)
        by_principal = of_principal[requests.requests.principal_of] if len(where) else np.zeros(0, np.int32)
        codes[where] = by_principal
        where, requests = where[by_principal == UNRESOLVED], requests.take(by_principal == UNRESOLVED)
        decisions = decide_accesses(self.index, requests, allow_everyone=self.settings.allow_everyone)
        codes[where] = decisions.codes
        changing = decisions.changing
        decided.steps.append(codes, changing._replace(access=where[changing.access]))
        is_unresolved = decisions.codes == UNRESOLVED
        is_unresolved[changing.access] = False
        is_unresolved[changing.access[changing.code == UNRESOLVED]] = True
        unresolved = np.flatnonzero(is_unresolved).tolist()
        decided.unresolved.update((first + int(where[at]), requests[at]) for at in unresolved)

    def _code_of(self, principal: str) -> int:
        """Return the decision on a principal alone; UNRESOLVED if ACLs decide."""
        if principal in self.settings.super_users:
            return DecisionCode.SUPER_USER
        error = principal_error(principal)
        return UNRESOLVED if error is None else error

    def _resolve(self, decided: _Decided, access_of: Int64s, version: Int64s) -> Int32s:
        keys, rows = np.unique(version * len(decided.steps) + access_of, return_inverse=True)
        codes = np.empty(len(keys), np.int32)
        # ascending keys are grouped by version: each image is built once for all accesses at its version
        for at, key in enumerate(keys.tolist()):
            at_version, access = divmod(key, len(decided.steps))
            codes[at] = self._exact(decided, access, at_version)
        return codes[rows]

    def _exact(self, decided: _Decided, access: int, version: int) -> int:
        code = decided.resolved.get((access, version))
        if code is None:
            image, parsed = self.index.image_at(version), decided.unresolved[access]
            code = decided.resolved[access, version] = self._by_image(image, parsed, version)
        return code

    def _by_image(self, image: AclsImage, access: ParsedAccess, version: int) -> int:
        try:
            image.verdict(*access)  # throws where Kafka's scan does; rule() does not check for it
            rule = image.rule(*access)
        except InvalidRequestError:
            return DecisionCode.RULE_WITHOUT_COLON
        if rule is not None and rule.id is not None:
            (content,) = numbers_of_ids(np.frombuffer(rule.id.bytes, np.uint8)[None])
            return self.index.ordinal(int(content), version)
        free = self.settings.allow_everyone and not image.has_candidate(access.resource_type, access.resource_name)
        return DecisionCode.DEFAULT_ALLOW if free else DecisionCode.DEFAULT_DENY


# Which ACLs decisions depend on: those that match an access, and those whose removal would change its decision.
#
# A DENY is needed if no other ACL denies and some ACL allows; an ALLOW is needed if none denies and no other allows.
# With allow.everyone.if.no.acl.found, the mere presence of an ACL on the resource counts as well: if only the ALLOWs
# that match are on it, the access is allowed with or without them; if a single other ACL is on it, nothing but that
# ACL keeps the access from being allowed by default.


MOST_IN_A_GROUP = 64
"""Larger groups are cut to this many ACLs: keeping any one of them is enough, so any subset will do."""


class Pairs(NamedTuple):
    """Pairs of an access (by index) and the ordinal of an ACL, by access."""

    access: Int64s
    ordinal: Int64s


@frozen(eq=False, kw_only=True)
class AclDependencies:
    """The ACLs that the decisions on some accesses depend on, each at its version."""

    matched: Pairs
    needed: Pairs
    """Removing this ACL alone changes the decision."""
    groups: Pairs
    """The decision on an access stays the same as long as one ACL of its group remains, even if all others are removed.

    A needed ACL is alone in its group. An access without a group is decided the same without any ACLs.
    """


@frozen(eq=False, kw_only=True)
class _Matched:
    """The ACLs that match some accesses at their versions, and how many of them deny and allow each access."""

    matches: IntervalMatches
    versions: Int64s
    pairs: Pairs
    denied: Int64s
    allowed: Int64s


@frozen(eq=False, kw_only=True)
class NecessaryAcls:
    """Finds the ACLs that decisions depend on. Each content is indexed once, however often it was added and removed."""

    index: IntervalIndex
    """Contents as permanent ACLs: their ordinals are the numbers of contents."""
    allow_everyone: bool
    intervals: ContentIntervals
    _throwing: frozenset[int]
    """The resources with an ACL whose principal has no colon."""

    @classmethod
    def of(cls, intervals: AclIntervals, settings: Settings, *, like: BulkAuthorizer | None = None) -> Self:
        """Index the ACLs, or take over the index of an authorizer by the same ACLs and settings."""
        contents = len(intervals.record_ends)
        permanent = evolve(
            intervals,
            content_of=np.arange(contents, dtype=np.int32),
            visible_from=np.full(contents, ALWAYS),
            visible_to=np.full(contents, FOREVER),
            kafka=None,
        )
        has_ranges = settings.cidr or intervals.kafka is not None
        if like is None:
            index = IntervalIndex.of(permanent, documented=settings.documented, cidr=has_ranges)
        else:
            index = like.index.with_intervals(permanent)
        return cls(
            index=index,
            allow_everyone=settings.allow_everyone,
            intervals=ContentIntervals.of(intervals),
            throwing=frozenset(index.image.index.base.colonless_resources),
        )

    @property
    def presence_counts(self) -> bool:
        """Whether decisions may depend on ACLs that do not match."""
        return self.allow_everyone or bool(self._throwing)

    def changes(self, accesses: Sequence[ParsedAccess]) -> StepColumns:
        """Return the versions at which the ACLs that a decision depends on change, for accesses with any such change.

        A decision depends on the ACLs that match, and on all ACLs on the resource if their presence counts. The codes
        of the steps are 0.
        """
        matches = self.index.matches(accesses)
        presence_counts = np.zeros(len(accesses), np.bool_)
        presence_counts[self._presence_counts(matches)] = True
        changing = np.flatnonzero(~self.intervals.permanent[matches.ordinal] & ~presence_counts[matches.access])
        stride = self.intervals.versions.end
        own = self.intervals.changes(matches.access[changing], matches.ordinal[changing])
        keys = [own.access * stride + own.version]
        of_place: dict[int, Int64s] = {}  # the ACLs that match are among those on the resource
        for access in np.flatnonzero(presence_counts).tolist():
            place = int(matches.place_of[access])
            if place not in of_place:
                on_place = [self.index.intervals_of_resource(each) for each in matches.resources(access)]
                contents = np.concatenate([np.zeros(0, np.int64), *on_place])
                contents = contents[~self.intervals.permanent[contents]]
                of_place[place] = self.intervals.changes(np.zeros(len(contents), np.int64), contents).version
            keys.append(access * stride + of_place[place])
        by_range = np.unique(matches.access[self._by_range(matches)]).tolist()
        keys += [access * stride + np.append(self._kafka_changes, 0) for access in by_range]
        return StepColumns.at(np.concatenate(keys), stride)

    def find(self, accesses: Sequence[ParsedAccess], versions: Int64s, codes: Int32s) -> AclDependencies:
        """Return what each access depends on at its version; `codes` are BulkAuthorizer's, without errors.

        If an ACL on the resource makes Kafka throw (its principal has no colon), the ACL that denied before the scan
        reached it counts as needed.
        """
        count, matches = len(accesses), self.index.matches(accesses)
        ordinal = self.intervals.in_force(matches.ordinal, versions[matches.access])
        in_force = ordinal >= 0
        by_range, kafka = self._by_range(matches), self.intervals.versions
        if kafka.ranges is not None and kafka.ranges_of_controllers is not None and len(by_range):
            access = matches.access[by_range]
            at, by_controllers = versions[access], of_controllers(accesses)[access]
            ranges = np.where(by_controllers, kafka.ranges_of_controllers[at], kafka.ranges[at])
            in_force[by_range] &= ranges == Ranges.YES
        matched = Pairs(matches.access[in_force], ordinal[in_force])
        denies = self.index.denies(matches.row[in_force])
        denied = np.bincount(matched.access[denies], minlength=count)
        allowed = np.bincount(matched.access[~denies], minlength=count)
        # a DENY without an ALLOW changes nothing: the access is denied by default anyway
        decides = denies & (allowed[matched.access] > 0) | ~denies & (denied[matched.access] == 0)
        presence_counts = np.zeros(count, np.bool_)
        presence_counts[self._presence_counts(matches)] = True
        plain = decides & ~presence_counts[matched.access]
        groups = Pairs(matched.access[plain], matched.ordinal[plain])
        if presence_counts.any():
            candidates = _Matched(matches=matches, versions=versions, pairs=matched, denied=denied, allowed=allowed)
            groups = _joined(groups, self._groups(candidates, np.flatnonzero(presence_counts), codes))
        sizes = np.bincount(groups.access, minlength=count)
        alone = sizes[groups.access] == 1
        needed = Pairs(groups.access[alone], groups.ordinal[alone])
        return AclDependencies(matched=matched, needed=needed, groups=groups)

    def _by_range(self, matches: IntervalMatches) -> Int64s:
        """Return the matches through a range, if which Kafka decided changes."""
        if self.intervals.versions.ranges is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.index.range_rows[matches.row])

    @cached_property
    def _kafka_changes(self) -> Int64s:
        """The versions at which ranges begin or cease to match."""
        return self.intervals.versions.kafka_changes()

    def _presence_counts(self, matches: IntervalMatches) -> list[int]:
        """Return the accesses whose decision depends on ACLs on the resource that do not match."""
        if self.allow_everyone:
            return list(range(len(matches.place_of)))
        if not self._throwing:
            return []
        access, resource = matches.places.of_requests(matches.place_of)
        return sorted(set(access[np.isin(resource, list(self._throwing))].tolist()))

    def _groups(self, candidates: _Matched, accesses: Int64s, codes: Int32s) -> Pairs:
        """Return the groups of accesses whose decision depends on ACLs that do not match."""
        matched = candidates.pairs
        low, high = (np.searchsorted(matched.access, accesses, side) for side in ("left", "right"))
        is_denying = self.denying()
        on_place: dict[tuple[int, int], Int64s] = {}  # many accesses are on few names, and all ACLs may be on one
        owners, ordinals = [], []
        for access, first, last in zip(accesses.tolist(), low.tolist(), high.tolist(), strict=True):
            own, resources = matched.ordinal[first:last], candidates.matches.resources(access)
            if not self._throwing.isdisjoint(resources):
                group = np.array([codes[access]], np.int64) if codes[access] >= 0 else own[:0]
            elif candidates.denied[access] and candidates.allowed[access]:
                group = own[is_denying[own]]
            else:
                place = int(candidates.matches.place_of[access]), int(candidates.versions[access])
                if place not in on_place:
                    on_place[place] = self._on(resources, place[1])
                present = on_place[place]
                # with nothing but matching ALLOWs on the resource, or nothing at all, it is allowed without them too
                free = not candidates.denied[access] and candidates.allowed[access] == len(present)
                group = own[:0] if free else own if candidates.allowed[access] else present
            owners.append(np.full(len(group[:MOST_IN_A_GROUP]), access, np.int64))
            ordinals.append(group[:MOST_IN_A_GROUP])
        return Pairs(np.concatenate(owners), np.concatenate(ordinals))

    def _on(self, resources: Sequence[int], version: int) -> Int64s:
        """Return the ordinals of the ACLs on these resources at a version."""
        contents = np.concatenate([np.zeros(0, np.int64), *map(self.index.intervals_of_resource, resources)])
        ordinals = self.intervals.in_force(contents, np.full(len(contents), version))
        return ordinals[ordinals >= 0]

    def denying(self) -> Bools:
        """Return by ordinal whether the ACL denies."""
        of_content = np.zeros(max(len(self.index.columns), 1), np.bool_)
        of_content[self.index.content_of_row] = self.index.denies(np.arange(len(self.index.content_of_row)))
        denying: Bools = of_content[self.intervals.content_of]
        return denying


def _joined(one: Pairs, other: Pairs) -> Pairs:
    access = np.concatenate((one.access, other.access))
    order = np.argsort(access, kind="stable")
    return Pairs(access[order], np.concatenate((one.ordinal, other.ordinal))[order])
