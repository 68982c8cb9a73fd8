"""Near misses of a decision: ACLs that were probably meant to match this request, and match nobody."""

from collections.abc import Callable, Iterator

from attrs import define, field

from aclog.authorizer.acl import AclBindingFilter, PatternType, ResourcePattern, ResourceType, StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.cidr import in_cidr, is_cidr
from aclog.authorizer.explanation import Role
from aclog.authorizer.hosts import host_address
from aclog.authorizer.index.masks import ALLOWED, DENIED, rule_mask
from aclog.authorizer.interface import RequestContext
from aclog.authorizer.unmatched import host_problem, listed_principals
from aclog.metalog.errors import ConfigError


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
        """Return why the ACL misses the request by its principal or host; None if it was meant for another one."""
        if role is Role.OTHER_PRINCIPAL and self.context.principal in listed_principals(acl.principal):
            return f"{acl.principal} is one principal whose name has a comma, not a list"
        if role is Role.OTHER_HOST and _may_mean(acl.host, self.context.host):
            return host_problem(acl.host, cidr=self.cidr)
        return None

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each reason."""
        for reason, count in self._counts.items():
            yield f"{count} ACL(s) on this resource do not match this request: {reason}"


def _may_mean(text: str, host: str) -> bool:
    """Return whether the host of an ACL may stand for an address; a name may stand for any."""
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

    `matches` is asked whether an ACL matches the request in all but its resource.
    """
    if pattern.resource_type != ResourceType.USER:
        return
    kind, colon, name = pattern.name.partition(":")
    if not colon:
        yield f"the USER resource {kind!r} is no principal: expected its type, too, as in User:{kind}"
    literal = AclBindingFilter(
        resource_type=ResourceType.USER,
        resource_name=name if colon else f"User:{kind}",
        pattern_type=PatternType.LITERAL,
    )
    count = sum(matches(rule.acl) for rule in image.matching(literal))
    if count:
        yield f"{count} ACL(s) on the USER resource {literal.resource_name!r} do not cover {pattern.name!r}"
