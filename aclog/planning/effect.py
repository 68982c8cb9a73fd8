"""What a change touches and denies on its way."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from hashlib import blake2b
from itertools import chain, groupby
from uuid import UUID

from attrs import evolve, frozen

from aclog.analysis.comparison import differences
from aclog.analysis.engine.host_classes import is_address
from aclog.analysis.lint.finding import Responsible
from aclog.analysis.policy import Policy
from aclog.analysis.regions import (
    RESOURCE_TYPES,
    Difference,
    Direction,
    Literal,
    NamePart,
    Names,
    Query,
    Region,
    Root,
    Subtree,
)
from aclog.analysis.rows.row import extent_of, is_allow
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    acl_text,
    record_of,
)
from aclog.authorizer.acls_image import AclsImage, pattern_of_content
from aclog.authorizer.index.names import prefix_range
from aclog.authorizer.settings import Settings
from aclog.planning.plan import Stage, Step

# The names that resource patterns cover, and what they leave of a region.


@frozen(kw_only=True)
class _OfType:
    """The names of one resource type; LITERAL `*` apart."""

    prefixes: Sequence[str]
    """Sorted; none begins with another."""
    literals: Sequence[str]
    """Sorted; none begins with one of the prefixes."""
    wildcard: bool

    @classmethod
    def of(cls, roots: Iterable[Root]) -> "_OfType":
        """Return the names of these patterns."""
        prefixes: set[str] = set()
        literals: set[str] = set()
        for root in roots:
            (literals if root.literal else prefixes).add(root.name)
        topmost = _topmost(prefixes)
        return cls(
            prefixes=topmost,
            literals=[name for name in sorted(literals) if name != WILDCARD and not _begins_with_one(name, topmost)],
            wildcard=WILDCARD in literals,
        )

    def covers(self, root: Root, *, documented: bool) -> bool:
        """Return whether each name that a pattern other than LITERAL `*` covers is one of these."""
        if self.wildcard and (documented or root.name[:1] not in ("", WILDCARD)):
            return True
        return _begins_with_one(root.name, self.prefixes) or (root.literal and _has(self.literals, root.name))

    def outside(self, names: Names, *, documented: bool) -> Names:
        """Return what these names leave of others."""
        if self.wildcard:
            names = () if documented else tuple(_hidden(names))
        parts = map(self._outside, names)
        return tuple(part for part in parts if part is not None)

    def _outside(self, part: NamePart) -> NamePart | None:
        if isinstance(part, Literal):
            return None if _has(self.literals, part.name) or _begins_with_one(part.name, self.prefixes) else part
        if _begins_with_one(part.prefix, self.prefixes):
            return None
        prefixes, literals = _beginning(self.prefixes, part.prefix), _beginning(self.literals, part.prefix)
        if not prefixes and not literals:
            return part
        excepted = _topmost({*part.except_prefixes, *prefixes})
        single = {name for name in chain(part.except_literals, literals) if not _begins_with_one(name, excepted)}
        return evolve(part, except_prefixes=tuple(excepted), except_literals=tuple(sorted(single)))


@frozen(kw_only=True)
class HeldNames:
    """The names that some resource patterns cover."""

    _of_type: dict[int, _OfType]
    _documented: bool

    @classmethod
    def of(cls, roots: Iterable[Root], *, documented: bool) -> "HeldNames":
        """Return the names of these patterns; `documented` as aclog.authorizer.settings has it."""
        of_type: dict[int, list[Root]] = {}
        for root in roots:
            of_type.setdefault(root.kind, []).append(root)
        return cls(of_type={kind: _OfType.of(group) for kind, group in of_type.items()}, documented=documented)

    def covers(self, root: Root) -> bool:
        """Return whether each name that a pattern covers is one of these."""
        of_type = self._of_type.get(root.kind)
        if of_type is None:
            return False
        if root.literal and root.name == WILDCARD:
            return of_type.wildcard or "" in of_type.prefixes
        return of_type.covers(root, documented=self._documented)

    def outside(self, region: Region) -> Region | None:
        """Return the part of a region on other names; None if that is nothing."""
        of_type = self._of_type.get(region.resource_type)
        if of_type is None:
            return region
        names = of_type.outside(region.names, documented=self._documented)
        return evolve(region, names=names) if names else None


def _hidden(names: Names) -> Iterator[NamePart]:
    """Yield the names that LITERAL `*` does not cover in Kafka: longer ones that begin with `*`."""
    for part in names:
        if isinstance(part, Literal):
            if part.name.startswith(WILDCARD) and part.name != WILDCARD:
                yield part
        elif part.prefix in ("", WILDCARD):
            prefixes = tuple(each for each in part.except_prefixes if each.startswith(WILDCARD))
            if WILDCARD not in prefixes:
                single = {each for each in part.except_literals if each.startswith(WILDCARD)} | {WILDCARD}
                yield Subtree(prefix=WILDCARD, except_prefixes=prefixes, except_literals=tuple(sorted(single)))
        elif part.prefix.startswith(WILDCARD):
            yield part


def _topmost(prefixes: Iterable[str]) -> list[str]:
    """Return, sorted, those that begin with none of the others."""
    topmost: list[str] = []
    for each in sorted(prefixes):
        if not topmost or not each.startswith(topmost[-1]):
            topmost.append(each)
    return topmost


def _begins_with_one(name: str, topmost: Sequence[str]) -> bool:
    """Return whether a name begins with one of sorted prefixes, none of which begins with another."""
    # Whatever is sorted between a prefix and a name that begins with it begins with it, too.
    at = bisect_right(topmost, name)
    return at > 0 and name.startswith(topmost[at - 1])


def _beginning(names: Sequence[str], prefix: str) -> Sequence[str]:
    """Return those of sorted names that begin with a prefix."""
    begin, end = prefix_range(names, prefix)
    return names[begin:end]


def _has(names: Sequence[str], name: str) -> bool:
    at = bisect_left(names, name)
    return at < len(names) and names[at] == name


# What the deletion of one ACL takes away, seen from the end of its plan.


class Nothing(StrEnum):
    """Why the deletion of an ACL changes no decision."""

    ALLOWED = "still allowed by"
    """Another ALLOW says all that it said."""
    DENIED = "still denied by"
    """A DENY says all that it said: of an ALLOW, it gave nothing."""
    SUPER_USER = "its principal is a super user"
    UNUSABLE = "no request is about it"
    NEVER_ALLOWED = "what it denied is not allowed otherwise"
    TOGETHER = "every request is decided the same without it"


@frozen(eq=False, kw_only=True)
class TakenAway:
    """What one ACL still did: the requests that are decided otherwise without it."""

    acl: StandardAcl
    differences: tuple[Difference, ...]
    nothing: Nothing | None = None
    """Why there are none."""
    other: StandardAcl | None = None
    """With ALLOWED and DENIED: the ACL that says the same."""

    def text(self) -> str:
        """Return why it takes nothing away."""
        if self.nothing is None:
            return ""
        return self.nothing.value if self.other is None else f"{self.nothing.value} {acl_text(self.other)}"


def taken_away(end: Policy, acl: StandardAcl) -> TakenAway:
    """Return what an ACL that the end of a plan no longer has would have changed there.

    Raises:
        ReplayError: the end has it.

    """
    # On top of the end's index: to make a new one for each deletion would take as long as all else together.
    more = Policy(end.acls.apply((record_of(acl, _any_id(acl)),)), end.settings)
    regions = tuple(differences(more, end, changed=[acl]))
    if regions:
        return TakenAway(acl=acl, differences=regions)
    nothing, other = _why(end, acl)
    return TakenAway(acl=acl, differences=(), nothing=nothing, other=other)


def _why(end: Policy, acl: StandardAcl) -> tuple[Nothing, StandardAcl | None]:
    if not _is_usable(end, acl):
        return Nothing.UNUSABLE, None
    if acl.principal in end.settings.super_users:
        return Nothing.SUPER_USER, None
    rules = Responsible(index=end.acls.index, documented=end.settings.documented)
    deny = rules.covering(acl, allows=False)
    if deny is not None:
        return Nothing.DENIED, deny
    if not is_allow(acl):  # or its principal has no colon: then it denies everything, as Kafka throws on it
        return Nothing.NEVER_ALLOWED, None
    allow = rules.covering(acl, allows=True)
    return (Nothing.TOGETHER, None) if allow is None else (Nothing.ALLOWED, allow)


def _is_usable(end: Policy, acl: StandardAcl) -> bool:
    """Return whether there is a request that an ACL is about."""
    if acl.resource_type not in RESOURCE_TYPES:
        return False
    extent = extent_of(acl, end.settings)
    hosts = extent.hosts
    some_host = hosts.complement or any("/" in entry or is_address(entry) for entry in hosts.entries)
    return bool(extent.names and extent.operations and some_host)


def _any_id(acl: StandardAcl) -> UUID:
    return UUID(bytes=blake2b(repr(acl).encode("utf-8", "surrogatepass"), digest_size=16).digest())


# Which requests a change denies on its way, though both ends allow them.
#
# Without allow.everyone.if.no.acl.found there are none, and never is a request allowed that both ends deny: denies
# are added first and removed last. With it, a name that no ACL covers is open to all, and closes with the first ACL
# on it. So only names count that nothing covers before, or nothing afterwards; the second are the first, seen
# backwards.
#
# On a name that nothing covers before, all ACLs are new. The first batch that covers it closes it, and each later
# ALLOW only opens more: whom the first batch does not let in, though the end does, waits. The first batch is one of
# denies if any deny comes there, and lets in nobody; else it is that of the widest pattern on the name. Two policies
# of what comes tell all names apart at once: one closes each just so far, the other holds everything.


def transient_denials(steps: Sequence[Step], before: Iterable[bytes], settings: Settings) -> list[Region]:
    """Return exactly the requests that both ends of a change allow and some state between two batches denies.

    The steps are in the order of `ordered`; `before` has the contents (aclog.authorizer.acls_image) of at least every
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
    regions = chain(
        _closed(adding, HeldNames.of(first, documented=settings.documented), settings),
        _closed(removing, HeldNames.of(last, documented=settings.documented), settings),
    )
    return list(dict.fromkeys(regions))


def _closed(batches: Sequence[Sequence[Step]], covered: HeldNames, settings: Settings) -> Iterator[Region]:
    """Yield what waits, on names that are not held, while these ACLs come, though it is allowed in the end."""
    new = [[step for step in batch if not covered.covers(_root_of(step.acl))] for batch in batches]
    denies = [step.acl for batch in new for step in batch if step.stage in (Stage.ADD_DENY, Stage.REMOVE_DENY)]
    allows = [batch for batch in new if batch and batch[0].stage in (Stage.ADD_ALLOW, Stage.REMOVE_ALLOW)]
    if not allows:
        return
    for region in _waiting(denies, allows, settings):
        outside = covered.outside(region)
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
