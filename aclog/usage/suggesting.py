"""A suggestion and its proof, from the distinct accesses of a log: here, or by workers that judge some principals each.

The ACLs that a principal needs depend on the accesses of others only by the names that exist and their owners. So each
part has all accesses of some principals; what is compared over all requests, the ACLs, is compared here.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import WILDCARD_PRINCIPAL
from aclog.authorizer.settings import Settings
from aclog.metalog.values import frozen
from aclog.usage.decisions.access_columns import parse_columns
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules
from aclog.usage.judging import Each
from aclog.usage.needs import Needs
from aclog.usage.simulation import Decided
from aclog.usage.suggestion import (
    Question,
    Refusal,
    Scope,
    SuggestedRule,
    Suggestion,
)
from aclog.usage.suggestion_proof import Proof, States, check_decisions, prove
from aclog.usage.window import UnreadAccesses

_ROWS: Final = 10_000
"""Distinct accesses of a part, on average."""
_MOST_PARTS: Final = 64


@frozen(eq=False, kw_only=True)
class Judged:
    """The distinct accesses of a log, judged by the present ACLs."""

    names: dict[int, dict[str, frozenset[str]]]
    """As of Needs."""
    denied: int
    undecided: UnreadAccesses

    @classmethod
    def of(cls, needs: Needs) -> Self:
        """Take what others have to know of the needs of some principals."""
        names = {kind: dict(owners) for kind, owners in needs.names.items()}
        return cls(names=names, denied=needs.denied, undecided=needs.undecided)

    @classmethod
    def sum_of(cls, parts: Iterable[Self]) -> Self:
        """Add up parts of a log."""
        judged, names = list(parts), dict[int, dict[str, frozenset[str]]]()
        for part in judged:
            for kind, owners in part.names.items():
                all_owners = names.setdefault(kind, {})
                for name, some in owners.items():
                    known = all_owners.get(name)
                    all_owners[name] = some if not known else known | some
        return cls(
            names=names,
            denied=sum(part.denied for part in judged),
            undecided=UnreadAccesses.sum_of(part.undecided for part in judged),
        )


def judge(counted: pa.Table, rules: Rules, settings: Settings, each: Each | None = None) -> "AtOnce | InParts":
    """Judge the distinct accesses of a log (COUNTED), by workers if there are some (`each`)."""
    parts = [counted] if each is None else parts_of(counted)
    if each is None or len(parts) < 2:
        return AtOnce(counted=counted, needs=Needs.of(counted, rules, settings))
    judged = Judged.sum_of(each(parts, partial(_judging, rules, settings)))
    return InParts(parts=parts, rules=rules, settings=settings, each=each, judged=judged)


@frozen(eq=False, kw_only=True)
class AtOnce:
    """Accesses that this process has judged."""

    counted: pa.Table = field(repr=False)
    needs: Needs = field(repr=False)

    @property
    def judged(self) -> Judged:
        """The result."""
        return Judged.of(self.needs)

    def suggest(self, present: Sequence[StandardAcl], question: Question) -> Suggestion:
        """Return the fewest ACLs (`aclog.usage.suggestion.suggest`)."""
        scope = Scope.of(present, question, self.needs.names)
        return scope.suggestion(*scope.granted(self.needs))

    def prove(self, old: AclsImage, new: Iterable[StandardAcl], settings: Settings) -> Proof:
        """Prove a suggestion. Raises as `aclog.usage.suggestion_proof.prove`."""
        return prove(old, new, self.counted, settings, before=self.needs.decided)


@frozen(eq=False, kw_only=True)
class InParts:
    """Accesses that workers judge, each part with all accesses of some principals."""

    parts: Sequence[pa.Table] = field(repr=False)
    rules: Rules
    settings: Settings
    each: Each = field(repr=False)
    judged: Judged

    def suggest(self, present: Sequence[StandardAcl], question: Question) -> Suggestion:
        """Do the same."""
        scope = Scope.of(present, question, self.judged.names)
        rules, refused = list[SuggestedRule](), list[Refusal]()
        for some, against in self.each(self.parts, partial(_granting, scope, self.rules, self.settings)):
            rules += some
            refused += against
        return scope.suggestion(rules, refused)

    def prove(self, old: AclsImage, new: Iterable[StandardAcl], settings: Settings) -> Proof:
        """Do the same."""
        states = States.of(old, new, settings, Rules.of_image(old))
        replayed = sum(self.each(self.parts, partial(_proving, states.before, states.after, settings)))
        states.check()
        return Proof(replayed=replayed)


def parts_of(counted: pa.Table) -> list[pa.Table]:
    """Return accesses in parts, each with all accesses of its principals, in their order.

    One part if an access is of a principal whose ACLs would be those of everyone.
    """
    principals: Any = counted.column("principal").combine_chunks()
    codes: Any = principals.dictionary_encode()
    names: list[str | None] = codes.dictionary.to_pylist()
    of_everyone = any(name is not None and (name == WILDCARD_PRINCIPAL or ":" not in name) for name in names)
    count = min(_MOST_PARTS, len(counted) // _ROWS)
    if of_everyone or count < 2:
        return [counted]
    part_of = np.asarray(pc.fill_null(codes.indices, 0)) % count
    tables = (counted.filter(pa.array(part_of == number)) for number in range(count))
    return [table for table in tables if len(table)]


def _judging(rules: Rules, settings: Settings) -> Callable[[pa.Table], Judged]:
    """Return what judges parts in a worker, whose authorizer all of them share."""
    authorizer = BulkAuthorizer.of(rules.intervals, settings)

    def run(part: pa.Table) -> Judged:
        return Judged.of(Needs.of(part, rules, settings, authorizer))

    return run


def _granting(
    scope: Scope, rules: Rules, settings: Settings
) -> Callable[[pa.Table], tuple[list[SuggestedRule], list[Refusal]]]:
    authorizer = BulkAuthorizer.of(rules.intervals, settings)

    def run(part: pa.Table) -> tuple[list[SuggestedRule], list[Refusal]]:
        return scope.granted(Needs.of(part, rules, settings, authorizer))

    return run


def _proving(before: Rules, after: Rules, settings: Settings) -> Callable[[pa.Table], int]:
    authorizers = [(rules, BulkAuthorizer.of(rules.intervals, settings)) for rules in (before, after)]

    def run(part: pa.Table) -> int:
        """Return the number of accesses. Raises SuggestionError: one is decided differently."""
        parsed = parse_columns([part.column(name) for name in REQUEST_COLUMNS])
        check_decisions(part, *(Decided.of(parsed, rules, settings, each) for rules, each in authorizers))
        return int(np.asarray(part.column("count")).sum())

    return run
