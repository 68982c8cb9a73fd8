"""Requests for which Kafka 4.3.1 differs from its documentation, or does not return (docs/semantics.md)."""

from aclog.authorizer.acl import WILDCARD, AclBindingFilter, PatternType, ResourcePattern
from aclog.authorizer.acls_image import AclsImage, Verdict
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index.keys import utf16
from aclog.authorizer.index.masks import known_type
from aclog.authorizer.interface import Action, RequestContext


def quirks_of(image: AclsImage, verdict: Verdict, context: RequestContext, action: Action) -> tuple[str, ...]:
    """Return a sentence for each quirk of Kafka that affects this request."""
    pattern = action.resource_pattern
    found = (_hidden_from_star(image, verdict, context, action), _without_answer(image, verdict, pattern))
    return tuple(quirk for quirk in found if quirk is not None)


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
        f"{count} ACL(s) on LITERAL * do not cover this resource: in Kafka * does not match a longer name that begins "
        "with *. "
    )
    documented = image.with_options(documented=True, cidr=image.cidr)
    try:
        other = documented.verdict(
            context.principal, context.host, action.operation, resource_type=pattern.resource_type, name=pattern.name
        )
    except InvalidRequestError as error:  # a principal without a colon, among ACLs that Kafka does not look at
        return f"{hidden}As documented they would, and there would be no answer: {error}."
    if other is verdict:
        return f"{hidden}The answer would be the same if they did."
    return f"{hidden}As documented they would, and the ACLs would say {other.name} instead of {verdict.name}."


def _without_answer(image: AclsImage, verdict: Verdict, pattern: ResourcePattern) -> str | None:
    """Return the sentence about the endless loop on names that sort below `*`.

    The second section of Kafka's scan (aclog.authorizer.index.kafka_scan_order) starts at `*`. At the first name that
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
