"""An explanation as text."""

from collections.abc import Iterable, Iterator

from aclog.authorizer.acl import AclOperation, ResourceType, StandardAcl, acl_text, code_name
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.explanation import Change, ExaminedRule, Explanation, Remedy, Role
from aclog.authorizer.name_notation import pattern_text
from aclog.authorizer.origin import Origins, places_text
from aclog.metalog.printable import printable


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the lines of an explanation, with unprintable characters escaped."""
    return map(printable, _lines(explanation))


def _lines(explanation: Explanation) -> Iterator[str]:
    context, pattern = explanation.context, explanation.action.resource_pattern
    operation = code_name(AclOperation, explanation.action.operation)
    kind = code_name(ResourceType, pattern.resource_type)
    answer = explanation.premises.decided(explanation.decision.result.value)
    none = "" if explanation.options.host_given else " (no host was given)"
    name = repr(pattern.name) if explanation.example is None else f"{pattern_text(pattern)} (all names that begin so)"
    yield f"{answer}: {context.principal} {operation} {kind} {name} from {context.host}{none}"
    yield f"based on {explanation.decision.text}"
    if explanation.example is not None:
        yield f"The rule is that of {explanation.example!r}; all of these names are decided alike."
    if explanation.implied_by is not None:
        yield f"A permission to {explanation.implied_by.name} implies {operation}."
    yield ""
    yield from _rules(explanation)
    for quirk in explanation.quirks:
        yield from ("", f"Note: {quirk}")
    for miss in explanation.near_misses:
        yield from ("", f"Near miss: {miss}")
    yield ""
    yield "It would be DENIED by:" if explanation.allowed else "It would be ALLOWED by:"
    yield from (f"  {line}" for line in _remedy(explanation.remedy, explanation.options))


def _rules(explanation: Explanation) -> Iterator[str]:
    total = sum(explanation.counts.values())
    is_one = explanation.example is None
    if not total:
        yield "No ACL covers this resource." if is_one else "No ACL covers any of these names."
        return
    parts = ", ".join(f"{explanation.counts[role]} {role.value}" for role in Role if explanation.counts.get(role))
    yield f"{total} ACL(s) cover {'this resource' if is_one else 'some or all of these names'}: {parts}"
    width = max((len(examined.role.value) for examined in explanation.rules), default=0)
    for examined in explanation.rules:
        yield from _rule(examined, width, explanation.options.origins)
    if explanation.left_off:
        yield f"  ... and {explanation.left_off} more"


def _rule(examined: ExaminedRule, width: int, origins: Origins) -> Iterable[str]:
    yield f"  {examined.role.value:<{width}}  {located_text(examined.rule.acl, origins)}"
    for note in examined.notes:
        yield f"  {'':<{width}}    ({note})"


def located_text(acl: StandardAcl, origins: Origins) -> str:
    """Return an ACL as one line of text, and where it stands, if that is known."""
    return acl_text(acl) + places_text(acl, origins)


def _remedy(remedy: Remedy, options: ExplainOptions) -> Iterator[str]:
    as_of = options.as_of
    if as_of is not None and any(change.command is not None for change in remedy.changes):
        yield f"(of the state as of {as_of}; the commands change the newest one, which may differ: explain it first)"
    for change in remedy.changes:
        yield from _change(change, options.origins)
    if remedy.left_off:
        yield f"... and removing {remedy.left_off} more such ACLs"
    yield from remedy.notes


def _change(change: Change, origins: Origins) -> Iterator[str]:
    yield f"{'adding' if change.add else 'removing'} {located_text(change.acl, origins)}"
    if change.command is not None:
        yield f"  {change.command}"
