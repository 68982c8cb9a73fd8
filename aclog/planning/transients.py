"""Which requests a change denies on its way, though both ends allow them.

Without allow.everyone.if.no.acl.found there are none, and never is a request allowed that both ends deny: denies are
added first and removed last. With it, a name that no ACL covers is open to all, and closes with the first ACL on it.
So only names count that nothing covers before, or nothing afterwards; the second are the first, seen backwards.

On a name that nothing covers before, all ACLs are new. The first batch that covers it closes it, and each later ALLOW
only opens more: whom the first batch does not let in, though the end does, waits. The first batch is one of denies if
any deny comes there, and lets in nobody; else it is that of the widest pattern on the name. Two policies of what comes
tell all names apart at once: one closes each just so far, the other holds everything.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby

from aclog.analysis.difference import differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Direction, Region
from aclog.analysis.regions.root import Root
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.rule_content import pattern_of_content
from aclog.authorizer.settings import Settings
from aclog.planning.held_names import HeldNames
from aclog.planning.step import Stage, Step


def transient_denials(steps: Sequence[Step], before: Iterable[bytes], settings: Settings) -> list[Region]:
    """Return exactly the requests that both ends of a change allow and some state between two batches denies.

    The steps are in the order of `ordered`; `before` has the contents (aclog.authorizer.rule_content) of at least every
    ACL of the place that covers a name which an ACL of the steps covers, too. Regions may overlap.
    """
    batches = [list(batch) for _, batch in groupby(steps, key=lambda step: step.batch)]
    if not settings.allow_everyone or len(batches) <= 1:
        return []
    first = Counter(map(_root_of_content, before))
    last = first + Counter(_root_of(step.acl) for step in steps if step.adds)
    last -= Counter(_root_of(step.acl) for step in steps if not step.adds)
    # A batch of several stages makes the whole change of a resource that overlaps no other one: nothing is between.
    staged = [batch for batch in batches if len({step.stage for step in batch}) == 1]
    adding = [batch for batch in staged if batch[0].adds]
    removing = [batch for batch in reversed(staged) if not batch[0].adds]
    found = chain(
        _closed(adding, HeldNames.of(first, documented=settings.documented), settings),
        _closed(removing, HeldNames.of(last, documented=settings.documented), settings),
    )
    return list(dict.fromkeys(found))


def _closed(batches: Sequence[Sequence[Step]], held: HeldNames, settings: Settings) -> Iterator[Region]:
    """Yield what waits, on names that are not held, while these ACLs come, though it is allowed in the end."""
    new = [[step for step in batch if not held.covers(_root_of(step.acl))] for batch in batches]
    denies = [step.acl for batch in new for step in batch if step.stage in (Stage.ADD_DENY, Stage.REMOVE_DENY)]
    allows = [batch for batch in new if batch and batch[0].stage in (Stage.ADD_ALLOW, Stage.REMOVE_ALLOW)]
    if not allows:
        return
    for region in _waiting(denies, allows, settings):
        outside = held.outside(region)
        if outside is not None:
            yield outside


def _waiting(denies: Sequence[StandardAcl], allows: Sequence[Sequence[Step]], settings: Settings) -> Iterator[Region]:
    """Yield what waits while these denies and then these batches of allows come, as if there were no others."""
    first = list(_first_on_names(allows, documented=settings.documented))
    closing = [_closing(root) for root in dict.fromkeys(map(_root_of, denies))]
    end = _policy((*denies, *(step.acl for batch in allows for step in batch)), settings)
    yield from _gained(_policy((*closing, *first), settings), end, Query())
    # LITERAL `*` and the prefix `*` have one name in common, `*` itself: LITERAL `*` comes first there, and alone.
    roots = set(map(_root_of, first))
    for kind in sorted({root.kind for root in roots}):
        wildcard, prefix = Root(kind, WILDCARD, literal=True), Root(kind, WILDCARD, literal=False)
        if wildcard in roots and prefix in roots:
            alone = (acl for acl in first if _root_of(acl) != prefix)
            itself = Query(resources=(ResourcePattern(resource_type=kind, name=WILDCARD),))
            yield from _gained(_policy((*closing, *alone), settings), end, itself)


def _gained(state: Policy, end: Policy, query: Query) -> Iterator[Region]:
    for difference in differences(state, end, query=query):
        if difference.direction is Direction.GAINED:
            yield difference.region


def _first_on_names(batches: Iterable[Sequence[Step]], *, documented: bool) -> Iterator[StandardAcl]:
    """Yield the ACLs of the first batch on each pattern that no pattern of an earlier batch covers whole."""
    first: dict[Root, int] = {}
    for number, batch in enumerate(batches):
        for step in batch:
            root = _root_of(step.acl)
            if all(first.get(wider, number) == number for wider in _covering(root, documented=documented)):
                first[root] = number
                yield step.acl


def _covering(root: Root, *, documented: bool) -> Iterator[Root]:
    """Yield the patterns that cover every name that this one covers, itself among them."""
    yield root
    if root == (root.kind, WILDCARD, True):
        yield Root(root.kind, "", literal=False)
        return
    if documented or root.name[:1] not in ("", WILDCARD):
        yield Root(root.kind, WILDCARD, literal=True)
    yield from (Root(root.kind, root.name[:end], literal=False) for end in range(len(root.name) + 1))


def _root_of(acl: StandardAcl) -> Root:
    return Root(acl.resource_type, acl.resource_name, literal=acl.pattern_type == PatternType.LITERAL)


def _root_of_content(content: bytes) -> Root:
    kind, name, pattern_type, _ = pattern_of_content(content)
    return Root(kind, name, literal=pattern_type == PatternType.LITERAL)


def _closing(root: Root) -> StandardAcl:
    """Return an ACL that denies everything on a pattern."""
    return StandardAcl(
        resource_type=root.kind,
        resource_name=root.name,
        pattern_type=PatternType.LITERAL if root.literal else PatternType.PREFIXED,
        principal=WILDCARD_PRINCIPAL,
        host=WILDCARD,
        operation=AclOperation.ALL,
        permission_type=AclPermissionType.DENY,
    )


def _policy(acls: Iterable[StandardAcl], settings: Settings) -> Policy:
    image = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in dict.fromkeys(acls))
    return Policy(image.with_options(documented=settings.documented, cidr=settings.cidr), settings)
