"""Judges batches of accesses: each distinct access once, then every row by looking up what became of it."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from attrs import Factory, define, field, frozen

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.super_users import parse_allow_everyone, parse_super_users
from aclog.metalog.vectors import Int64s
from aclog.pipeline.decisions.access_decisions import decide_accesses
from aclog.pipeline.decisions.accesses import Access, AccessNumbers, ParsedAccess, parse_access, principal_error
from aclog.pipeline.decisions.acl_intervals import AclIntervals, numbers_of_ids
from aclog.pipeline.decisions.decision_codes import UNRESOLVED, DecisionCode
from aclog.pipeline.decisions.decision_steps import DecisionSteps
from aclog.pipeline.decisions.interval_index import IntervalIndex

NO_TIME = -(1 << 62)
"""Stands for the time of an access that has none."""

_MOST_REMEMBERED = 1 << 21
"""Distinct accesses whose codes are kept before all are forgotten: about 500 bytes each."""


@frozen(kw_only=True)
class Settings:
    """What decides beside the rules, as a broker's properties have it; `documented` is --semantics documented."""

    super_users: frozenset[str] = frozenset()
    allow_everyone: bool = False
    documented: bool = False

    @classmethod
    def of_texts(cls, super_users: str | None, allow_everyone: str | None, *, documented: bool = False) -> Self:
        """Of the values of `super.users` and `allow.everyone.if.no.acl.found`. Raises ConfigError for the former."""
        return cls(
            super_users=parse_super_users(super_users),
            allow_everyone=parse_allow_everyone(allow_everyone),
            documented=documented,
        )


@define(eq=False)
class _Seen:
    """The accesses that were judged, and what became of them."""

    steps: DecisionSteps
    numbers: AccessNumbers = field(factory=AccessNumbers, init=False)
    unresolved: dict[int, ParsedAccess] = field(factory=dict, init=False)
    """Those with an UNRESOLVED step."""
    resolved: dict[tuple[int, int], int] = field(factory=dict, init=False)
    """(Access, version) -> code."""


@define(eq=False, kw_only=True)
class BulkAuthorizer:
    """Decides as StandardAuthorizer does on LITERAL resources; it remembers the accesses that it has seen.

    Owned by one worker process, which gives it one batch after another.
    """

    index: IntervalIndex
    settings: Settings
    known_from: int
    """The time from which the rules are known, in ms since 1970."""
    _seen: _Seen = field(init=False, default=Factory(lambda self: self._nothing(), takes_self=True))

    @classmethod
    def of(cls, intervals: AclIntervals, settings: Settings) -> Self:
        """A judge by these rules."""
        index = IntervalIndex.of(intervals, documented=settings.documented)
        return cls(index=index, settings=settings, known_from=intervals.known_from)

    def decide(self, columns: Sequence[Any], times: Int64s | None = None) -> Int32s:
        """The decision code of each row of a batch (aclog.pipeline.decisions.decision_codes).

        `columns` are the five Arrow arrays of REQUEST_COLUMNS. With `times` (us since 1970, NO_TIME for a row without a
        timestamp) each row is decided by the ACLs of its own time, otherwise all rows by those of the last version.
        """
        access_of, version = self.numbered(columns), self.versions(times)
        steps = self._seen.steps.steps(access_of, version)
        codes = self._seen.steps.codes(steps)
        left = np.flatnonzero(codes == UNRESOLVED)
        if len(left):
            at = version if isinstance(version, int) else version[left]
            codes[left] = self._resolve(access_of[left], np.broadcast_to(at, left.shape))
        if times is not None:
            by_rules = codes >= DecisionCode.DEFAULT_ALLOW
            codes[by_rules & (times < self.known_from * 1000)] = DecisionCode.BEFORE_THE_LOG
            codes[by_rules & (times == NO_TIME)] = DecisionCode.NO_TIME
        return codes

    def numbered(self, columns: Sequence[Any]) -> Int64s:
        """The number of each row's access; those not seen before are decided."""
        if len(self._seen.numbers) > _MOST_REMEMBERED:
            self._seen = self._nothing()
        first = len(self._seen.numbers)
        access_of, new = self._seen.numbers.number(columns)
        if new:
            self._decide(new, first)
        return access_of

    def versions(self, times: Int64s | None) -> Int64s | int:
        """The version of the rules at each of these times, or the last one."""
        if times is None:
            return self.index.end - 1
        return np.searchsorted(self.index.times * 1000, times, "right")

    def _nothing(self) -> _Seen:
        return _Seen(DecisionSteps(self.index.end))

    def _decide(self, accesses: list[Access], first: int) -> None:
        parsed = [self._parse(access) for access in accesses]
        codes = np.array([access if isinstance(access, DecisionCode) else UNRESOLVED for access in parsed], np.int32)
        where = np.flatnonzero(codes == UNRESOLVED)
        asked = [access for access in parsed if isinstance(access, ParsedAccess)]
        found = decide_accesses(self.index, asked, allow_everyone=self.settings.allow_everyone)
        codes[where] = found.codes
        moving = {int(where[at]): steps for at, steps in found.moving.items()}
        self._seen.steps.append(codes, moving)
        left = [at for at in np.flatnonzero(found.codes == UNRESOLVED).tolist() if at not in found.moving]
        left += [at for at, steps in found.moving.items() if any(code == UNRESOLVED for _, code in steps)]
        self._seen.unresolved.update((first + int(where[at]), asked[at]) for at in left)

    def _parse(self, access: Access) -> ParsedAccess | DecisionCode:
        parsed = parse_access(access)
        if isinstance(parsed, DecisionCode):
            return parsed
        if parsed.principal in self.settings.super_users:
            return DecisionCode.SUPER_USER
        return principal_error(parsed.principal) or parsed

    def _resolve(self, access_of: Int64s, version: Int64s) -> Int32s:
        keys, rows = np.unique(version * len(self._seen.steps) + access_of, return_inverse=True)
        found = np.empty(len(keys), np.int32)
        for at, key in enumerate(keys.tolist()):  # by version: an image serves all that ask about its version
            at_version, access = divmod(key, len(self._seen.steps))
            found[at] = self._exact(access, at_version)
        return found[rows]

    def _exact(self, access: int, version: int) -> int:
        known = self._seen.resolved.get((access, version))
        if known is None:
            image, parsed = self.index.image_at(version), self._seen.unresolved[access]
            known = self._seen.resolved[access, version] = self._by_image(image, parsed, version)
        return known

    def _by_image(self, image: AclsImage, access: ParsedAccess, version: int) -> int:
        ask = access.principal, access.host, access.operation, access.resource_type, access.resource_name
        try:
            image.verdict(*ask)
            rule = image.rule(*ask)
        except InvalidRequestError:
            return DecisionCode.RULE_WITHOUT_COLON
        if rule is not None and rule.id is not None:
            (number,) = numbers_of_ids(np.frombuffer(rule.id.bytes, np.uint8)[None])
            return self.index.ordinal(int(number), version)
        free = self.settings.allow_everyone and not image.has_candidate(access.resource_type, access.resource_name)
        return DecisionCode.DEFAULT_ALLOW if free else DecisionCode.DEFAULT_DENY
