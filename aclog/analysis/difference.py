"""The exact difference of two policies: every request that one of them allows and the other does not."""

from collections.abc import Iterable, Iterator

from attrs import evolve

from aclog.analysis.engine.changed_cells import cell_of, changed_cells
from aclog.analysis.engine.exploration import Exploration
from aclog.analysis.engine.scope import scope_of, whole_scope
from aclog.analysis.policy import Policy
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Difference, Region
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage


def differences(
    old: Policy, new: Policy, *, query: Query | None = None, changed: Iterable[StandardAcl] | None = None
) -> Iterator[Difference]:
    """Yield regions that hold exactly the requests on which two policies decide differently, in a stable order.

    `query` restricts it to some requests. `changed`: every rule that only one of them has, if known; it saves the
    comparison of all rules. Regions of one direction may overlap.

    A request on which Kafka's authorizer throws, since an ACL on the resource has a principal without a colon, counts
    as not allowed.
    """
    if changed is None:
        cells = changed_cells(old.acls.index, new.acls.index)
    else:
        cells = iter(dict.fromkeys(map(cell_of, changed)))
    asked = query or Query()
    return Exploration.of(old, new, asked).explore(scope_of(old, new, cells).within(asked))


def allowed(policy: Policy, query: Query) -> Iterator[Region]:
    """Yield regions that hold exactly the requests of the query that a policy allows, in a stable order.

    What Kafka's authorizer throws on counts as not allowed (see `differences`). Regions may overlap.
    """
    nothing = Policy(AclsImage.empty())
    found = Exploration.of(nothing, policy, query).explore(whole_scope().within(query))
    return (difference.region for difference in found)


def denied(policy: Policy, query: Query) -> Iterator[Region]:
    """Yield regions that hold exactly the requests of the query that a policy does not allow, in a stable order.

    What Kafka's authorizer throws on is among them (see `differences`). Regions may overlap.
    """
    everything = Policy(AclsImage.empty(), evolve(policy.settings, allow_everyone=True))
    found = Exploration.of(everything, policy, query).explore(whole_scope().within(query))
    return (difference.region for difference in found)
