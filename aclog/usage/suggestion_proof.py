"""The proof of a suggestion: no access is lost, and no denied request becomes allowed."""

from collections.abc import Iterable
from typing import Self

import numpy as np
import pyarrow as pa

from aclog.analysis.comparison import differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions import Direction
from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import MetadataError
from aclog.metalog.values import frozen
from aclog.usage.decisions.access_columns import parse_columns
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules
from aclog.usage.gaining import gaining
from aclog.usage.simulation import Decided, simulation_of

_REPORT = "nothing was printed; please report it"


class SuggestionError(MetadataError):
    """A suggestion is not sound, and must not be used."""


@frozen(kw_only=True)
class Proof:
    """The result of a proof."""

    replayed: int
    """The number of accesses, including repeated ones, that were decided again without any loss."""


def prove(
    old: AclsImage, new: Iterable[StandardAcl], counted: pa.Table, settings: Settings, *, before: Decided | None = None
) -> Proof:
    """Decide accesses (COUNTED) again by the suggested ACLs, and compare both sets of ACLs over all requests.

    `before`: the decisions by the old ACLs, if they are known; used if they are by the same settings.

    Raises:
        SuggestionError: an access is decided differently, or a denied request would be allowed.

    """
    accesses = parse_columns([counted.column(name) for name in REQUEST_COLUMNS])
    if before is None or before.settings != settings or before.rules.intervals.kafka is not None:
        before = Decided.of(accesses, Rules.of_image(old), settings)
    states = States.of(old, new, settings, before.rules)
    check_decisions(counted, before, Decided.of(accesses, states.after, settings))
    states.check()
    return Proof(replayed=int(np.asarray(counted.column("count")).sum()))


@frozen(eq=False, kw_only=True)
class States:
    """The ACLs before a suggestion and after it."""

    present: AclsImage
    suggested: AclsImage
    before: Rules
    after: Rules
    settings: Settings

    @classmethod
    def of(cls, old: AclsImage, new: Iterable[StandardAcl], settings: Settings, before: Rules) -> Self:
        """Take the present ACLs, which are `before` in another form, and those of a suggestion."""
        image = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in new)
        present, after = (
            each.with_options(documented=settings.documented, cidr=settings.cidr) for each in (old, image)
        )
        return cls(
            present=present,
            suggested=after,
            before=before,
            after=Rules.of_image(after),
            settings=settings,
        )

    def check(self) -> None:
        """Compare both over all requests. Raises SuggestionError: a denied request would be allowed."""
        settings = self.settings
        # the presence of any ACL may close a resource that would be open
        changed = None if settings.allow_everyone else gaining(self.before.table, self.after.table)
        present, suggested = Policy(self.present, settings), Policy(self.suggested, settings)
        for difference in differences(present, suggested, changed=changed):
            if difference.direction is Direction.GAINED:
                raise SuggestionError(f"the suggestion is not sound: {difference}: {_REPORT}")


def check_decisions(counted: pa.Table, before: Decided, after: Decided) -> None:
    """Compare two decisions on accesses (COUNTED). Raises SuggestionError: an access is decided differently."""
    for flip in simulation_of(counted, before, after).flips.to_pylist():
        # a denial may become an error or the reverse: access is refused either way
        if "ALLOWED" in {flip["decision_before"], flip["decision_after"]}:
            what = " ".join(str(flip[name]) for name in REQUEST_COLUMNS)
            raise SuggestionError(f"the suggestion is not sound: {flip['change']}: {what}: {_REPORT}")
