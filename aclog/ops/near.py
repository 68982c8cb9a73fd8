"""Why a list of access is empty, and which principals and resources with ACLs are near to the named ones."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, code_name
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import WILDCARD, PatternType, ResourceType
from aclog.authorizer.settings import is_set, name_text, pattern_text
from aclog.metalog.errors import ConfigError, plural
from aclog.snapshots.image import Image

if TYPE_CHECKING:
    from aclog.analysis.policy import Policy

_MOST = 3
_COMPARED = 20_000
"""From so many names on, only those with the same first character are compared, each in some microseconds."""


def near_names(name: str, names: Collection[str]) -> list[str]:
    """Return at most three names that differ in case alone, else those that continue it or are spelled alike."""
    from difflib import get_close_matches  # noqa: PLC0415 - needed where no ACL is listed or decides

    folded = name.casefold()
    if same := sorted(each for each in names if each.casefold() == folded and each != name):
        return same[:_MOST]
    longer = sorted(each for each in names if name and each.startswith(name) and each != name)
    pool = names if len(names) <= _COMPARED else [each for each in names if each[:1] == name[:1]]
    alike = (each for each in get_close_matches(name, pool, n=_MOST + 1) if each != name)
    return list(dict.fromkeys((*longer, *alike)))[:_MOST]


def near_principals(principal: str, named: Collection[str]) -> list[str]:
    """Return at most three principals of another type or case, else those whose names are near."""
    name = principal.partition(":")[2]
    others = sorted(each for each in named if each != principal)
    if same := [each for each in others if each.partition(":")[2].casefold() == name.casefold()]:
        return same[:_MOST]
    near = near_names(name, {text for each in others if (text := each.partition(":")[2]) not in {"", "*"}})
    return [each for text in near for each in others if each.partition(":")[2] == text][:_MOST]


def meant_principal(text: str, named: Collection[str], absent: str) -> tuple[str, str | None]:
    """Return the principal that is meant, `alice` as User:alice, and a note if it is not among the named ones.

    `absent`: the beginning of the note, such as "no ACL names". The note has near principals of the named ones.

    Raises:
        ConfigError: not a principal; or no type, and only other types of principal with this name are named.

    """
    kind, colon, name = text.partition(":")
    if not (name and kind if colon else kind):
        raise ConfigError(f"PRINCIPAL {text!r}: expected a user's name, or TYPE:NAME")
    principal = text if colon else f"{_USER}{text}"
    if principal in named:
        return principal, None
    if not colon and (others := sorted(each for each in named if each.partition(":")[2] == text)):
        raise ConfigError(f"{text}: {absent} {principal}, but {', '.join(others)}: expected TYPE:NAME")
    same = sorted(each for each in named if each.casefold() == principal.casefold())
    case = " (upper and lower case differ)" if same else ""
    return principal, f"{absent} {principal}{_meant(same or near_principals(principal, named))}{case}"


_USER = "User:"


def spelled_otherwise(principals: Iterable[str], acls: AclsImage) -> Iterator[str]:
    """Yield of each principal that no ACL names that others differ from it in case alone."""
    for principal in principals:
        if acls.has_principal(principal) or not acls.may_be_spelled_otherwise(principal):
            continue
        same = [each for each in acls.principals() if each.casefold() == principal.casefold()]
        if same:
            yield f"{unnamed(principal, same)} (upper and lower case differ)"


def unnamed(principal: str, named: Collection[str]) -> str | None:
    """Return that no ACL names a principal, and which are near; None if it is one of the named ones."""
    if principal in named:
        return None
    return f"no ACL names {principal}{_meant(near_principals(principal, named))}"


def no_permission(acls: AclsImage, principal: str) -> str:
    """Return why a principal, from any host or from one, has no permission."""
    text = unnamed(principal, acls.principals())
    if text is not None:
        return text
    rules = sum(1 for _ in acls.matching(AclBindingFilter(principal=principal)))
    return f"{plural(rules, 'ACL')} of {principal} and those of User:* grant nothing from the hosts in question"


def no_principal(policy: "Policy", resources: Iterable[ResourcePattern], image: Image) -> Iterator[str]:
    """Yield why no principal has access to some resources of a state."""
    from aclog.analysis.who_can import rules_on  # noqa: PLC0415 - `authorize` and `explain` need no analysis

    for resource in resources:
        if is_set(resource):
            covering = len(set(rules_on(policy, resource)))
        else:
            covering = sum(1 for _ in policy.acls.candidates(resource.resource_type, resource.name))
        if covering:
            yield f"{plural(covering, 'ACL')} on {_resource_text(resource)}: no principal has the access in question"
        else:
            yield _uncovered(policy.acls, resource, image.opaque.topic_names())


def nothing_listed(acls: AclsImage, resources: Sequence[ResourcePattern], principals: Sequence[str]) -> Iterator[str]:
    """Yield why no ACL of some principals on some resources is listed; empty for all of all."""
    named = acls.principals()
    reasons = [text for each in principals if (text := unnamed(each, named)) is not None]
    if not reasons:
        reasons = [_uncovered(acls, each) for each in resources if not _has_acls(acls, each)]
    yield from reasons
    if not reasons and principals and resources:
        yield "the principals and the resources have ACLs, but none together"


def _has_acls(acls: AclsImage, resource: ResourcePattern) -> bool:
    """Return whether a resource has an ACL; a MATCH, one that covers it."""
    is_match = resource.pattern_type == PatternType.MATCH
    selection = AclBindingFilter(
        resource_type=resource.resource_type,
        resource_name=resource.name,
        pattern_type=PatternType.MATCH if is_match else PatternType.ANY,
    )
    return any(True for _ in acls.matching(selection))


def unknown_topics(resources: Iterable[ResourcePattern], image: Image) -> Iterator[str]:
    """Yield that a state has no topic of a name, and no ACL for it alone or for a prefix, if it has near names."""
    topics = set(image.opaque.topic_names())
    patterns = [each for each in image.acls.resource_patterns() if each.resource_type == ResourceType.TOPIC]
    names = topics | {each.name for each in patterns if each.pattern_type == PatternType.LITERAL} - {WILDCARD}
    prefixes = tuple(each.name for each in patterns if each.pattern_type == PatternType.PREFIXED)
    for each in resources:
        is_name = each.pattern_type == PatternType.LITERAL and each.name != WILDCARD
        if each.resource_type != ResourceType.TOPIC or not is_name or each.name in names:
            continue
        if not each.name.startswith(prefixes) and (near := near_names(each.name, names)):
            what = "no topic and no ACL" if topics else "no ACL"
            yield f"{what} has the name {name_text(each.name)!r}{_meant([name_text(name) for name in near])}"


def _uncovered(acls: AclsImage, resource: ResourcePattern, topics: Iterable[str] = ()) -> str:
    kind = resource.resource_type
    names = {each.name for each in acls.resource_patterns() if each.resource_type == kind and each.name != WILDCARD}
    names.update(topics if kind == ResourceType.TOPIC else ())
    near = [f"{code_name(ResourceType, kind)} {name_text(each)}" for each in near_names(resource.name, names)]
    return f"no ACL is on {_resource_text(resource)}{_meant(near)}"


def _resource_text(resource: ResourcePattern) -> str:
    known = resource.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
    text = pattern_text(resource) if known else name_text(resource.name)
    return f"{code_name(ResourceType, resource.resource_type)} {text}"


def _meant(near: Sequence[str]) -> str:
    return f": did you mean {' or '.join(near)}?" if near else ""
