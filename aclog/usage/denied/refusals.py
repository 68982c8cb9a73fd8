"""The accesses of a log that a state refuses, each with the DENY rules in its way."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from aclog.authorizer.settings import Settings
from aclog.metalog.vectors import Bools
from aclog.usage.decisions.accesses import REQUEST_COLUMNS, Access, ParsedAccess, parse_access
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decision_codes import ERRORS, DecisionCode
from aclog.usage.decisions.rules import Rules
from aclog.usage.undecided import undecided
from aclog.usage.unread import UnreadAccesses

_ROWS = 1 << 16
"""Accesses whose rules are looked for together."""


@frozen(kw_only=True)
class Refusal:
    """A distinct access that is refused."""

    access: ParsedAccess
    count: int
    first: int | None
    """In us since 1970; None, as `last`, if no line has a time."""
    last: int | None
    denies: tuple[int, ...]
    """The ordinals of all DENY rules that match; none if it is refused for want of an ALLOW."""


@frozen(kw_only=True)
class Refusals:
    """What a state refuses of a log, and how many accesses it allows, or cannot decide."""

    found: tuple[Refusal, ...]
    refused: int
    allowed: int
    undecided: int
    """Accesses on which Kafka's authorizer throws, such as one whose host is no address."""
    unread: UnreadAccesses
    """Those of them of which it is not known what was asked."""


def refusals(counted: pa.Table, rules: Rules, settings: Settings) -> Refusals:
    """Decide distinct accesses (COUNTED, one row each) by the rules of one state."""
    authorizer = BulkAuthorizer.of(rules.intervals, settings)
    codes = authorizer.decide([counted.column(name) for name in REQUEST_COLUMNS])
    errors = np.isin(codes, [int(code) for code in ERRORS])
    refused = codes == DecisionCode.DEFAULT_DENY
    of_rule = codes >= 0
    denies = np.asarray(rules.table.column("permissionType").to_numpy()) != "ALLOW"
    refused[of_rule] = denies[codes[of_rule]]
    count = np.asarray(counted.column("count"))
    return Refusals(
        found=tuple(_refusals(counted.filter(pa.array(refused)), authorizer)),
        refused=int(count[refused].sum()),
        allowed=int(count[~refused & ~errors].sum()),
        undecided=int(count[errors].sum()),
        unread=undecided(counted, codes).but_of(settings.super_users),
    )


def _refusals(rows: pa.Table, authorizer: BulkAuthorizer) -> list[Refusal]:
    found = []
    for start in range(0, len(rows), _ROWS):
        block = rows.slice(start, _ROWS)
        asked = [
            access
            for values in zip(*(block.column(name).to_pylist() for name in REQUEST_COLUMNS), strict=True)
            if isinstance(access := parse_access(Access(*values)), ParsedAccess)
        ]
        spans = zip(*(block.column(name).to_pylist() for name in ("count", "first", "last")), strict=True)
        denies = _denies(asked, authorizer)
        for access, (count, first, last), own in zip(asked, spans, denies, strict=True):
            is_timed = first <= last
            found.append(
                Refusal(
                    access=access,
                    count=count,
                    first=first if is_timed else None,
                    last=last if is_timed else None,
                    denies=own,
                )
            )
    return found


def _denies(asked: Sequence[ParsedAccess], authorizer: BulkAuthorizer) -> list[tuple[int, ...]]:
    """Return the DENY rules that match each access."""
    matches = authorizer.index.matches(list(asked))
    denies: Bools = authorizer.index.denies(matches.row)
    found: list[list[int]] = [[] for _ in asked]
    for access, ordinal in zip(matches.access[denies].tolist(), matches.ordinal[denies].tolist(), strict=True):
        found[access].append(ordinal)
    return [tuple(sorted(set(each))) for each in found]
