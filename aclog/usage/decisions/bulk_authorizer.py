"""Decisions on batches of accesses: each distinct access is decided once, every row is a look-up."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from attrs import Factory, define, field

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.settings import Settings
from aclog.metalog.vectors import Int64s
from aclog.usage.decisions.access_decisions import decide_accesses
from aclog.usage.decisions.accesses import Access, AccessNumbers, ParsedAccess, parse_access, principal_error
from aclog.usage.decisions.acl_intervals import AclIntervals, numbers_of_ids
from aclog.usage.decisions.decision_codes import UNRESOLVED, DecisionCode
from aclog.usage.decisions.decision_steps import DecisionSteps
from aclog.usage.decisions.interval_index import IntervalIndex

NO_TIME = -(1 << 62)
"""The time of an access without a timestamp."""

_MOST_REMEMBERED = 1 << 21
"""Distinct accesses to remember before all are forgotten; about 500 bytes each."""


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
        """Return the decision code of each row of a batch (aclog.usage.decisions.decision_codes).

        `columns` are the five Arrow arrays of REQUEST_COLUMNS. With `times` (us since 1970, NO_TIME for a row without a
        timestamp) each row is decided by the ACLs of its own time, otherwise all rows by those of the last version.
        """
        access_of, version = self._numbers(columns), self._versions(times)
        steps = self._decided.steps.steps(access_of, version)
        codes = self._decided.steps.codes(steps)
        unresolved = np.flatnonzero(codes == UNRESOLVED)
        if len(unresolved):
            at = version if isinstance(version, int) else version[unresolved]
            codes[unresolved] = self._resolve(access_of[unresolved], np.broadcast_to(at, unresolved.shape))
        if times is not None:
            # super users and malformed accesses are decided without ACLs, so their time does not matter
            by_acls = codes >= DecisionCode.DEFAULT_ALLOW
            codes[by_acls & (times < self.known_from * 1000)] = DecisionCode.BEFORE_THE_LOG
            codes[by_acls & (times == NO_TIME)] = DecisionCode.NO_TIME
        return codes

    def _numbers(self, columns: Sequence[Any]) -> Int64s:
        """Return the number of each row's access, and decide those not seen before."""
        if len(self._decided.numbers) > _MOST_REMEMBERED:
            self._decided = self._nothing()
        first = len(self._decided.numbers)
        access_of, new = self._decided.numbers.number(columns)
        if new:
            self._decide_new(new, first)
        return access_of

    def _versions(self, times: Int64s | None) -> Int64s | int:
        return self.index.versions.end - 1 if times is None else self.index.versions.at(times)

    def _nothing(self) -> _Decided:
        return _Decided(DecisionSteps(self.index.versions.end))

    def _decide_new(self, accesses: list[Access], first: int) -> None:
        parsed = [self._parse(access) for access in accesses]
        codes = np.array([each if isinstance(each, DecisionCode) else UNRESOLVED for each in parsed], np.int32)
        where = np.flatnonzero(codes == UNRESOLVED)
        asked = [each for each in parsed if isinstance(each, ParsedAccess)]
        found = decide_accesses(self.index, asked, allow_everyone=self.settings.allow_everyone)
        codes[where] = found.codes
        changing = {int(where[at]): steps for at, steps in found.changing.items()}
        self._decided.steps.append(codes, changing)
        unresolved = [at for at in np.flatnonzero(found.codes == UNRESOLVED).tolist() if at not in found.changing]
        unresolved += [at for at, steps in found.changing.items() if any(code == UNRESOLVED for _, code in steps)]
        self._decided.unresolved.update((first + int(where[at]), asked[at]) for at in unresolved)

    def _parse(self, access: Access) -> ParsedAccess | DecisionCode:
        parsed = parse_access(access)
        if isinstance(parsed, DecisionCode):
            return parsed
        # as in Kafka, super users come first: one without a colon, or User:*, is allowed rather than refused
        if parsed.principal in self.settings.super_users:
            return DecisionCode.SUPER_USER
        return principal_error(parsed.principal) or parsed

    def _resolve(self, access_of: Int64s, version: Int64s) -> Int32s:
        keys, rows = np.unique(version * len(self._decided.steps) + access_of, return_inverse=True)
        codes = np.empty(len(keys), np.int32)
        # ascending keys are grouped by version: each image is built once for all accesses at its version
        for at, key in enumerate(keys.tolist()):
            at_version, access = divmod(key, len(self._decided.steps))
            codes[at] = self._exact(access, at_version)
        return codes[rows]

    def _exact(self, access: int, version: int) -> int:
        code = self._decided.resolved.get((access, version))
        if code is None:
            image, parsed = self.index.image_at(version), self._decided.unresolved[access]
            code = self._decided.resolved[access, version] = self._by_image(image, parsed, version)
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
