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
from aclog.pipeline.judge.accesses import Access, AccessNumbers, Asking, asking_of, principal_error
from aclog.pipeline.judge.findings import find
from aclog.pipeline.judge.rule_spans import RuleSpans, numbers_of_ids
from aclog.pipeline.judge.span_index import SpanIndex
from aclog.pipeline.judge.verdict_steps import VerdictSteps
from aclog.pipeline.judge.verdicts import UNRESOLVED, Verdict

NO_TIME = -(1 << 62)
"""Stands for the time of an access that has none."""

_MOST_REMEMBERED = 1 << 21
"""Distinct accesses whose verdicts are kept before all are forgotten: about 500 bytes each."""


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

    steps: VerdictSteps
    numbers: AccessNumbers = field(factory=AccessNumbers, init=False)
    unresolved: dict[int, Asking] = field(factory=dict, init=False)
    """Those with an UNRESOLVED step."""
    resolved: dict[tuple[int, int], int] = field(factory=dict, init=False)
    """(Access, version) -> verdict."""


@define(eq=False, kw_only=True)
class Judge:
    """Decides as StandardAuthorizer does on LITERAL resources; it remembers the accesses that it has seen.

    Owned by one worker process, which gives it one batch after another.
    """

    index: SpanIndex
    settings: Settings
    known_from: int
    """The time from which the rules are known, in ms since 1970."""
    _seen: _Seen = field(init=False, default=Factory(lambda self: self._nothing(), takes_self=True))

    @classmethod
    def of(cls, spans: RuleSpans, settings: Settings) -> Self:
        """A judge by these rules."""
        index = SpanIndex.of(spans, documented=settings.documented)
        return cls(index=index, settings=settings, known_from=spans.known_from)

    def verdicts(self, columns: Sequence[Any], times: Int64s | None = None) -> Int32s:
        """The verdict on each row of a batch (aclog.pipeline.judge.verdicts).

        `columns` are the five Arrow arrays of ACCESS_COLUMNS. With `times` (us since 1970, NO_TIME where there is none)
        each row is judged by the rules of its own time, else by those of the last version.
        """
        access_of, version = self.numbered(columns), self.versions(times)
        steps = self._seen.steps.steps(access_of, version)
        verdicts = self._seen.steps.verdicts(steps)
        left = np.flatnonzero(verdicts == UNRESOLVED)
        if len(left):
            at = version if isinstance(version, int) else version[left]
            verdicts[left] = self._resolve(access_of[left], np.broadcast_to(at, left.shape))
        if times is not None:
            by_rules = verdicts >= Verdict.DEFAULT_ALLOW
            verdicts[by_rules & (times < self.known_from * 1000)] = Verdict.BEFORE_THE_LOG
            verdicts[by_rules & (times == NO_TIME)] = Verdict.NO_TIME
        return verdicts

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
        return _Seen(VerdictSteps(self.index.end))

    def _decide(self, accesses: list[Access], first: int) -> None:
        askings = [self._asking(access) for access in accesses]
        verdicts = np.array([asking if isinstance(asking, Verdict) else UNRESOLVED for asking in askings], np.int32)
        where = np.flatnonzero(verdicts == UNRESOLVED)
        asked = [asking for asking in askings if isinstance(asking, Asking)]
        found = find(self.index, asked, allow_everyone=self.settings.allow_everyone)
        verdicts[where] = found.verdicts
        moving = {int(where[at]): steps for at, steps in found.moving.items()}
        self._seen.steps.append(verdicts, moving)
        left = [at for at in np.flatnonzero(found.verdicts == UNRESOLVED).tolist() if at not in found.moving]
        left += [at for at, steps in found.moving.items() if any(verdict == UNRESOLVED for _, verdict in steps)]
        self._seen.unresolved.update((first + int(where[at]), asked[at]) for at in left)

    def _asking(self, access: Access) -> Asking | Verdict:
        asking = asking_of(access)
        if isinstance(asking, Verdict):
            return asking
        if asking.principal in self.settings.super_users:
            return Verdict.SUPER_USER
        return principal_error(asking.principal) or asking

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
            image, asking = self.index.image_at(version), self._seen.unresolved[access]
            known = self._seen.resolved[access, version] = self._by_image(image, asking, version)
        return known

    def _by_image(self, image: AclsImage, asking: Asking, version: int) -> int:
        ask = asking.principal, asking.host, asking.operation, asking.resource_type, asking.resource_name
        try:
            image.verdict(*ask)
            rule = image.rule(*ask)
        except InvalidRequestError:
            return Verdict.RULE_WITHOUT_COLON
        if rule is not None and rule.id is not None:
            (number,) = numbers_of_ids(np.frombuffer(rule.id.bytes, np.uint8)[None])
            return self.index.ordinal(int(number), version)
        free = self.settings.allow_everyone and not image.has_candidate(asking.resource_type, asking.resource_name)
        return Verdict.DEFAULT_ALLOW if free else Verdict.DEFAULT_DENY
