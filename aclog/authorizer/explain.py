"""Explanation of a decision.

Every ACL that covers the resource, the deciding one, near misses, and the changes that would reverse it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from attrs import evolve, field

from aclog.authorizer.acl import (
    NO_ORIGINS,
    AclBindingFilter,
    ChangePlace,
    Origins,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    acl_command,
    acl_text,
    code_name,
    host_address,
    host_problem,
    in_cidr,
    is_cidr,
    looks_like_cidr,
    object_of_rule,
    place_object,
    places_text,
)
from aclog.authorizer.acls_image import AclsImage, Basis, Decision, Verdict
from aclog.authorizer.audit import Row
from aclog.authorizer.codes import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.index.layout import ALLOWED, DENIED, known_operation, known_type, rule_mask, utf16
from aclog.authorizer.interface import Action, AuthorizationResult, InvalidRequestError, RequestContext
from aclog.authorizer.settings import is_set, pattern_text
from aclog.authorizer.spellings import ANY_ADDRESSES, misspelling
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.errors import ConfigError, printable
from aclog.metalog.values import define, frozen

# The options of an explanation, besides the ACLs and the request.


MOST_RULES = 40
"""How many ACLs an explanation lists by default; all are counted."""


@frozen(kw_only=True)
class ExplainOptions:
    """The options of an explanation; the defaults are for the newest state of some cluster."""

    allow_everyone: bool = False
    """The setting allow.everyone.if.no.acl.found, with which the decision was made."""
    host_given: bool = True
    """Whether the request has a host; if not, a suggested ACL is for any host."""
    as_of: str | None = None
    """The moment of a past state; None for the newest."""
    place: ChangePlace = field(factory=ChangePlace)
    """The target of the suggested commands."""
    origins: Origins = NO_ORIGINS
    """The locations of the ACLs."""
    premises: Premises = ALL_KNOWN
    """The unknown settings with which the decision was made."""
    limit: int = MOST_RULES
    """How many ACLs are listed, and how many removals are suggested."""


# The explanation of a decision as a value.


class Role(Enum):
    """The role of an ACL in a decision, the most important first."""

    DECIDES = "decides"
    MATCHES = "matches"
    OTHER_OPERATION = "other operation"
    OTHER_HOST = "other host"
    OTHER_PRINCIPAL = "other principal"


@frozen(kw_only=True)
class ExaminedRule:
    """An ACL that covers the resource, its role, and notes about it."""

    rule: StandardAclWithId
    role: Role
    notes: tuple[str, ...] = ()

    def to_dict(self, origins: Origins) -> Row:
        """Return this for JSON."""
        rule = {**self.rule.to_dict(), **place_object(self.rule.acl, origins)}
        return {"role": self.role.name, "rule": rule, "notes": list(self.notes)}


@frozen(kw_only=True)
class Change:
    """An ACL to add or to remove."""

    add: bool
    acl: StandardAcl
    command: str | None
    """The command line of the change; None if the ACL cannot be expressed."""

    def to_dict(self, origins: Origins) -> Row:
        """Return this for JSON."""
        rule = {**object_of_rule(self.acl), **place_object(self.acl, origins)}
        return {"change": "add" if self.add else "remove", "rule": rule, "command": self.command}


@frozen(kw_only=True)
class Remedy:
    """The smallest change that reverses the decision: all of `changes`, and `left_off` further removals not listed."""

    changes: tuple[Change, ...] = ()
    left_off: int = 0
    notes: tuple[str, ...] = ()

    def to_dict(self, origins: Origins) -> Row:
        """Return this for JSON."""
        return {
            "changes": [change.to_dict(origins) for change in self.changes],
            "leftOff": self.left_off,
            "notes": list(self.notes),
        }


@frozen(kw_only=True)
class Explanation:
    """A decision and everything that took part in it.

    `rules` are the most important ACLs that cover the resource, up to a limit; `counts` has the total of each role.
    `implied_by` is the operation of the deciding ACL if it implied the requested one.
    """

    context: RequestContext
    action: Action
    decision: Decision
    rules: tuple[ExaminedRule, ...]
    counts: Mapping[Role, int]
    implied_by: AclOperation | None
    quirks: tuple[str, ...]
    near_misses: tuple[str, ...]
    """A sentence for each group of ACLs that match no client, but were probably meant to match this request."""
    premises: Premises = ALL_KNOWN
    """The unknown premises that could change the decision."""
    remedy: Remedy
    options: ExplainOptions = field(repr=False)
    example: str | None = None
    """For a request for all names with a prefix: one of the names, whose decision this is; all are decided alike."""

    def __bool__(self) -> bool:
        """Return whether the request is allowed."""
        return self.allowed

    @property
    def allowed(self) -> bool:
        """Whether the request is allowed."""
        return self.decision.result is AuthorizationResult.ALLOWED

    @property
    def left_off(self) -> int:
        """The number of ACLs that are counted but not in `rules`."""
        return sum(self.counts.values()) - len(self.rules)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation for JSON; scripts depend on the keys."""
        pattern = self.action.resource_pattern
        return {
            "decision": self.decision.result.value,
            "rule": self.decision.text,
            "principal": self.context.principal,
            "host": self.context.host,
            "hostGiven": self.options.host_given,
            "operation": code_name(AclOperation, self.action.operation),
            "resourceType": code_name(ResourceType, pattern.resource_type),
            "resourceName": pattern.name,
            "patternType": code_name(PatternType, pattern.pattern_type),
            **({} if self.example is None else {"example": self.example}),
            "impliedBy": None if self.implied_by is None else self.implied_by.name,
            "counts": {role.name: self.counts.get(role, 0) for role in Role},
            "rules": [examined.to_dict(self.options.origins) for examined in self.rules],
            "leftOff": self.left_off,
            "quirks": list(self.quirks),
            "nearMisses": list(self.near_misses),
            "opposite": self.remedy.to_dict(self.options.origins),
            "asOf": self.options.as_of,
            **self.premises.key(),
        }


# An explanation as text.


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the lines of an explanation, with unprintable characters escaped."""
    return map(printable, _lines(explanation))


def action_text(explanation: Explanation) -> str:
    """Return the operation and the resource of the request."""
    pattern = explanation.action.resource_pattern
    is_one = explanation.example is None
    name = repr(pattern.name) if is_one else f"{pattern_text(pattern)} (all names with this prefix)"
    kind = code_name(ResourceType, pattern.resource_type)
    return f"{code_name(AclOperation, explanation.action.operation)} {kind} {name}"


def host_text(explanation: Explanation) -> str:
    """Return the host of the request, and whether it is only assumed."""
    none = "" if explanation.options.host_given else " (assumed: no host given)"
    return f"{explanation.context.host}{none}"


def matching_one_host(explanation: Explanation) -> Sequence[ExaminedRule]:
    """Return the ACLs that match the request, and would not from every other host."""
    matches = (each for each in explanation.rules if each.role in (Role.DECIDES, Role.MATCHES))
    return [each for each in matches if each.rule.acl.host != WILDCARD]


def _lines(explanation: Explanation) -> Iterator[str]:
    answer = explanation.premises.decided(explanation.decision.result.value)
    yield f"{answer}: {explanation.context.principal} {action_text(explanation)} from {host_text(explanation)}"
    yield f"based on {explanation.decision.text}"
    if explanation.example is not None:
        yield f"The rule shown decides {explanation.example!r}; all of these names are decided alike."
    if explanation.implied_by is not None:
        operation = code_name(AclOperation, explanation.action.operation)
        yield f"A permission to {explanation.implied_by.name} implies {operation}."
    yield ""
    yield from _rules(explanation)
    for quirk in explanation.quirks:
        yield from ("", f"Note: {quirk}")
    for miss in explanation.near_misses:
        yield from ("", f"Near miss: {miss}")
    if not explanation.options.host_given and matching_one_host(explanation):
        yield from ("", f"Note: the ACLs match {explanation.context.host}, which is assumed: other hosts may differ")
    yield ""
    yield "To deny it:" if explanation.allowed else "To allow it:"
    yield from (f"  {line}" for line in _remedy(explanation.remedy, explanation.options))


def _acls(count: int, what: str = "ACL") -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _rules(explanation: Explanation) -> Iterator[str]:
    total = sum(explanation.counts.values())
    is_one = explanation.example is None
    if not total:
        yield "No ACL covers this resource." if is_one else "No ACL covers any of these names."
        return
    what = "this resource" if is_one else "some or all of these names"
    parts = ", ".join(
        _count_text(role, count, also=Role.DECIDES in explanation.counts)
        for role in Role
        if (count := explanation.counts.get(role))
    )
    yield f"{_acls(total)} whose pattern matches {what} ({parts})"
    width = max((len(examined.role.value) for examined in explanation.rules), default=0)
    for examined in explanation.rules:
        yield from _rule(examined, width, explanation.options.origins)
    if explanation.left_off:
        yield f"  ... and {explanation.left_off} more"


def _count_text(role: Role, count: int, *, also: bool) -> str:
    """Return how many ACLs have a role; `also`: whether another decides."""
    if role is Role.DECIDES:
        return f"{count} {'decides' if count == 1 else 'decide'}"
    if role is Role.MATCHES:
        return f"{count}{' also' if also else ''} {'matches' if count == 1 else 'match'} the request"
    return f"{count} {'is' if count == 1 else 'are'} for an{role.value}"


def _rule(examined: ExaminedRule, width: int, origins: Origins) -> Iterable[str]:
    yield f"  {examined.role.value:<{width}}  {located_text(examined.rule.acl, origins)}"
    for note in examined.notes:
        yield f"  {'':<{width}}    ({note})"


def located_text(acl: StandardAcl, origins: Origins) -> str:
    """Return an ACL as one line of text, with its location if known."""
    return acl_text(acl) + places_text(acl, origins)


def _remedy(remedy: Remedy, options: ExplainOptions) -> Iterator[str]:
    as_of = options.as_of
    if as_of is not None and any(change.command is not None for change in remedy.changes):
        yield f"(for the state as of {as_of}; the commands change the newest one, which may differ: explain it first)"
    for change in remedy.changes:
        yield from _change(change, options.origins)
    if remedy.left_off:
        yield f"... and remove {remedy.left_off} more such ACLs"
    yield from remedy.notes


def _change(change: Change, origins: Origins) -> Iterator[str]:
    yield f"{'add' if change.add else 'remove'} {located_text(change.acl, origins)}"
    if change.command is not None:
        yield f"  {change.command}"


# Near misses: ACLs that were probably meant to match this request, but match no client.


@define(kw_only=True)
class NearMisses:
    """Counts the near misses among the ACLs that cover a resource, by reason; owned by one explanation."""

    context: RequestContext
    operation: int
    cidr: bool
    _counts: dict[str, int] = field(factory=dict, init=False)

    def examine(self, acl: StandardAcl, role: Role) -> None:
        """Add the next ACL that covers the resource."""
        reason = self.reason(acl, role)
        if reason is not None and rule_mask(acl.operation, acl.permission_type) >> self.operation & (ALLOWED | DENIED):
            self._counts[reason] = self._counts.get(reason, 0) + 1

    def reason(self, acl: StandardAcl, role: Role) -> str | None:
        """Return why the ACL misses the request by its principal or host; None if it was meant for another request."""
        if role is Role.OTHER_PRINCIPAL:
            return misspelling(acl.principal, self.context.principal)
        if role is Role.OTHER_HOST and acl.host in ANY_ADDRESSES:
            return f"no client connects from {acl.host}: * is every host"
        if role is Role.OTHER_HOST and _may_mean(acl.host, self.context.host):
            return host_problem(acl.host, cidr=self.cidr)
        return None

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each reason."""
        for reason, count in self._counts.items():
            yield f"{_acls(count)} on this resource {'does' if count == 1 else 'do'} not match this request: {reason}"


def _may_mean(text: str, host: str) -> bool:
    """Return whether the host of an ACL may be meant as an address; a name may be meant as any."""
    if is_cidr(text):
        return in_cidr(text, host)
    try:
        return host_address(text) == host
    except ConfigError:
        return True


def user_near_misses(
    image: AclsImage, pattern: ResourcePattern, matches: Callable[[StandardAcl], bool]
) -> Iterator[str]:
    """Yield a sentence if the name of a requested USER resource, or of ACLs, lacks its principal type (KIP-373).

    `matches` returns whether an ACL matches the request in all but its resource.
    """
    if pattern.resource_type != ResourceType.USER:
        return
    kind, colon, name = pattern.name.partition(":")
    if not colon:
        yield f"the USER resource {kind!r} is not a principal: expected TYPE:NAME, as in User:{kind}"
    literal = AclBindingFilter(
        resource_type=ResourceType.USER,
        resource_name=name if colon else f"User:{kind}",
        pattern_type=PatternType.LITERAL,
    )
    count = sum(matches(rule.acl) for rule in image.matching(literal))
    if count:
        what = f"{_acls(count)} on the USER resource {literal.resource_name!r}"
        yield f"{what} {'does' if count == 1 else 'do'} not cover {pattern.name!r}"


# Requests for which Kafka 4.3.1 differs from its documentation, or does not return (docs/semantics.md).


def quirks_of(image: AclsImage, verdict: Verdict, context: RequestContext, action: Action) -> tuple[str, ...]:
    """Return a sentence for each quirk of Kafka that affects this request."""
    pattern = action.resource_pattern
    quirks = (_hidden_from_star(image, verdict, context, action), _without_answer(image, verdict, pattern))
    return tuple(quirk for quirk in quirks if quirk is not None)


def _hidden_from_star(image: AclsImage, verdict: Verdict, context: RequestContext, action: Action) -> str | None:
    """Return the sentence about LITERAL `*`, which does not cover longer names that begin with `*`."""
    pattern = action.resource_pattern
    if image.documented or pattern.name == WILDCARD or not pattern.name.startswith(WILDCARD):
        return None
    star = AclBindingFilter(
        resource_type=pattern.resource_type, resource_name=WILDCARD, pattern_type=PatternType.LITERAL
    )
    count = sum(1 for _ in image.matching(star))
    if not count:
        return None
    hidden = (
        f"{_acls(count)} on LITERAL * {'does' if count == 1 else 'do'} not cover this resource: in Kafka * does not "
        "match a longer name that begins with *. "
    )
    documented = image.with_options(documented=True, cidr=image.cidr)
    try:
        other = documented.verdict(
            context.principal, context.host, action.operation, resource_type=pattern.resource_type, name=pattern.name
        )
    except InvalidRequestError as error:  # a principal without a colon, in an ACL that Kafka does not visit
        return f"{hidden}As documented they would, and there would be no answer: {error}."
    if other is verdict:
        return f"{hidden}The answer would be the same if they did."
    return f"{hidden}As documented they would, and the result would be {other.name} instead of {verdict.name}."


def _without_answer(image: AclsImage, verdict: Verdict, pattern: ResourcePattern) -> str | None:
    """Return the sentence about the endless loop on names that sort below `*`.

    The second section of Kafka's scan (aclog.authorizer.index.scan_order) starts at `*`. At the first name that
    is no prefix of the resource's it jumps to the prefix of `*` with as many characters as the two names share: with
    one, that is `*` again and the scan never ends; with more, `substring` throws. A DENY ends the scan before.
    """
    name = utf16(pattern.name)
    if not name or name >= utf16(WILDCARD) or verdict is Verdict.DENY:
        return None
    in_the_way = b""
    for rule in image.matching(AclBindingFilter(resource_type=known_type(pattern.resource_type))):
        other = utf16(rule.acl.resource_name)
        if rule.acl.resource_name == WILDCARD and rule.acl.pattern_type == PatternType.PREFIXED:
            return None  # PREFIXED `*` comes right after LITERAL `*`, and ends the second section
        if in_the_way < other < utf16(WILDCARD) and not name.startswith(other):
            in_the_way = other
    shared = _shared(name, in_the_way)
    if not shared:
        return None
    what = "never returns from" if shared == 1 else "throws StringIndexOutOfBoundsException on"
    culprit = in_the_way.decode("utf-16-be", "surrogatepass")
    return (
        f"A real Kafka 4.3.1 {what} this request, because of the ACLs on {culprit!r}, a name that sorts below * "
        "(fixed upstream later); the answer here follows the documented rules."
    )


def _shared(a: bytes, b: bytes) -> int:
    """Return how many UTF-16 code units two names share from the start."""
    pairs = zip(zip(a[::2], a[1::2], strict=True), zip(b[::2], b[1::2], strict=True), strict=False)
    return next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)) // 2)


# The ACL changes that would reverse a decision.


ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY

_DEFAULT_ALLOW = (
    "which also denies the resource to all others: allow.everyone.if.no.acl.found is for resources without any ACL",
    "or turn off allow.everyone.if.no.acl.found",
)


def find_remedy(
    decision: Decision,
    context: RequestContext,
    action: Action,
    *,
    denying: Sequence[StandardAclWithId],
    deny_count: int,
    has_allow: bool,
    candidates: int,
    options: ExplainOptions,
) -> Remedy:
    """Return the smallest change that reverses the decision.

    `denying` are the ACLs that match and deny, or the first of them, and `deny_count` is their number; `has_allow` is
    whether an ACL would allow the request without them; `candidates` is the number of ACLs that cover the resource.
    """
    if decision.basis is Basis.SUPER_USER:
        return Remedy(notes=(f"remove {context.principal} from super.users, so that ACLs decide",))
    if decision.result is AuthorizationResult.ALLOWED:
        notes = _DEFAULT_ALLOW if decision.basis is Basis.DEFAULT_ALLOW else ()
        return _with(notes, _adding(DENY, context, action, options), asks_all=_is_every_name(action.resource_pattern))
    removals = _removing((rule.acl for rule in denying), options.place)
    left_off = deny_count - len(denying)
    if deny_count and options.allow_everyone and deny_count == candidates:
        note = "allow.everyone.if.no.acl.found then allows it to everyone, since no ACL is left on the resource"
        return Remedy(changes=removals, left_off=left_off, notes=(note,))
    if has_allow:
        return Remedy(changes=removals, left_off=left_off)
    adding = _adding(ALLOW, context, action, options)
    added = _with((), adding, asks_all=_is_every_name(action.resource_pattern))
    if not added.changes:  # then removing what denies is not enough, either
        return added
    return Remedy(changes=(*removals, *added.changes), left_off=left_off, notes=added.notes)


def _with(notes: tuple[str, ...], change: Change | None, *, asks_all: bool = False) -> Remedy:
    if change is None:
        return Remedy(notes=(*notes, "no ACL can be created for such a request"))
    if change.acl.resource_name == WILDCARD and not asks_all:
        notes = (*notes, "an ACL on the name * covers nearly every resource of the type, not only this one")
    return Remedy(changes=(change,), notes=notes)


def _is_every_name(pattern: ResourcePattern) -> bool:
    return is_set(pattern) and not pattern.name


def _removing(acls: Iterable[StandardAcl], place: ChangePlace) -> tuple[Change, ...]:
    return tuple(Change(add=False, acl=acl, command=acl_command(acl, add=False, place=place)) for acl in acls)


def _adding(
    permission: AclPermissionType, context: RequestContext, action: Action, options: ExplainOptions
) -> Change | None:
    """Return the narrowest ACL for the requested action; None if Kafka would reject its creation."""
    pattern = action.resource_pattern
    known_type = pattern.resource_type in set(ResourceType) and pattern.resource_type > ResourceType.ANY
    known_operation = action.operation in set(AclOperation) and action.operation > AclOperation.ANY
    if _is_every_name(pattern):  # no ACL has an empty prefix
        pattern = ResourcePattern(resource_type=pattern.resource_type, name=WILDCARD)
    if not (known_type and known_operation and pattern.name):
        return None
    acl = StandardAcl(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=context.principal,
        host=context.host if options.host_given else WILDCARD,
        operation=action.operation,
        permission_type=permission,
    )
    return Change(add=True, acl=acl, command=acl_command(acl, add=True, place=options.place))


# Explanation of a decision: every ACL that covers the resource, with its role.


_DEFAULTS = ExplainOptions()


def explain(
    image: AclsImage,
    decision: Decision,
    context: RequestContext,
    action: Action,
    *,
    options: ExplainOptions = _DEFAULTS,
) -> Explanation:
    """Explain a decision; `image` must be the image, with the same options, that it was made on.

    The explanation and the remedy list at most `options.limit` ACLs each; all are counted.

    Raises:
        InvalidRequestError: as AclsImage.verdict.

    """
    pattern = action.resource_pattern
    sorter = _sorted(image, decision, context, action, options, image.candidates(pattern.resource_type, pattern.name))
    explanation = _explanation(image, sorter, decision, action, options)
    if decision.basis is Basis.SUPER_USER:
        return explanation
    return evolve(
        explanation,
        quirks=(*explanation.quirks, *_quirks(image, context, action)),
        near_misses=(*explanation.near_misses, *user_near_misses(image, pattern, sorter.matches)),
    )


def explain_set(
    image: AclsImage,
    decision: Decision,
    context: RequestContext,
    action: Action,
    *,
    example: str,
    rules: Iterable[StandardAclWithId],
    options: ExplainOptions = _DEFAULTS,
) -> Explanation:
    """Explain a decision that is the same for all names that begin so; `rules` are the ACLs that cover any such name.

    `decision` is that on the example. Quirks of Kafka are those of single names and are left out.
    """
    sorter = _sorted(image, decision, context, action, options, rules)
    return evolve(_explanation(image, sorter, decision, action, options), example=example)


def _explanation(
    image: AclsImage, sorter: "_RuleSorter", decision: Decision, action: Action, options: ExplainOptions
) -> Explanation:
    # For a super user ACLs are not read, so their quirks do not matter.
    super_user = decision.basis is Basis.SUPER_USER
    premises = options.premises
    if premises:
        premises = premises.bearing_on(allowed=bool(decision), has_candidate=image.covers(action.resource_pattern))
    return Explanation(
        context=sorter.context,
        action=action,
        decision=decision,
        options=options,
        rules=sorter.examined_rules(),
        counts=sorter.counts,
        implied_by=_implied_by(decision, sorter.operation),
        quirks=() if super_user else tuple(sorter.quirks()),
        near_misses=() if super_user else tuple(sorter.near_misses.sentences()),
        premises=premises,
        remedy=find_remedy(
            decision,
            sorter.context,
            action,
            denying=sorter.denying,
            deny_count=sorter.deny_count,
            has_allow=sorter.allowing,
            candidates=sum(sorter.counts.values()),
            options=options,
        ),
    )


def _sorted(
    image: AclsImage,
    decision: Decision,
    context: RequestContext,
    action: Action,
    options: ExplainOptions,
    rules: Iterable[StandardAclWithId],
) -> "_RuleSorter":
    operation = known_operation(action.operation)
    sorter = _RuleSorter(
        context=context,
        operation=operation,
        pattern=action.resource_pattern,
        cidr=image.cidr,
        limit=options.limit,
        near_misses=NearMisses(context=context, operation=operation, cidr=image.cidr),
    )
    for rule in rules:
        sorter.examine(rule, decides=decision.rule is not None and rule == decision.rule)
    return sorter


def _covers_all(acl: StandardAcl, pattern: ResourcePattern) -> bool:
    """Return whether an ACL that covers one name of a question covers all its names."""
    if not is_set(pattern):
        return True
    if acl.pattern_type == PatternType.LITERAL:
        return acl.resource_name == WILDCARD and bool(pattern.name) and not pattern.name.startswith(WILDCARD)
    return pattern.name.startswith(acl.resource_name)


def _quirks(image: AclsImage, context: RequestContext, action: Action) -> tuple[str, ...]:
    pattern = action.resource_pattern
    verdict = image.verdict(
        context.principal, context.host, action.operation, resource_type=pattern.resource_type, name=pattern.name
    )
    return quirks_of(image, verdict, context, action)


@define(kw_only=True)
class _RuleSorter:
    """Sorts ACLs by role; keeps at most `limit` of each."""

    context: RequestContext
    operation: int
    pattern: ResourcePattern
    cidr: bool
    limit: int
    near_misses: NearMisses
    examined: dict[Role, list[ExaminedRule]] = field(factory=lambda: {role: [] for role in Role}, init=False)
    counts: Counter[Role] = field(factory=Counter, init=False)
    denying: list[StandardAclWithId] = field(factory=list, init=False)
    deny_count: int = field(default=0, init=False)
    allowing: bool = field(default=False, init=False)
    failing_open: int = field(default=0, init=False)

    def examine(self, rule: StandardAclWithId, *, decides: bool) -> None:
        """Add the next ACL that covers the resource; `decides`: it is the one that the decision names."""
        role = self._role(rule.acl)
        if role is Role.MATCHES:
            self._note_match(rule)
            role = Role.DECIDES if decides else role
        if role is Role.OTHER_HOST and self._fails_open(rule.acl):
            self.failing_open += 1
        self.near_misses.examine(rule.acl, role)
        self.counts[role] += 1
        if len(self.examined[role]) < self.limit:
            notes = tuple(_notes(rule.acl, self.context, role, cidr=self.cidr))
            self.examined[role].append(ExaminedRule(rule=rule, role=role, notes=notes))

    def matches(self, acl: StandardAcl) -> bool:
        """Return whether an ACL matches the request, its resource aside."""
        return self._role(acl) is Role.MATCHES

    def _role(self, acl: StandardAcl) -> Role:
        if acl.principal not in (self.context.principal, WILDCARD_PRINCIPAL):
            return Role.OTHER_PRINCIPAL
        if acl.host not in (self.context.host, WILDCARD) and not (self.cidr and in_cidr(acl.host, self.context.host)):
            return Role.OTHER_HOST
        speaks = rule_mask(acl.operation, acl.permission_type) >> self.operation & (ALLOWED | DENIED)
        return Role.MATCHES if speaks else Role.OTHER_OPERATION

    def _note_match(self, rule: StandardAclWithId) -> None:
        if rule.acl.permission_type == AclPermissionType.ALLOW:
            self.allowing |= _covers_all(rule.acl, self.pattern)
            return
        self.deny_count += 1
        if len(self.denying) < self.limit:
            self.denying.append(rule)

    def _fails_open(self, acl: StandardAcl) -> bool:
        denies = acl.permission_type != AclPermissionType.ALLOW
        return denies and looks_like_cidr(acl.host) and in_cidr(acl.host, self.context.host)

    def quirks(self) -> Iterator[str]:
        if self.failing_open:
            yield (
                f"{_acls(self.failing_open, 'DENY ACL')} {'has' if self.failing_open == 1 else 'have'} a range that "
                f"contains {self.context.host} as host: Kafka 4.3 does not match it, so it denies nothing."
            )

    def examined_rules(self) -> tuple[ExaminedRule, ...]:
        return tuple(examined for role in Role for examined in self.examined[role])[: self.limit]


def _implied_by(decision: Decision, operation: int) -> AclOperation | None:
    rule = decision.rule
    if rule is None or rule.acl.operation in (operation, AclOperation.ALL):
        return None
    return AclOperation(known_operation(rule.acl.operation))


def _notes(acl: StandardAcl, context: RequestContext, role: Role, *, cidr: bool) -> Iterator[str]:
    """Yield notes about an ACL besides its role."""
    if acl.principal.endswith(":*") and acl.principal != WILDCARD_PRINCIPAL:
        yield f"only {WILDCARD_PRINCIPAL} matches everyone; {acl.principal} matches one principal with that name"
    if role is Role.OTHER_HOST:
        yield from _host_notes(acl.host, context.host, cidr=cidr)
    if role is Role.OTHER_OPERATION and acl.permission_type != AclPermissionType.ALLOW:
        yield "a DENY does not imply other operations, unlike an ALLOW"
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        yield f"pattern type {code_name(PatternType, acl.pattern_type)} acts as PREFIXED"
    if acl.permission_type not in (AclPermissionType.ALLOW, AclPermissionType.DENY):
        yield f"permission {code_name(AclPermissionType, acl.permission_type)} acts as DENY"


def _host_notes(text: str, host: str, *, cidr: bool) -> Iterator[str]:
    if cidr and "/" in text:
        yield (
            f"the range {text} does not contain {host}"
            if is_cidr(text)
            else f"{text} is not a range: it matches no client"
        )
        return
    if looks_like_cidr(text):
        inside = "contains" if in_cidr(text, host) else "does not contain"
        yield f"{text} {inside} {host}, but Kafka 4.3 compares hosts as text"
        return
    try:
        if host_address(text) == host:
            yield f"{text} is the same address, but hosts are compared as text and only {host} matches"
    except ConfigError:
        yield f"{text!r} is not an address, so it matches no client"
