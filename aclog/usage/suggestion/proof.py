"""The proof of a suggestion: no access is lost, and no request is allowed that was not."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from attrs import frozen

from aclog.analysis.difference import differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions.region import Direction
from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import MetadataError
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.rules import Rules
from aclog.usage.simulation import simulate

_REPORT = "nothing was printed; please report it"


class SuggestionError(MetadataError):
    """A suggestion that is not sound: nothing of it may be used."""


@frozen(kw_only=True)
class Proof:
    """What was proved."""

    replayed: int
    """The accesses, as often as they were made, that were decided again; none was lost."""


def prove(old: AclsImage, new: Iterable[StandardAcl], counted: pa.Table, settings: Settings) -> Proof:
    """Decide accesses (COUNTED) again by the new rules, and compare both sets of rules on every request there is.

    Raises:
        SuggestionError: an access is decided otherwise, or a request would be allowed that was not.

    """
    image = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in new)
    before, after = (each.with_options(documented=settings.documented, cidr=settings.cidr) for each in (old, image))
    sides = [(Rules.of_image(image), settings) for image in (old, after)]
    found = simulate(counted, sides[0], sides[1])
    for flip in found.flips.to_pylist():
        # a denial may become an error or the reverse: nobody gets in, either way
        if "ALLOWED" in {flip["decision_before"], flip["decision_after"]}:
            what = " ".join(str(flip[name]) for name in REQUEST_COLUMNS)
            raise SuggestionError(f"the suggestion is not sound: {flip['change']}: {what}: {_REPORT}")
    for difference in differences(Policy(before, settings), Policy(after, settings)):
        if difference.direction is Direction.GAINED:
            raise SuggestionError(f"the suggestion is not sound: {difference}: {_REPORT}")
    return Proof(replayed=int(np.asarray(counted.column("count")).sum()))
