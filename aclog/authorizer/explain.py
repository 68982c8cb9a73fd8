"""Explanation of a decision: every ACL that covers the resource, with its role."""

from collections import Counter
from collections.abc import Iterable, Iterator

from attrs import define, evolve, field

from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    code_name,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.cidr import in_cidr, is_cidr, looks_like_cidr
from aclog.authorizer.decision import Basis, Decision
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.explanation import ExaminedRule, Explanation, Role
from aclog.authorizer.hosts import host_address
from aclog.authorizer.index.masks import ALLOWED, DENIED, known_operation, rule_mask
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.name_notation import is_set
from aclog.authorizer.near_misses import NearMisses, user_near_misses
from aclog.authorizer.quirks import quirks_of
from aclog.authorizer.remedy import find_remedy
from aclog.metalog.errors import ConfigError

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
    """Explain a decision that is the same for all names that begin so; `rules` are the ACLs that cover any of them.

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
        rules=sorter.shown(),
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
    """Return whether an ACL that covers a name of a question covers all of them."""
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
    kept: dict[Role, list[ExaminedRule]] = field(factory=lambda: {role: [] for role in Role}, init=False)
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
        if len(self.kept[role]) < self.limit:
            notes = tuple(_notes(rule.acl, self.context, role, cidr=self.cidr))
            self.kept[role].append(ExaminedRule(rule=rule, role=role, notes=notes))

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
                f"{self.failing_open} DENY ACL(s) are meant for a range of addresses that contains "
                f"{self.context.host}. Kafka 4.3.1 does not support ranges: they deny nobody."
            )

    def shown(self) -> tuple[ExaminedRule, ...]:
        return tuple(examined for role in Role for examined in self.kept[role])[: self.limit]


def _implied_by(decision: Decision, operation: int) -> AclOperation | None:
    rule = decision.rule
    if rule is None or rule.acl.operation in (operation, AclOperation.ALL):
        return None
    return AclOperation(known_operation(rule.acl.operation))


def _notes(acl: StandardAcl, context: RequestContext, role: Role, *, cidr: bool) -> Iterator[str]:
    """Yield what to know about an ACL besides its role."""
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
        yield f"the range {text} does not contain {host}" if is_cidr(text) else f"{text} is no range: it matches nobody"
        return
    if looks_like_cidr(text):
        inside = "would contain" if in_cidr(text, host) else "would not contain"
        yield f"{text} looks like a range, which {inside} {host}; Kafka 4.3.1 compares hosts as text: it matches nobody"
        return
    try:
        if host_address(text) == host:
            yield f"{text} is the same address, but hosts are compared as text and only {host} matches"
    except ConfigError:
        yield f"{text!r} is not an address, so it matches no client"
