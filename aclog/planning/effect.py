"""The effect of a plan: what it touches, what its deletes take away, and what it denies transiently."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from hashlib import blake2b
from itertools import chain, groupby
from uuid import UUID

from attrs import evolve

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
    PlainNames,
    Query,
    Region,
    Root,
    Subtree,
)
from aclog.analysis.rows.row import extent_of, is_allow
from aclog.authorizer.acl import ResourcePattern, StandardAcl, StandardAclWithId, acl_text, record_of
from aclog.authorizer.acls_image import AclsImage, pattern_of_content
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL, AclOperation, AclPermissionType, PatternType
from aclog.authorizer.settings import Settings
from aclog.metalog.values import frozen
from aclog.planning.plan import Stage, Step

# The names that resource patterns cover, and their difference from a region.


@frozen(kw_only=True)
class _OfType:
    """The names of one resource type; LITERAL `*` apart."""

    names: PlainNames
    wildcard: bool

    @classmethod
    def of(cls, roots: Iterable[Root]) -> "_OfType":
        """Return the names that these patterns cover."""
        prefixes: set[str] = set()
        literals: set[str] = set()
        for root in roots:
            (literals if root.literal else prefixes).add(root.name)
        return cls(names=PlainNames.of(prefixes, literals - {WILDCARD}), wildcard=WILDCARD in literals)

    def covers(self, root: Root, *, documented: bool) -> bool:
        """Return whether each name that a pattern other than LITERAL `*` covers is one of these."""
        if self.wildcard and (documented or root.name[:1] not in ("", WILDCARD)):
            return True
        return root.name in self.names if root.literal else self.names.cover(root.name)

    def outside(self, names: Names, *, documented: bool) -> Names:
        """Return those of other names that are not among these."""
        if self.wildcard:
            names = () if documented else tuple(_hidden(names))
        parts = map(self.names.outside, names)
        return tuple(part for part in parts if part is not None)


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
        """Return whether this set contains every name that a pattern covers."""
        of_type = self._of_type.get(root.kind)
        if of_type is None:
            return False
        if root.literal and root.name == WILDCARD:
            return of_type.wildcard or "" in of_type.names.prefixes
        return of_type.covers(root, documented=self._documented)

    def outside(self, region: Region) -> Region | None:
        """Return the part of a region outside these names; None if it is empty."""
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


# What the deletion of one ACL takes away, judged at the end state of its plan.


class Nothing(StrEnum):
    """Why the deletion of an ACL changes no decision."""

    ALLOWED = "still allowed by"
    """Another ALLOW grants everything that it granted."""
    DENIED = "still denied by"
    """A DENY covers everything that it covered: an ALLOW had no effect."""
    SUPER_USER = "its principal is a super user"
    UNUSABLE = "no request can match it"
    NEVER_ALLOWED = "the access it denied is not allowed anyway"
    TOGETHER = "every request is decided the same without it"


@frozen(eq=False, kw_only=True)
class TakenAway:
    """The requests whose decision changes when one ACL is removed."""

    acl: StandardAcl
    differences: tuple[Difference, ...]
    nothing: Nothing | None = None
    """The reason if there are no differences."""
    other: StandardAcl | None = None
    """With ALLOWED and DENIED: the ACL that covers it."""

    def text(self) -> str:
        """Return the reason why the deletion takes nothing away."""
        if self.nothing is None:
            return ""
        return self.nothing.value if self.other is None else f"{self.nothing.value} {acl_text(self.other)}"


def taken_away(end: Policy, acl: StandardAcl) -> TakenAway:
    """Return the effect of deleting an ACL, given the end state of its plan, which no longer has it.

    Raises:
        ReplayError: the end state has the ACL.

    """
    # A change on top of the end state's index: a new index per deletion would cost as much as all the rest together.
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
    if not is_allow(acl):  # an ACL whose principal has no colon denies everything: Kafka throws on it
        return Nothing.NEVER_ALLOWED, None
    allow = rules.covering(acl, allows=True)
    return (Nothing.TOGETHER, None) if allow is None else (Nothing.ALLOWED, allow)


def _is_usable(end: Policy, acl: StandardAcl) -> bool:
    """Return whether any request can match an ACL."""
    if acl.resource_type not in RESOURCE_TYPES:
        return False
    extent = extent_of(acl, end.settings)
    hosts = extent.hosts
    some_host = hosts.complement or any("/" in entry or is_address(entry) for entry in hosts.entries)
    return bool(extent.names and extent.operations and some_host)


def _any_id(acl: StandardAcl) -> UUID:
    return UUID(bytes=blake2b(repr(acl).encode("utf-8", "surrogatepass"), digest_size=16).digest())


# Transient denials: requests that a change denies between two batches, though they are allowed before and after.
#
# Without allow.everyone.if.no.acl.found there are no such denials, and no request is allowed on the way that is denied
# before and after: DENY ACLs are added first and removed last. With it, a name without ACLs is open to everyone, and
# the first ACL on it closes it. So only names without ACLs before or after the change matter; the second case
# is the first one in reverse.
#
# On a name without ACLs before, all ACLs are new. The first batch that covers it closes it, and each later ALLOW only
# opens more: a request that the end state allows and the first batch does not allow is denied meanwhile. If there are
# DENY ACLs on the name, they are the first batch, and it allows nothing; otherwise the first batch has the widest
# pattern on the name. Two policies distinguish all such names at once: one closes each name up to the first batch, the
# other has all ACLs.


def transient_denials(steps: Sequence[Step], before: Iterable[bytes], settings: Settings) -> list[Region]:
    """Return exactly the requests that are allowed before and after a change, and denied between two of its batches.

    The steps are in the order of `ordered`; `before` has the contents (aclog.authorizer.acls_image) of at least every
    ACL of the target that shares a name with an ACL of the steps. Regions may overlap.
    """
    batches = [list(batch) for _, batch in groupby(steps, key=lambda step: step.batch)]
    if not settings.allow_everyone or len(batches) <= 1:
        return []
    first = Counter(map(_root_of_content, before))
    last = first + Counter(_root_of(step.acl) for step in steps if step.adds)
    last -= Counter(_root_of(step.acl) for step in steps if not step.adds)
    # A batch of several stages is the whole change of a resource that overlaps no other: there is no state in between.
    staged = [batch for batch in batches if len({step.stage for step in batch}) == 1]
    adding = [batch for batch in staged if batch[0].adds]
    removing = [batch for batch in reversed(staged) if not batch[0].adds]
    regions = chain(
        _closed(adding, HeldNames.of(first, documented=settings.documented), settings),
        _closed(removing, HeldNames.of(last, documented=settings.documented), settings),
    )
    return list(dict.fromkeys(regions))


def _closed(batches: Sequence[Sequence[Step]], covered: HeldNames, settings: Settings) -> Iterator[Region]:
    """Yield the requests outside `covered` that are denied while these ACLs are added, and allowed at the end."""
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
    """Yield the requests denied meanwhile if only these DENY ACLs, and then these batches of ALLOW ACLs, are added."""
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
    """Yield the ACLs of the first batch on each pattern that no pattern of an earlier batch covers completely."""
    first: dict[Root, int] = {}
    for number, batch in enumerate(batches):
        for step in batch:
            root = _root_of(step.acl)
            if all(first.get(wider, number) == number for wider in _covering(root, documented=documented)):
                first[root] = number
                yield step.acl


def _covering(root: Root, *, documented: bool) -> Iterator[Root]:
    """Yield the patterns that cover every name of this one, including itself."""
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
